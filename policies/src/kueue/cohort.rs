//! Kueue's Cohort.

use crate::cluster_queue::{
    covered_resources_mismatch, flavor_listed_twice, invalid_fair_sharing_weight, negative_quota,
    resource_covered_twice, resource_name_no_label_key,
};
use crate::cohort::limit_without_parent;
use crate::guarded::Guarded;
use crate::rule::Rule;
use lockkeeper_api::foreign::kueue::Cohort;

static RULES: &[Rule<Cohort>] = &[
    limit_without_parent::rule(),
    covered_resources_mismatch::rule(),
    resource_covered_twice::rule(),
    flavor_listed_twice::rule(),
    negative_quota::rule(),
    resource_name_no_label_key::rule(),
    invalid_fair_sharing_weight::rule(),
];

impl Guarded for Cohort {
    const NAMESPACED: bool = false;
    const OWN: bool = false;

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }
}
