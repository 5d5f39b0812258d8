//! Pod sets and pod groups are immutable while quota is reserved.

use super::pod_groups::{count, path, replicas};
use super::quota_status::{has_quota_reserved, while_reserved};
use crate::cel::{CelRule, same_field};
use crate::finding::{Findings, join_names};
use crate::rule::{Change, Check, Context, Layer, Rule};
use lockkeeper_api::Workload;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::workload::{DisruptionMode, PodGroup, PodSet};
use std::collections::BTreeMap;

fn pod_sets_cel_rule() -> CelRule {
    CelRule::new(
    "",
    while_reserved(&format!(
        "[self.spec.podSets].all(after, [oldSelf.spec.podSets].all(before, after.size() == before.size() \
         && after.all(set, before.exists(was, was.name == set.name \
         && (has(was.count) ? was.count : 1) == (has(set.count) ? set.count : 1) && ({}) && ({})))))",
        same_field("set", "was", "minCount"),
        same_field("set", "was", "podGroupName")
    )),
    "pod sets are immutable while quota is reserved; keep them, or deactivate the workload first",
)
.field_path(".spec.podSets")
}

fn pod_groups_cel_rule() -> CelRule {
    CelRule::new(
    "",
    while_reserved(&format!(
        "(!has(self.spec.podGroups) && !has(oldSelf.spec.podGroups)) \
         || ((has(self.spec.podGroups) ? self.spec.podGroups.size() : 0) \
         == (has(oldSelf.spec.podGroups) ? oldSelf.spec.podGroups.size() : 0) \
         && (!has(self.spec.podGroups) || self.spec.podGroups.all(group, has(oldSelf.spec.podGroups) \
         && oldSelf.spec.podGroups.exists(was, was.name == group.name \
         && (has(was.replicas) ? was.replicas : 1) == (has(group.replicas) ? group.replicas : 1) \
         && ({}) && (has(was.disruptionMode) ? was.disruptionMode : 'Pod') \
         == (has(group.disruptionMode) ? group.disruptionMode : 'Pod')))))",
        same_field("group", "was", "minCount")
    )),
    "pod groups are immutable while quota is reserved; keep them, or deactivate the workload first",
)
.field_path(".spec.podGroups")
}

/// Checks counts, names and groups.
pub(super) const RULE: Rule<Workload> = Rule {
    id: "WL017",
    name: "pods-changed-while-reserved",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["wl-podsets-immutable-reserved"],
    layers: &[
        Layer::Webhook,
        Layer::Schema(|| vec![pod_sets_cel_rule(), pod_groups_cel_rule()]),
    ],
    doc: include_str!("pods_changed_while_reserved.md"),
    check: Check::Change(pods),
};

fn pods(change: &Change<'_, Workload>, _: &Context<'_>, out: &mut Findings) {
    // The update that releases the quota may change the pods as well.
    if has_quota_reserved(change.old) && has_quota_reserved(change.new) {
        let (old, new) = (&change.old.spec, &change.new.spec);
        pod_sets(&old.pod_sets, &new.pod_sets, out);
        pod_groups(&old.pod_groups, &new.pod_groups, out);
    }
}

fn pod_sets(old: &[PodSet], new: &[PodSet], out: &mut Findings) {
    let [before, after] = [old, new].map(|all| all.iter().map(PodSet::name).collect());
    if is_other_list("spec.podSets", before, after, out) {
        return;
    }
    let old = by_name(old);
    for (position, pod_set) in new.iter().enumerate() {
        let Some(was) = old.get(pod_set.name()) else {
            continue;
        };
        let field = |name| path(position, pod_set).field(name);
        let [before, after] = [*was, pod_set].map(|it| Some(count(it)));
        unchanged(field("count"), before, after, out);
        unchanged(field("minCount"), was.min_count, pod_set.min_count, out);
        let [before, after] = [*was, pod_set].map(|it| it.pod_group_name.as_deref());
        unchanged(field("podGroupName"), before, after, out);
    }
}

fn pod_groups(old: &[PodGroup], new: &[PodGroup], out: &mut Findings) {
    let [before, after] = [old, new].map(|all| all.iter().map(|it| it.name.as_str()).collect());
    if is_other_list("spec.podGroups", before, after, out) {
        return;
    }
    let old: BTreeMap<&str, &PodGroup> = old.iter().map(|it| (it.name.as_str(), it)).collect();
    for (position, group) in new.iter().enumerate() {
        let Some(was) = old.get(group.name.as_str()).copied() else {
            continue;
        };
        let place = FieldPath::new("spec.podGroups").item(position, &group.name);
        let field = |name| place.clone().field(name);
        let [before, after] = [was, group].map(|it| Some(replicas(it)));
        unchanged(field("replicas"), before, after, out);
        unchanged(field("minCount"), was.min_count, group.min_count, out);
        let [before, after] = [was, group].map(|it| Some(mode(it)));
        unchanged(field("disruptionMode"), before, after, out);
    }
}

/// Reports added or removed items of a list.
fn is_other_list(
    list: &'static str,
    mut old: Vec<&str>,
    mut new: Vec<&str>,
    out: &mut Findings,
) -> bool {
    // The lists have keys, so only added and removed names count, not the order.
    old.sort_unstable();
    new.sort_unstable();
    let is_other = old != new;
    if is_other {
        let kept = match old.as_slice() {
            [] => "none".to_owned(),
            names => join_names(names.iter().copied()),
        };
        out.invalid(
            FieldPath::new(list),
            join_names(new.iter().copied()),
            format!(
                "nothing can be added or removed while quota is reserved; keep {kept}, or deactivate the workload first"
            ),
        );
    }
    is_other
}

/// Reports a changed field.
fn unchanged<T: PartialEq + ToString>(
    field: FieldPath,
    before: Option<T>,
    after: Option<T>,
    out: &mut Findings,
) {
    if before == after {
        return;
    }
    let kept = before.map_or_else(
        || "leave it out".to_owned(),
        |it| format!("keep {}", it.to_string()),
    );
    out.invalid(
        field,
        after.map(|it| it.to_string()).unwrap_or_default(),
        format!(
            "field is immutable while quota is reserved; {kept}, or deactivate the workload first"
        ),
    );
}

/// The pod sets by their names.
pub(super) fn by_name(all: &[PodSet]) -> BTreeMap<&str, &PodSet> {
    all.iter().map(|it| (it.name(), it)).collect()
}

/// The unit of disruption, with the default applied.
fn mode(group: &PodGroup) -> &'static str {
    match group.disruption_mode.unwrap_or_default() {
        DisruptionMode::Pod => "Pod",
        DisruptionMode::PodGroup => "PodGroup",
    }
}
