//! Flavor searches that continue over several cycles.
//!
//! An entry that loses its quota to others continues the search at the next flavor in the next cycle, as in Kueue. If that
//! finds nothing, it would become inadmissible although an earlier flavor may be free by now: it searches all flavors once
//! more.

use crate::cluster_state::ClusterState;
use crate::journal::search_again;
use lockkeeper_preemption::{Entry, RequeueDestination, State, WorkloadId};
use std::collections::{BTreeMap, BTreeSet};

/// The most cycles that a workload may continue its flavor search between two inputs. The search of a workload with several
/// pod sets may never end, as in Kueue: while one pod set tries its last flavor, another begins again at its first.
const CONTINUED_CYCLES_MAX: u32 = 64;

/// The flavor searches of pending workloads. Use one for all cycles on a state, so that a search ends.
#[derive(Clone, Debug, Default)]
pub struct FlavorSearches {
    /// Workloads that continue their search in the next cycle.
    continuing: BTreeSet<WorkloadId>,
    /// The cycles since the last input in which a workload has continued its search.
    continued_cycles: BTreeMap<WorkloadId, u32>,
    /// Workloads that have searched all flavors once more since the last input.
    searched_again: BTreeSet<WorkloadId>,
    /// Inadmissible workloads that will search all flavors once more.
    to_requeue: Vec<WorkloadId>,
}

impl FlavorSearches {
    /// Records the result of an entry. Whether the next cycle may decide differently because of it: on the workload behind
    /// an inadmissible one, or on this one at its next flavor.
    pub fn record(&mut self, state: &State, entry: &Entry) -> bool {
        let id = entry.workload;
        let is_inadmissible = matches!(entry.requeued, Some((_, RequeueDestination::Inadmissible)));
        let continues = state.workload_view(id).has_untried_flavors();
        let has_continued = self.continuing.remove(&id);
        if continues {
            self.continuing.insert(id);
        }
        if is_inadmissible && has_continued && self.searched_again.insert(id) {
            self.to_requeue.push(id);
        }
        is_inadmissible || continues && self.continue_search(id)
    }

    /// Reactivates the workloads that search all flavors once more; false if there are none. Call it after the last entry of
    /// a cycle.
    pub fn requeue(&mut self, cluster: &mut ClusterState) -> bool {
        let workloads = std::mem::take(&mut self.to_requeue);
        for id in &workloads {
            search_again(cluster, *id);
        }
        !workloads.is_empty()
    }

    /// An input arrived: the limits per input start again.
    pub fn reset_limits(&mut self) {
        self.searched_again.clear();
        self.continued_cycles.clear();
    }

    /// Counts a cycle in which a workload continues its search; false if these were too many.
    fn continue_search(&mut self, workload: WorkloadId) -> bool {
        let cycles = self.continued_cycles.entry(workload).or_default();
        *cycles = cycles.saturating_add(1);
        *cycles <= CONTINUED_CYCLES_MAX
    }
}
