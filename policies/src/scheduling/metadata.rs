//! Names, namespaces and the rest of the metadata.
#![doc = include_str!("workload_metadata_malformed.md")]
#![doc = include_str!("pod_group_metadata_malformed.md")]

use crate::finding::Findings;
use crate::metadata::check_on_create;
use crate::rule::{Check, Context, Rule};
use crate::validated_kind::ValidatedKind;

const COVERS: &[&str] = &["kwl-metadata-name", "kwl-metadata-namespace"];

pub(super) const fn workload<T: ValidatedKind>() -> Rule<T> {
    Rule::mirrored(
        "KW001",
        "workload-metadata-malformed",
        COVERS,
        include_str!("workload_metadata_malformed.md"),
        Check::Create(check::<T>),
    )
}

pub(super) const fn pod_group<T: ValidatedKind>() -> Rule<T> {
    Rule::mirrored(
        "PG001",
        "pod-group-metadata-malformed",
        COVERS,
        include_str!("pod_group_metadata_malformed.md"),
        Check::Create(check::<T>),
    )
}

fn check<T: ValidatedKind>(object: &T, _: &Context<'_>, out: &mut Findings) {
    check_on_create(object.meta(), T::NAMESPACED, out);
}
