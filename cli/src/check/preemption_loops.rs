//! Workloads that would preempt each other without end in the queues that are checked.

use super::kueue_version::KueueVersion;
use super::worker_pool;
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
use std::sync::atomic::{AtomicUsize, Ordering};

/// Sets of workloads that are tried in all trees together.
const TOTAL_SAMPLES_MAX: u64 = 60_000;

/// As many as are tried in one tree, and as few.
const TREE_SAMPLES: (u64, u64) = (100, 20_000);

/// Where an object stands: the input, and its place among the objects in it.
pub(super) type ObjectPosition = (usize, usize);

/// A finding, and what it tells beside its message.
#[derive(Clone, Debug)]
pub(super) struct LoopFinding {
    pub(super) finding: Finding,
    pub(super) explanation: Vec<String>,
}

/// What is found, by the queue that it is told of.
pub(super) type LoopFindings = BTreeMap<ObjectPosition, LoopFinding>;

/// The queues, cohorts and priorities of one project.
#[derive(Debug, Default)]
struct ProjectObjects {
    queues: BTreeMap<String, (ObjectPosition, ClusterQueue)>,
    cohorts: BTreeMap<String, Cohort>,
    priorities: BTreeSet<i32>,
    /// One of the classes is that of workloads that name none.
    has_default: bool,
    /// The same name stands for several objects.
    is_ambiguous: bool,
}

/// What is given, of both projects.
#[derive(Debug, Default)]
pub(super) struct LoopSearchInput {
    lockkeeper: ProjectObjects,
    kueue: ProjectObjects,
}

impl LoopSearchInput {
    /// Takes an object that a search needs. What does not fit its type is told elsewhere.
    pub(super) fn add_object(&mut self, place: ObjectPosition, object: &Value) {
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = text("kind");
        match text("apiVersion").split_once('/') {
            Some((lockkeeper_api::GROUP, _)) => self.lockkeeper.add_object(place, kind, object),
            Some((kueue::GROUP, kueue::VERSION)) if matches!(kind, "ClusterQueue" | "Cohort") => {
                self.kueue.add_object(place, kind, object);
            }
            Some((kueue::GROUP, _)) if matches!(kind, "ClusterQueue" | "Cohort") => {
                let mut object = object.clone();
                kueue::upgrade(&mut object);
                self.kueue.add_object(place, kind, &object);
            }
            Some((kueue::GROUP, _)) if kind == "WorkloadPriorityClass" => {
                self.kueue.priorities.extend(class_value(object));
            }
            Some(("scheduling.k8s.io", _))
                if kind == "PriorityClass" && !is_system_class(object) =>
            {
                let is_default = object.get("globalDefault").and_then(Value::as_bool);
                for family in [&mut self.lockkeeper, &mut self.kueue] {
                    family.priorities.extend(class_value(object));
                    family.has_default |= is_default == Some(true);
                }
            }
            _ => {}
        }
    }

    /// Takes over what another one has.
    pub(super) fn merge(&mut self, other: Self) {
        self.lockkeeper.merge(other.lockkeeper);
        self.kueue.merge(other.kueue);
    }

