//! The priority of a pod against that of its class (admission plugin Priority).
#![doc = include_str!("priority_class_unknown.md")]
#![doc = include_str!("priority_mismatch.md")]

use crate::cluster_view::{Lookup, PreemptionPolicy};
use crate::defaulting::Defaults;
use crate::finding::{Findings, quoted};
use crate::priority_admission::{known_classes, resolve};
use crate::rule::{Check, Context, Rule};
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use lockkeeper_api::field_path::FieldPath;

pub(super) const UNKNOWN_CLASS: Rule<Pod> = Rule::mirrored(
    "PO012",
    "pod-priority-class-unknown",
    &["prio-pod-class-exists"],
    include_str!("priority_class_unknown.md"),
    Check::Create(unknown_class),
);

pub(super) const MISMATCH: Rule<Pod> = Rule::mirrored(
    "PO013",
    "pod-priority-mismatch",
    &[
        "prio-pod-default-class",
        "prio-pod-priority-match",
        "prio-pod-preemption-policy-match",
        "prio-pod-update-preserve",
    ],
    include_str!("priority_mismatch.md"),
    Check::Create(mismatch),
);

fn class(spec: &PodSpec) -> &str {
    spec.priority_class_name.as_deref().unwrap_or_default()
}

fn unknown_class(pod: &Pod, context: &Context<'_>, out: &mut Findings) {
    let class = pod.spec.as_ref().map_or("", class);
    if class.is_empty() {
        return;
    }
    if let Lookup::Absent = resolve(context.cluster, class) {
        let field = FieldPath::new("spec.priorityClassName");
        out.not_found(field, class, known_classes(context.cluster));
    }
}

fn mismatch(pod: &Pod, context: &Context<'_>, out: &mut Findings) {
    let Some(spec) = &pod.spec else { return };
    if spec.priority.is_none() && spec.preemption_policy.is_none() {
        return;
    }
    let Some(resolved) = resolve(context.cluster, class(spec)).found() else {
        return;
    };
    let source = resolved.source();
    if let Some(given) = spec.priority.filter(|it| *it != resolved.value) {
        let value = resolved.value;
        let detail =
            format!("{given} must be {value}, the priority {source}; omit it to use the default");
        out.forbidden(FieldPath::new("spec.priority"), detail);
    }
    let policy = resolved.policy.map(PreemptionPolicy::as_str);
    if let (Some(given), Some(policy)) = (spec.preemption_policy.as_deref(), policy)
        && given != policy
    {
        let detail = format!(
            "{} must be {policy:?}, the policy {source}; omit it to use the default",
            quoted(given)
        );
        out.forbidden(FieldPath::new("spec.preemptionPolicy"), detail);
    }
}

/// The defaults of the plugin: on creation the values of the class, on an update those of the stored pod.
pub(super) fn defaults(pod: &Pod, old: Option<&Pod>, context: &Context<'_>) -> Defaults {
    let mut out = Defaults::default();
    let Some(spec) = &pod.spec else { return out };
    // As in the plugin, an update keeps the stored values: the class may have changed since.
    let (class, priority, policy) = if let Some(old) = old {
        let Some(old) = &old.spec else { return out };
        (None, old.priority, old.preemption_policy.clone())
    } else {
        let Some(resolved) = resolve(context.cluster, class(spec)).found() else {
            return out;
        };
        let policy = resolved.policy.map(|policy| policy.as_str().to_owned());
        (resolved.class, Some(resolved.value), policy)
    };
    if let Some(class) = class.filter(|_| self::class(spec).is_empty()) {
        out.set(FieldPath::new("spec.priorityClassName"), class);
    }
    if let Some(priority) = priority.filter(|_| spec.priority.is_none()) {
        out.set(FieldPath::new("spec.priority"), priority);
    }
    if let Some(policy) = policy.filter(|_| spec.preemption_policy.is_none()) {
        out.set(FieldPath::new("spec.preemptionPolicy"), policy);
    }
    out
}
