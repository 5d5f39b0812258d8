//! Who has to go in one domain.

use super::cluster::GangCluster;
use super::decide::{InfeasibleReason, zip_placement};
use super::domain::Domain;
use super::hypothetical::{PriorityCutoff, SearchBaseline};
use super::reprieve::Reprieve;
use super::spec::SchedulerCompatibility;
use super::trace::{GangStep, GangTrace};
use crate::ids::{HostId, PodId, ResourceId, ShapeId, UnitId};
use crate::placement::{FreeResources, Overlay, Placement, Pod, Strategy, place};
use std::collections::{BTreeMap, BTreeSet};

/// Who wants room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preemptor<'a> {
    /// Its pods that wait, in the order in which they are placed.
    pub(super) pods: &'a [PodId],
    pub(super) shapes: &'a [ShapeId],
    /// How many of these are different.
    pub(super) distinct_shapes: usize,
    /// Units below it may go.
    pub(super) priority: i32,
    /// With how many of these pods placed it makes do; at least one.
    pub(super) count_min: usize,
    /// Where its pods go, decided elsewhere.
    pub(super) fixed_placement: Option<&'a [Option<HostId>]>,
}

/// What a domain comes to.
#[derive(Clone, Debug)]
pub(super) struct DomainResult {
    pub(super) placement: Placement,
    /// The most important first.
    pub(super) victims: Vec<UnitId>,
    /// How many of their pods go though a budget protects them.
    pub(super) violations: u32,
    /// Nobody above this priority was asked to go.
    pub(super) max_priority: i32,
}

/// A search in one domain. It leaves the world as it is.
pub(super) struct DomainSearch<'a> {
    pub(super) state: &'a GangCluster,
    pub(super) baseline: &'a SearchBaseline,
    pub(super) preemptor: Preemptor<'a>,
    pub(super) domain: &'a Domain,
    pub(super) strategy: Strategy,
}

/// The units whose going would break a budget, and how many of their pods do.
#[derive(Debug, Default)]
struct ProtectedUnits {
    /// The most important first.
    by_importance: Vec<UnitId>,
    /// By the number of the unit.
    pods: BTreeMap<UnitId, usize>,
}

