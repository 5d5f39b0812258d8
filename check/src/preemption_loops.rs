//! Searches the checked queues for preemption loops.

use crate::kueue_version::KueueVersion;
use crate::worker_pool;
use lockkeeper_api::config::Config;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::foreign::scheduling::SYSTEM_PREFIX;
use lockkeeper_api::{ClusterQueue, Cohort};
use lockkeeper_cluster_state::settings;
use lockkeeper_policies::finding::{ErrorKind, Finding};
use lockkeeper_policies::preemption_loops::{
    self, CrossQueueScope, LoopVerdict, PreemptionRules, QueuePreemption,
};
use lockkeeper_preemption::{
    Algorithm, Compatibility, Damping, KueueBugs, Options, ReclaimWithinCohort, WithinClusterQueue,
};
use lockkeeper_simulate::loop_search::{self, LoopSearch};
use lockkeeper_simulate::run::PreemptionLoop;
use lockkeeper_simulate::{CohortTree, SimulatedCluster, cohort_trees};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of workload sets to try, in all trees together.
const TOTAL_SAMPLES_MAX: u64 = 60_000;

/// The least and the most workload sets to try in one tree.
const TREE_SAMPLES: RangeInclusive<u64> = 100..=20_000;

/// The number of the input, and of the object in it.
pub type ObjectPosition = (usize, usize);

/// A finding with an example of a loop.
#[derive(Clone, Debug)]
pub struct LoopFinding {
    /// The finding about the ClusterQueue.
    pub finding: Finding,
    /// The steps of the loop, a line each.
    pub explanation: Vec<String>,
}

/// The findings, by the position of the ClusterQueue that they are reported for.
pub type LoopFindings = BTreeMap<ObjectPosition, LoopFinding>;

/// The queues, cohorts and priorities of one project.
#[derive(Debug, Default)]
struct ProjectObjects {
    queues: BTreeMap<String, (ObjectPosition, ClusterQueue)>,
    cohorts: BTreeMap<String, Cohort>,
    priorities: BTreeSet<i32>,
    /// Whether a class is the default of workloads without one.
    has_default: bool,
    /// Whether several objects have the same name and different specs.
    is_ambiguous: bool,
}

/// The queues, cohorts and priority classes of both projects.
#[derive(Debug, Default)]
pub struct LoopSearchInput {
    lockkeeper: ProjectObjects,
    kueue: ProjectObjects,
}

impl LoopSearchInput {
    /// Adds an object if the search needs it. Objects that do not fit their type are skipped; their check reports them.
    pub fn add_object(&mut self, position: ObjectPosition, object: &Value) {
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = text("kind");
        match text("apiVersion").split_once('/') {
            Some((lockkeeper_api::GROUP, _)) => self.lockkeeper.add_object(position, kind, object),
            Some((kueue::GROUP, kueue::VERSION)) if matches!(kind, "ClusterQueue" | "Cohort") => {
                self.kueue.add_object(position, kind, object);
            }
            Some((kueue::GROUP, _)) if matches!(kind, "ClusterQueue" | "Cohort") => {
                let mut object = object.clone();
                kueue::upgrade(&mut object);
                self.kueue.add_object(position, kind, &object);
            }
            Some((kueue::GROUP, _)) if kind == "WorkloadPriorityClass" => {
                self.kueue.priorities.extend(class_value(object));
            }
            Some(("scheduling.k8s.io", _))
                if kind == "PriorityClass" && !is_system_class(object) =>
            {
                let is_default = object.get("globalDefault").and_then(Value::as_bool);
                for project in [&mut self.lockkeeper, &mut self.kueue] {
                    project.priorities.extend(class_value(object));
                    // Workloads of both projects may use classes of Kubernetes.
                    project.has_default |= is_default == Some(true);
                }
            }
            _ => {}
        }
    }

    /// Adds the objects of another collection.
    pub fn merge(&mut self, other: Self) {
        self.lockkeeper.merge(other.lockkeeper);
        self.kueue.merge(other.kueue);
    }

