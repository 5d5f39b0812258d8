#![doc = include_str!("admission_changed.md")]

use crate::finding::Findings;
use crate::rule::{Change, Check, Context, Layer, Rule};
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::{Admission, PodSetAssignment, Workload};

/// Kueue's feature gate for pods that are placed by the topology of nodes.
const TOPOLOGY_GATE: &str = "TopologyAwareScheduling";

pub(super) const RULE: Rule<Workload> = Rule {
    id: "KL007",
    name: "admission-changed",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-admission-immutable-once-set"],
    layers: &[Layer::Webhook],
    doc: include_str!("admission_changed.md"),
    check: Check::Change(check),
};

fn check(change: &Change<'_, Workload>, context: &Context<'_>, out: &mut Findings) {
    let versions = (&change.old.status.admission, &change.new.status.admission);
    let (Some(old), Some(new)) = versions else {
        return;
    };
    let may_move = context.settings.is_gate_enabled(TOPOLOGY_GATE, true);
    if !is_same(old, new, may_move) {
        let exception = if may_move {
            "; topologyAssignment and delayedTopologyRequest may change"
        } else {
            ""
        };
        out.invalid(
            FieldPath::new("status.admission"),
            &new.cluster_queue,
            format!("field is immutable once set; keep it, or unset it first{exception}"),
        );
    }
}

fn is_same(old: &Admission, new: &Admission, may_move: bool) -> bool {
    let (before, after) = (&old.pod_set_assignments, &new.pod_set_assignments);
    let is_assigned = |(a, b): (&PodSetAssignment, &PodSetAssignment)| {
        let is_placed = a.topology_assignment == b.topology_assignment
            && a.delayed_topology_request == b.delayed_topology_request;
        a.name == b.name
            && a.flavors == b.flavors
            && a.resource_usage == b.resource_usage
            && a.count == b.count
            && (may_move || is_placed)
    };
    old.cluster_queue == new.cluster_queue
        && before.len() == after.len()
        && before.iter().zip(after).all(is_assigned)
}
