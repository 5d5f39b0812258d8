//! What makes an object the one that it is.
#![doc = include_str!("workload_identity_changed.md")]
#![doc = include_str!("pod_group_identity_changed.md")]

use crate::finding::Findings;
use crate::guarded::Guarded;
use crate::metadata::changed;
use crate::rule::{Change, Check, Context, Rule};
use lockkeeper_api::foreign::scheduling::{PodGroup, Workload};

const COVERS: &[&str] = &["kwl-metadata-immutable"];

pub(super) const WORKLOAD: Rule<Workload> = Rule::mirrored(
    "KW002",
    "workload-identity-changed",
    COVERS,
    include_str!("workload_identity_changed.md"),
    Check::Change(check::<Workload>),
);

pub(super) const POD_GROUP: Rule<PodGroup> = Rule::mirrored(
    "PG002",
    "pod-group-identity-changed",
    COVERS,
    include_str!("pod_group_identity_changed.md"),
    Check::Change(check::<PodGroup>),
);

fn check<T: Guarded>(change: &Change<'_, T>, _: &Context<'_>, out: &mut Findings) {
    changed(change.old.meta(), change.new.meta(), out);
}
