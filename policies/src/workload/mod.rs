//! Workload.

mod defaults;
mod mixed_preemptible_labels;
mod preemption_priority;
mod priorities;
mod priority_class_changed;
mod unknown_priority_class;

use crate::defaulting::Defaults;
use crate::guarded::Guarded;
use crate::rule::{Context, Operation, Rule};
use lockkeeper_api::Workload;

static RULES: &[Rule<Workload>] = &[
    preemption_priority::BELOW_SCHEDULING,
    preemption_priority::TOO_FAR_ABOVE,
    preemption_priority::NOT_ALLOWED,
    unknown_priority_class::RULE,
    priority_class_changed::RULE,
    mixed_preemptible_labels::RULE,
];

impl Guarded for Workload {
    const NAMESPACED: bool = true;
    const OWN: bool = true;
    const DEFAULTED_ON: &'static [Operation] = &[Operation::Create, Operation::Update];

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }

    fn defaults(object: &Self, old: Option<&Self>, context: &Context<'_>) -> Defaults {
        defaults::fill(object, old, context)
    }
}
