//! Admission gates: an annotation names the controllers that must remove their gate before a workload is admitted.
#![doc = include_str!("invalid_admission_gates.md")]
#![doc = include_str!("admission_gate_added.md")]

use super::quota_status::annotation;
use crate::finding::Findings;
use crate::name_validation;
use crate::rule::{Change, Check, Context, Layer, Rule};
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::Workload;
use std::collections::BTreeSet;

/// The annotation.
const GATED_BY: &str = "kueue.x-k8s.io/admission-gated-by";

/// Kueue's feature gate for this rule.
const GATE: &str = "AdmissionGatedBy";

/// The most bytes of a gate's name.
const NAME_MAX: usize = 63;

pub(super) const INVALID: Rule<Workload> = Rule {
    id: "KL016",
    name: "invalid-admission-gates",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-admission-gated-by-format"],
    layers: &[Layer::Webhook],
    doc: include_str!("invalid_admission_gates.md"),
    check: Check::Context(invalid),
};

pub(super) const ADDED: Rule<Workload> = Rule {
    id: "KL017",
    name: "admission-gate-added",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &[
        "wl-admission-gated-by-no-add",
        "wl-admission-gated-by-only-remove",
    ],
    layers: &[Layer::Webhook],
    doc: include_str!("admission_gate_added.md"),
    check: Check::Change(added),
};

fn place() -> FieldPath {
    FieldPath::new("metadata.annotations").key(GATED_BY)
}

/// The annotation's value; empty is none.
fn value(workload: &Workload) -> &str {
    annotation(workload, GATED_BY).unwrap_or_default()
}

fn gates(value: &str) -> impl Iterator<Item = &str> {
    // `split` returns one empty part for an empty text, which is not a gate without a name.
    let is_empty = value.trim().is_empty();
    let gates = value.split(',').map(str::trim);
    gates.take_while(move |_| !is_empty)
}

fn invalid(workload: &Workload, context: &Context<'_>, out: &mut Findings) {
    if !context.settings.is_gate_enabled(GATE, true) {
        return;
    }
    // A fault that several gates share is reported once, as in Kueue.
    let (mut seen, mut reported) = (BTreeSet::new(), BTreeSet::new());
    for gate in gates(value(workload)) {
        if !seen.insert(gate) && !gate.is_empty() {
            if reported.insert((gate, "twice")) {
                out.invalid(place(), gate, "is listed twice; list each gate once");
            }
            continue;
        }
        for (value, fault) in faults(gate) {
            if reported.insert((value, fault)) {
                out.invalid(place(), value, fault);
            }
        }
        if gate.len() > NAME_MAX && reported.insert(("", "long")) {
            out.too_long(place(), "the name of a gate may have at most 63 bytes");
        }
    }
}

/// The faults of a gate name, each with the invalid part.
fn faults(gate: &str) -> Vec<(&str, &'static str)> {
    if gate.is_empty() {
        return vec![("", "a gate has no name; remove the extra comma")];
    }
    let faults = name_validation::domain_prefixed_path(gate);
    faults.into_iter().map(|fault| (gate, fault)).collect()
}

fn added(change: &Change<'_, Workload>, context: &Context<'_>, out: &mut Findings) {
    let (before, after) = (value(change.old), value(change.new));
    if !context.settings.is_gate_enabled(GATE, true) || after.is_empty() {
        return;
    }
    if before.is_empty() {
        out.forbidden(
            place(),
            "gates can only be set when the workload is created",
        );
        return;
    }
    let known: BTreeSet<&str> = gates(before).collect();
    if gates(after).any(|gate| !known.contains(gate)) {
        out.forbidden(
            place(),
            "gates can be removed but not added; keep only stored gates",
        );
    }
}
