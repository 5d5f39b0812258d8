#![doc = include_str!("preemptible_label_differs.md")]

use crate::cluster_view::PreemptibleLabel;
use crate::finding::{Findings, quoted};
use crate::preemptible_label::{
    adjective, display_value, expected_value, is_preemptible, label, value,
};
use crate::rule::{Check, Context, Layer, Rule};
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::labels;

pub(super) const RULE: Rule<Pod> = Rule {
    id: "PO001",
    name: "preemptible-label-differs-from-job",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["seed-job-homogeneous-preemptible"],
    layers: &[Layer::Webhook],
    doc: include_str!("preemptible_label_differs.md"),
    check: Check::Context(check),
};

fn check(pod: &Pod, context: &Context<'_>, out: &mut Findings) {
    let own = pod.metadata.labels.as_ref();
    let Some(job) = own.and_then(|map| map.get(labels::JOB)) else {
        return;
    };
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let preemptible = is_preemptible(label(own), context.settings);
    // The settings give the meaning of a missing label, so labels are compared by their effect.
    let differs = PreemptibleLabel::ALL
        .into_iter()
        .filter(|other| is_preemptible(*other, context.settings) != preemptible)
        .any(|other| {
            context
                .cluster
                .job_pod_with_label(namespace, job, other, name)
                .is_some()
        });
    if differs {
        out.invalid(
            FieldPath::new("metadata.labels").key(labels::PREEMPTIBLE),
            display_value(value(own)),
            format!(
                "makes this pod {}, while another pod of job {} is {}; one job's pods must agree, so \
                 set it to {}",
                adjective(preemptible),
                quoted(job),
                adjective(!preemptible),
                expected_value(!preemptible),
            ),
        );
    }
}
