//! The rows of tables of workloads.

use crate::simulation::{Simulation, WORKLOADS_MAX};
use crate::time_text::duration_text;
use crate::workload_states::WorkloadHistory;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The columns, and whether they are numbers or times.
pub(crate) const COLUMNS: [(&str, bool); 10] = [
    ("Workload", false),
    ("ClusterQueue", false),
    ("Priority", true),
    ("Arrival", true),
    ("Wait", true),
    ("Finished at", true),
    ("State", false),
    ("Admissions", true),
    ("Preemptions", true),
    ("Preempted by", false),
];

/// Returns the workloads of the table: all in the order of the trace, or if there are more than [`WORKLOADS_MAX`], those
/// that were never admitted and those with the longest waits.
pub(crate) fn listed_workloads(histories: &[WorkloadHistory]) -> Vec<usize> {
    let mut listed: Vec<usize> = (0..histories.len()).collect();
    if listed.len() > WORKLOADS_MAX {
        let key = |at: &usize| {
            let wait_s = histories.get(*at).map(|it| it.wait_s);
            Reverse(wait_s.map(|it| it.unwrap_or(i64::MAX)))
        };
        listed.sort_by_key(key);
        listed.truncate(WORKLOADS_MAX);
    }
    listed
}

/// Returns the cells of a workload by column; `None` if there is no such workload.
pub(crate) fn workload_cells(
    simulation: &Simulation<'_>,
    histories: &[WorkloadHistory],
    at: usize,
) -> Option<[String; COLUMNS.len()]> {
    let job = simulation.trace.jobs.get(at)?;
    let history = histories.get(at)?;
    let time = |at_s: Option<i64>| at_s.map_or_else(|| "–".to_owned(), duration_text);
    Some([
        job.name.to_string(),
        job.cluster_queue.to_string(),
        job.priority.to_string(),
        duration_text(job.arrival),
        time(history.wait_s),
        time(history.finished_at_s),
        history.state.as_str().to_owned(),
        history.admissions.to_string(),
        history.preemptions.len().to_string(),
        preemptor_names(simulation, history),
    ])
}

/// Returns the names of the preemptors of a workload: each once, in the order of their first preemptions.
pub(crate) fn preemptor_names(simulation: &Simulation<'_>, history: &WorkloadHistory) -> String {
    let mut names: BTreeMap<usize, usize> = BTreeMap::new();
    for (order, preemption) in history.preemptions.iter().enumerate() {
        names.entry(preemption.by).or_insert(order);
    }
    let mut names: Vec<(usize, usize)> = names.into_iter().map(|(by, order)| (order, by)).collect();
    names.sort_unstable();
    let jobs = &simulation.trace.jobs;
    let names = names.iter().filter_map(|(_, by)| jobs.get(*by));
    let names: Vec<&str> = names.map(|it| &*it.name).collect();
    names.join(", ")
}
