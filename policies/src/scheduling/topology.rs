//! Where the pods of a group may be scheduled.
#![doc = include_str!("template_topology.md")]
#![doc = include_str!("pod_group_topology.md")]

use super::gates::{TOPOLOGY, is_on};
use super::group::{Grouped, required_name};
use crate::finding::Findings;
use crate::names::label_key;
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::foreign::scheduling::{PodGroup, Workload};

const COVERS: &[&str] = &["pg-topology-max-one", "pg-topology-key"];

/// The most topology constraints of a group.
const TOPOLOGY_MAX: usize = 1;

pub(super) const WORKLOAD: Rule<Workload> = Rule::mirrored(
    "KW007",
    "template-topology-malformed",
    COVERS,
    include_str!("template_topology.md"),
    Check::Create(check::<Workload>),
);

pub(super) const POD_GROUP: Rule<PodGroup> = Rule::mirrored(
    "PG007",
    "pod-group-topology-malformed",
    COVERS,
    include_str!("pod_group_topology.md"),
    Check::Create(check::<PodGroup>),
);

fn check<T: Grouped>(object: &T, context: &Context<'_>, out: &mut Findings) {
    if !is_on(TOPOLOGY, context) {
        return;
    }
    for (path, group) in object.groups() {
        let Some(constraints) = &group.scheduling_constraints else {
            continue;
        };
        let field = path.field("schedulingConstraints.topology");
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
