//! What the views show of one simulation.

use super::gantt_rows::GanttRows;
use super::usage_rows::UsageRows;
use crate::quota_usage::QuotaUsage;
use crate::simulation::Simulation;
use crate::wait_groups::{groups_by_priority, groups_by_queue};
use crate::wait_rows::{WaitGroup, WaitRow, largest};
use crate::workload_rows::listed_workloads;
use crate::workload_states::{WorkloadHistory, workload_histories};
use std::cell::OnceCell;

/// The waits by group of workloads.
#[derive(Clone, Debug)]
pub(crate) struct WaitTable {
    pub(crate) title: &'static str,
    pub(crate) rows: Vec<WaitRow>,
    /// The number of groups that are left out.
    pub(crate) omitted: usize,
}

/// A simulation. Everything is computed once, when it is first shown.
#[derive(Clone, Debug)]
pub(crate) struct SimulationData<'a> {
    pub(crate) simulation: Simulation<'a>,
    usage: OnceCell<QuotaUsage<'a>>,
    usage_rows: OnceCell<UsageRows>,
    histories: OnceCell<Vec<WorkloadHistory>>,
    gantt_rows: OnceCell<GanttRows>,
    listed: OnceCell<Vec<usize>>,
    waits: OnceCell<[WaitTable; 2]>,
}

impl<'a> SimulationData<'a> {
    pub(crate) fn new(simulation: Simulation<'a>) -> Self {
        Self {
            simulation,
            usage: OnceCell::new(),
            usage_rows: OnceCell::new(),
            histories: OnceCell::new(),
            gantt_rows: OnceCell::new(),
            listed: OnceCell::new(),
            waits: OnceCell::new(),
        }
    }

    pub(crate) fn usage(&self) -> &QuotaUsage<'a> {
        let simulation = self.simulation;
        let new = || QuotaUsage::new(simulation.trace, simulation.timeline);
        self.usage.get_or_init(new)
    }

    pub(crate) fn usage_rows(&self) -> &UsageRows {
        let new = || UsageRows::new(self.usage(), self.simulation.until_s());
        self.usage_rows.get_or_init(new)
    }

    pub(crate) fn histories(&self) -> &[WorkloadHistory] {
        let new = || workload_histories(&self.simulation);
        self.histories.get_or_init(new)
    }

    pub(crate) fn gantt_rows(&self) -> &GanttRows {
        let new = || GanttRows::new(self.simulation.trace, self.histories());
        self.gantt_rows.get_or_init(new)
    }

    /// The workloads of the table.
    pub(crate) fn listed(&self) -> &[usize] {
        let new = || listed_workloads(self.histories());
        self.listed.get_or_init(new)
    }

    /// The waits by ClusterQueue and by priority, classified by the bounds.
    pub(crate) fn waits(&self, bounds_s: &[i64]) -> &[WaitTable; 2] {
        self.waits.get_or_init(|| {
            let by_queue = groups_by_queue(&self.simulation, self.histories());
            let by_priority = groups_by_priority(&self.simulation, self.histories());
            [
                wait_table("By ClusterQueue", by_queue, bounds_s),
                wait_table("By priority", by_priority, bounds_s),
            ]
        })
    }
}

fn wait_table(title: &'static str, groups: Vec<WaitGroup>, bounds_s: &[i64]) -> WaitTable {
    let count = groups.len();
    let rows = largest(groups).into_iter();
    let rows: Vec<WaitRow> = rows.map(|it| WaitRow::new(it, bounds_s)).collect();
    WaitTable {
        title,
        omitted: count.saturating_sub(rows.len()),
        rows,
    }
}
