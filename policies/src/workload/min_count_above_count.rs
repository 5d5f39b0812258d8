#![doc = include_str!("min_count_above_count.md")]

use super::pod_groups::{count, path};
use crate::cel::CelRule;
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::Workload;
use lockkeeper_api::config::Action;

fn cel_rule() -> CelRule {
    CelRule::new(
        "spec.podSets[]",
        "!has(self.minCount) || self.minCount <= (has(self.count) ? self.count : 1)",
        "must be at most the count of the pod set; leave it out if all pods are needed",
    )
    .field_path(".minCount")
    .unchanged_when(
        "has(oldSelf.minCount) && self.minCount == oldSelf.minCount \
     && (has(self.count) ? self.count : 1) == (has(oldSelf.count) ? oldSelf.count : 1)",
    )
}

pub(super) const RULE: Rule<Workload> = Rule {
    id: "WL014",
    name: "min-count-above-count",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["wl-min-count-le-count"],
    layers: &[Layer::Webhook, Layer::Schema(|| vec![cel_rule()])],
    doc: include_str!("min_count_above_count.md"),
    check: Check::Object(check),
};

fn check(workload: &Workload, out: &mut Findings) {
    for (position, pod_set) in workload.spec.pod_sets.iter().enumerate() {
        let most = count(pod_set);
        if let Some(minimum) = pod_set.min_count.map(i64::from)
            && minimum > most
        {
            out.invalid(
                path(position, pod_set).field("minCount"),
                minimum,
                format!("must be at most {most}, the count of the pod set; leave it out if all pods are needed"),
            );
        }
    }
}
