//! All rules, and what is registered at the API server for them.

use crate::guarded::Guarded;
use crate::rule::{Layer, Operation, Rule};
use crate::undecodable;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::config::Action;
use lockkeeper_api::{ClusterQueue, Cohort, ResourceFlavor, Workload};
use std::collections::BTreeSet;

/// What is known of a rule without its check. The fields are those of [`Rule`].
#[derive(Clone, Debug)]
pub struct RuleInfo {
    /// The stable code.
    pub id: &'static str,
    /// The name of the bad thing.
    pub name: &'static str,
    /// The kind of object; `*` for any.
    pub kind: String,
    /// The version of lockkeeper that had it first.
    pub since: &'static str,
    /// The default action.
    pub action: Action,
    /// What it covers.
    pub covers: &'static [&'static str],
    /// Where it is checked.
    pub layers: &'static [Layer],
    /// The operations that it runs on.
    pub operations: &'static [Operation],
    /// The page.
    pub doc: &'static str,
}

/// What the API server is to send for one kind of object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural, as in a URL.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether it is one of lockkeeper's own kinds.
    pub own: bool,
    /// The label that an object must carry.
    pub selected_by: Option<&'static str>,
    /// The operations that some rule runs on.
    pub validated_on: BTreeSet<Operation>,
    /// The operations on which something may be filled in.
    pub defaulted_on: BTreeSet<Operation>,
}

/// Every rule, in the order of kinds and ids.
#[must_use]
pub fn all() -> Vec<RuleInfo> {
    let mut out = vec![undecodable::info()];
    infos::<ClusterQueue>(&mut out);
    infos::<Cohort>(&mut out);
    infos::<Workload>(&mut out);
    infos::<PriorityClass>(&mut out);
    infos::<Pod>(&mut out);
    out
}

/// The rule with this id.
#[must_use]
pub fn find(id: &str) -> Option<RuleInfo> {
    all().into_iter().find(|rule| rule.id == id)
}

/// What the API server is to send, kind by kind.
#[must_use]
pub fn registrations() -> Vec<Registration> {
    vec![
        registration::<ClusterQueue>(),
        registration::<Cohort>(),
        registration::<ResourceFlavor>(),
        registration::<Workload>(),
        registration::<PriorityClass>(),
        registration::<Pod>(),
    ]
}

fn infos<T: Guarded>(out: &mut Vec<RuleInfo>) {
    out.extend(T::rules().iter().map(|rule: &Rule<T>| RuleInfo {
        id: rule.id,
        name: rule.name,
        kind: T::kind(&()).into_owned(),
        since: rule.since,
        action: rule.action,
        covers: rule.covers,
        layers: rule.layers,
        operations: rule.check.operations(),
        doc: rule.doc,
    }));
}

fn registration<T: Guarded>() -> Registration {
    let operations = T::rules().iter().flat_map(|rule| rule.check.operations());
    let defaulted_on = if T::DEFAULTED {
        BTreeSet::from([Operation::Create, Operation::Update])
    } else {
        BTreeSet::new()
    };
    Registration {
        group: T::group(&()).into_owned(),
        version: T::version(&()).into_owned(),
        kind: T::kind(&()).into_owned(),
        plural: T::plural(&()).into_owned(),
        namespaced: T::NAMESPACED,
        own: T::OWN,
        selected_by: T::SELECTED_BY,
        validated_on: operations.copied().collect(),
        defaulted_on,
    }
}
