//! Requirements of pod groups on the pod sets that name them.
//!
//! Source: KEP-5710, Preemption unit: the preemption unit is a replica of a pod group.

use crate::cel::CelRule;
use crate::finding::ErrorKind;
use crate::finding::{Findings, quoted};
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::Workload;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::workload::{PodGroup, PodSet};

fn is_known() -> CelRule {
    CelRule::new(
    "spec",
    "self.podSets.all(set, !has(set.podGroupName) \
     || (has(self.podGroups) && self.podGroups.exists(it, it.name == set.podGroupName)))",
    "a pod set names a pod group that is not there; add it to spec.podGroups, or name one that is there",
)

.field_path(".podSets")
.with_kind(ErrorKind::NotFound).unchanged_when(
    "self.podSets.all(set, !has(set.podGroupName) \
     || (has(self.podGroups) && self.podGroups.exists(it, it.name == set.podGroupName)) \
     || (oldSelf.podSets.exists(was, was.name == set.name && has(was.podGroupName) \
     && was.podGroupName == set.podGroupName) \
     && !(has(oldSelf.podGroups) && oldSelf.podGroups.exists(it, it.name == set.podGroupName))))",
)
}

fn is_even() -> CelRule {
    CelRule::new(
    "spec",
    "!has(self.podGroups) || self.podSets.all(set, !has(set.podGroupName) \
     || self.podGroups.all(it, it.name != set.podGroupName \
     || (has(set.count) ? set.count : 1) % (has(it.replicas) ? it.replicas : 1) == 0))",
    "the count of a pod set must be a multiple of the replicas of its pod group, which have equally many of its pods",
)

.field_path(".podSets").unchanged_when(
    "self.podSets.all(set, !has(set.podGroupName) || self.podGroups.all(it, it.name != set.podGroupName \
     || (has(set.count) ? set.count : 1) % (has(it.replicas) ? it.replicas : 1) == 0 \
     || (oldSelf.podSets.exists(was, was.name == set.name && has(was.podGroupName) \
     && was.podGroupName == set.podGroupName \
     && (has(was.count) ? was.count : 1) == (has(set.count) ? set.count : 1)) \
     && has(oldSelf.podGroups) && oldSelf.podGroups.exists(was, was.name == it.name \
     && (has(was.replicas) ? was.replicas : 1) == (has(it.replicas) ? it.replicas : 1)))))",
)
}

fn is_reached() -> CelRule {
    CelRule::new(
    "spec",
    "!has(self.podGroups) || self.podGroups.all(it, !has(it.minCount) \
     || [self.podSets.filter(set, has(set.podGroupName) && set.podGroupName == it.name)\
     .map(set, has(set.count) ? set.count : 1).sum() / (has(it.replicas) ? it.replicas : 1)]\
     .all(pods, pods == 0 || it.minCount <= pods))",
    "the minCount of a pod group must be at most the pods of one replica; with more it can never run",
)

.field_path(".podGroups").unchanged_when(
    "self.podGroups.all(it, !has(it.minCount) || [self.podSets.filter(set, has(set.podGroupName) && set.podGroupName == it.name)\
     .map(set, has(set.count) ? set.count : 1).sum() / (has(it.replicas) ? it.replicas : 1)]\
     .all(pods, pods == 0 || it.minCount <= pods \
     || (has(oldSelf.podGroups) && oldSelf.podGroups.exists(was, was.name == it.name && has(was.minCount) \
     && was.minCount == it.minCount && [oldSelf.podSets.filter(set, has(set.podGroupName) && set.podGroupName == was.name)\
     .map(set, has(set.count) ? set.count : 1).sum() / (has(was.replicas) ? was.replicas : 1)] == [pods]))))",
)
}

/// A pod set names a group that does not exist.
pub(super) const UNKNOWN: Rule<Workload> = Rule {
    id: "WL011",
    name: "unknown-pod-group",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &[],
    layers: &[Layer::Webhook, Layer::Schema(|| vec![is_known()])],
    doc: include_str!("unknown_pod_group.md"),
    check: Check::Object(unknown),
};

/// The pods of a pod set cannot be divided evenly among the replicas of its group.
pub(super) const UNEVEN: Rule<Workload> = Rule {
    id: "WL012",
    name: "uneven-replicas",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &[],
    layers: &[Layer::Webhook, Layer::Schema(|| vec![is_even()])],
    doc: include_str!("uneven_replicas.md"),
    check: Check::Object(uneven),
};

/// A gang needs more pods than one replica has.
pub(super) const MINIMUM_ABOVE_REPLICA: Rule<Workload> = Rule {
    id: "WL013",
    name: "gang-minimum-above-replica",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &[],
    layers: &[Layer::Webhook, Layer::Schema(|| vec![is_reached()])],
    doc: include_str!("gang_minimum_above_replica.md"),
    check: Check::Object(minimum_above_replica),
};

fn unknown(workload: &Workload, out: &mut Findings) {
    for (position, pod_set) in workload.spec.pod_sets.iter().enumerate() {
        if let Some(name) = &pod_set.pod_group_name
            && group(workload, name).is_none()
        {
            out.not_found(
                path(position, pod_set).field("podGroupName"),
                name,
                "no pod group has this name; add it to spec.podGroups, or name one that is there",
            );
        }
    }
}

fn uneven(workload: &Workload, out: &mut Findings) {
    for (position, pod_set) in workload.spec.pod_sets.iter().enumerate() {
        let name = pod_set.pod_group_name.as_deref();
        let Some(group) = name.and_then(|it| group(workload, it)) else {
            continue;
        };
        let (count, replicas) = (count(pod_set), replicas(group));
        if count.checked_rem(replicas).is_some_and(|rest| rest != 0) {
            out.invalid(
                path(position, pod_set).field("count"),
                count,
                format!(
                    "must be a multiple of {replicas}, the replicas of pod group {}, which have equally many of these \
                     pods",
                    quoted(&group.name)
                ),
            );
        }
    }
}

fn minimum_above_replica(workload: &Workload, out: &mut Findings) {
    for (position, group) in workload.spec.pod_groups.iter().enumerate() {
        let Some(minimum) = group.min_count.map(i64::from) else {
            continue;
        };
        let pod_sets = workload.spec.pod_sets.iter();
        let named = pod_sets.filter(|it| it.pod_group_name.as_ref() == Some(&group.name));
        let pods = named.fold(0_i64, |sum, it| sum.saturating_add(count(it)));
        // A group that no pod set names has no requirements.
        let size = pods.checked_div(replicas(group)).filter(|it| *it > 0);
        if let Some(size) = size.filter(|it| minimum > *it) {
            out.invalid(
                FieldPath::new("spec.podGroups")
                    .item(position, &group.name)
                    .field("minCount"),
                minimum,
                format!(
                    "must be at most {size}, the pods of one replica; with more it can never run"
                ),
            );
        }
    }
}

fn group<'a>(workload: &'a Workload, name: &str) -> Option<&'a PodGroup> {
    let mut groups = workload.spec.pod_groups.iter();
    groups.find(|it| it.name == name)
}

pub(super) fn path(position: usize, pod_set: &PodSet) -> FieldPath {
    FieldPath::new("spec.podSets").item(position, pod_set.name())
}

/// The number of pods, with the default applied.
pub(super) fn count(pod_set: &PodSet) -> i64 {
    pod_set.count.map_or(1, i64::from)
}

/// The number of replicas, with the default applied.
pub(super) fn replicas(group: &PodGroup) -> i64 {
    group.replicas.map_or(1, i64::from)
}
