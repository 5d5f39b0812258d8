//! Workloads that would preempt each other without end in the queues that are checked.

use super::crew;
use super::kueue_version::KueueVersion;
use lockkeeper_api::config::Config;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::foreign::scheduling::SYSTEM_PREFIX;
use lockkeeper_api::{ClusterQueue, Cohort};
use lockkeeper_policies::endless::{self, Beyond, Hunter, Rules, Verdict};
use lockkeeper_policies::finding::{ErrorKind, Finding};
use lockkeeper_preemption::{
    Algorithm, Compatibility, Damping, FormerKueue, Options, ReclaimWithinCohort,
    WithinClusterQueue,
};
use lockkeeper_simulate::circles::{self, Search};
use lockkeeper_simulate::run::Circle;
use lockkeeper_simulate::{Field, Tree, trees};
use lockkeeper_snapshot::settings;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Sets of workloads that are tried in all trees together.
const DRAWS_MAX: u64 = 60_000;

/// As many as are tried in one tree, and as few.
const TREE_DRAWS: (u64, u64) = (100, 20_000);

/// Where an object stands: the input, and its place among the objects in it.
pub(super) type Place = (usize, usize);

/// A finding, and what it tells beside its message.
#[derive(Clone, Debug)]
pub(super) struct Circling {
    pub(super) finding: Finding,
    pub(super) story: Vec<String>,
}

/// What is found, by the queue that it is told of.
pub(super) type Found = BTreeMap<Place, Circling>;

/// The queues, cohorts and priorities of one project.
#[derive(Debug, Default)]
struct Family {
    queues: BTreeMap<String, (Place, ClusterQueue)>,
    cohorts: BTreeMap<String, Cohort>,
    priorities: BTreeSet<i32>,
    /// One of the classes is that of workloads that name none.
    has_default: bool,
    /// The same name stands for several objects.
    is_ambiguous: bool,
}

/// What is given, of both projects.
#[derive(Debug, Default)]
pub(super) struct Herd {
    own: Family,
    kueue: Family,
}

impl Herd {
    /// Takes an object that a search needs. What does not fit its type is told elsewhere.
    pub(super) fn take(&mut self, place: Place, object: &Value) {
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = text("kind");
        match text("apiVersion").split_once('/') {
            Some((lockkeeper_api::GROUP, _)) => self.own.take(place, kind, object),
            Some((kueue::GROUP, kueue::VERSION)) if matches!(kind, "ClusterQueue" | "Cohort") => {
                self.kueue.take(place, kind, object);
            }
            Some((kueue::GROUP, _)) if matches!(kind, "ClusterQueue" | "Cohort") => {
                let mut object = object.clone();
                kueue::upgrade(&mut object);
                self.kueue.take(place, kind, &object);
            }
            Some((kueue::GROUP, _)) if kind == "WorkloadPriorityClass" => {
                self.kueue.priorities.extend(value_of(object));
            }
            Some(("scheduling.k8s.io", _)) if kind == "PriorityClass" && !is_of_system(object) => {
                let is_default = object.get("globalDefault").and_then(Value::as_bool);
                for family in [&mut self.own, &mut self.kueue] {
                    family.priorities.extend(value_of(object));
                    family.has_default |= is_default == Some(true);
                }
            }
            _ => {}
        }
    }

    /// Takes over what another one has.
    pub(super) fn add(&mut self, other: Self) {
        self.own.add(other.own);
        self.kueue.add(other.kueue);
    }

    /// Searches all trees in which the policies rule nothing out. Kueue's queues are played as this version of Kueue
    /// would; by default as that of today.
    pub(super) fn search(&self, config: &Config, version: Option<KueueVersion>) -> Found {
        let own = settings::options(config);
        let mut kueue = Options {
            compatibility: Compatibility::Kueue,
            damping: Damping::Off,
            ..own.clone()
        };
        if let Some(version) = version {
            version.apply(config, &mut kueue);
        }
        let mut found = self.own.search(&own);
        found.extend(self.kueue.search(&kueue));
        found
    }
}

