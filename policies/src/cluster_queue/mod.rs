//! ClusterQueue. Most rules hold for Kueue's as well, and some for Cohorts.

mod borrow_without_reclaim;
pub(crate) mod covered_resources_mismatch;
mod defaults;
pub(crate) mod flavor_listed_twice;
pub(crate) mod invalid_fair_sharing_weight;
pub(crate) mod invalid_namespace_selector;
pub(crate) mod lending_limit_above_nominal;
pub(crate) mod limit_without_cohort;
pub(crate) mod negative_quota;
pub(crate) mod preference_without_search;
pub(crate) mod quota_too_large;
pub(crate) mod resource_covered_twice;
pub(crate) mod resource_name_no_label_key;

use crate::defaulting::Defaults;
use crate::guarded::Guarded;
use crate::rule::{Context, Operation, Rule};
use lockkeeper_api::ClusterQueue;

static RULES: &[Rule<ClusterQueue>] = &[
    borrow_without_reclaim::RULE,
    limit_without_cohort::borrowing_rule(),
    limit_without_cohort::lending_rule(),
    covered_resources_mismatch::rule(),
    resource_covered_twice::rule(),
    flavor_listed_twice::rule(),
    lending_limit_above_nominal::rule(),
    negative_quota::rule(),
    resource_name_no_label_key::rule(),
    quota_too_large::rule(),
    invalid_namespace_selector::rule(),
    preference_without_search::rule(),
    invalid_fair_sharing_weight::rule(),
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
