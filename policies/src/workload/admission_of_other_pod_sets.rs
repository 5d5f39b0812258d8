#![doc = include_str!("admission_of_other_pod_sets.md")]

use super::quota_status::{has_quota_reserved, reserved};
use crate::cel::CelRule;
use crate::finding::{Findings, join_names};
use crate::rule::{Change, Check, Context, Layer, Rule};
use lockkeeper_api::Workload;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::workload::{PodSet, PodSetAssignment};
use std::collections::BTreeSet;

/// The condition that an object (`self` or `oldSelf`) has an admission of exactly its pod sets.
fn is_whole(object: &str) -> String {
    format!(
        "(has({object}.status) && [{object}.status].all(status, has(status.admission) \
         && has(status.admission.podSetAssignments) && [status.admission.podSetAssignments].all(given, [\
         {object}.spec.podSets].all(sets, given.size() == sets.size() \
         && given.all(it, sets.exists(set, set.name == it.name))))))"
    )
}

/// The admission is complete, no quota is reserved, or quota was reserved before without a complete admission. The
/// condition that most objects satisfy comes first.
fn cel_rule() -> CelRule {
    CelRule::new(
        "",
        format!(
            "{} || !({}) || ({} && !{})",
            is_whole("self"),
            reserved("self"),
            reserved("oldSelf"),
            is_whole("oldSelf")
        ),
        "must have one item for each pod set of the workload while quota is reserved",
    )
    .field_path(".status.admission.podSetAssignments")
}

pub(super) const RULE: Rule<Workload> = Rule {
    id: "WL019",
    name: "admission-of-other-pod-sets",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &[
        "wl-admission-podset-known",
        "wl-admission-podsets-same-length",
    ],
    layers: &[Layer::Webhook, Layer::Schema(|| vec![cel_rule()])],
    doc: include_str!("admission_of_other_pod_sets.md"),
    check: Check::Change(check),
};

fn check(change: &Change<'_, Workload>, _: &Context<'_>, out: &mut Findings) {
    // A mismatch in the stored object is pre-existing: any later update must stay possible.
    if fits(change.new) || !fits(change.old) {
        return;
    }
    let pod_sets = names(change.new);
    let list = FieldPath::new("status.admission.podSetAssignments");
    for (position, assignment) in assignments(change.new).iter().enumerate() {
        if !pod_sets.contains(assignment.name.as_str()) {
            let field = list.clone().item(position, &assignment.name).field("name");
            let known = join_names(pod_sets.iter().copied());
            out.not_found(
                field,
                &assignment.name,
                format!("the workload has the pod sets {known}"),
            );
        }
    }
    let given = assignments(change.new).iter().map(|it| it.name.as_str());
    let given: BTreeSet<&str> = given.collect();
    let missing = pod_sets.difference(&given).copied();
    let missing = join_names(missing);
    if !missing.is_empty() {
        out.required(
            list,
            format!("must have one item for each pod set while quota is reserved; add {missing}"),
        );
    }
}

fn fits(workload: &Workload) -> bool {
    if !has_quota_reserved(workload) {
        return true;
    }
    let given = assignments(workload);
    let pod_sets = names(workload);
    given.len() == workload.spec.pod_sets.len()
        && given.iter().all(|it| pod_sets.contains(it.name.as_str()))
}

fn assignments(workload: &Workload) -> &[PodSetAssignment] {
    let admission = workload
        .status
        .as_ref()
        .and_then(|it| it.admission.as_ref());
    admission.map_or(&[], |it| &it.pod_set_assignments)
}

fn names(workload: &Workload) -> BTreeSet<&str> {
    workload.spec.pod_sets.iter().map(PodSet::name).collect()
}
