//! Jobs with quota that do not fit on nodes: they are out of their queues until nodes or quota change.

use lockkeeper_preemption::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// What the plans of equal jobs depend on: the queue, the address of the pod sets, and the priority.
pub(super) type JobClass = (NodeId, usize, i32);

/// The waiting jobs, the longest waiting first in each class.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitingJobs {
    /// By class: the time in queue order in seconds, and the job.
    classes: BTreeMap<JobClass, BTreeSet<(i64, usize)>>,
    /// The revision of the nodes for which the jobs were tried.
    tried: Option<u64>,
}

impl WaitingJobs {
    /// Adds a job that does not fit.
    pub(super) fn insert(&mut self, class: JobClass, order_time_s: i64, job: usize) {
        let jobs = self.classes.entry(class).or_default();
        jobs.insert((order_time_s, job));
    }

    /// The next jobs are tried whatever the revision: quota has changed.
    pub(super) const fn retry(&mut self) {
        self.tried = None;
    }

    /// Removes and returns the first job of each class, unless the nodes are those for which they were tried. If it does
    /// not fit, nor do the others of its class; if it does, the next one is tried after it.
    pub(super) fn next(&mut self, revision: u64) -> Vec<usize> {
        if self.tried == Some(revision) {
            return Vec::new();
        }
        self.tried = Some(revision);
        let first = self.classes.values_mut().filter_map(BTreeSet::pop_first);
        let mut first: Vec<(i64, usize)> = first.collect();
        self.classes.retain(|_, jobs| !jobs.is_empty());
        first.sort_unstable();
        first.into_iter().map(|(_, job)| job).collect()
    }
}
