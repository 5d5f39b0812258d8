//! The immutable fields of a group.

use super::disruption_mode::{mode_text as mode_shown, report_missing};
use super::feature_gates::{PREEMPTION_POLICY, TOPOLOGY, is_enabled};
use super::field_without_gate::report_disabled_gate;
use super::pod_group_view::{PodGroupFields, PodGroupView};
use super::resource_claims::CLAIMS_MAX;
use super::scheduling_policy::{check_min_count, check_one_of};
use crate::finding::{Findings, join_names, quoted};
use crate::rule::Context;
use lockkeeper_api::field_path::FieldPath;

const CLAIMS: &str = "resourceClaims";

/// An immutable field.
struct ImmutableField {
    name: &'static str,
    is_changed: bool,
    display: fn(&PodGroupView<'_>) -> Option<String>,
    /// The feature gate that it needs.
    gate: Option<&'static str>,
    /// Whether the field is immutable without the gate, too.
    checked_without_gate: bool,
}

/// Reports changed fields of a group other than its policy. A field whose gate is off cannot be set.
pub(super) fn check_fields<T: PodGroupFields>(
    old: &PodGroupView<'_>,
    new: &PodGroupView<'_>,
    context: &Context<'_>,
    out: &mut Findings,
) {
    for kept in immutable_fields::<T>(old, new) {
        if kept.is_changed {
            report_changed::<T>(&kept, old, new, context, out);
        }
    }
    // A PodGroup always has a disruption mode, by default; in a template it may be unset.
    let was_taken = old.disruption_mode.is_some() && new.disruption_mode.is_none();
    if was_taken && !T::ARE_TEMPLATES && T::has_priorities(context) {
        report_missing::<T>(new.path.clone().field("disruptionMode"), out);
    }
}

fn immutable_fields<T: PodGroupFields>(
    old: &PodGroupView<'_>,
    new: &PodGroupView<'_>,
) -> [ImmutableField; 6] {
    [
        ImmutableField {
            name: CLAIMS,
            is_changed: old.resource_claims != new.resource_claims,
            display: claims,
            gate: None,
            checked_without_gate: true,
        },
        ImmutableField {
            name: "schedulingConstraints",
            is_changed: old.constraints != new.constraints,
            display: constraints,
            gate: Some(TOPOLOGY),
            checked_without_gate: T::ARE_TEMPLATES,
        },
        ImmutableField {
            name: "disruptionMode",
            is_changed: old.disruption_mode != new.disruption_mode,
            display: |it| it.disruption_mode.map(mode_shown),
            gate: T::PREEMPTION_GATE,
            checked_without_gate: false,
        },
        ImmutableField {
            name: "priorityClassName",
            is_changed: old.priority_class != new.priority_class,
            display: |it| (!it.priority_class.is_empty()).then(|| it.priority_class.to_owned()),
            gate: T::PREEMPTION_GATE,
            checked_without_gate: false,
        },
        ImmutableField {
            name: "priority",
            is_changed: old.priority != new.priority,
            display: |it| it.priority.map(|priority| priority.to_string()),
            gate: T::PREEMPTION_GATE,
            checked_without_gate: false,
        },
        ImmutableField {
            name: "preemptionPolicy",
            is_changed: old.preemption_policy != new.preemption_policy,
            display: |it| it.preemption_policy.map(str::to_owned),
            gate: Some(PREEMPTION_POLICY),
            checked_without_gate: true,
        },
    ]
}

fn report_changed<T: PodGroupFields>(
    kept: &ImmutableField,
    old: &PodGroupView<'_>,
    new: &PodGroupView<'_>,
    context: &Context<'_>,
    out: &mut Findings,
) {
    let field = new.path.clone().field(kept.name);
    let (before, after) = ((kept.display)(old), (kept.display)(new));
    let closed_by = kept.gate.filter(|gate| !is_enabled(gate, context));
    if let Some(gate) = closed_by.filter(|_| after.is_some()) {
        report_disabled_gate(field.clone(), gate, out);
    }
    if closed_by.is_none() || kept.checked_without_gate {
        report_immutable::<T>(field.clone(), before, after, out);
    }
    if kept.name == CLAIMS && new.resource_claims.len() > CLAIMS_MAX {
        out.too_many(field, new.resource_claims.len(), CLAIMS_MAX);
    }
}

/// Reports a change of an immutable field.
pub(super) fn report_immutable<T: PodGroupFields>(
    field: FieldPath,
    before: Option<String>,
    after: Option<String>,
    out: &mut Findings,
) {
    let kept = match before {
        Some(before) => format!("keep {}", quoted(&before)),
        None => "leave it out".to_owned(),
    };
    let kind = T::kind(&());
    out.invalid(
        field,
        after.unwrap_or_default(),
        format!("field is immutable; {kept}, or delete the {kind} and make a new one"),
    );
}

/// Reports changes of the policy of a group. From `v1alpha3` on the size of a gang can change.
pub(super) fn check_policy<T: PodGroupFields>(
    old: &PodGroupView<'_>,
    new: &PodGroupView<'_>,
    out: &mut Findings,
) {
    let field = new.path.clone().field("schedulingPolicy");
    let (was_gang, is_gang) = (old.gang.is_some(), new.gang.is_some());
    if old.is_basic != new.is_basic || was_gang != is_gang {
        check_one_of(&field, new, out);
    }
    let (kind, kept) = (T::kind(&()), if was_gang { "gang" } else { "basic" });
    let detail =
        format!("the policy is immutable; keep {kept}, or delete the {kind} and make a new one");
    for (name, was_given, is_given) in [
        ("basic", old.is_basic, new.is_basic),
        ("gang", was_gang, is_gang),
    ] {
        if was_given != is_given {
            out.invalid(field.clone().field(name), "", detail.clone());
        }
    }
    if was_gang && is_gang && old.gang != new.gang {
        check_min_count(&field, new, out);
    }
}

// The text of the values in messages.

fn claims(group: &PodGroupView<'_>) -> Option<String> {
    let names = group
        .resource_claims
        .iter()
        .map(|claim| claim.name.as_str());
    (!group.resource_claims.is_empty()).then(|| join_names(names))
}

fn constraints(group: &PodGroupView<'_>) -> Option<String> {
    let keys = group.constraints?.topology.iter();
    Some(join_names(keys.map(|it| it.key.as_str())))
}
