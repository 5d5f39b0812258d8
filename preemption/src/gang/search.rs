//! Who has to go in one domain.

use super::domain::Domain;
use super::plan::{Why, named};
use super::reprieve::Reprieve;
use super::room::{Cut, Ground};
use super::spec::Compatibility;
use super::trace::{Step, Trace};
use super::world::World;
use crate::names::{HostId, PodId, ResourceId, ShapeId, UnitId};
use crate::placement::{Overlay, Placement, Pod, Room, Strategy, place};
use std::collections::{BTreeMap, BTreeSet};

/// Who wants room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preemptor<'a> {
    /// Its pods that wait, in the order in which they are placed.
    pub(super) pods: &'a [PodId],
    pub(super) shapes: &'a [ShapeId],
    /// How many of these are different.
    pub(super) different: usize,
    /// Units below it may go.
    pub(super) priority: i32,
    /// With how many of these pods placed it makes do; at least one.
    pub(super) count_min: usize,
    /// Where its pods go, decided elsewhere.
    pub(super) given: Option<&'a [Option<HostId>]>,
}

/// What a domain comes to.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) placement: Placement,
    /// The most important first.
    pub(super) victims: Vec<UnitId>,
    /// How many of their pods go though a budget protects them.
    pub(super) violations: u32,
    /// Nobody above this priority was asked to go.
    pub(super) most: i32,
}

/// A search in one domain. It leaves the world as it is.
pub(super) struct Search<'a> {
    pub(super) world: &'a World,
    pub(super) ground: &'a Ground,
    pub(super) preemptor: Preemptor<'a>,
    pub(super) domain: &'a Domain,
    pub(super) strategy: Strategy,
}

/// The units whose going would break a budget, and how many of their pods do.
#[derive(Debug, Default)]
struct Protected {
    /// The most important first.
    order: Vec<UnitId>,
    /// By the number of the unit.
    pods: BTreeMap<UnitId, usize>,
}

