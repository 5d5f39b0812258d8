//! Rules of Kubernetes' PriorityClass: Kubernetes' own and lockkeeper's.

mod cannot_preempt;
mod changed;
mod deleted_while_used;
mod identity;
mod metadata;
mod preemption_policy_unknown;
mod reserved_name;
mod second_global_default;
mod value_above_maximum;

use crate::cluster_view::PreemptionPolicy;
use crate::defaulting::Defaults;
use crate::rule::{Context, Rule};
use crate::validated_kind::{ValidatedKind, implement_type_mismatch};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::field_path::FieldPath;

static RULES: &[Rule<PriorityClass>] = &[
    second_global_default::RULE,
    deleted_while_used::RULE,
    metadata::RULE,
    reserved_name::RULE,
    value_above_maximum::RULE,
    preemption_policy_unknown::RULE,
    identity::RULE,
    changed::VALUE,
    changed::PREEMPTION_POLICY,
    cannot_preempt::RULE,
];

impl ValidatedKind for PriorityClass {
    const NAMESPACED: bool = false;
    const OWN: bool = false;

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }

    /// The schema's default.
    fn defaults(object: &Self, _: Option<&Self>, _: &Context<'_>) -> Defaults {
        let mut out = Defaults::default();
        if object.preemption_policy.is_none() {
            let policy = PreemptionPolicy::PreemptLowerPriority.as_str();
            out.set(FieldPath::new("preemptionPolicy"), policy);
        }
        out
    }
}
