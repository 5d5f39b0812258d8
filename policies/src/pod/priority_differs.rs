#![doc = include_str!("priority_differs.md")]

use crate::cluster_view::{ClusterView, Lookup, PodPreemptionLabels, PodPriority};
use crate::facts;
use crate::finding::{Findings, quoted};
use crate::rule::{Check, Context, Layer, Rule};
use crate::workload::priorities;
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(super) const RULE: Rule<Pod> = Rule {
    id: "PO006",
    name: "priority-differs-from-job",
    since: "0.1.0",
    action: Action::Warn,
    covers: &[],
    layers: &[Layer::Webhook],
    doc: include_str!("priority_differs.md"),
    check: Check::Context(check),
};

fn check(pod: &Pod, context: &Context<'_>, out: &mut Findings) {
    let cluster = context.cluster;
    let says = facts::pod_preemption_labels(pod);
    let Some(own) = value(&says.priority, cluster) else {
        return;
    };
    let differs = |says: &PodPreemptionLabels| {
        value(&says.priority, cluster).is_some_and(|other| other != own)
    };
    let Some(other) = super::job_pod(pod, context, &differs) else {
        return;
    };
    let (field, seen) = match &says.priority {
        PodPriority::Class(name) => ("spec.priorityClassName", name.clone()),
        PodPriority::Value(value) => ("spec.priority", value.to_string()),
        PodPriority::Unset | PodPriority::Unknown => ("spec.priority", "(none)".to_owned()),
    };
    let detail = format!(
        "gives this pod priority {own}, while another pod of job {} has {}; one job's pods are preempted \
         together, so give them one priority",
        quoted(other.job),
        value(&other.labels.priority, cluster).unwrap_or_default(),
    );
    out.invalid(FieldPath::new(field), seen, detail);
}

/// The priority that a pod has, or will get on creation; `None` if it is unknown.
fn value(priority: &PodPriority, cluster: &dyn ClusterView) -> Option<i32> {
    match priority {
        PodPriority::Unknown => None,
        PodPriority::Value(value) => Some(*value),
        PodPriority::Class(name) => Some(priorities::class(cluster, name).found()?.value),
        PodPriority::Unset => match cluster.global_default() {
            Lookup::Found((_, facts)) => Some(facts.value),
            Lookup::Absent => Some(0),
            Lookup::Unknown => None,
        },
    }
}
