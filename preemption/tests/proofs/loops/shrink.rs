//! The smallest cluster that has a loop of the same kind.

use super::kind::loop_kinds;
use super::run::{EvictionPace, Loop, LoopRun};
use crate::model::cluster_model::{ClusterModel, Cohort, Limits, Pods, Queue, Workload};
use lockkeeper_preemption::{
    Algorithm, BorrowWithinCohort, FlavorFungibility, QueueingStrategy, ReclaimWithinCohort,
    WithinClusterQueue,
};

/// Cycles within which a cluster at the start of a loop repeats a state.
const CYCLES_MAX: usize = 16;

/// Simplifies the cluster of a loop step by step, as long as the kind of the loop stays the same.
pub fn shrink(found: &Loop) -> Option<Loop> {
    let kinds = loop_kinds(found);
    smallest(&found.cluster_model, found.pace, |cluster_model, pace| {
        let candidate = LoopRun::new(cluster_model, &[], pace).find_loop(CYCLES_MAX)?;
        (loop_kinds(&candidate) == kinds).then_some(candidate)
    })
}

/// Simplifies a cluster as long as `shows` returns a result; returns the last result.
pub fn smallest<T>(
    cluster_model: &ClusterModel,
    pace: EvictionPace,
    shows: impl Fn(&ClusterModel, EvictionPace) -> Option<T>,
) -> Option<T> {
    let mut best = shows(cluster_model, pace)?;
    let mut now = (cluster_model.clone(), pace);
    loop {
        let cluster_models = steps(&now.0).into_iter().map(|it| (it, now.1));
        let faster = std::iter::once((now.0.clone(), EvictionPace::Immediate));
        let faster = faster.filter(|_| now.1 == EvictionPace::OnePerCycle);
        let mut all = cluster_models.chain(faster);
        let Some((smaller, next)) = all.find_map(|it| Some((shows(&it.0, it.1)?, it))) else {
            return Some(best);
        };
        (best, now) = (smaller, next);
    }
}

/// All clusters that are one step simpler.
fn steps(cluster_model: &ClusterModel) -> Vec<ClusterModel> {
    let mut all = Steps {
        cluster_model,
        smaller: Vec::new(),
    };
    all.fewer_objects();
    all.simpler_rules();
    all.simpler_queues();
    all.smaller_amounts();
    all.smaller
}

struct Steps<'a> {
    cluster_model: &'a ClusterModel,
    smaller: Vec<ClusterModel>,
}

