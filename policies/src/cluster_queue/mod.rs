//! ClusterQueue.

mod borrow_without_reclaim;
mod covered_resources_mismatch;
mod defaults;
mod flavor_listed_twice;
mod lending_limit_above_nominal;
mod limit_without_cohort;
mod negative_quota;
mod resource_covered_twice;

use crate::defaulting::Defaults;
use crate::guarded::Guarded;
use crate::rule::{Context, Operation, Rule};
use lockkeeper_api::ClusterQueue;

static RULES: &[Rule<ClusterQueue>] = &[
    borrow_without_reclaim::RULE,
    limit_without_cohort::BORROWING,
    limit_without_cohort::LENDING,
    covered_resources_mismatch::RULE,
    resource_covered_twice::RULE,
    flavor_listed_twice::RULE,
    lending_limit_above_nominal::RULE,
    negative_quota::RULE,
];

impl Guarded for ClusterQueue {
    const NAMESPACED: bool = false;
    const OWN: bool = true;
    const DEFAULTED_ON: &'static [Operation] = &[Operation::Create, Operation::Update];

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }

    fn defaults(object: &Self, old: Option<&Self>, _: &Context<'_>) -> Defaults {
        defaults::fill(object, old)
    }
}
