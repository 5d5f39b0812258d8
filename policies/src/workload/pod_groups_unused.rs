#![doc = include_str!("pod_groups_unused.md")]

use crate::finding::{Findings, join_names};
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::Workload;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::labels::JOB_UID;

pub(super) const RULE: Rule<Workload> = Rule {
    id: "WL020",
    name: "pod-groups-unused",
    since: "0.1.0",
    action: Action::Warn,
    covers: &[],
    layers: &[Layer::Webhook],
    doc: include_str!("pod_groups_unused.md"),
    check: Check::Object(check),
};

fn check(workload: &Workload, out: &mut Findings) {
    let groups = &workload.spec.pod_groups;
    // The controller writes the Workload of a job; LA010 warns about the label of the job. A podGroupName without
    // spec.podGroups is an error of its own (WL011).
    if groups.is_empty() || has_job(workload) {
        return;
    }
    out.invalid(
        FieldPath::new("spec.podGroups"),
        join_names(groups.iter().map(|it| it.name.as_str())),
        // With the field at most 120 characters, so that kubectl shows the whole warning.
        "has no effect: a workload is admitted and preempted as a whole; remove it and podGroupName",
    );
}

fn has_job(workload: &Workload) -> bool {
    let labels = workload.metadata.labels.as_ref();
    labels.is_some_and(|it| it.contains_key(JOB_UID))
}