    /// Searches all trees in which the policies rule nothing out. Kueue's queues are played as this version of Kueue
    /// would; by default as that of today.
    pub(super) fn search(&self, config: &Config, version: Option<KueueVersion>) -> LoopFindings {
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

/// Whether it is one of Kubernetes' own classes, which every cluster has, and no job.
fn is_system_class(class: &Value) -> bool {
    let name = class.pointer("/metadata/name").and_then(Value::as_str);
    name.is_some_and(|it| it.starts_with(SYSTEM_PREFIX))
}

fn class_value(class: &Value) -> Option<i32> {
    i32::try_from(class.get("value")?.as_i64()?).ok()
}

impl ProjectObjects {
    fn add_object(&mut self, place: ObjectPosition, kind: &str, object: &Value) {
        let decoded = serde::Deserialize::deserialize;
        match kind {
            "ClusterQueue" => {
                if let Ok(queue) = decoded(object) {
                    let queue: ClusterQueue = queue;
                    let name = queue.metadata.name.clone().unwrap_or_default();
                    self.add_queue(name, (place, queue));
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

    /// Of each tree at most one circle. What the core cannot have is told elsewhere.
    fn search(&self, options: &Options) -> LoopFindings {
        if self.is_ambiguous {
            return LoopFindings::new();
        }
        let queues = self.queues.values().map(|(_, queue)| queue);
        let trees = cohort_trees(queues, self.cohorts.values());
        let fields = trees.iter().filter_map(|tree| {
            let field = SimulatedCluster::new(tree, options.clone()).ok()?;
            may_have_loops(policy_verdict(tree, &field, options), options).then_some(field)
        });
        let fields: Vec<SimulatedCluster> = fields.collect();
        let count = u64::try_from(fields.len()).unwrap_or(u64::MAX);
        let each = TOTAL_SAMPLES_MAX.checked_div(count).unwrap_or_default();
        let mut priorities = self.priorities.clone();
        if !priorities.is_empty() && !self.has_default {
            // That of workloads without a class.
            priorities.insert(0);
        }
        let search = LoopSearch {
            priorities: &priorities,
            draws_max: each.clamp(TREE_SAMPLES.0, TREE_SAMPLES.1),
        };
        let circles = find_smallest_loops(&fields, &search).into_iter();
        let told = circles.filter_map(|(field, circle)| {
            let first = circle.preemptors().first().copied()?.to_owned();
            let (place, _) = self.queues.get(&first)?;
            Some((*place, loop_finding(circle.report(field))))
        });
        told.collect()
    }
}

/// Of each field the circle of the fewest workloads, if there is one. Sets of each size are tried on a thread of their
/// own, but for those that are larger than one that was found.
fn find_smallest_loops<'a>(
    fields: &'a [SimulatedCluster],
    search: &LoopSearch<'_>,
) -> Vec<(&'a SimulatedCluster, PreemptionLoop)> {
    let sizes: Vec<usize> = loop_search::workload_counts().collect();
    let asked: Vec<(usize, usize)> = (0..fields.len())
        .flat_map(|field| sizes.iter().map(move |size| (field, *size)))
        .collect();
    let least: Vec<AtomicUsize> = fields
        .iter()
        .map(|_| AtomicUsize::new(usize::MAX))
        .collect();
    let look = |at: usize| {
        let (number, size) = asked.get(at)?;
        let (field, least) = (fields.get(*number)?, least.get(*number)?);
        if least.load(Ordering::Relaxed) < *size {
            return None;
        }
        let circle = loop_search::find_loop_of_size(field, search, *size)?;
        least.fetch_min(*size, Ordering::Relaxed);
        Some((*number, field, circle))
    };
    let mut found = BTreeMap::new();
    worker_pool::run_ordered(
        asked.len(),
        worker_pool::thread_count(),
        look,
        |_, circle| {
            if let Some((number, field, circle)) = circle {
                found.entry(number).or_insert((field, circle));
            }
        },
    );
    found.into_values().collect()
}

fn loop_finding(story: Vec<String>) -> LoopFinding {
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
        explanation: story,
    }
}

/// Whether there may be circles. What is proved is proved of Kueue without its former mistakes.
fn may_have_loops(verdict: LoopVerdict, options: &Options) -> bool {
    match verdict {
        LoopVerdict::Unknown => true,
        LoopVerdict::StrictlyOrdered => options.kueue_bugs != KueueBugs::default(),
        LoopVerdict::NoPreemption | LoopVerdict::Damped => false,
    }
}

/// What the policies alone say of a tree.
fn policy_verdict(
    tree: &CohortTree<'_>,
    field: &SimulatedCluster,
    options: &Options,
) -> LoopVerdict {
    let hunters = field.queues().iter().map(|it| QueuePreemption {
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
    preemption_loops::loop_verdict(&hunters.collect::<Vec<_>>(), tree.is_nested, rules)
}
