//! The groups of pods: which pods belong to each, and the view of a group as one job.

pub(super) mod index;
pub(super) mod member_role;
pub(super) mod pod_group_policy;
pub(super) mod refresh;
mod roster;
