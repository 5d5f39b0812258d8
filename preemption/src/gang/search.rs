//! The search for victims in one domain.

use super::cluster::GangCluster;
use super::domain::Domain;
use super::hypothetical::{PriorityCutoff, SearchBaseline};
use super::hypothetical_pods;
use super::preemptor::Preemptor;
use super::reason::InfeasibleReason;
use super::reprieve::Reprieve;
use super::request::zip_placement;
use super::spec::SchedulerCompatibility;
use super::trace::{GangStep, GangTrace};
use crate::ids::{HostId, PodId, ResourceId, UnitId};
use crate::placement::{
    FreeResources, InterPodCounts, InterPodRejection, Overlay, Placement, Pod, Strategy, place,
    place_beside_pods,
};
use std::collections::{BTreeMap, BTreeSet};

/// The victims and the placement in a feasible domain.
#[derive(Clone, Debug)]
pub(super) struct DomainResult {
    pub(super) placement: Placement,
    /// The most important first.
    pub(super) victims: Vec<UnitId>,
    /// How many pods of the victims are protected by a disruption budget.
    pub(super) violations: u32,
    /// No unit above this priority was considered.
    pub(super) max_priority: i32,
}

/// A search in one domain. It does not change the state.
pub(super) struct DomainSearch<'a> {
    pub(super) state: &'a GangCluster,
    pub(super) baseline: &'a SearchBaseline,
    pub(super) preemptor: Preemptor<'a>,
    pub(super) domain: &'a Domain,
    pub(super) strategy: Strategy,
}

/// The units with disruptions that violate a budget.
#[derive(Debug, Default)]
struct ProtectedUnits {
    /// The most important first.
    by_importance: Vec<UnitId>,
    /// How many pods of each unit violate a budget.
    pods: BTreeMap<UnitId, usize>,
}

