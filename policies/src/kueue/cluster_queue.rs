//! Kueue's ClusterQueue.

mod concurrent_admission_changed;
mod impossible_concurrent_admission;
mod unknown_flavor_of_check;

use crate::cluster_queue::queue_rules;
use crate::rule::Rule;
use crate::validated_kind::{ValidatedKind, WebhookScope, implement_type_mismatch};
use lockkeeper_api::config::ForeignKinds;
use lockkeeper_api::foreign::kueue::ClusterQueue;

static RULES: &[Rule<ClusterQueue>] = queue_rules!(
    [],
    [
        unknown_flavor_of_check::RULE,
        impossible_concurrent_admission::RULE,
        concurrent_admission_changed::RULE
    ]
);

impl ValidatedKind for ClusterQueue {
    const NAMESPACED: bool = false;
    const OWN: bool = false;
    const WEBHOOK: WebhookScope = WebhookScope::Foreign(ForeignKinds::Kueue);

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }
}