impl Steps<'_> {
    fn step(&mut self, change: impl FnOnce(&mut ClusterModel)) {
        let mut cluster_model = self.cluster_model.clone();
        change(&mut cluster_model);
        self.smaller.push(cluster_model);
    }

    fn fewer_objects(&mut self) {
        let cluster_model = self.cluster_model;
        for name in cluster_model.queues.keys() {
            self.step(|cluster_model| {
                cluster_model.queues.remove(name);
                cluster_model.workloads.retain(|_, it| it.queue != *name);
            });
        }
        for name in cluster_model.workloads.keys() {
            self.step(|cluster_model| {
                cluster_model.workloads.remove(name);
            });
        }
        for (name, cohort) in &cluster_model.cohorts {
            self.step(|cluster_model| {
                cluster_model.cohorts.remove(name);
                let cohorts = cluster_model.cohorts.values_mut().map(|it| &mut it.parent);
                let queues = cluster_model.queues.values_mut().map(|it| &mut it.cohort);
                for parent in cohorts.chain(queues).filter(|it| it.as_ref() == Some(name)) {
                    parent.clone_from(&cohort.parent);
                }
            });
            if !cohort.quotas.is_empty() {
                self.step(|cluster_model| cohort_of(cluster_model, name).quotas.clear());
            }
        }
    }

    fn simpler_rules(&mut self) {
        if let Algorithm::FairSharing(strategies) = &self.cluster_model.options.algorithm {
            for at in 0..strategies.len() {
                let mut fewer = strategies.clone();
                fewer.remove(at);
                self.step(|cluster_model| {
                    cluster_model.options.algorithm = Algorithm::FairSharing(fewer);
                });
            }
        }
        for (name, workload) in &self.cluster_model.workloads {
            if workload.priority > 0 {
                self.step(|cluster_model| workload_of(cluster_model, name).priority -= 1);
                self.step(|cluster_model| workload_of(cluster_model, name).priority = 0);
            }
            if workload.order_time > 1000 {
                self.step(|cluster_model| workload_of(cluster_model, name).order_time = 1000);
                self.step(|cluster_model| workload_of(cluster_model, name).order_time -= 1);
            }
            if workload.uid != workload.name {
                self.step(|cluster_model| workload_of(cluster_model, name).uid.clone_from(name));
            }
        }
    }

    fn simpler_queues(&mut self) {
        for (name, queue) in &self.cluster_model.queues {
            let mut change = |change: &dyn Fn(&mut Queue)| {
                let mut simpler = queue.clone();
                change(&mut simpler);
                if simpler != *queue {
                    self.step(|cluster_model| {
                        cluster_model.queues.insert(name.clone(), simpler);
                    });
                }
            };
            change(&|it| it.preemption.within_cluster_queue = WithinClusterQueue::Never);
            change(&|it| it.preemption.reclaim_within_cohort = ReclaimWithinCohort::Never);
            change(&|it| it.preemption.borrow_within_cohort = BorrowWithinCohort::Never);
            change(&|it| it.fungibility = FlavorFungibility::default());
            change(&|it| it.strategy = QueueingStrategy::BestEffortFifo);
            change(&|it| it.weight = 1.0);
            change(&|it| it.groups.truncate(1));
            for at in 0..queue.groups.first().map_or(0, |it| it.flavors.len()) {
                change(&|simpler| {
                    if simpler.groups[0].flavors.len() > 1 {
                        simpler.groups[0].flavors.remove(at);
                    }
                });
            }
        }
    }

    fn smaller_amounts(&mut self) {
        for (name, cohort) in &self.cluster_model.cohorts {
            for (pair, limits) in &cohort.quotas {
                for smaller in smaller_limits(*limits) {
                    self.step(|cluster_model| {
                        cohort_of(cluster_model, name).quotas.insert(*pair, smaller);
                    });
                }
            }
            if cohort.weight.to_bits() != 1.0_f64.to_bits() {
                self.step(|cluster_model| cohort_of(cluster_model, name).weight = 1.0);
            }
        }
        for (name, queue) in &self.cluster_model.queues {
            for (group_at, group) in queue.groups.iter().enumerate() {
                for (at, (_, limits)) in group.flavors.iter().enumerate() {
                    for (resource, limits) in limits.iter().enumerate() {
                        for smaller in smaller_limits(*limits) {
                            self.step(|cluster_model| {
                                let queue = cluster_model.queues.get_mut(name).expect(name);
                                queue.groups[group_at].flavors[at].1[resource] = smaller;
                            });
                        }
                    }
                }
            }
        }
        for (name, workload) in &self.cluster_model.workloads {
            if let Some(Pods { requests, .. }) = workload.pods.first() {
                for at in 0..requests.len() {
                    self.step(|cluster_model| reduce_request(cluster_model, name, at));
                }
            }
        }
    }
}

fn cohort_of<'a>(cluster_model: &'a mut ClusterModel, name: &str) -> &'a mut Cohort {
    cluster_model.cohorts.get_mut(name).expect(name)
}

fn workload_of<'a>(cluster_model: &'a mut ClusterModel, name: &str) -> &'a mut Workload {
    cluster_model.workloads.get_mut(name).expect(name)
}

fn smaller_limits(limits: Limits) -> Vec<Limits> {
    let mut all = Vec::new();
    if limits.borrowing.is_some() {
        all.push(Limits {
            borrowing: None,
            ..limits
        });
    }
    if limits.lending.is_some() {
        all.push(Limits {
            lending: None,
            ..limits
        });
    }
    if limits.nominal > 0 {
        all.push(Limits {
            nominal: limits.nominal - 1,
            ..limits
        });
    }
    all
}

/// Reduces a request by one, and the usage with it.
fn reduce_request(cluster_model: &mut ClusterModel, name: &str, at: usize) {
    let workload = workload_of(cluster_model, name);
    let (resource, amount) = &mut workload.pods[0].requests[at];
    *amount -= 1;
    let (resource, is_nothing) = (*resource, *amount == 0);
    if let Some(held) = &mut workload.reservation {
        for (_, amount) in held.usage.iter_mut().filter(|it| it.0.1 == resource) {
            *amount -= 1;
        }
        held.usage.retain(|_, amount| *amount > 0);
    }
    if is_nothing {
        workload.pods[0].requests.remove(at);
    }
}
