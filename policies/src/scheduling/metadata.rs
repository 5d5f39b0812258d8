//! Names, namespaces and the rest of the metadata.
#![doc = include_str!("workload_metadata_malformed.md")]
#![doc = include_str!("pod_group_metadata_malformed.md")]

use crate::finding::Findings;
use crate::guarded::Guarded;
use crate::metadata::created;
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::foreign::scheduling::{PodGroup, Workload};

const COVERS: &[&str] = &["kwl-metadata-name", "kwl-metadata-namespace"];

pub(super) const WORKLOAD: Rule<Workload> = Rule::mirrored(
    "KW001",
    "workload-metadata-malformed",
    COVERS,
    include_str!("workload_metadata_malformed.md"),
    Check::Create(check::<Workload>),
);

pub(super) const POD_GROUP: Rule<PodGroup> = Rule::mirrored(
    "PG001",
    "pod-group-metadata-malformed",
    COVERS,
    include_str!("pod_group_metadata_malformed.md"),
    Check::Create(check::<PodGroup>),
);

fn check<T: Guarded>(object: &T, _: &Context<'_>, out: &mut Findings) {
    created(object.meta(), T::NAMESPACED, out);
}
