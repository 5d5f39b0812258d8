//! Members: the gang-related state of each pod.

use crate::ids::{BudgetId, GroupId, HostId, UnitId};

/// The state of a pod that [`Cluster`](crate::placement::Cluster) does not hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    pub(super) group: Option<GroupId>,
    pub(super) nominated: Option<HostId>,
    pub(super) is_preempted: bool,
    /// The unit of a running pod.
    pub(super) unit: Option<UnitId>,
    pub(super) has_budgets: bool,
    /// The disruption budgets that protect the pod.
    pub(super) budgets: Box<[BudgetId]>,
}
