//! Pod sets and names of queues that many jobs have in common, stored once: a trace may have millions of jobs.

use super::job_trace::Job;
use lockkeeper_scenario::PodSet;
use serde::Deserializer;
use serde::de::{SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Stores equal pod sets once. A lookup costs the logarithm of the number of different ones.
#[derive(Clone, Debug, Default)]
pub struct PodSetTable {
    pod_sets: BTreeSet<Arc<[PodSet]>>,
}

impl PodSetTable {
    /// Returns the stored pod sets that equal these.
    pub fn share(&mut self, pod_sets: Vec<PodSet>) -> Arc<[PodSet]> {
        if let Some(known) = self.pod_sets.get(pod_sets.as_slice()) {
            return Arc::clone(known);
        }
        let shared: Arc<[PodSet]> = pod_sets.into();
        self.pod_sets.insert(Arc::clone(&shared));
        shared
    }
}

/// Decodes jobs, and stores equal parts of them once.
pub(super) fn shared_jobs<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Arc<Vec<Job>>, D::Error> {
    deserializer.deserialize_seq(JobsVisitor).map(Arc::new)
}

struct JobsVisitor;

impl<'de> Visitor<'de> for JobsVisitor {
    type Value = Vec<Job>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of jobs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Job>, A::Error> {
        let mut pod_sets: BTreeSet<Arc<[PodSet]>> = BTreeSet::new();
        let mut queues: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut jobs = Vec::new();
        while let Some(mut job) = list.next_element::<Job>()? {
            job.pod_sets = shared(&mut pod_sets, job.pod_sets);
            job.cluster_queue = shared(&mut queues, job.cluster_queue);
            jobs.push(job);
        }
        Ok(jobs)
    }
}

fn shared<T: ?Sized + Ord>(known: &mut BTreeSet<Arc<T>>, value: Arc<T>) -> Arc<T> {
    if let Some(known) = known.get(&value) {
        return Arc::clone(known);
    }
    known.insert(Arc::clone(&value));
    value
}
