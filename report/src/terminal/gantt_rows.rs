//! The rows of the Gantt chart, and which workloads preempt which.

use crate::gantt_layout::GanttLayout;
use crate::workload_states::WorkloadHistory;
use lockkeeper_simulate::timeline::JobTrace;
use std::collections::BTreeMap;

/// A row of the chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GanttRow {
    /// The name of a ClusterQueue.
    Heading {
        /// The index of the ClusterQueue.
        queue: usize,
        /// The number of its workloads.
        count: usize,
    },
    /// A workload, by index.
    Workload(usize),
}

/// A preemption as one of the two workloads sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PreemptionLink {
    /// In seconds.
    pub(crate) at_s: i64,
    /// The index of the other workload.
    pub(crate) other: usize,
    /// Whether the other workload is the victim.
    pub(crate) is_victim: bool,
}

/// All rows: the workloads by ClusterQueue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GanttRows {
    pub(crate) rows: Vec<GanttRow>,
    /// By workload: its row.
    row_of: Vec<usize>,
    /// By preemptor: the times in seconds and the victims.
    victims: BTreeMap<usize, Vec<(i64, usize)>>,
}

impl GanttRows {
    pub(crate) fn new(trace: &JobTrace, histories: &[WorkloadHistory]) -> Self {
        let mut rows = Vec::new();
        let mut row_of = vec![0; trace.jobs.len()];
        for group in GanttLayout::new(trace).groups {
            rows.push(GanttRow::Heading {
                queue: group.queue,
                count: group.jobs.len(),
            });
            for job in group.jobs {
                if let Some(slot) = row_of.get_mut(job) {
                    *slot = rows.len();
                }
                rows.push(GanttRow::Workload(job));
            }
        }
        let mut victims: BTreeMap<usize, Vec<(i64, usize)>> = BTreeMap::new();
        for (victim, history) in histories.iter().enumerate() {
            for it in &history.preemptions {
                victims.entry(it.by).or_default().push((it.at_s, victim));
            }
        }
        for victims in victims.values_mut() {
            victims.sort_unstable();
        }
        Self {
            rows,
            row_of,
            victims,
        }
    }

    /// Returns the row of a workload.
    pub(crate) fn row_of(&self, job: usize) -> usize {
        self.row_of.get(job).copied().unwrap_or_default()
    }

    /// Returns the number of preemptions of and by a workload.
    pub(crate) fn links_count(&self, histories: &[WorkloadHistory], job: usize) -> usize {
        let preempted = histories.get(job).map_or(0, |it| it.preemptions.len());
        let victims = self.victims.get(&job).map_or(0, Vec::len);
        preempted.saturating_add(victims)
    }

    /// Returns a preemption of or by a workload: first those in which it is the victim, by time.
    pub(crate) fn link(
        &self,
        histories: &[WorkloadHistory],
        job: usize,
        at: usize,
    ) -> Option<PreemptionLink> {
        let preemptions = histories.get(job)?.preemptions.as_slice();
        if let Some(it) = preemptions.get(at) {
            return Some(PreemptionLink {
                at_s: it.at_s,
                other: it.by,
                is_victim: false,
            });
        }
        let at = at.checked_sub(preemptions.len())?;
        let (at_s, other) = *self.victims.get(&job)?.get(at)?;
        Some(PreemptionLink {
            at_s,
            other,
            is_victim: true,
        })
    }
}

/// Returns how a workload takes part in the preemptions of another one: as preemptor, and as victim.
pub(crate) fn preemption_roles(
    histories: &[WorkloadHistory],
    job: usize,
    of: usize,
) -> (bool, bool) {
    let is_by = |victim: usize, by: usize| {
        let history = histories.get(victim);
        history.is_some_and(|it| it.preemptions.iter().any(|it| it.by == by))
    };
    (is_by(of, job), is_by(job, of))
}
