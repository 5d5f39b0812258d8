//! Rules of ClusterQueues. Most of them also apply to Kueue's ClusterQueues, and some to Cohorts.

mod backfill_without_effect;
mod borrow_without_reclaim;
pub(crate) mod borrowing_limit_never_reached;
pub(crate) mod covered_resources_mismatch;
mod defaults;
pub(crate) mod deleted_while_used;
pub(crate) mod flavor_listed_twice;
pub(crate) mod flavor_preference_unused;
pub(crate) mod invalid_fair_sharing_weight;
pub(crate) mod invalid_namespace_selector;
pub(crate) mod invalid_resource_name;
pub(crate) mod lending_limit_above_nominal;
pub(crate) mod lending_limit_without_borrower;
pub(crate) mod limit_without_cohort;
mod limit_without_policy;
pub(crate) mod negative_quota;
mod no_namespace_selected;
pub(crate) mod nodes_counted_twice;
pub(crate) mod policy_under_fair_sharing;
pub(crate) mod policy_without_cohort;
pub(crate) mod preemption_loop;
pub(crate) mod quota_too_large;
pub(crate) mod resource_covered_twice;
pub(crate) mod strict_fifo_blocked_forever;
pub(crate) mod threshold_below_every_class;
pub(crate) mod threshold_without_policy;
pub(crate) mod unknown_flavor;

use crate::cel_defaults::CelDefault;
use crate::defaulting::Defaults;
use crate::rule::{Context, Operation, Rule};
use crate::validated_kind::{ValidatedKind, implement_type_mismatch};
use lockkeeper_api::ClusterQueue;

/// The rules for lockkeeper's and Kueue's ClusterQueues, between rules for only one of them.
macro_rules! queue_rules {
    ([$($before:expr),*], [$($after:expr),*]) => {
        &[
            $($before,)*
            crate::cluster_queue::limit_without_cohort::borrowing_rule(),
            crate::cluster_queue::limit_without_cohort::lending_rule(),
            crate::cluster_queue::covered_resources_mismatch::rule(),
            crate::cluster_queue::resource_covered_twice::rule(),
            crate::cluster_queue::flavor_listed_twice::rule(),
            crate::cluster_queue::lending_limit_above_nominal::rule(),
            crate::cluster_queue::negative_quota::rule(),
            crate::cluster_queue::invalid_resource_name::rule(),
            crate::cluster_queue::quota_too_large::rule(),
            crate::cluster_queue::invalid_namespace_selector::rule(),
            crate::cluster_queue::flavor_preference_unused::rule(),
            crate::cluster_queue::invalid_fair_sharing_weight::rule(),
            crate::cluster_queue::unknown_flavor::rule(),
            crate::cluster_queue::deleted_while_used::rule(),
            crate::cluster_queue::nodes_counted_twice::rule(),
            crate::cluster_queue::lending_limit_without_borrower::rule(),
            crate::cluster_queue::borrowing_limit_never_reached::rule(),
            crate::cluster_queue::strict_fifo_blocked_forever::rule(),
            crate::cluster_queue::policy_under_fair_sharing::rule(),
            crate::cluster_queue::threshold_below_every_class::rule(),
            crate::cluster_queue::policy_without_cohort::rule(),
            crate::cluster_queue::threshold_without_policy::rule(),
            crate::cluster_queue::preemption_loop::rule(),
            $($after,)*
        ]
    };
}
pub(crate) use queue_rules;

static RULES: &[Rule<ClusterQueue>] = queue_rules!(
    [borrow_without_reclaim::RULE],
    [
        limit_without_policy::RULE,
        no_namespace_selected::RULE,
        backfill_without_effect::RULE
    ]
);

impl ValidatedKind for ClusterQueue {
    const NAMESPACED: bool = false;
    const OWN: bool = true;
    const DEFAULTED_ON: &'static [Operation] = &[Operation::Create, Operation::Update];
    const CEL_DEFAULTS: &'static [CelDefault] = defaults::CEL_DEFAULTS;

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }

    fn defaults(object: &Self, _: Option<&Self>, context: &Context<'_>) -> Defaults {
        defaults::defaults(object, context.settings)
    }
}
