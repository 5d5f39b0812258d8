//! The cost of the victims in a domain.

use super::cluster::GangCluster;
use super::hypothetical::{PriorityCutoff, SearchBaseline};
use super::spec::SchedulerCompatibility;
use crate::ids::{ShapeId, UnitId};
use crate::placement::{Overlay, Pod, place};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The cost of a plan; the lowest is the best. Fields are compared from first to last; equal plans keep the order of
/// their domains.
///
/// Source: KEP-5710, Principles (cascades), and Preemption algorithm, the preemption scoring functions generalized:
/// `pickOneNodeForPreemption` of kube-scheduler v1.37. Pods of victims count on whatever node they run.
/// kube-scheduler compares the priority of each pod, lockkeeper the preemption priority of its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score {
    /// How many victims are expected to preempt other units once they are rescheduled; always 0 with
    /// [`SchedulerCompatibility::KubeScheduler`].
    pub cascades: u32,
    /// How many pods of the victims are protected by a disruption budget.
    pub violations: u32,
    /// The priority of the most important victim; `i32::MIN` without victims.
    pub highest_priority: i32,
    /// The sum of the priorities of all victim pods, each shifted by 2^31 so that none is negative.
    pub priority_sum: u64,
    /// How many pods are preempted.
    pub pods: u32,
    /// When the first victim pod of the highest priority started, in nanoseconds since 1970; later is better.
    pub started_at_ns: Reverse<i64>,
}

/// Added to a priority so that none is negative.
const PRIORITY_OFFSET: i64 = 1 << 31;

impl Score {
    /// The cost of these victims, which are sorted by importance, the most important first.
    pub(super) fn for_victims(
        state: &GangCluster,
        victims: &[UnitId],
        violations: u32,
        cascades: u32,
    ) -> Self {
        let is_lockkeeper = state.options.compatibility == SchedulerCompatibility::Lockkeeper;
        let mut score = Self {
            cascades,
            violations,
            highest_priority: i32::MIN,
            priority_sum: 0,
            pods: 0,
            started_at_ns: Reverse(i64::MAX),
        };
        let units = victims.iter().filter_map(|it| state.units.get(*it));
        let pods = units.flat_map(|unit| unit.pods.iter().map(move |pod| (unit, *pod)));
        let mut top: Option<i32> = None;
        for (unit, id) in pods {
            let Some(pod) = state.cluster.pod(id) else {
                continue;
            };
            let priority = if is_lockkeeper {
                unit.priority
            } else {
                pod.priority()
            };
            let started_at_ns = pod.started_at_ns().unwrap_or(i64::MAX);
            // kube-scheduler's `victims[0]`: the first pod of the most important unit.
            if score.pods == 0 {
                score.highest_priority = priority;
            }
            score.pods = score.pods.saturating_add(1);
            // Without the shift, more victims of negative priority would have a lower sum.
            let shifted = PRIORITY_OFFSET.saturating_add(i64::from(priority));
            score.priority_sum = score
                .priority_sum
                .saturating_add(u64::try_from(shifted).unwrap_or_default());
            // Pods of a unit may differ in priority, so the first need not have the highest.
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

/// Estimates which victims would preempt other units once they are rescheduled. Caches the result for equal units.
///
/// The estimate treats each unit separately: it is rescheduled immediately with its scheduling priority and its pods,
/// finds the room that is free now, and preempts if that is not enough but removing all units of lower priority is.
/// Ignored are the room of the victims that the preemptor leaves free, and competition between victims.
pub(super) struct CascadeEstimator<'a> {
    state: &'a GangCluster,
    baseline: &'a SearchBaseline,
    hosts: Vec<crate::ids::HostId>,
    /// By scheduling priority and shapes. Most units have one pod, hence a second cache without allocation.
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

    /// How many of these victims are expected to preempt. Costs the nodes, once for equal units.
    pub(super) fn count(&mut self, victims: &[UnitId]) -> u32 {
        if self.state.options.compatibility == SchedulerCompatibility::KubeScheduler {
            // kube-scheduler does not consider what its victims preempt later.
            return 0;
        }
        let count = victims
            .iter()
            .filter(|it| self.is_cascade_expected(**it))
            .count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    fn is_cascade_expected(&mut self, unit: UnitId) -> bool {
        let state = self.state;
        let Some(unit) = state.units.get(unit) else {
            return false;
        };
        let mut shapes = unit
            .pods
            .iter()
            .filter_map(|it| state.cluster.pod(*it))
            .map(Pod::shape);
        if unit.pods.len() == 1 {
            let shape = shapes.next().unwrap_or_default();
            let key = (unit.scheduling_priority, shape);
            if let Some(cached) = self.single_pod_cache.get(&key) {
                return *cached;
            }
            let is_expected = self.would_preempt(key.0, &[shape]);
            self.single_pod_cache.insert(key, is_expected);
            return is_expected;
        }
        let key = (unit.scheduling_priority, shapes.collect::<Vec<ShapeId>>());
        if let Some(cached) = self.cache.get(&key) {
            return *cached;
        }
        let is_expected = self.would_preempt(key.0, &key.1);
        self.cache.insert(key, is_expected);
        is_expected
    }

    /// Whether pods of a scheduling priority do not fit now, but would without the units of lower priority.
    fn would_preempt(&self, priority: i32, shapes: &[ShapeId]) -> bool {
        let fits = |max_priority| self.fits(max_priority, shapes);
        // Only units of strictly lower priority are eligible as victims.
        let below = priority.checked_sub(1);
        !fits(None) && below.is_some_and(|it| fits(Some(it)))
    }

    fn fits(&self, max_priority: Option<i32>, shapes: &[ShapeId]) -> bool {
        let state = self.state;
        let cutoff = PriorityCutoff {
            state,
            max_priority,
        };
        let mut overlay = Overlay::new(&cutoff);
        self.baseline.apply_to(&mut overlay, &cutoff, &self.hosts);
        let strategy = state.options.strategy;
        let placement = place(&state.cluster, &mut overlay, &self.hosts, shapes, strategy);
        placement.iter().all(Option::is_some)
    }
}
