//! What the victims of a domain cost.

use super::cluster::GangCluster;
use super::hypothetical::{PriorityCutoff, SearchBaseline};
use super::spec::SchedulerCompatibility;
use crate::ids::{ShapeId, UnitId};
use crate::placement::{Overlay, Pod, place};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What a domain costs; the least is the best. Compared from the first to the last, and what is equal in all goes by
/// the order of domains.
///
/// Source: KEP-5710, Principles (cascades), and Preemption algorithm, the preemption scoring functions generalized:
/// `pickOneNodeForPreemption` of kube-scheduler v1.37. Pods of victims count wherever they run. There the priority
/// is that of each pod itself; here that by which its unit is preempted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score {
    /// How many victims are expected to preempt others when they come back; always 0 with
    /// [`Compatibility::KubeScheduler`].
    pub cascades: u32,
    /// How many pods go though a budget protects them.
    pub violations: u32,
    /// The priority of the most important victim; the least there is without victims.
    pub highest_priority: i32,
    /// The priorities of all pods that go, each as much above the least there is.
    pub priority_sum: u64,
    /// How many pods go.
    pub pods: u32,
    /// When the first of those of the highest priority started, in nanoseconds since 1970; later is better.
    pub started_at_ns: Reverse<i64>,
}

/// What is added to a priority so that none is negative.
const PRIORITY_OFFSET: i64 = 1 << 31;

impl Score {
    /// Of these victims, the most important first.
    pub(super) fn for_victims(
        world: &GangCluster,
        victims: &[UnitId],
        violations: u32,
        cascades: u32,
    ) -> Self {
        let is_ours = world.options.compatibility == SchedulerCompatibility::Lockkeeper;
        let mut score = Self {
            cascades,
            violations,
            highest_priority: i32::MIN,
            priority_sum: 0,
            pods: 0,
            started_at_ns: Reverse(i64::MAX),
        };
        let units = victims.iter().filter_map(|it| world.unit(*it));
        let all = units.flat_map(|unit| unit.pods.iter().map(move |pod| (unit, *pod)));
        let mut top: Option<i32> = None;
        for (unit, id) in all {
            let Some(pod) = world.cluster.pod(id) else {
                continue;
            };
            let priority = if is_ours {
                unit.priority
            } else {
                pod.priority()
            };
            let started_at_ns = pod.started_at_ns().unwrap_or(i64::MAX);
            if score.pods == 0 {
                score.highest_priority = priority;
            }
            score.pods = score.pods.saturating_add(1);
            let above = PRIORITY_OFFSET.saturating_add(i64::from(priority));
            score.priority_sum = score
                .priority_sum
                .saturating_add(u64::try_from(above).unwrap_or_default());
            if top.is_none_or(|it| priority > it) {
                top = Some(priority);
                score.started_at_ns = Reverse(started_at_ns);
            } else if top == Some(priority) {
                let first = score.started_at_ns.0.min(started_at_ns);
                score.started_at_ns = Reverse(first);
            }
        }
        score
    }
}

/// Says which units would preempt others when they come back. Remembers it for all that are alike.
///
/// It is an expectation, each unit for itself: it comes back at once with the priority that it is scheduled with and
/// the pods that it has, finds the room that is free now, and preempts if that is not enough and those that are below
/// it would make enough. What the preemptor leaves of the room of its victims, and that several victims may want the
/// same room, is not seen.
pub(super) struct CascadeEstimator<'a> {
    state: &'a GangCluster,
    baseline: &'a SearchBaseline,
    hosts: Vec<crate::ids::HostId>,
    /// By scheduling priority and shapes; most units have one pod.
    cache: BTreeMap<(i32, Vec<ShapeId>), bool>,
    single_pod_cache: BTreeMap<(i32, ShapeId), bool>,
}

impl<'a> CascadeEstimator<'a> {
    pub(super) fn new(state: &'a GangCluster, baseline: &'a SearchBaseline) -> Self {
        Self {
            state,
            baseline,
            hosts: state.cluster.hosts().collect(),
            cache: BTreeMap::new(),
            single_pod_cache: BTreeMap::new(),
        }
    }

    /// How many of these would. Costs the nodes once for units that are alike.
    pub(super) fn count(&mut self, victims: &[UnitId]) -> u32 {
        if self.state.options.compatibility == SchedulerCompatibility::KubeScheduler {
            return 0;
        }
        let count = victims
            .iter()
            .filter(|it| self.is_cascade_expected(**it))
            .count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    fn is_cascade_expected(&mut self, unit: UnitId) -> bool {
        let world = self.state;
        let Some(unit) = world.unit(unit) else {
            return false;
        };
        let mut shapes = unit
            .pods
            .iter()
            .filter_map(|it| world.cluster.pod(*it))
            .map(Pod::shape);
        if unit.pods.len() == 1 {
            let shape = shapes.next().unwrap_or_default();
            let key = (unit.scheduling_priority, shape);
            if let Some(known) = self.single_pod_cache.get(&key) {
                return *known;
            }
            let is_expected = self.would_preempt(key.0, &[shape]);
            self.single_pod_cache.insert(key, is_expected);
            return is_expected;
        }
        let key = (unit.scheduling_priority, shapes.collect::<Vec<ShapeId>>());
        if let Some(known) = self.cache.get(&key) {
            return *known;
        }
        let is_expected = self.would_preempt(key.0, &key.1);
        self.cache.insert(key, is_expected);
        is_expected
    }

    /// Whether pods that are scheduled with a priority have no room, and would have it if those below went.
    fn would_preempt(&self, priority: i32, shapes: &[ShapeId]) -> bool {
        let fits = |most| self.fits(most, shapes);
        let below = priority.checked_sub(1);
        !fits(None) && below.is_some_and(|it| fits(Some(it)))
    }

    fn fits(&self, most: Option<i32>, shapes: &[ShapeId]) -> bool {
        let world = self.state;
        let cut = PriorityCutoff {
            state: world,
            max_priority: most,
        };
        let mut overlay = Overlay::new(&cut);
        self.baseline.apply_to(&mut overlay, &cut, &self.hosts);
        let strategy = world.options.strategy;
        let placement = place(&world.cluster, &mut overlay, &self.hosts, shapes, strategy);
        placement.iter().all(Option::is_some)
    }
}