impl Search<'_> {
    /// Source: KEP-5710, Preemption algorithm, the points for every domain; kube-scheduler v1.37,
    /// `selectVictimsOnDomain` and `SelectVictimsOnNode`.
    ///
    /// Costs a placement for each step of the search, which are the logarithm of the different priorities; the
    /// units that a budget protects; and the units on the nodes that the preemptor gets.
    pub(super) fn run(&self, trace: &mut Trace) -> Result<Found, Why> {
        let priorities = self
            .domain
            .priorities_below(self.world, self.preemptor.priority);
        let Some(top) = priorities.last().copied() else {
            return Err(Why::NoVictims);
        };
        let first = self.place(Some(top), &[]);
        if !self.is_enough(&first) {
            return Err(self.no_room(top, &first));
        }
        trace.note(|| Step::Placed {
            placement: named(self.preemptor.pods, &first),
        });
        let protected = self.protected(trace);
        match self.world.options.compatibility {
            Compatibility::Lockkeeper => Ok(self.bounded(&priorities, &first, &protected, trace)),
            Compatibility::KubeScheduler => Ok(self.unbounded(top, first, &protected, trace)),
        }
    }

    /// As the KEP says: who is protected is let off, then nobody above the least priority that will do has to go,
    /// then who is not in the way is let off.
    fn bounded(
        &self,
        priorities: &[i32],
        first: &Placement,
        protected: &Protected,
        trace: &mut Trace,
    ) -> Found {
        let top = priorities.last().copied().unwrap_or(i32::MIN);
        let kept = self.reprieve_protected(top, first, protected, trace);
        let (most, placement) = self.least_priority(priorities, first, &kept, trace);
        trace.note(|| Step::Bound { most });
        if placement != *first {
            trace.note(|| Step::PlacedAnew {
                placement: named(self.preemptor.pods, &placement),
            });
        }
        let cut = self.cut(Some(most));
        let overlay = self.overlay(&cut, &kept, 0);
        let mut reprieve = Reprieve::new(self.world, overlay, self.preemptor.shapes, &placement);
        let kept: BTreeSet<UnitId> = kept.into_iter().collect();
        let mut victims = Vec::new();
        for unit in self.in_the_way(&reprieve, most) {
            if !kept.contains(&unit) {
                try_let_off(&mut reprieve, unit, false, &mut victims, trace);
            }
        }
        Self::found(placement, victims, protected, most)
    }

    /// As kube-scheduler does it: the place stays the first one, who is protected is asked first.
    fn unbounded(
        &self,
        top: i32,
        first: Placement,
        protected: &Protected,
        trace: &mut Trace,
    ) -> Found {
        let cut = self.cut(Some(top));
        let overlay = self.overlay(&cut, &[], 0);
        let mut reprieve = Reprieve::new(self.world, overlay, self.preemptor.shapes, &first);
        let mut victims = Vec::new();
        for unit in &protected.order {
            try_let_off(&mut reprieve, *unit, true, &mut victims, trace);
        }
        for unit in self.in_the_way(&reprieve, top) {
            if !protected.pods.contains_key(&unit) {
                try_let_off(&mut reprieve, unit, false, &mut victims, trace);
            }
        }
        self.world.sort(&mut victims);
        Self::found(first, victims, protected, top)
    }

    fn found(
        placement: Placement,
        victims: Vec<UnitId>,
        protected: &Protected,
        most: i32,
    ) -> Found {
        let broken = victims.iter().filter_map(|it| protected.pods.get(it));
        let violations: usize = broken.sum();
        Found {
            placement,
            victims,
            violations: u32::try_from(violations).unwrap_or(u32::MAX),
            most,
        }
    }

    /// Those whose going would break a budget, if all who are more important went as well.
    fn protected(&self, trace: &mut Trace) -> Protected {
        let world = self.world;
        let bound = self.preemptor.priority;
        let mut protected = Protected::default();
        if !world.has_covered() {
            return protected;
        }
        let mut count = world.budgets.count();
        for unit in self
            .ground
            .chosen
            .values()
            .flatten()
            .collect::<BTreeSet<_>>()
        {
            world.charge(&mut count, *unit, |_, _| {});
        }
        let mut see = |unit: UnitId| {
            if self.ground.is_chosen(world, unit) {
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
                trace.note(|| Step::Protected { unit, breaks });
                protected.order.push(unit);
                protected.pods.insert(unit, pods);
            }
        };
        match self.domain {
            Domain::Cluster(_) => world.covered_below(bound).for_each(|it| see(it.unit)),
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
        protected: &Protected,
        trace: &mut Trace,
    ) -> Vec<UnitId> {
        if protected.order.is_empty() {
            return Vec::new();
        }
        let cut = self.cut(Some(top));
        let overlay = self.overlay(&cut, &[], 0);
        let mut reprieve = Reprieve::new(self.world, overlay, self.preemptor.shapes, first);
        let mut kept = Vec::new();
        for unit in protected.order.iter().copied() {
            if reprieve.let_off(unit).is_ok() {
                kept.push(unit);
                trace.note(|| Step::Reprieved {
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
        trace: &mut Trace,
    ) -> (i32, Placement) {
        let at = |index: usize| priorities.get(index).copied().unwrap_or(i32::MIN);
        let (mut low, mut high) = (0_usize, priorities.len().saturating_sub(1));
        let mut best = None;
        while low < high {
            let middle = low.midpoint(high);
            let placement = self.place(Some(at(middle)), kept);
            let is_enough = self.is_enough(&placement);
            trace.note(|| Step::Tried {
                most: at(middle),
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
    fn in_the_way(&self, reprieve: &Reprieve<'_>, most: i32) -> Vec<UnitId> {
        let world = self.world;
        let bound = self.preemptor.priority.min(most.saturating_add(1));
        let mut units = Domain::units_below(world, &reprieve.hosts(), bound);
        units.retain(|it| !self.ground.is_chosen(world, *it));
        units
    }

    const fn cut(&self, most: Option<i32>) -> Cut<'_> {
        Cut {
            world: self.world,
            most,
        }
    }

    fn overlay<'c>(
        &self,
        cut: &'c Cut<'c>,
        kept: &[UnitId],
        questions: usize,
    ) -> Overlay<'c, Cut<'c>> {
        let world = self.world;
        let mut overlay = match self.domain {
            Domain::Host(_) => Overlay::new(cut),
            _ => cut.overlay(questions, kept.len()),
        };
        self.ground.put_on(&mut overlay, cut, self.domain.hosts());
        let is_gone = |priority| cut.most.is_some_and(|most| priority <= most);
        for unit in kept.iter().filter_map(|it| world.unit(*it)) {
            for pod in unit.pods.iter().filter(|_| is_gone(unit.priority)) {
                let host = world.cluster.pod(*pod).and_then(Pod::host);
                let is_here = |it: &HostId| match self.domain {
                    Domain::Host(host) => it == host,
                    _ => true,
                };
                if let Some(host) = host.filter(is_here) {
                    overlay.take(host, world.cluster.requests(*pod));
                }
            }
        }
        overlay
    }

    /// Where the preemptor goes if all up to a priority go, but those that are kept.
    pub(super) fn place(&self, most: Option<i32>, kept: &[UnitId]) -> Placement {
        let is_trusted = self.world.options.compatibility == Compatibility::KubeScheduler;
        let cut = self.cut(most);
        let mut overlay = self.overlay(&cut, kept, self.preemptor.different);
        let (cluster, shapes) = (&self.world.cluster, self.preemptor.shapes);
        if let (Domain::Host(host), [shape], None) = (self.domain, shapes, self.preemptor.given) {
            // Whether it ever goes there was asked before.
            let has_room = overlay.has_room(*host, cluster.shape_of(*shape));
            return vec![has_room.then_some(*host)];
        }
        let Some(given) = self.preemptor.given else {
            let hosts = self.domain.hosts();
            return place(cluster, &mut overlay, hosts, shapes, self.strategy);
        };
        let mut placement = Placement::new();
        for (shape, host) in shapes.iter().zip(given) {
            let shape = cluster.shape_of(*shape);
            let host = host.filter(|it| is_trusted || overlay.has_room(*it, shape));
            if let Some(host) = host {
                overlay.take(host, &shape.requests);
            }
            placement.push(host);
        }
        placement
    }

    pub(super) fn is_enough(&self, placement: &[Option<HostId>]) -> bool {
        placement.iter().flatten().count() >= self.preemptor.count_min
    }

    fn no_room(&self, top: i32, placement: &[Option<HostId>]) -> Why {
        if let Domain::Host(host) = self.domain {
            let cut = self.cut(Some(top));
            let overlay = self.overlay(&cut, &[], 0);
            let shape = self.preemptor.shapes.first();
            let requests = shape.map(|it| &self.world.cluster.shape_of(*it).requests);
            let short = requests.into_iter().flatten();
            let short = short.filter(|(it, asked)| *asked > overlay.free(*host, *it));
            let short: Vec<ResourceId> = short.map(|(it, _)| *it).collect();
            return Why::NoRoom { short };
        }
        let unplaced = placement.iter().position(Option::is_none);
        Why::NoPlacement {
            pod: unplaced.and_then(|at| self.preemptor.pods.get(at)).copied(),
            placed: placement.iter().flatten().count(),
            count_min: self.preemptor.count_min,
        }
    }
}

fn try_let_off(
    reprieve: &mut Reprieve<'_>,
    unit: UnitId,
    by_budget: bool,
    victims: &mut Vec<UnitId>,
    trace: &mut Trace,
) {
    match reprieve.let_off(unit) {
        Ok(()) => trace.note(|| Step::Reprieved { unit, by_budget }),
        Err((host, resource)) => {
            victims.push(unit);
            trace.note(|| Step::Taken {
                unit,
                host,
                resource,
            });
        }
    }
}
