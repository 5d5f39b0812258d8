//! Kueue's ClusterQueue.

mod concurrent_admission_changed;
mod impossible_concurrent_admission;
mod unknown_flavor_of_check;

use crate::cluster_queue::{
    covered_resources_mismatch, flavor_listed_twice, invalid_fair_sharing_weight,
    invalid_namespace_selector, lending_limit_above_nominal, limit_without_cohort, negative_quota,
    preference_without_search, quota_too_large, resource_covered_twice, resource_name_no_label_key,
};
use crate::guarded::Guarded;
use crate::rule::Rule;
use lockkeeper_api::foreign::kueue::ClusterQueue;

static RULES: &[Rule<ClusterQueue>] = &[
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
    unknown_flavor_of_check::RULE,
    impossible_concurrent_admission::RULE,
    concurrent_admission_changed::RULE,
];

impl Guarded for ClusterQueue {
    const NAMESPACED: bool = false;
    const OWN: bool = false;

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }
}
