//! The scheduling constraints of a group.
#![doc = include_str!("template_topology.md")]
#![doc = include_str!("pod_group_topology.md")]

use super::feature_gates::{TOPOLOGY, is_enabled};
use super::pod_group_view::{PodGroupFields, required_name};
use crate::finding::Findings;
use crate::name_validation::label_key;
use crate::rule::{Check, Context, Rule};

const COVERS: &[&str] = &["pg-topology-max-one", "pg-topology-key"];

/// The most topology constraints of a group.
const TOPOLOGY_MAX: usize = 1;

pub(super) const fn workload<T: PodGroupFields>() -> Rule<T> {
    Rule::mirrored(
        "KW007",
        "template-topology-malformed",
        COVERS,
        include_str!("template_topology.md"),
        Check::Create(check::<T>),
    )
}

pub(super) const fn pod_group<T: PodGroupFields>() -> Rule<T> {
    Rule::mirrored(
        "PG007",
        "pod-group-topology-malformed",
        COVERS,
        include_str!("pod_group_topology.md"),
        Check::Create(check::<T>),
    )
}

fn check<T: PodGroupFields>(object: &T, context: &Context<'_>, out: &mut Findings) {
    if !is_enabled(TOPOLOGY, context) {
        return;
    }
    for group in object.groups() {
        let Some(constraints) = group.constraints else {
            continue;
        };
        let field = group.path.field("schedulingConstraints.topology");
        let count = constraints.topology.len();
        if count > TOPOLOGY_MAX {
            out.too_many(field, count, TOPOLOGY_MAX);
            continue;
        }
        for (position, constraint) in constraints.topology.iter().enumerate() {
            let field = field.clone().index(position).field("key");
            required_name(&field, &constraint.key, label_key, out);
        }
    }
}
