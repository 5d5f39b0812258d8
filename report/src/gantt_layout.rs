//! The rows of Gantt charts.

use lockkeeper_simulate::timeline::JobTrace;
use std::collections::BTreeMap;

/// The height of the heading of a ClusterQueue, in tenths of a pixel.
pub(crate) const HEADING_HEIGHT: i64 = 220;

/// The heights of rows in tenths of a pixel, and the most workloads that have them.
const ROW_HEIGHTS: [(usize, i64); 3] = [(60, 160), (200, 120), (1_000, 60)];

/// The height of the rows of more workloads.
const ROW_HEIGHT_MIN: i64 = 30;

/// The workloads of a ClusterQueue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GanttGroup {
    /// The index of the ClusterQueue.
    pub(crate) queue: usize,
    /// The top of the heading, in tenths of a pixel.
    pub(crate) top: i64,
    /// The workloads in the order of their arrival, by index in the trace.
    pub(crate) jobs: Vec<usize>,
}

/// One row for each workload, by ClusterQueue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GanttLayout {
    pub(crate) groups: Vec<GanttGroup>,
    /// By workload: the top of its row, in tenths of a pixel.
    pub(crate) tops: Vec<i64>,
    /// In tenths of a pixel.
    pub(crate) row_height: i64,
    /// In tenths of a pixel.
    pub(crate) height: i64,
}

impl GanttLayout {
    pub(crate) fn new(trace: &JobTrace) -> Self {
        let fitting = ROW_HEIGHTS
            .iter()
            .find(|(most, _)| trace.jobs.len() <= *most);
        let row_height = fitting.map_or(ROW_HEIGHT_MIN, |(_, height)| *height);
        let queues = trace.cluster_queues.iter().enumerate();
        let queues: BTreeMap<&str, usize> = queues.map(|(at, it)| (it.name.as_str(), at)).collect();
        let mut by_queue: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, job) in trace.jobs.iter().enumerate() {
            if let Some(queue) = queues.get(&*job.cluster_queue) {
                by_queue.entry(*queue).or_default().push(at);
            }
        }
        let mut height = 0_i64;
        let mut tops = vec![0; trace.jobs.len()];
        let mut groups = Vec::new();
        for (queue, jobs) in by_queue {
            let top = height;
            height = height.saturating_add(HEADING_HEIGHT);
            for job in &jobs {
                if let Some(slot) = tops.get_mut(*job) {
                    *slot = height;
                }
                height = height.saturating_add(row_height);
            }
            groups.push(GanttGroup { queue, top, jobs });
        }
        Self {
            groups,
            tops,
            row_height,
            height,
        }
    }

    /// Returns the top of the row of a workload, in tenths of a pixel.
    pub(crate) fn top(&self, job: usize) -> i64 {
        self.tops.get(job).copied().unwrap_or_default()
    }
}
