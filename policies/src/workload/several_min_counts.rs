#![doc = include_str!("several_min_counts.md")]

use crate::cel::CelRule;
use crate::finding::Findings;
use crate::pod_sets::PodSets;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::field_path::FieldPath;

fn cel_rule() -> CelRule {
    CelRule::new(
        "spec.podSets",
        "self.filter(it, has(it.minCount)).size() <= 1",
        "several pod sets have a minCount; at most one may, so keep it on one of them",
    )
    .unchanged_when(
        "self.filter(it, has(it.minCount)).size() == oldSelf.filter(it, has(it.minCount)).size()",
    )
}

pub(crate) const fn rule<T: PodSets>() -> Rule<T> {
    Rule {
        id: "WL007",
        name: "several-min-counts",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["wl-single-min-count"],
        layers: &[Layer::Webhook, Layer::Schema(|| vec![cel_rule()])],
        doc: include_str!("several_min_counts.md"),
        check: Check::Object(check),
    }
}

fn check<T: PodSets>(workload: &T, out: &mut Findings) {
    let with = workload.pod_sets().filter(|it| it.min_count.is_some());
    let count = with.count();
    if count > 1 {
        out.invalid(
            FieldPath::new("spec.podSets"),
            count,
            "this many pod sets have a minCount; at most one may, so keep it on one of them",
        );
    }
}
