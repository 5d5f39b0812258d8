//! Random sets of workloads.

use super::amounts;
use crate::queue_tree::{QueueProfile, SimulatedCluster};
use crate::rng::Rng;
use crate::run::SimWorkload;
use lockkeeper_preemption::{
    BorrowWithinCohort, ReclaimWithinCohort, ResourceId, WithinClusterQueue,
};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of different priorities.
const PRIORITIES_MAX: usize = 4;

/// The choices for one resource.
struct ResourceChoices<'a> {
    /// Ascending.
    amounts: Vec<i64>,
    /// The queues with quota of it that may preempt.
    preempting_queues: Vec<&'a QueueProfile>,
    /// All queues with quota of it.
    queues: Vec<&'a QueueProfile>,
}

impl<'a> ResourceChoices<'a> {
    /// `None` if no queue has quota of the resource.
    fn new(cluster: &'a SimulatedCluster, resource: ResourceId) -> Option<Self> {
        let amounts = amounts::candidate_amounts(cluster, resource);
        let all = cluster.queues.iter();
        let has_quota = |it: &&QueueProfile| !up_to(&amounts, it.max_usage_of(resource)).is_empty();
        let all: Vec<_> = all.filter(has_quota).collect();
        let preempting = all.iter().copied().filter(|it| may_preempt(it)).collect();
        (!all.is_empty()).then_some(Self {
            amounts,
            preempting_queues: preempting,
            queues: all,
        })
    }
}

/// The amounts up to a maximum.
fn up_to(amounts: &[i64], most: i64) -> &[i64] {
    let count = amounts.partition_point(|it| *it <= most);
    amounts.get(..count).unwrap_or_default()
}

fn may_preempt(queue: &QueueProfile) -> bool {
    queue.preemption.within_cluster_queue != WithinClusterQueue::Never
        || queue.preemption.reclaim_within_cohort != ReclaimWithinCohort::Never
}

/// Samples workloads for a tree.
pub(super) struct WorkloadSampler<'a> {
    cluster: &'a SimulatedCluster,
    choices: BTreeMap<ResourceId, ResourceChoices<'a>>,
    pub(super) priorities: Vec<i32>,
}

impl<'a> WorkloadSampler<'a> {
    /// `None` if no queue of the tree may preempt.
    pub(super) fn new(cluster: &'a SimulatedCluster, priorities: &BTreeSet<i32>) -> Option<Self> {
        if !cluster.queues.iter().any(may_preempt) {
            return None;
        }
        let all = cluster.queues.iter();
        let resources: BTreeSet<_> = all.flat_map(|it| it.max_usage.keys().copied()).collect();
        let choices = resources
            .into_iter()
            .filter_map(|it| Some((it, ResourceChoices::new(cluster, it)?)));
        Some(Self {
            cluster,
            choices: choices.collect(),
            priorities: priorities_to_try(cluster, priorities),
        })
    }

    /// The amounts of a resource that are tried, ascending.
    pub(super) fn amounts(&self, resource: ResourceId) -> &[i64] {
        self.choices.get(&resource).map_or(&[], |it| &it.amounts)
    }

    /// A random set of workloads.
    pub(super) fn sample(&self, rng: &mut Rng, size: usize) -> Vec<SimWorkload> {
        let is_wide = rng.below(4) == 0;
        let choices = self.choices.iter().nth(rng.below(self.choices.len()));
        let mut workloads = Vec::new();
        while let Some((resource, choices)) = choices
            && workloads.len() < size
        {
            let mut workload = self.sample_workload(rng, *resource, choices);
            if is_wide {
                self.toggle_resource(rng, &mut workload);
            }
            workloads.push(workload);
        }
        workloads
    }

    fn sample_workload(
        &self,
        rng: &mut Rng,
        resource: ResourceId,
        choices: &ResourceChoices<'_>,
    ) -> SimWorkload {
        // Half of the workloads go to queues that may preempt: without a preemptor is no loop.
        let may_preempt = rng.below(2) == 0 && !choices.preempting_queues.is_empty();
        let from = if may_preempt {
            &choices.preempting_queues
        } else {
            &choices.queues
        };
        let queue = rng.pick(from);
        let mut workload = SimWorkload {
            queue: queue.map_or_else(String::new, |it| it.name.clone()),
            priority: rng.pick(&self.priorities).copied().unwrap_or_default(),
            requests: BTreeMap::new(),
            arrives_when_idle: rng.below(2) == 0,
        };
        self.set_request(rng, &mut workload, resource);
        workload
    }

