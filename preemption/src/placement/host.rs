//! Nodes.

use super::labels::Labels;
use super::resource_vec::ResourceVec;
use crate::amount::Amount;
use crate::ids::{PodId, ResourceId, SymbolId};
use std::sync::Arc;

/// A node as it is told to the cluster.
#[derive(Clone, Debug)]
pub struct HostSpec<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its place in the order in which nodes are tried; those with the same one are tried by name.
    pub position: u32,
    /// What pods can have of it. A resource that is not given is not there; without
    /// [`ResourceId::PODS`] any number of pods.
    pub allocatable: Vec<(ResourceId, Amount)>,
    /// Its labels.
    pub labels: Labels,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Whether it is cordoned (`spec.unschedulable`).
    pub is_unschedulable: bool,
}

/// A taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    /// Its key.
    pub key: SymbolId,
    /// Its value; the empty word if it has none.
    pub value: SymbolId,
    /// What it does.
    pub effect: TaintEffect,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaintEffect {
    /// They are not put there.
    NoSchedule,
    /// They rather go elsewhere; it keeps nobody out.
    PreferNoSchedule,
    /// They are not put there, and leave.
    NoExecute,
}

/// A node, and what runs there.
#[derive(Clone, Debug)]
pub struct Host {
    pub(super) name: Arc<str>,
    pub(super) position: u32,
    /// False for a name that pods speak of, and a node that is gone.
    pub(super) is_present: bool,
    pub(super) allocatable: ResourceVec,
    /// What its pods leave; negative where more runs than there is room.
    pub(super) free: ResourceVec,
    pub(super) labels: Labels,
    /// `metadata.name`, as affinity on fields sees it.
    pub(super) fields: Labels,
    pub(super) taints: Box<[Taint]>,
    pub(super) is_unschedulable: bool,
    /// Sorted.
    pub(super) pods: Vec<PodId>,
}

impl Host {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its labels.
    #[must_use]
    pub const fn labels(&self) -> &Labels {
        &self.labels
    }

    /// What pods can have of it.
    #[must_use]
    pub const fn allocatable(&self) -> &ResourceVec {
        &self.allocatable
    }

    /// What its pods leave of that; negative where more runs than there is room.
    #[must_use]
    pub const fn free(&self) -> &ResourceVec {
        &self.free
    }

    /// The pods on it, in the order of their numbers.
    #[must_use]
    pub fn pods(&self) -> &[PodId] {
        &self.pods
    }
}
