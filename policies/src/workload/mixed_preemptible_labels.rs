#![doc = include_str!("mixed_preemptible_labels.md")]

use crate::finding::{Findings, quoted};
use crate::preemptible_label::{
    adjective, display_value, expected_value, is_preemptible, label, value,
};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::workload::PodSet;
use lockkeeper_api::{Workload, labels};
use std::collections::BTreeMap;

pub(super) const RULE: Rule<Workload> = Rule {
    id: "WL006",
    name: "mixed-preemptible-labels",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["seed-job-homogeneous-preemptible"],
    layers: &[Layer::Webhook],
    doc: include_str!("mixed_preemptible_labels.md"),
    check: Check::Context(check),
};

fn check(workload: &Workload, context: &Context<'_>, out: &mut Findings) {
    let pod_sets = &workload.spec.pod_sets;
    let preemptible =
        |pod_set: &PodSet| is_preemptible(label(labels_of(pod_set)), context.settings);
    // Not with the first one: the order of the list has no meaning.
    let order = |a: &&PodSet, b: &&PodSet| {
        let by_name = a.name().cmp(b.name());
        by_name.then(preemptible(a).cmp(&preemptible(b)))
    };
    let Some(first) = pod_sets.iter().min_by(order) else {
        return;
    };
    let expected = preemptible(first);
    for (position, pod_set) in pod_sets.iter().enumerate() {
        if preemptible(pod_set) != expected && !out.is_full() {
            out.invalid(
                FieldPath::new("spec.podSets")
                    .item(position, pod_set.name())
                    .field("template.metadata.labels")
                    .key(labels::PREEMPTIBLE),
                display_value(value(labels_of(pod_set))),
                format!(
                    "makes these pods {}, while those of pod set {} are {}; one job's pods must \
                     agree, so set it to {} here, or change the others",
                    adjective(!expected),
                    quoted(first.name()),
                    adjective(expected),
                    expected_value(expected),
                ),
            );
        }
    }
}

fn labels_of(pod_set: &PodSet) -> Option<&BTreeMap<String, String>> {
    pod_set.template.metadata.as_ref()?.labels.as_ref()
}
