//! Registrations for user rules.

use super::{NeededBy, Registration, known_registrations};
use crate::rule::Operation;
use crate::settings::Settings;
use crate::user_rules::{ANY, Kind};
use kube::core::{ApiResource, GroupVersionKind};
use std::collections::{BTreeMap, BTreeSet};

type RequestedKinds<'a> = BTreeMap<(&'a str, &'a str, &'a str), (&'a Kind, BTreeSet<Operation>)>;

/// Adds the kinds and operations of enabled user rules. A registered kind gets further operations; if it is registered
/// for labelled objects only, a second registration covers all objects for these operations.
pub(super) fn add_registrations(out: &mut Vec<Registration>, settings: &Settings) {
    let mut missing: RequestedKinds<'_> = BTreeMap::new();
    let rules = settings.user_rules.iter();
    for rule in rules.filter(|it| settings.is_on(&it.id, it.action)) {
        for kind in &rule.kinds {
            let operations = rule.operations.iter().copied();
            let sent = out.iter_mut().find(|it| matches_kind(it, kind));
            if let Some(it) = sent.filter(|it| it.selected_by.is_empty()) {
                it.validated_on.extend(operations);
                continue;
            }
            let key = (&*kind.group, &*kind.kind, &*kind.version);
            let (_, requested) = missing.entry(key).or_insert((kind, BTreeSet::new()));
            requested.extend(operations);
        }
    }
    fold_versions(&mut missing);
    for (kind, operations) in missing.into_values() {
        // The API server must not send an object twice.
        for entry in out.iter_mut().filter(|it| matches_kind(it, kind)) {
            entry.validated_on.retain(|on| !operations.contains(on));
        }
        out.push(registration(kind, operations));
    }
}

/// Whether a registration is for a kind of a user rule.
fn matches_kind(registered: &Registration, kind: &Kind) -> bool {
    let is_version = kind.version == ANY || kind.version == registered.version;
    registered.kind == kind.kind && registered.group == kind.group && is_version
}

/// Merges requests for single versions of a kind into a request for any version.
fn fold_versions(all: &mut RequestedKinds<'_>) {
    // Registrations for `*` and for a single version would send an object twice.
    let any: Vec<(&str, &str)> = all
        .keys()
        .filter(|(_, _, version)| *version == ANY)
        .map(|(group, kind, _)| (*group, *kind))
        .collect();
    for (group, kind) in any {
        let is_one = |key: &(&str, &str, &str)| key.0 == group && key.1 == kind && key.2 != ANY;
        let ones: Vec<_> = all.keys().copied().filter(is_one).collect();
        for one in ones {
            let (_, operations) = all.remove(&one).into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
            if let Some(requested) = all.get_mut(&(group, kind, ANY)) {
                requested.1.extend(operations.into_iter().flatten());
            }
        }
    }
}

fn registration(kind: &Kind, operations: BTreeSet<Operation>) -> Registration {
    let known = known_registrations();
    let mut known = known.iter();
    let known = known.find(|it| it.group == kind.group && it.kind == kind.kind);
    let plural = match (&kind.plural, known) {
        (Some(plural), _) => plural.clone(),
        (None, Some(known)) => known.plural.clone(),
        (None, None) => {
            // kube derives the regular plural; the page of a kind with another one must set it.
            let named = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
            ApiResource::from_gvk(&named).plural
        }
    };
    Registration {
        group: kind.group.clone(),
        version: kind.version.clone(),
        kind: kind.kind.clone(),
        plural,
        namespaced: known.is_some_and(|it| it.namespaced),
        own: false,
        foreign: None,
        needed_by: NeededBy::UserRules,
        selected_by: &[],
        defaults_selected_by: &[],
        validated_on: operations,
        defaulted_on: BTreeSet::new(),
        cel_defaults: &[],
    }
}
