//! The data of the state. Its parts are changed only by the functions of the sibling files.

use crate::admitted::AdmittedIndex;
use crate::amount::Amount;
use crate::damping::{Histories, Holds};
use crate::ids::{Interner, NodeId, WorkloadId};
use crate::inadmissible_index::InadmissibleIndex;
use crate::pod_set_interner::PodSetInterner;
use crate::queue::Queue;
use crate::quota::{Overlay, Tree};
use crate::spec::Options;
use crate::workload_table::WorkloadTable;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// ClusterQueues, cohorts and workloads, kept up to date by events, and the input of every decision.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(crate) options: Options,
    // Copies of a state share what seldom changes (copy on write).
    pub(crate) flavors: Arc<Interner>,
    pub(crate) resources: Arc<Interner>,
    pub(crate) queue_names: Arc<BTreeMap<Arc<str>, NodeId>>,
    pub(crate) cohort_names: Arc<BTreeMap<Arc<str>, NodeId>>,
    pub(crate) tree: Arc<Tree>,
    /// Queues and cohorts that were declared or removed since the last rebuild of the tree.
    pub(crate) changed: Vec<NodeId>,
    /// Usage by cell of the tree.
    pub(crate) usage: Vec<Amount>,
    /// Memory for the views of a cycle, kept between cycles.
    pub(crate) overlay: Overlay,
    pub(crate) overlay_now: Overlay,
    pub(crate) admitted_index: AdmittedIndex,
    /// By the index of the queue's node.
    pub(crate) queues: Vec<Queue>,
    pub(crate) workloads: WorkloadTable,
    pub(crate) by_name: BTreeMap<Arc<str>, WorkloadId>,
    pub(crate) pod_set_interner: PodSetInterner,
    pub(crate) inadmissible: InadmissibleIndex,
    /// The number of the last cycle.
    pub(crate) cycle: u64,
    /// The time of the last cycle or of the last `set_now`, in seconds.
    pub(crate) now_s: i64,
    /// Seconds added to the time of a reservation that a cycle makes.
    pub(crate) reservation_lead_s: i64,
    pub(crate) histories: Histories,
    pub(crate) holds: Holds,
    /// Whether any queue has ever had preemption limits.
    pub(crate) has_limits: bool,
    /// Whether any queue has ever had backfill.
    pub(crate) has_backfill: bool,
    /// Whether any queue has ever been elastic.
    pub(crate) has_elastic: bool,
    /// The second at which a candidate reaches its minimum run time, and the queue to reactivate then.
    pub(crate) reactivation_times: BTreeSet<(i64, NodeId)>,
}