    /// Searches all quota trees whose policies do not exclude loops. Kueue's queues behave as in this version of Kueue,
    /// bugs included; as in the current one by default.
    #[must_use]
    pub fn search(&self, config: &Config, version: Option<KueueVersion>) -> LoopFindings {
        let own = settings::scheduling_options(config);
        let mut kueue = Options {
            compatibility: Compatibility::Kueue,
            damping: Damping::Off,
            ..own.clone()
        };
        if let Some(version) = version {
            version.apply(config, &mut kueue);
        }
        let mut found = self.lockkeeper.search(&own);
        found.extend(self.kueue.search(&kueue));
        found
    }
}

/// Whether it is a built-in class. Every cluster has them, but jobs do not use them.
fn is_system_class(class: &Value) -> bool {
    let name = class.pointer("/metadata/name").and_then(Value::as_str);
    name.is_some_and(|it| it.starts_with(SYSTEM_PREFIX))
}

fn class_value(class: &Value) -> Option<i32> {
    i32::try_from(class.get("value")?.as_i64()?).ok()
}

impl ProjectObjects {
    fn add_object(&mut self, position: ObjectPosition, kind: &str, object: &Value) {
        let decoded = serde::Deserialize::deserialize;
        match kind {
            "ClusterQueue" => {
                if let Ok(queue) = decoded(object) {
                    let queue: ClusterQueue = queue;
                    let name = queue.metadata.name.clone().unwrap_or_default();
                    self.add_queue(name, (position, queue));
                }
            }
            "Cohort" => {
                let cohort: Result<Cohort, _> = serde::Deserialize::deserialize(object);
                if let Ok(cohort) = cohort {
                    let name = cohort.metadata.name.clone().unwrap_or_default();
                    self.add_cohort(name, cohort);
                }
            }
            _ => {}
        }
    }

    fn merge(&mut self, other: Self) {
        for (name, queue) in other.queues {
            self.add_queue(name, queue);
        }
        for (name, cohort) in other.cohorts {
            self.add_cohort(name, cohort);
        }
        self.priorities.extend(other.priorities);
        self.has_default |= other.has_default;
        self.is_ambiguous |= other.is_ambiguous;
    }

    fn add_queue(&mut self, name: String, queue: (ObjectPosition, ClusterQueue)) {
        let before = self.queues.get(&name);
        self.is_ambiguous |= before.is_some_and(|(_, it)| it.spec != queue.1.spec);
        self.queues.insert(name, queue);
    }

    fn add_cohort(&mut self, name: String, cohort: Cohort) {
        let before = self.cohorts.get(&name);
        self.is_ambiguous |= before.is_some_and(|it| it.spec != cohort.spec);
        self.cohorts.insert(name, cohort);
    }

    /// At most one loop of each tree. Trees that the core rejects are skipped; other rules report them.
    fn search(&self, options: &Options) -> LoopFindings {
        // The specs of two environments with the same names would form a tree that no cluster has.
        if self.is_ambiguous {
            return LoopFindings::new();
        }
        let queues = self.queues.values().map(|(_, queue)| queue);
        let trees = cohort_trees(queues, self.cohorts.values());
        let clusters = trees.iter().filter_map(|tree| {
            let cluster = SimulatedCluster::new(tree, options.clone()).ok()?;
            may_have_loops(policy_verdict(tree, &cluster, options), options).then_some(cluster)
        });
        let clusters: Vec<SimulatedCluster> = clusters.collect();
        let count = u64::try_from(clusters.len()).unwrap_or(u64::MAX);
        // All trees share the samples, so that the duration does not grow with their number.
        let samples = TOTAL_SAMPLES_MAX.checked_div(count).unwrap_or_default();
        let mut priorities = self.priorities.clone();
        if !priorities.is_empty() && !self.has_default {
            // The priority of workloads without a class.
            priorities.insert(0);
        }
        let search = LoopSearch {
            priorities: &priorities,
            draws_max: samples.clamp(*TREE_SAMPLES.start(), *TREE_SAMPLES.end()),
        };
        let loops = find_smallest_loops(&clusters, &search).into_iter();
        let findings = loops.filter_map(|(cluster, found)| {
            let first = found.preemptors().first().copied()?.to_owned();
            let (position, _) = self.queues.get(&first)?;
            Some((*position, loop_finding(found.report(cluster))))
        });
        findings.collect()
    }
}