impl DomainSearch<'_> {
    /// Searches the domain.
    ///
    /// Costs one placement for each step of the binary search over the different priorities, the units that a budget
    /// protects, and the units on the nodes of the placement.
    ///
    /// Source: KEP-5710, Preemption algorithm, the points for every domain; kube-scheduler v1.37,
    /// `selectVictimsOnDomain` and `SelectVictimsOnNode`.
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

    /// The result of [`Self::run`] for a single pod on one node, if the lowest sufficient cutoff is known and no unit is
    /// protected.
    pub(super) fn run_at_cutoff(&self, max_priority: i32, host: HostId) -> DomainResult {
        let cutoff = self.cutoff(Some(max_priority));
        let placement = vec![Some(host)];
        let overlay = Overlay::new(&cutoff);
        let mut reprieve = Reprieve::new(self.state, overlay, None, self.preemptor, &placement);
        let mut victims = Vec::new();
        for unit in self.conflicting_units(&reprieve, max_priority) {
            if reprieve.try_reprieve(unit).is_err() {
                victims.push(unit);
            }
        }
        Self::result(placement, victims, &ProtectedUnits::default(), max_priority)
    }

    /// The algorithm of the KEP: reprieves protected units, finds the lowest sufficient priority cutoff, then
    /// reprieves the units that are not in the way.
    fn select_with_cutoff(
        &self,
        priorities: &[i32],
        first: &Placement,
        protected: &ProtectedUnits,
        trace: &mut GangTrace,
    ) -> DomainResult {
        let top = priorities.last().copied().unwrap_or(i32::MIN);
        let reprieved = self.reprieve_protected(top, first, protected, trace);
        let (max_priority, placement) = self.least_priority(priorities, first, &reprieved, trace);
        trace.record(|| GangStep::CutoffFound { max_priority });
        if placement != *first {
            trace.record(|| GangStep::PlacedAgain {
                placement: zip_placement(self.preemptor.pods, &placement),
            });
        }
        let cutoff = self.cutoff(Some(max_priority));
        // Reprieves look only at the nodes of the placement: a sparse overlay is enough.
        let overlay = self.overlay(&cutoff, &reprieved, 0);
        let counts = self.counts(Some(max_priority), &reprieved);
        let mut reprieve = Reprieve::new(self.state, overlay, counts, self.preemptor, &placement);
        let reprieved: BTreeSet<UnitId> = reprieved.into_iter().collect();
        let mut victims = Vec::new();
        for unit in self.conflicting_units(&reprieve, max_priority) {
            // The overlay contains the reprieved units; a second reserve would count them twice.
            if !reprieved.contains(&unit) {
                reprieve_or_preempt(&mut reprieve, unit, false, &mut victims, trace);
            }
        }
        if reprieve.may_help_others() {
            reprieve_again(&mut reprieve, &mut victims, trace);
        }
        Self::result(placement, victims, protected, max_priority)
    }

    /// kube-scheduler's algorithm: keeps the first placement, and tries to reprieve protected units first.
    fn select_like_kube_scheduler(
        &self,
        top: i32,
        first: Placement,
        protected: &ProtectedUnits,
        trace: &mut GangTrace,
    ) -> DomainResult {
        let cutoff = self.cutoff(Some(top));
        let overlay = self.overlay(&cutoff, &[], 0);
        let counts = self.counts(Some(top), &[]);
        let mut reprieve = Reprieve::new(self.state, overlay, counts, self.preemptor, &first);
        let mut victims = Vec::new();
        for unit in &protected.by_importance {
            reprieve_or_preempt(&mut reprieve, *unit, true, &mut victims, trace);
        }
        // kube-scheduler reprieves every unit on an untouched node, so those are not tried.
        for unit in self.conflicting_units(&reprieve, top) {
            if !protected.pods.contains_key(&unit) {
                reprieve_or_preempt(&mut reprieve, unit, false, &mut victims, trace);
            }
        }
        // Protected units were tried first; kube-scheduler sorts all victims again at the end.
        self.state.units.sort_by_importance(&mut victims);
        Self::result(first, victims, protected, top)
    }

    fn result(
        placement: Placement,
        victims: Vec<UnitId>,
        protected: &ProtectedUnits,
        max_priority: i32,
    ) -> DomainResult {
        let broken = victims.iter().filter_map(|it| protected.pods.get(it));
        let violations: usize = broken.sum();
        DomainResult {
            placement,
            victims,
            violations: u32::try_from(violations).unwrap_or(u32::MAX),
            max_priority,
        }
    }

    /// The units with disruptions that violate a budget, if all more important units are disrupted as well.
    fn find_protected(&self, trace: &mut GangTrace) -> ProtectedUnits {
        let state = self.state;
        let bound = self.preemptor.priority;
        let mut protected = ProtectedUnits::default();
        if !state.units.has_protected() {
            return protected;
        }
        let mut counter = state.budgets.counter();
        // Victims chosen before have used up their part of the budgets.
        for unit in self
            .baseline
            .victims
            .values()
            .flatten()
            .collect::<BTreeSet<_>>()
        {
            if let Some(unit) = state.units.get(*unit) {
                counter.charge_unit(unit, &state.members, |_, _| {});
            }
        }
        let mut charge = |id: UnitId| {
            let Some(unit) = state.units.get(id) else {
                return;
            };
            // Charged above: a second charge would use the budgets up twice.
            if self.baseline.is_victim(state, id) {
                return;
            }
            let mut breaks = Vec::new();
            // Without a trace the list stays empty and costs no allocation.
            let is_traced = trace.is_on();
            let pods = counter.charge_unit(unit, &state.members, |pod, budget| {
                if is_traced {
                    breaks.push((pod, budget));
                }
            });
            if pods > 0 {
                trace.record(|| GangStep::Protected { unit: id, breaks });
                protected.by_importance.push(id);
                protected.pods.insert(id, pods);
            }
        };
        match self.domain {
            // The unit table has the protected units of the cluster in order: no walk over nodes.
            Domain::Cluster(_) => {
                let units = state.units.protected_below(bound);
                units.for_each(|it| charge(it.unit));
            }
            domain => {
                let units = Domain::units_below(state, domain.hosts(), bound);
                units.into_iter().for_each(charge);
            }
        }
        protected
    }

    /// The protected units that can stay while the preemptor keeps its placement.
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
        let cutoff = self.cutoff(Some(top));
        let overlay = self.overlay(&cutoff, &[], 0);
        let counts = self.counts(Some(top), &[]);
        let mut reprieve = Reprieve::new(self.state, overlay, counts, self.preemptor, first);
        let mut reprieved = Vec::new();
        for unit in protected.by_importance.iter().copied() {
            // Best effort (KEP-5710): a protected unit that conflicts remains a potential victim.
            if reprieve.try_reprieve(unit).is_ok() {
                reprieved.push(unit);
                trace.record(|| GangStep::Reprieved {
                    unit,
                    by_budget: true,
                });
            }
        }
        reprieved
    }

    /// A binary search for the lowest sufficient priority cutoff, and the placement with it. The result is the lowest
    /// cutoff that was tried with success, which need not be the lowest of all.
    fn least_priority(
        &self,
        priorities: &[i32],
        first: &Placement,
        reprieved: &[UnitId],
        trace: &mut GangTrace,
    ) -> (i32, Placement) {
        let at = |index: usize| priorities.get(index).copied().unwrap_or(i32::MIN);
        // The highest cutoff suffices: the reprieved units fit beside the first placement.
        let (mut low, mut high) = (0_usize, priorities.len().saturating_sub(1));
        let mut best = None;
        // Greedy placement is not monotone: it may succeed at a cutoff and fail at a higher one.
        while low < high {
            let middle = low.midpoint(high);
            let placement = self.place(Some(at(middle)), reprieved);
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
        // The reprieved units may rule the new placement out. The first placement is known to be feasible.
        let again = || (!reprieved.is_empty()).then(|| self.place(Some(at(high)), reprieved));
        let placement = best.or_else(again).filter(|it| self.is_enough(it));
        (at(high), placement.unwrap_or_else(|| first.clone()))
    }

    /// The units up to a priority on the nodes of the placement and those with pods that restrict the preemptor, the most
    /// important first. Other units are not in the way.
    fn conflicting_units(&self, reprieve: &Reprieve<'_>, max_priority: i32) -> Vec<UnitId> {
        let state = self.state;
        // `max_priority` is inclusive, the bound of `units_below` is not.
        let bound = self.preemptor.priority.min(max_priority.saturating_add(1));
        let mut units = Domain::units_below(state, &reprieve.hosts(), bound);
        if let (Some(table), Some(top)) = (self.preemptor.inter_pod, bound.checked_sub(1)) {
            let mut all = hypothetical_pods::units_up_to(state, table, self.domain, top);
            all.extend(units);
            units = all.into_iter().collect();
            state.units.sort_by_importance(&mut units);
        }
        units.retain(|it| !self.baseline.is_victim(state, *it));
        units
    }

    const fn cutoff(&self, max_priority: Option<i32>) -> PriorityCutoff<'_> {
        PriorityCutoff {
            state: self.state,
            max_priority,
        }
    }

    /// The pods around the preemptor without the units up to a priority, except those in `reprieved`; `None` if they do not
    /// restrict it.
    fn counts(
        &self,
        max_priority: Option<i32>,
        reprieved: &[UnitId],
    ) -> Option<InterPodCounts<'_>> {
        let table = self.preemptor.inter_pod?;
        Some(hypothetical_pods::counts(
            self.state,
            table,
            self.baseline,
            self.domain,
            max_priority,
            reprieved,
        ))
    }

    fn overlay<'c>(
        &self,
        cutoff: &'c PriorityCutoff<'c>,
        reprieved: &[UnitId],
        lookups: usize,
    ) -> Overlay<'c, PriorityCutoff<'c>> {
        let state = self.state;
        let mut overlay = match self.domain {
            // A dense overlay would read all nodes of the cluster for this one.
            Domain::Host(_) => Overlay::new(cutoff),
            _ => cutoff.overlay(lookups, reprieved.len()),
        };
        self.baseline
            .apply_to(&mut overlay, cutoff, self.domain.hosts());
        let is_removed = |priority| {
            cutoff
                .max_priority
                .is_some_and(|max_priority| priority <= max_priority)
        };
        for unit in reprieved.iter().filter_map(|it| state.units.get(*it)) {
            // A unit above the cutoff was not removed, so its room is still in use.
            for pod in unit.pods.iter().filter(|_| is_removed(unit.priority)) {
                let host = state.cluster.pod(*pod).and_then(Pod::host);
                // A group may have pods on other nodes; they do not matter for a single node.
                let is_here = |pod_host: &HostId| match self.domain {
                    Domain::Host(host) => pod_host == host,
                    _ => true,
                };
                if let Some(host) = host.filter(is_here) {
                    overlay.reserve(host, state.cluster.requests(*pod));
                }
            }
        }
        overlay
    }

    /// The placement of the preemptor without the units up to a priority, except those in `reprieved`.
    pub(super) fn place(&self, max_priority: Option<i32>, reprieved: &[UnitId]) -> Placement {
        // kube-scheduler does not check a placement that is decided elsewhere.
        let is_trusted = self.state.options.compatibility == SchedulerCompatibility::KubeScheduler;
        let cutoff = self.cutoff(max_priority);
        let mut overlay = self.overlay(&cutoff, reprieved, self.preemptor.distinct_shapes);
        let mut counts = self.counts(max_priority, reprieved);
        let (cluster, pods) = (&self.state.cluster, self.preemptor.pods);
        let shapes = self.preemptor.shapes;
        let is_accepted = |counts: &Option<InterPodCounts<'_>>, pod: PodId, host: HostId| {
            let counts = counts.as_ref();
            counts.is_none_or(|it| it.rejection_of(pod, host).is_none())
        };
        if let (Domain::Host(host), [shape], [pod], None) =
            (self.domain, shapes, pods, self.preemptor.fixed_placement)
        {
            // `check_node` has applied the filters.
            let has_room = overlay.fits(*host, cluster.shape_of(*shape));
            let is_feasible = has_room && is_accepted(&counts, *pod, *host);
            return vec![is_feasible.then_some(*host)];
        }
        let Some(fixed) = self.preemptor.fixed_placement else {
            let hosts = self.domain.hosts();
            return match &mut counts {
                Some(counts) => place_beside_pods(&mut overlay, counts, hosts, pods, self.strategy),
                None => place(cluster, &mut overlay, hosts, shapes, self.strategy),
            };
        };
        let mut placement = Placement::new();
        for ((pod, shape), host) in pods.iter().zip(shapes).zip(fixed) {
            let shape = cluster.shape_of(*shape);
            let has_room = |it: HostId| overlay.fits(it, shape) && is_accepted(&counts, *pod, it);
            let host = host.filter(|it| is_trusted || has_room(*it));
            if let Some(host) = host {
                overlay.reserve(host, &shape.requests);
                if let Some(counts) = &mut counts {
                    counts.add(*pod, host);
                }
            }
            placement.push(host);
        }
        placement
    }

    pub(super) fn is_enough(&self, placement: &[Option<HostId>]) -> bool {
        placement.iter().flatten().count() >= self.preemptor.count_min
    }

    /// Why pods that stay reject a node for the single pod of the preemptor.
    fn rejection_by_pods(&self, top: i32, host: HostId) -> Option<InterPodRejection> {
        let counts = self.counts(Some(top), &[])?;
        counts.rejection_of(*self.preemptor.pods.first()?, host)
    }

    fn infeasible_reason(&self, top: i32, placement: &[Option<HostId>]) -> InfeasibleReason {
        if let Domain::Host(host) = self.domain {
            let cutoff = self.cutoff(Some(top));
            let overlay = self.overlay(&cutoff, &[], 0);
            let shape = self.preemptor.shapes.first();
            let requests = shape.map(|it| &self.state.cluster.shape_of(*it).requests);
            let requests = requests.into_iter().flatten();
            let exceeding = requests.filter(|(it, request)| *request > overlay.free(*host, *it));
            let resources: Vec<ResourceId> = exceeding.map(|(it, _)| *it).collect();
            if resources.is_empty()
                && let Some(rejection) = self.rejection_by_pods(top, *host)
            {
                return InfeasibleReason::RejectedByPods(rejection);
            }
            return InfeasibleReason::InsufficientResources { resources };
        }
        let unplaced = placement.iter().position(Option::is_none);
        InfeasibleReason::NoPlacement {
            pod: unplaced.and_then(|at| self.preemptor.pods.get(at)).copied(),
            placed: placement.iter().flatten().count(),
            count_min: self.preemptor.count_min,
        }
    }
}

/// Tries to reprieve the victims until none can stay: a reprieved pod may give the preemptor the affinity, or the even spread,
/// that it lacked with another one before. kube-scheduler tries each unit once.
fn reprieve_again(reprieve: &mut Reprieve<'_>, victims: &mut Vec<UnitId>, trace: &mut GangTrace) {
    loop {
        let before = victims.len();
        victims.retain(|unit| {
            let is_reprieved = reprieve.try_reprieve(*unit).is_ok();
            if is_reprieved {
                trace.record(|| GangStep::Reprieved {
                    unit: *unit,
                    by_budget: false,
                });
            }
            !is_reprieved
        });
        if victims.len() == before {
            return;
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
        Err((host, conflict)) => {
            victims.push(unit);
            trace.record(|| GangStep::NotReprieved {
                unit,
                host,
                conflict,
            });
        }
    }
}
