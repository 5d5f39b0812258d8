//! The immutable fields of a PriorityClass.
#![doc = include_str!("value_changed.md")]
#![doc = include_str!("preemption_policy_changed.md")]

use crate::finding::{Findings, quoted};
use crate::rule::{Change, Check, Context, Rule};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::field_path::FieldPath;

pub(super) const VALUE: Rule<PriorityClass> = Rule::mirrored(
    "PC008",
    "priority-value-changed",
    &["pc-value-immutable", "pc-update-mutable-fields"],
    include_str!("value_changed.md"),
    Check::Change(value),
);

pub(super) const PREEMPTION_POLICY: Rule<PriorityClass> = Rule::mirrored(
    "PC009",
    "preemption-policy-changed",
    &["pc-preemption-policy-immutable"],
    include_str!("preemption_policy_changed.md"),
    Check::Change(preemption_policy),
);

fn value(change: &Change<'_, PriorityClass>, _: &Context<'_>, out: &mut Findings) {
    let old = change.old.value.unwrap_or_default();
    let new = change.new.value.unwrap_or_default();
    if old != new {
        let detail =
            format!("field is immutable; keep {old} in place of {new}, or make another class");
        out.forbidden(FieldPath::new("value"), detail);
    }
}

fn preemption_policy(change: &Change<'_, PriorityClass>, _: &Context<'_>, out: &mut Findings) {
    let old = change.old.preemption_policy.as_deref();
    let new = change.new.preemption_policy.as_deref();
    if old != new {
        let kept = match old {
            Some(policy) => format!("keep {}", quoted(policy)),
            None => "leave it out".to_owned(),
        };
        out.invalid(
            FieldPath::new("preemptionPolicy"),
            new.unwrap_or_default(),
            format!("field is immutable; {kept}, or make another class"),
        );
    }
}
