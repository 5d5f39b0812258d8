#![doc = include_str!("preemption_policy_unknown.md")]

use crate::cluster_view::PreemptionPolicy;
use crate::finding::Findings;
use crate::rule::{Check, Context, Rule};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::field_path::FieldPath;

pub(super) const RULE: Rule<PriorityClass> = Rule::mirrored(
    "PC006",
    "preemption-policy-unknown",
    &["pc-preemption-policy-enum", "pc-default-preemption-policy"],
    include_str!("preemption_policy_unknown.md"),
    Check::Create(check),
);

fn check(class: &PriorityClass, _: &Context<'_>, out: &mut Findings) {
    let field = FieldPath::new("preemptionPolicy");
    match class.preemption_policy.as_deref() {
        None => {}
        Some("") => out.required(
            field,
            "remove it, or set it to \"PreemptLowerPriority\" or \"Never\"",
        ),
        Some(policy) if PreemptionPolicy::parse(policy).is_some() => {}
        Some(policy) => out.not_supported(field, policy, &PreemptionPolicy::NAMES),
    }
}
