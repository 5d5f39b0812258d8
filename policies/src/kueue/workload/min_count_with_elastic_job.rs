#![doc = include_str!("min_count_with_elastic_job.md")]

use super::quota_status::{ELASTIC_ANNOTATION, is_elastic};
use crate::finding::Findings;
use crate::rule::{Check, Context, Layer, Rule};
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::Workload;

pub(super) const RULE: Rule<Workload> = Rule {
    id: "KL001",
    name: "min-count-with-elastic-job",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-min-count-not-elastic"],
    layers: &[Layer::Webhook],
    doc: include_str!("min_count_with_elastic_job.md"),
    check: Check::Context(check),
};

fn check(workload: &Workload, context: &Context<'_>, out: &mut Findings) {
    let pod_sets = workload.spec.pod_sets.iter();
    let count = pod_sets.filter(|it| it.min_count.is_some()).count();
    if count > 0 && is_elastic(workload, context.settings) {
        out.invalid(
            FieldPath::new("spec.podSets"),
            count,
            format!(
                "this many pod sets have a minCount, which an elastic job may not use; remove it, or \
                 the annotation {ELASTIC_ANNOTATION}"
            ),
        );
    }
}
