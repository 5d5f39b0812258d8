//! Rules of pods: of pods with the job label, and Kubernetes' rules for the priority of any pod.

mod batch_resources_without_be;
mod can_preempt_label_differs;
mod fractional_cpu_of_lsr;
mod gang_minimum_below_total;
mod on_parent_quota;
mod preemptible_label_changed;
mod preemptible_label_differs;
mod preemptible_label_unread;
mod priority;
mod priority_differs;
mod qos;
mod qos_changed;
mod qos_priority_mismatch;
mod reserve_pod_annotation;
mod scheduling_group;

use crate::cluster_view::PodPreemptionLabels;
use crate::defaulting::Defaults;
use crate::labels::{misplaced_key, misspelt_key, unparsable_label_value};
use crate::preemptible_label;
use crate::rule::{Context, Operation, Rule};
use crate::submission::{
    disruption_mode_unused, pods_of_other_priority, priority_class_not_allowed, request_too_large,
    uncovered_resource, unknown_class, unknown_local_queue,
};
use crate::validated_kind::{ValidatedKind, implement_type_mismatch};
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::labels;

static RULES: &[Rule<Pod>] = &[
    preemptible_label_differs::RULE,
    on_parent_quota::RULE,
    preemptible_label_changed::RULE,
    preemptible_label_unread::RULE,
    can_preempt_label_differs::RULE,
    priority_differs::RULE,
    qos_changed::RULE,
    qos_priority_mismatch::RULE,
    batch_resources_without_be::RULE,
    fractional_cpu_of_lsr::RULE,
    reserve_pod_annotation::RULE,
    priority::UNKNOWN_CLASS,
    priority::MISMATCH,
    scheduling_group::RULE,
    gang_minimum_below_total::RULE,
    misspelt_key::rule(Action::Warn),
    misplaced_key::rule(Action::Warn),
    unparsable_label_value::rule(),
    disruption_mode_unused::rule(),
    priority_class_not_allowed::rule(),
    unknown_local_queue::rule(),
    unknown_class::rule(),
    uncovered_resource::rule(),
    request_too_large::rule(),
    pods_of_other_priority::rule(),
];

impl ValidatedKind for Pod {
    const NAMESPACED: bool = true;
    const OWN: bool = false;
    const SELECTED_BY: &'static [&'static str] = &[labels::JOB, labels::QUEUE_NAME];
    const DEFAULTED_ON: &'static [Operation] = &[Operation::Create];
    const DEFAULTS_SELECTED_BY: &'static [&'static str] = &[labels::QUEUE_NAME];

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }

    fn defaults(object: &Self, old: Option<&Self>, context: &Context<'_>) -> Defaults {
        let mut out = priority::defaults(object, old, context);
        if old.is_none() && value(object, labels::QUEUE_NAME).is_some() {
            // It waits for quota; the controller removes the gate. An empty queue name counts.
            let gates = object
                .spec
                .as_ref()
                .and_then(|it| it.scheduling_gates.as_deref());
            out.add_admission_gate(gates.unwrap_or_default());
        }
        out
    }
}

/// The value of a label.
fn value<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    let labels = pod.metadata.labels.as_ref()?;
    labels.get(key).map(String::as_str)
}

/// The value of a label for messages.
fn display_value<'a>(pod: &'a Pod, key: &str) -> &'a str {
    preemptible_label::display_value(value(pod, key))
}

/// The path of a label.
fn label(key: &'static str) -> FieldPath {
    FieldPath::new("metadata.labels").key(key)
}

/// Another pod of the same job.
struct JobPod<'a> {
    job: &'a str,
    labels: &'a PodPreemptionLabels,
}

/// Another pod of the job of `pod` for which `differs` returns true.
fn job_pod<'a>(
    pod: &'a Pod,
    context: &Context<'a>,
    differs: &dyn Fn(&PodPreemptionLabels) -> bool,
) -> Option<JobPod<'a>> {
    let job = value(pod, labels::JOB)?;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let own = pod.metadata.name.as_deref().unwrap_or_default();
    let (_, found) = context.cluster.find_job_pod(namespace, job, own, differs)?;
    Some(JobPod { job, labels: found })
}
