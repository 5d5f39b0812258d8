//! The identity of an object: name, namespace and uid.
#![doc = include_str!("workload_identity_changed.md")]
#![doc = include_str!("pod_group_identity_changed.md")]

use crate::finding::Findings;
use crate::metadata::check_on_update;
use crate::rule::{Change, Check, Context, Rule};
use crate::validated_kind::ValidatedKind;

const COVERS: &[&str] = &["kwl-metadata-immutable"];

pub(super) const fn workload<T: ValidatedKind>() -> Rule<T> {
    Rule::mirrored(
        "KW002",
        "workload-identity-changed",
        COVERS,
        include_str!("workload_identity_changed.md"),
        Check::Change(check::<T>),
    )
}

pub(super) const fn pod_group<T: ValidatedKind>() -> Rule<T> {
    Rule::mirrored(
        "PG002",
        "pod-group-identity-changed",
        COVERS,
        include_str!("pod_group_identity_changed.md"),
        Check::Change(check::<T>),
    )
}

fn check<T: ValidatedKind>(change: &Change<'_, T>, _: &Context<'_>, out: &mut Findings) {
    check_on_update(change.old.meta(), change.new.meta(), out);
}