/// Whether it is one of Kubernetes' own classes, which every cluster has, and no job.
fn is_of_system(class: &Value) -> bool {
    let name = class.pointer("/metadata/name").and_then(Value::as_str);
    name.is_some_and(|it| it.starts_with(SYSTEM_PREFIX))
}

fn value_of(class: &Value) -> Option<i32> {
    i32::try_from(class.get("value")?.as_i64()?).ok()
}

impl Family {
    fn take(&mut self, place: Place, kind: &str, object: &Value) {
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

    fn add(&mut self, other: Self) {
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

    fn add_queue(&mut self, name: String, queue: (Place, ClusterQueue)) {
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
    fn search(&self, options: &Options) -> Found {
        if self.is_ambiguous {
            return Found::new();
        }
        let queues = self.queues.values().map(|(_, queue)| queue);
        let trees = trees(queues, self.cohorts.values());
        let fields = trees.iter().filter_map(|tree| {
            let field = Field::new(tree, options.clone()).ok()?;
            is_open(verdict(tree, &field, options), options).then_some(field)
        });
        let fields: Vec<Field> = fields.collect();
        let count = u64::try_from(fields.len()).unwrap_or(u64::MAX);
        let each = DRAWS_MAX.checked_div(count).unwrap_or_default();
        let mut priorities = self.priorities.clone();
        if !priorities.is_empty() && !self.has_default {
            // That of workloads without a class.
            priorities.insert(0);
        }
        let search = Search {
            priorities: &priorities,
            draws_max: each.clamp(TREE_DRAWS.0, TREE_DRAWS.1),
        };
        let circles = smallest(&fields, &search).into_iter();
        let told = circles.filter_map(|(field, circle)| {
            let first = circle.preemptors().first().copied()?.to_owned();
            let (place, _) = self.queues.get(&first)?;
            Some((*place, circling(circle.story(field))))
        });
        told.collect()
    }
}

/// Of each field the circle of the fewest workloads, if there is one. Sets of each size are tried on a thread of their
/// own, but for those that are larger than one that was found.
fn smallest<'a>(fields: &'a [Field], search: &Search<'_>) -> Vec<(&'a Field, Circle)> {
    let sizes: Vec<usize> = circles::sizes().collect();
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
        let circle = circles::find_of(field, search, *size)?;
        least.fetch_min(*size, Ordering::Relaxed);
        Some((*number, field, circle))
    };
    let mut found = BTreeMap::new();
    crew::in_order(asked.len(), crew::threads(), look, |_, circle| {
        if let Some((number, field, circle)) = circle {
            found.entry(number).or_insert((field, circle));
        }
    });
    found.into_values().collect()
}

fn circling(story: Vec<String>) -> Circling {
    let detail =
        "workloads of its cohort can preempt each other without end; here are some that do";
    Circling {
        finding: Finding {
            rule: Cow::Borrowed(endless::RULE),
            field: FieldPath::new("spec.preemption"),
            kind: ErrorKind::Forbidden,
            value: None,
            detail: detail.into(),
        },
        story,
    }
}

/// Whether there may be circles. What is proved is proved of Kueue without its former mistakes.
fn is_open(verdict: Verdict, options: &Options) -> bool {
    match verdict {
        Verdict::Open => true,
        Verdict::Downwards => options.former != FormerKueue::default(),
        Verdict::Peaceful | Verdict::Damped => false,
    }
}

/// What the policies alone say of a tree.
fn verdict(tree: &Tree<'_>, field: &Field, options: &Options) -> Verdict {
    let hunters = field.contenders().iter().map(|it| Hunter {
        takes_own: it.preemption.within_cluster_queue != WithinClusterQueue::Never,
        beyond: match it.preemption.reclaim_within_cohort {
            ReclaimWithinCohort::LowerPriority if it.has_cohort => Beyond::Lower,
            ReclaimWithinCohort::Any if it.has_cohort => Beyond::Anybody,
            _ => Beyond::Nobody,
        },
        may_borrow: it.may_borrow,
    });
    let rules = Rules {
        is_fair: options.algorithm != Algorithm::Classical,
        is_damped: options.damping == Damping::On,
    };
    endless::verdict(&hunters.collect::<Vec<_>>(), tree.is_nested, rules)
}