    /// Sets a random request up to the maximum of the workload's queue, or removes the request if there is none.
    fn set_request(&self, rng: &mut Rng, workload: &mut SimWorkload, resource: ResourceId) {
        // A larger request is never admitted, so it takes part in no loop.
        let most = self.max_request(&workload.queue, resource);
        match rng.pick(up_to(self.amounts(resource), most)) {
            Some(amount) => workload.requests.insert(resource, *amount),
            None => workload.requests.remove(&resource),
        };
    }

    fn max_request(&self, queue: &str, resource: ResourceId) -> i64 {
        let mut all = self.cluster.queues.iter();
        let queue = all.find(|it| it.name == queue);
        queue.map_or(0, |it| it.max_usage_of(resource))
    }

    /// Adds or removes the request for a random resource.
    fn toggle_resource(&self, rng: &mut Rng, workload: &mut SimWorkload) {
        let Some(resource) = self.choices.keys().nth(rng.below(self.choices.len())) else {
            return;
        };
        if workload.requests.len() > 1 && rng.below(2) == 0 {
            workload.requests.remove(resource);
        } else {
            self.set_request(rng, workload, *resource);
        }
    }

    /// Moves a workload to another queue with quota of its first resource.
    fn change_queue(&self, rng: &mut Rng, workload: &mut SimWorkload) {
        let requested: Vec<_> = workload.requests.keys().copied().collect();
        let choices = requested.first().and_then(|it| self.choices.get(it));
        let Some(queue) = choices.and_then(|it| rng.pick(&it.queues)) else {
            return;
        };
        workload.queue.clone_from(&queue.name);
        for resource in requested {
            let most = queue.max_usage_of(resource);
            if workload
                .requests
                .get(&resource)
                .is_some_and(|it| *it > most)
            {
                self.set_request(rng, workload, resource);
            }
        }
    }

    /// The same workloads with one or two random changes.
    pub(super) fn mutate(&self, rng: &mut Rng, workloads: &[SimWorkload]) -> Vec<SimWorkload> {
        let mut workloads = workloads.to_vec();
        for _ in 0..=rng.below(2) {
            let at = rng.below(workloads.len());
            // Whether a loop occurs also depends on the order of arrival.
            if rng.below(6) == 0 {
                let other = rng.below(workloads.len());
                workloads.swap(at, other);
                continue;
            }
            let Some(workload) = workloads.get_mut(at) else {
                continue;
            };
            match rng.below(8) {
                0 => workload.arrives_when_idle = !workload.arrives_when_idle,
                1 | 2 => {
                    workload.priority = rng.pick(&self.priorities).copied().unwrap_or_default();
                }
                3 | 4 => self.change_queue(rng, workload),
                5 => self.toggle_resource(rng, workload),
                _ => {
                    let resources: Vec<_> = workload.requests.keys().copied().collect();
                    if let Some(resource) = rng.pick(&resources) {
                        self.set_request(rng, workload, *resource);
                    }
                }
            }
        }
        workloads
    }
}

/// A few priorities to sample from: those given, those around a threshold if fewer than two are given, and some higher
/// ones if none is.
fn priorities_to_try(cluster: &SimulatedCluster, priorities: &BTreeSet<i32>) -> Vec<i32> {
    let thresholds =
        cluster
            .queues
            .iter()
            .filter_map(|queue| match queue.preemption.borrow_within_cohort {
                BorrowWithinCohort::LowerPriority { threshold_max } => threshold_max,
                BorrowWithinCohort::Never => None,
            });
    let mut all: BTreeSet<i32> = priorities.clone();
    if all.len() < 2 {
        let around = thresholds.flat_map(|it| [it, it.saturating_add(1)]);
        all.extend(around);
    }
    let last = all.last().copied().unwrap_or_default();
    let more = (1..).map(|it| last.saturating_add(it));
    let missing = 3_usize.saturating_sub(all.len());
    if priorities.is_empty() {
        all.extend(more.take(missing));
    }
    // With many priorities, take every n-th and the highest.
    let every = all.len().div_ceil(PRIORITIES_MAX).max(1);
    let highest = all.last().copied();
    let mut few: BTreeSet<i32> = all.into_iter().step_by(every).collect();
    few.extend(highest);
    few.into_iter().collect()
}
