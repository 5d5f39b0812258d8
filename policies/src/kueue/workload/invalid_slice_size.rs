#![doc = include_str!("invalid_slice_size.md")]

use crate::finding::Findings;
use crate::rule::{Check, Context, Layer, Rule};
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::{TopologyRequest, Workload};

/// Kueue's feature gate for this rule.
const GATE: &str = "TASValidateWorkloadSliceSize";

pub(super) const RULE: Rule<Workload> = Rule {
    id: "KL002",
    name: "invalid-slice-size",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &[
        "wl-slice-size-required",
        "wl-slice-size-positive",
        "wl-slice-size-needs-topology",
        "wl-slice-constraints-size",
    ],
    layers: &[Layer::Webhook],
    doc: include_str!("invalid_slice_size.md"),
    check: Check::Context(check),
};

fn check(workload: &Workload, context: &Context<'_>, out: &mut Findings) {
    if !context.settings.is_gate_enabled(GATE, true) {
        return;
    }
    for (position, pod_set) in workload.spec.pod_sets.iter().enumerate() {
        if let Some(request) = &pod_set.topology_request {
            let pod_sets = FieldPath::new("spec.podSets");
            let field = pod_sets.item(position, &pod_set.name);
            slices(request, &field.field("topologyRequest"), out);
        }
    }
}

fn slices(request: &TopologyRequest, field: &FieldPath, out: &mut Findings) {
    let place = || field.clone().field("podSetSliceSize");
    let topology = &request.pod_set_slice_required_topology;
    match (topology, request.pod_set_slice_size) {
        (Some(_), None) => out.required(
            place(),
            "must be set with podSetSliceRequiredTopology: how many pods share such a domain",
        ),
        (Some(_), Some(size)) if size <= 0 => out.invalid(place(), size, "must be 1 or more"),
        (None, Some(_)) => out.forbidden(
            place(),
            "may not be set without podSetSliceRequiredTopology; name the topology, or remove it",
        ),
        _ => {}
    }
    let constraints = &request.podset_slice_required_topology_constraints;
    for (position, constraint) in constraints.iter().enumerate() {
        if constraint.size <= 0 {
            let list = field
                .clone()
                .field("podsetSliceRequiredTopologyConstraints");
            let place = list.index(position).field("size");
            out.invalid(place, constraint.size, "must be 1 or more");
        }
    }
}
