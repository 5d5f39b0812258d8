//! The assignments of runs; equal ones are stored once.

use super::result::RunAssignment;
use lockkeeper_preemption::{Assignment, FlavorId, ResourceId, State, WorkloadId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// By pod set: the number of pods, the requested number of pods, and the flavor of each resource.
type Key = Vec<(i64, i64, Vec<(ResourceId, FlavorId)>)>;

/// The assignments of all runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Assignments {
    shared: BTreeMap<Key, Arc<RunAssignment>>,
}

impl Assignments {
    /// Returns the assignment of a workload with the names of its flavors.
    pub(super) fn share(
        &mut self,
        state: &State,
        workload: WorkloadId,
        assignment: &Assignment,
    ) -> Arc<RunAssignment> {
        let pod_sets = state.workload_view(workload).pod_sets();
        let assigned = assignment.pod_sets.iter().map(|assigned| {
            let requested = pod_sets.get(assigned.pod_set).map_or(0, |it| it.count);
            let flavors = assigned.flavors.iter().map(|it| (it.resource, it.flavor));
            (assigned.count, requested, flavors.collect())
        });
        let key: Key = assigned.collect();
        if let Some(shared) = self.shared.get(&key) {
            return Arc::clone(shared);
        }
        let flavors = key.iter().map(|(_, _, flavors)| {
            let named = flavors.iter().map(|(resource, flavor)| {
                let resource = state.resource_name(*resource).to_owned();
                (resource, state.flavor_name(*flavor).to_owned())
            });
            named.collect()
        });
        let is_partial = key.iter().any(|(count, requested, _)| count < requested);
        let counts = is_partial.then(|| key.iter().map(|(count, ..)| *count).collect());
        let shared = Arc::new(RunAssignment {
            flavors: flavors.collect(),
            counts,
        });
        self.shared.insert(key, Arc::clone(&shared));
        shared
    }
}
