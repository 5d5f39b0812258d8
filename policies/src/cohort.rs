//! Rules of Cohorts.

pub(crate) mod cohort_cycle;
pub(crate) mod lending_limit_above_quota;
pub(crate) mod limit_without_parent;
pub(crate) mod quota_of_children_repeated;
pub(crate) mod tree_too_deep;

use crate::rule::Rule;
use crate::validated_kind::{ValidatedKind, implement_type_mismatch};
use lockkeeper_api::Cohort;

/// The rules for lockkeeper's and Kueue's Cohorts.
macro_rules! cohort_rules {
    ($($own:expr),*) => {
        &[
            crate::cohort::limit_without_parent::rule(),
            crate::cluster_queue::covered_resources_mismatch::rule(),
            crate::cluster_queue::resource_covered_twice::rule(),
            crate::cluster_queue::flavor_listed_twice::rule(),
            crate::cluster_queue::negative_quota::rule(),
            crate::cluster_queue::invalid_resource_name::rule(),
            crate::cluster_queue::invalid_fair_sharing_weight::rule(),
            crate::cluster_queue::unknown_flavor::rule(),
            crate::cluster_queue::nodes_counted_twice::rule(),
            crate::cluster_queue::lending_limit_without_borrower::rule(),
            crate::cluster_queue::borrowing_limit_never_reached::rule(),
            crate::cohort::cohort_cycle::rule(),
            crate::cohort::tree_too_deep::rule(),
            crate::cohort::quota_of_children_repeated::rule(),
            crate::cohort::lending_limit_above_quota::rule(),
            $($own,)*
        ]
    };
}
pub(crate) use cohort_rules;

static RULES: &[Rule<Cohort>] = cohort_rules!();

impl ValidatedKind for Cohort {
    const NAMESPACED: bool = false;
    const OWN: bool = true;

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }
}