impl DomainSearch<'_> {
    /// Source: KEP-5710, Preemption algorithm, the points for every domain; kube-scheduler v1.37,
    /// `selectVictimsOnDomain` and `SelectVictimsOnNode`.
    ///
    /// Costs a placement for each step of the search, which are the logarithm of the different priorities; the
    /// units that a budget protects; and the units on the nodes that the preemptor gets.
    pub(super) fn run(&self, trace: &mut GangTrace) -> Result<DomainResult, InfeasibleReason> {
        let priorities = self
            .domain
            .priorities_below(self.state, self.preemptor.priority);
        let Some(top) = priorities.last().copied() else {
            return Err(InfeasibleReason::NoLowerPriority);
        };
        let first = self.place(Some(top), &[]);
        if !self.is_enough(&first) {
            return Err(self.infeasible_reason(top, &first));
        }
        trace.record(|| GangStep::Placed {
            placement: zip_placement(self.preemptor.pods, &first),
        });
        let protected = self.find_protected(trace);
        match self.state.options.compatibility {
            SchedulerCompatibility::Lockkeeper => {
                Ok(self.select_with_cutoff(&priorities, &first, &protected, trace))
            }
            SchedulerCompatibility::KubeScheduler => {
                Ok(self.select_like_kube_scheduler(top, first, &protected, trace))
            }
        }
    }

    /// As the KEP says: who is protected is let off, then nobody above the least priority that will do has to go,
    /// then who is not in the way is let off.
    fn select_with_cutoff(
        &self,
        priorities: &[i32],
        first: &Placement,
        protected: &ProtectedUnits,
        trace: &mut GangTrace,
    ) -> DomainResult {
        let top = priorities.last().copied().unwrap_or(i32::MIN);
        let kept = self.reprieve_protected(top, first, protected, trace);
        let (most, placement) = self.least_priority(priorities, first, &kept, trace);
        trace.record(|| GangStep::CutoffFound { max_priority: most });
        if placement != *first {
            trace.record(|| GangStep::PlacedAgain {
                placement: zip_placement(self.preemptor.pods, &placement),
            });
        }
        let cut = self.cutoff(Some(most));
        let overlay = self.overlay(&cut, &kept, 0);
        let mut reprieve = Reprieve::new(self.state, overlay, self.preemptor.shapes, &placement);
        let kept: BTreeSet<UnitId> = kept.into_iter().collect();
        let mut victims = Vec::new();
        for unit in self.conflicting_units(&reprieve, most) {
            if !kept.contains(&unit) {
                reprieve_or_preempt(&mut reprieve, unit, false, &mut victims, trace);
            }
        }
        Self::result(placement, victims, protected, most)
    }

    /// As kube-scheduler does it: the place stays the first one, who is protected is asked first.
    fn select_like_kube_scheduler(
        &self,
        top: i32,
        first: Placement,
        protected: &ProtectedUnits,
        trace: &mut GangTrace,
    ) -> DomainResult {
        let cut = self.cutoff(Some(top));
        let overlay = self.overlay(&cut, &[], 0);
        let mut reprieve = Reprieve::new(self.state, overlay, self.preemptor.shapes, &first);
        let mut victims = Vec::new();
        for unit in &protected.by_importance {
            reprieve_or_preempt(&mut reprieve, *unit, true, &mut victims, trace);
        }
        for unit in self.conflicting_units(&reprieve, top) {
            if !protected.pods.contains_key(&unit) {
                reprieve_or_preempt(&mut reprieve, unit, false, &mut victims, trace);
            }
        }
        self.state.sort_by_importance(&mut victims);
        Self::result(first, victims, protected, top)
    }

    fn result(
        placement: Placement,
        victims: Vec<UnitId>,
        protected: &ProtectedUnits,
        most: i32,
    ) -> DomainResult {
        let broken = victims.iter().filter_map(|it| protected.pods.get(it));
        let violations: usize = broken.sum();
        DomainResult {
            placement,
            victims,
            violations: u32::try_from(violations).unwrap_or(u32::MAX),
            max_priority: most,
        }
    }

    /// Those whose going would break a budget, if all who are more important went as well.
    fn find_protected(&self, trace: &mut GangTrace) -> ProtectedUnits {
        let world = self.state;
        let bound = self.preemptor.priority;
        let mut protected = ProtectedUnits::default();
        if !world.has_protected_units() {
            return protected;
        }
        let mut count = world.budgets.counter();
        for unit in self
            .baseline
            .victims
            .values()
            .flatten()
            .collect::<BTreeSet<_>>()
        {
            world.charge(&mut count, *unit, |_, _| {});
        }
        let mut see = |unit: UnitId| {
            if self.baseline.is_victim(world, unit) {
                return;
            }
            let mut breaks = Vec::new();
            let is_told = trace.is_on();
            let pods = world.charge(&mut count, unit, |pod, budget| {
                if is_told {
                    breaks.push((pod, budget));
                }
            });
            if pods > 0 {
                trace.record(|| GangStep::Protected { unit, breaks });
                protected.by_importance.push(unit);
                protected.pods.insert(unit, pods);
            }
        };
        match self.domain {
            Domain::Cluster(_) => world
                .protected_units_below(bound)
                .for_each(|it| see(it.unit)),
            domain => {
                let units = Domain::units_below(world, domain.hosts(), bound);
                units.into_iter().for_each(see);
            }
        }
        protected
    }

    fn reprieve_protected(
        &self,
        top: i32,
        first: &[Option<HostId>],
        protected: &ProtectedUnits,
        trace: &mut GangTrace,
    ) -> Vec<UnitId> {
        if protected.by_importance.is_empty() {
            return Vec::new();
        }
        let cut = self.cutoff(Some(top));
        let overlay = self.overlay(&cut, &[], 0);
        let mut reprieve = Reprieve::new(self.state, overlay, self.preemptor.shapes, first);
        let mut kept = Vec::new();
        for unit in protected.by_importance.iter().copied() {
            if reprieve.try_reprieve(unit).is_ok() {
                kept.push(unit);
                trace.record(|| GangStep::Reprieved {
                    unit,
                    by_budget: true,
                });
            }
        }
        kept
    }

    /// The least priority, of those that a binary search tries, up to which all going is enough; and the place that
    /// the preemptor gets then. A greedy placement may succeed at a priority and fail at a higher one: then the least
    /// of those that were tried and placed is found, which need not be the least of all.
    fn least_priority(
        &self,
        priorities: &[i32],
        first: &Placement,
        kept: &[UnitId],
        trace: &mut GangTrace,
    ) -> (i32, Placement) {
        let at = |index: usize| priorities.get(index).copied().unwrap_or(i32::MIN);
        let (mut low, mut high) = (0_usize, priorities.len().saturating_sub(1));
        let mut best = None;
        while low < high {
            let middle = low.midpoint(high);
            let placement = self.place(Some(at(middle)), kept);
            let is_enough = self.is_enough(&placement);
            trace.record(|| GangStep::CutoffTried {
                max_priority: at(middle),
                is_enough,
            });
            if is_enough {
                high = middle;
                best = Some(placement);
            } else {
                low = middle.saturating_add(1);
            }
        }
        // Who was let off may have to be placed around; the first place is one that certainly will do.
        let again = || (!kept.is_empty()).then(|| self.place(Some(at(high)), kept));
        let placement = best.or_else(again).filter(|it| self.is_enough(it));
        (at(high), placement.unwrap_or_else(|| first.clone()))
    }

    /// The units up to a priority on the nodes that the preemptor gets, the most important first. All others are not
    /// in its way and stay.
    fn conflicting_units(&self, reprieve: &Reprieve<'_>, most: i32) -> Vec<UnitId> {
        let world = self.state;
        let bound = self.preemptor.priority.min(most.saturating_add(1));
        let mut units = Domain::units_below(world, &reprieve.hosts(), bound);
        units.retain(|it| !self.baseline.is_victim(world, *it));
        units
    }

    const fn cutoff(&self, most: Option<i32>) -> PriorityCutoff<'_> {
        PriorityCutoff {
            state: self.state,
            max_priority: most,
        }
    }

    fn overlay<'c>(
        &self,
        cut: &'c PriorityCutoff<'c>,
        kept: &[UnitId],
        questions: usize,
    ) -> Overlay<'c, PriorityCutoff<'c>> {
        let world = self.state;
        let mut overlay = match self.domain {
            Domain::Host(_) => Overlay::new(cut),
            _ => cut.overlay(questions, kept.len()),
        };
        self.baseline
            .apply_to(&mut overlay, cut, self.domain.hosts());
        let is_gone = |priority| cut.max_priority.is_some_and(|most| priority <= most);
        for unit in kept.iter().filter_map(|it| world.unit(*it)) {
            for pod in unit.pods.iter().filter(|_| is_gone(unit.priority)) {
                let host = world.cluster.pod(*pod).and_then(Pod::host);
                let is_here = |it: &HostId| match self.domain {
                    Domain::Host(host) => it == host,
                    _ => true,
                };
                if let Some(host) = host.filter(is_here) {
                    overlay.reserve(host, world.cluster.requests(*pod));
                }
            }
        }
        overlay
    }

    /// Where the preemptor goes if all up to a priority go, but those that are kept.
    pub(super) fn place(&self, most: Option<i32>, kept: &[UnitId]) -> Placement {
        let is_trusted = self.state.options.compatibility == SchedulerCompatibility::KubeScheduler;
        let cut = self.cutoff(most);
        let mut overlay = self.overlay(&cut, kept, self.preemptor.distinct_shapes);
        let (cluster, shapes) = (&self.state.cluster, self.preemptor.shapes);
        if let (Domain::Host(host), [shape], None) =
            (self.domain, shapes, self.preemptor.fixed_placement)
        {
            // Whether it ever goes there was asked before.
            let has_room = overlay.fits(*host, cluster.shape_of(*shape));
            return vec![has_room.then_some(*host)];
        }
        let Some(given) = self.preemptor.fixed_placement else {
            let hosts = self.domain.hosts();
            return place(cluster, &mut overlay, hosts, shapes, self.strategy);
        };
        let mut placement = Placement::new();
        for (shape, host) in shapes.iter().zip(given) {
            let shape = cluster.shape_of(*shape);
            let host = host.filter(|it| is_trusted || overlay.fits(*it, shape));
            if let Some(host) = host {
                overlay.reserve(host, &shape.requests);
            }
            placement.push(host);
        }
        placement
    }

    pub(super) fn is_enough(&self, placement: &[Option<HostId>]) -> bool {
        placement.iter().flatten().count() >= self.preemptor.count_min
    }

    fn infeasible_reason(&self, top: i32, placement: &[Option<HostId>]) -> InfeasibleReason {
        if let Domain::Host(host) = self.domain {
            let cut = self.cutoff(Some(top));
            let overlay = self.overlay(&cut, &[], 0);
            let shape = self.preemptor.shapes.first();
            let requests = shape.map(|it| &self.state.cluster.shape_of(*it).requests);
            let short = requests.into_iter().flatten();
            let short = short.filter(|(it, asked)| *asked > overlay.free(*host, *it));
            let short: Vec<ResourceId> = short.map(|(it, _)| *it).collect();
            return InfeasibleReason::InsufficientResources { resources: short };
        }
        let unplaced = placement.iter().position(Option::is_none);
        InfeasibleReason::NoPlacement {
            pod: unplaced.and_then(|at| self.preemptor.pods.get(at)).copied(),
            placed: placement.iter().flatten().count(),
            count_min: self.preemptor.count_min,
        }
    }
}

fn reprieve_or_preempt(
    reprieve: &mut Reprieve<'_>,
    unit: UnitId,
    by_budget: bool,
    victims: &mut Vec<UnitId>,
    trace: &mut GangTrace,
) {
    match reprieve.try_reprieve(unit) {
        Ok(()) => trace.record(|| GangStep::Reprieved { unit, by_budget }),
        Err((host, resource)) => {
            victims.push(unit);
            trace.record(|| GangStep::NotReprieved {
                unit,
                host,
                resource,
            });
        }
    }
}