/// The loop of the fewest workloads of each cluster that has one. Each size is a task of the worker pool; sizes above
/// that of a loop that was found are skipped.
fn find_smallest_loops<'a>(
    clusters: &'a [SimulatedCluster],
    search: &LoopSearch<'_>,
) -> Vec<(&'a SimulatedCluster, PreemptionLoop)> {
    let sizes: Vec<usize> = loop_search::workload_counts().collect();
    let tasks: Vec<(usize, usize)> = (0..clusters.len())
        .flat_map(|number| sizes.iter().map(move |size| (number, *size)))
        .collect();
    let smallest: Vec<AtomicUsize> = clusters
        .iter()
        .map(|_| AtomicUsize::new(usize::MAX))
        .collect();
    let find = |at: usize| {
        let (number, size) = tasks.get(at)?;
        let (cluster, smallest) = (clusters.get(*number)?, smallest.get(*number)?);
        // A smaller loop is known. A stale value only costs one more search.
        if smallest.load(Ordering::Relaxed) < *size {
            return None;
        }
        let found = loop_search::find_loop_of_size(cluster, search, *size)?;
        smallest.fetch_min(*size, Ordering::Relaxed);
        Some((*number, cluster, found))
    };
    let mut loops = BTreeMap::new();
    worker_pool::run_ordered(
        tasks.len(),
        worker_pool::thread_count(),
        find,
        |_, result| {
            if let Some((number, cluster, found)) = result {
                // Results arrive in the order of the tasks: the first one is the smallest.
                loops.entry(number).or_insert((cluster, found));
            }
        },
    );
    loops.into_values().collect()
}

fn loop_finding(explanation: Vec<String>) -> LoopFinding {
    let detail =
        "workloads of its cohort can preempt each other without end; here are some that do";
    LoopFinding {
        finding: Finding {
            rule: Cow::Borrowed(preemption_loops::RULE),
            field: FieldPath::new("spec.preemption"),
            kind: ErrorKind::Forbidden,
            value: None,
            detail: detail.into(),
        },
        explanation,
    }
}

/// Whether loops are possible. The proof for strictly ordered policies does not cover the bugs of older releases of
/// Kueue.
fn may_have_loops(verdict: LoopVerdict, options: &Options) -> bool {
    match verdict {
        LoopVerdict::Unknown => true,
        LoopVerdict::StrictlyOrdered => options.kueue_bugs != KueueBugs::default(),
        LoopVerdict::NoPreemption | LoopVerdict::Damped => false,
    }
}

/// Whether the policies of a tree alone exclude loops.
fn policy_verdict(
    tree: &CohortTree<'_>,
    cluster: &SimulatedCluster,
    options: &Options,
) -> LoopVerdict {
    let queues = cluster.queues().iter().map(|it| QueuePreemption {
        preempts_within_queue: it.preemption.within_cluster_queue != WithinClusterQueue::Never,
        cross_queue_scope: match it.preemption.reclaim_within_cohort {
            ReclaimWithinCohort::LowerPriority if it.has_cohort => CrossQueueScope::LowerPriority,
            ReclaimWithinCohort::Any if it.has_cohort => CrossQueueScope::Any,
            _ => CrossQueueScope::Never,
        },
        may_borrow: it.may_borrow,
    });
    let rules = PreemptionRules {
        is_fair: options.algorithm != Algorithm::Classical,
        is_damped: options.damping == Damping::On,
    };
    preemption_loops::loop_verdict(&queues.collect::<Vec<_>>(), tree.is_nested, rules)
}
