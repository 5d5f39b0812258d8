//! The numbers of workloads by state over time.

use crate::simulation::Simulation;
use crate::stacked_chart::{ChartSize, Series, StackedChart};
use crate::step_series::steps_from_changes;
use crate::workload_states::{IntervalState, WorkloadHistory};

/// The states that are counted, the lowest first.
const COUNTED: [(IntervalState, &str); 4] = [
    (IntervalState::Running, "running"),
    (IntervalState::NotReady, "pods not ready"),
    (IntervalState::Terminating, "terminating"),
    (IntervalState::Pending, "pending"),
];

/// Returns the chart of the workloads of one ClusterQueue, or of all. States that do not occur are left out.
pub(crate) fn state_chart(
    simulation: &Simulation<'_>,
    histories: &[WorkloadHistory],
    queue: Option<&str>,
    size: ChartSize,
) -> StackedChart<'static> {
    let jobs = simulation.trace.jobs.iter().zip(histories);
    let jobs = jobs.filter(|(job, _)| queue.is_none_or(|it| *it == *job.cluster_queue));
    let histories: Vec<&WorkloadHistory> = jobs.map(|(_, history)| history).collect();
    let series = COUNTED.iter().map(|(state, name)| {
        let intervals = histories.iter().flat_map(|it| &it.intervals);
        let intervals = intervals.filter(|it| counted_as(it.state) == *state);
        let changes = intervals.flat_map(|it| [(it.from_s, 1), (it.to_s, -1)]);
        Series {
            name: (*name).to_owned(),
            class: state.class().to_owned(),
            steps: steps_from_changes(changes.collect()),
        }
    });
    let title = match queue {
        Some(queue) => format!("Workloads of ClusterQueue {queue} by state"),
        None => "Workloads by state".to_owned(),
    };
    StackedChart {
        kind: "workloads-by-state",
        title,
        resource: "workloads",
        series: series.filter(|it| !it.steps.is_empty()).collect(),
        lines: Vec::new(),
        until_s: simulation.until_s(),
        least_peak: 0,
        size,
    }
}

fn counted_as(state: IntervalState) -> IntervalState {
    match state {
        IntervalState::Preempted => IntervalState::Running,
        other => other,
    }
}
