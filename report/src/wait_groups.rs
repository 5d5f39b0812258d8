//! Groups of workloads whose waits are compared.

use crate::simulation::Simulation;
use crate::wait_rows::WaitGroup;
use crate::workload_states::WorkloadHistory;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Returns the waits by ClusterQueue; those without workloads are left out.
pub(crate) fn groups_by_queue(
    simulation: &Simulation<'_>,
    histories: &[WorkloadHistory],
) -> Vec<WaitGroup> {
    let mut groups: BTreeMap<&str, WaitGroup> = BTreeMap::new();
    for (job, history) in simulation.trace.jobs.iter().zip(histories) {
        let group = groups.entry(&job.cluster_queue).or_default();
        group.add(history.wait_s);
    }
    let queues = simulation.trace.cluster_queues.iter();
    let groups = queues.filter_map(|queue| {
        let mut group = groups.remove(queue.name.as_str())?;
        group.name.clone_from(&queue.name);
        Some(group)
    });
    groups.collect()
}

/// Returns the waits by priority, the highest one first.
pub(crate) fn groups_by_priority(
    simulation: &Simulation<'_>,
    histories: &[WorkloadHistory],
) -> Vec<WaitGroup> {
    let mut groups: BTreeMap<Reverse<i32>, WaitGroup> = BTreeMap::new();
    for (job, history) in simulation.trace.jobs.iter().zip(histories) {
        let group = groups.entry(Reverse(job.priority)).or_default();
        group.add(history.wait_s);
    }
    let groups = groups.into_iter().map(|(Reverse(priority), mut group)| {
        group.name = format!("priority {priority}");
        group
    });
    groups.collect()
}
