//! Which workloads a table has, and in which order.

use super::simulation_data::SimulationData;
use crate::workload_rows::preemptor_names;
use std::cmp::Reverse;

/// The column by which a table is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sorting {
    pub(crate) column: usize,
    pub(crate) is_descending: bool,
}

/// A value by which workloads are sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SortKey {
    Number(i64),
    Text(String),
}

/// Returns the workloads of the table whose names contain a text, whatever its case. Those with equal values keep their
/// order.
pub(crate) fn ordered_workloads(
    data: &SimulationData<'_>,
    sorting: Option<Sorting>,
    filter: &str,
) -> Vec<usize> {
    let filter = filter.to_lowercase();
    let jobs = &data.simulation.trace.jobs;
    let is_shown = |at: &usize| {
        let job = jobs.get(*at);
        filter.is_empty() || job.is_some_and(|it| it.name.to_lowercase().contains(&filter))
    };
    let mut shown: Vec<usize> = data.listed().iter().copied().filter(is_shown).collect();
    match sorting {
        None => {}
        Some(it) if it.is_descending => {
            shown.sort_by_cached_key(|at| Reverse(sort_key(data, *at, it.column)));
        }
        Some(it) => shown.sort_by_cached_key(|at| sort_key(data, *at, it.column)),
    }
    shown
}

/// The value of a column. Absent times are last.
fn sort_key(data: &SimulationData<'_>, at: usize, column: usize) -> Option<SortKey> {
    let job = data.simulation.trace.jobs.get(at)?;
    let history = data.histories().get(at)?;
    let count = |count: usize| SortKey::Number(i64::try_from(count).unwrap_or(i64::MAX));
    let time = |at_s: Option<i64>| SortKey::Number(at_s.unwrap_or(i64::MAX));
    Some(match column {
        0 => SortKey::Text(job.name.to_string()),
        1 => SortKey::Text(job.cluster_queue.to_string()),
        2 => SortKey::Number(job.priority.into()),
        3 => SortKey::Number(job.arrival),
        4 => time(history.wait_s),
        5 => time(history.finished_at_s),
        6 => SortKey::Text(history.state.as_str().to_owned()),
        7 => count(history.admissions),
        8 => count(history.preemptions.len()),
        _ => SortKey::Text(preemptor_names(&data.simulation, history)),
    })
}
