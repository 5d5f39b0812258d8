//! Requests of a job on nodes and against quotas, as one round counts them.

use super::quota::QuotaId;
use super::resource_list::ResourceList;
use crate::ids::{HostId, ResourceId};
use std::collections::{BTreeMap, BTreeSet};

/// By node, the resources that the job's pods request there.
pub(super) type NodeRequests = BTreeMap<HostId, BTreeSet<ResourceId>>;

/// A quota that would exceed its max, with its use during the round.
#[derive(Clone, Debug)]
pub(super) struct QuotaOveruse {
    pub(super) quota: QuotaId,
    pub(super) used: ResourceList,
}
