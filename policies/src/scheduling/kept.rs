//! What an update may not change in a group.

use super::disruption_mode::{missing, shown as mode_shown};
use super::field_without_gate::closed;
use super::gates::{PREEMPTION_POLICY, TOPOLOGY, is_on};
use super::group::{Grouped, View};
use super::resource_claims::CLAIMS_MAX;
use super::scheduling_policy::{least, one_of};
use crate::finding::{Findings, listed, quoted};
use crate::rule::Context;
use lockkeeper_api::field_path::FieldPath;

const CLAIMS: &str = "resourceClaims";

/// A field that does not change.
struct Kept {
    name: &'static str,
    is_changed: bool,
    shown: fn(&View<'_>) -> Option<String>,
    /// The feature gate that it needs.
    gate: Option<&'static str>,
    /// Whether it is kept without the gate, too.
    without_gate_too: bool,
}

/// Tells what changed in a group besides its policy. A field whose gate is off cannot be set.
pub(super) fn fields<T: Grouped>(
    old: &View<'_>,
    new: &View<'_>,
    context: &Context<'_>,
    out: &mut Findings,
) {
    for kept in all::<T>(old, new) {
        if kept.is_changed {
            changed::<T>(&kept, old, new, context, out);
        }
    }
    let was_taken = old.mode.is_some() && new.mode.is_none();
    if was_taken && !T::ARE_TEMPLATES && T::has_priorities(context) {
        missing::<T>(new.path.clone().field("disruptionMode"), out);
    }
}

fn all<T: Grouped>(old: &View<'_>, new: &View<'_>) -> [Kept; 6] {
    [
        Kept {
            name: CLAIMS,
            is_changed: old.claims != new.claims,
            shown: claims,
            gate: None,
            without_gate_too: true,
        },
        Kept {
            name: "schedulingConstraints",
            is_changed: old.constraints != new.constraints,
            shown: constraints,
            gate: Some(TOPOLOGY),
            without_gate_too: T::ARE_TEMPLATES,
        },
        Kept {
            name: "disruptionMode",
            is_changed: old.mode != new.mode,
            shown: |it| it.mode.map(mode_shown),
            gate: T::PREEMPTION_GATE,
            without_gate_too: false,
        },
        Kept {
            name: "priorityClassName",
            is_changed: old.class != new.class,
            shown: |it| (!it.class.is_empty()).then(|| it.class.to_owned()),
            gate: T::PREEMPTION_GATE,
            without_gate_too: false,
        },
        Kept {
            name: "priority",
            is_changed: old.priority != new.priority,
            shown: |it| it.priority.map(|priority| priority.to_string()),
            gate: T::PREEMPTION_GATE,
            without_gate_too: false,
        },
        Kept {
            name: "preemptionPolicy",
            is_changed: old.preemption_policy != new.preemption_policy,
            shown: |it| it.preemption_policy.map(str::to_owned),
            gate: Some(PREEMPTION_POLICY),
            without_gate_too: true,
        },
    ]
}

fn changed<T: Grouped>(
    kept: &Kept,
    old: &View<'_>,
    new: &View<'_>,
    context: &Context<'_>,
    out: &mut Findings,
) {
    let field = new.path.clone().field(kept.name);
    let (before, after) = ((kept.shown)(old), (kept.shown)(new));
    let closed_by = kept.gate.filter(|gate| !is_on(gate, context));
    if let Some(gate) = closed_by.filter(|_| after.is_some()) {
        closed(field.clone(), gate, out);
    }
    if closed_by.is_none() || kept.without_gate_too {
        immutable::<T>(field.clone(), before, after, out);
    }
    if kept.name == CLAIMS && new.claims.len() > CLAIMS_MAX {
        out.too_many(field, new.claims.len(), CLAIMS_MAX);
    }
}

/// Tells that a field cannot change.
pub(super) fn immutable<T: Grouped>(
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

/// Tells what changed in the policy of a group. From `v1alpha3` on the size of a gang can change.
pub(super) fn policy<T: Grouped>(old: &View<'_>, new: &View<'_>, out: &mut Findings) {
    let field = new.path.clone().field("schedulingPolicy");
    let (was_gang, is_gang) = (old.gang.is_some(), new.gang.is_some());
    if old.is_basic != new.is_basic || was_gang != is_gang {
        one_of(&field, new, out);
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
        least(&field, new, out);
    }
}

// How messages name the values.

fn claims(group: &View<'_>) -> Option<String> {
    let names = group.claims.iter().map(|claim| claim.name.as_str());
    (!group.claims.is_empty()).then(|| listed(names))
}

fn constraints(group: &View<'_>) -> Option<String> {
    let keys = group.constraints?.topology.iter();
    Some(listed(keys.map(|it| it.key.as_str())))
}
