//! Default values of a ClusterQueue.

use crate::cel_defaults::{CelDefault, FieldDefault};
use crate::defaulting::Defaults;
use crate::settings::Settings;
use lockkeeper_api::ClusterQueue;
use lockkeeper_api::cluster_queue::{
    BorrowWithinCohortPolicy, FlavorSearch, Preemption, QueueingStrategy, StopPolicy,
};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::labels;
use serde_json::json;

/// Defaults that a schema cannot express: they depend on another field, or are outside the spec.
pub(super) const CEL_DEFAULTS: &[CelDefault] = &[
    CelDefault::Finalizer(labels::RESOURCE_IN_USE),
    CelDefault::Field(FieldDefault {
        path: "spec.preemption.withinClusterQueue",
        when: "",
        value: "has(object.spec.elastic) ? 'LowerPriority' : 'Never'",
    }),
    CelDefault::Field(FieldDefault {
        path: "spec.preemption.reclaimWithinCohort",
        when: "",
        value: "has(object.spec.elastic) ? 'LowerPriority' : 'Never'",
    }),
    CelDefault::Field(FieldDefault {
        path: "spec.preemption.borrowWithinCohort.policy",
        when: "",
        value: "'Never'",
    }),
];

/// The defaults of the spec, and the finalizer.
pub(super) fn defaults(queue: &ClusterQueue, settings: &Settings) -> Defaults {
    let mut out = Defaults::default();
    let spec = &queue.spec;
    out.add_finalizer(&queue.metadata, settings);
    if spec.queueing_strategy.is_none() {
        let field = FieldPath::new("spec.queueingStrategy");
        out.set(field, QueueingStrategy::default());
    }
    if spec.stop_policy.is_none() {
        out.set(FieldPath::new("spec.stopPolicy"), StopPolicy::default());
    }
    fungibility(queue, &mut out);
    match &spec.preemption {
        None => {
            let policies = json!({
                "withinClusterQueue": spec.within_cluster_queue(),
                "reclaimWithinCohort": spec.reclaim_within_cohort(),
                "borrowWithinCohort": {"policy": BorrowWithinCohortPolicy::default()},
            });
            out.set(FieldPath::new("spec.preemption"), policies);
        }
        Some(given) => preemption(queue, given, &mut out),
    }
    if let Some(weighted) = &spec.fair_sharing
        && weighted.weight.is_none()
    {
        out.set(FieldPath::new("spec.fairSharing.weight"), "1");
    }
    out
}

fn fungibility(queue: &ClusterQueue, out: &mut Defaults) {
    let (borrow, preempt) = (FlavorSearch::MayStopSearch, FlavorSearch::TryNextFlavor);
    let field = FieldPath::new("spec.flavorFungibility");
    let Some(given) = &queue.spec.flavor_fungibility else {
        out.set(
            field,
            json!({"whenCanBorrow": borrow, "whenCanPreempt": preempt}),
        );
        return;
    };
    if given.when_can_borrow.is_none() {
        out.set(field.clone().field("whenCanBorrow"), borrow);
    }
    if given.when_can_preempt.is_none() {
        out.set(field.field("whenCanPreempt"), preempt);
    }
}

fn preemption(queue: &ClusterQueue, given: &Preemption, out: &mut Defaults) {
    let spec = &queue.spec;
    let field = FieldPath::new("spec.preemption");
    if given.within_cluster_queue.is_none() {
        let within = spec.within_cluster_queue();
        out.set(field.clone().field("withinClusterQueue"), within);
    }
    if given.reclaim_within_cohort.is_none() {
        let reclaim = spec.reclaim_within_cohort();
        out.set(field.clone().field("reclaimWithinCohort"), reclaim);
    }
    let borrow = field.field("borrowWithinCohort");
    let policy = BorrowWithinCohortPolicy::default();
    match &given.borrow_within_cohort {
        // The pointer of a default needs an existing parent, so the whole object is set.
        None => out.set(borrow, json!({"policy": policy})),
        Some(given) if given.policy.is_none() => out.set(borrow.field("policy"), policy),
        Some(_) => {}
    }
}
