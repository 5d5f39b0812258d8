//! Assigns flavors to a workload, with preemption if needed.
//!
//! Source: Kueue `pkg/scheduler/flavorassigner`, KEP-83 "Flavor assignment", KEP-582 (fungibility).
//! Pod sets are processed in order; for each, every resource group of the queue once, with its flavors in order.
//!
//! Unlike in the documents, borrowing has a level: the height of the node that lends the quota.

use crate::amount::Amount;
use crate::assignment::{Assignment, FlavorAssignment, Mode, PodSet, PodSetAssignment};
use crate::elastic::ElasticGate;
use crate::ids::{FlavorId, FlavorResource, NodeId, ResourceId};
use crate::policy::{
    BorrowWithinCohort, Compatibility, Fungibility, Preference, ReclaimWithinCohort,
};
use crate::queue::QueueSettings;
use crate::quota::{ResourceGroup, View};
use crate::trace::{FlavorVerdict, Possibility, Step, Trace};
use crate::victim::PreemptionReason;
use crate::victims::{self, Demand, Preemptor, SearchContext};

/// The input of a flavor assignment.
#[derive(Clone, Copy)]
pub(crate) struct AssignmentRequest<'a> {
    pub(crate) queue: NodeId,
    pub(crate) settings: &'a QueueSettings,
    pub(crate) priority: i32,
    pub(crate) order_time: i64,
    pub(crate) pod_sets: &'a [PodSet],
    /// The number of pods of each pod set.
    pub(crate) counts: &'a [i64],
    /// The last flavors tried, by pod set and resource: the search continues behind them.
    pub(crate) last_tried_flavors: &'a [(usize, ResourceId, usize)],
    /// If set, only the flavors of this assignment are tried.
    pub(crate) allowed_flavors: Option<&'a Assignment>,
    pub(crate) compatibility: Compatibility,
    /// Whether fair sharing is on.
    pub(crate) is_fair: bool,
    pub(crate) may_preempt: bool,
    /// The gate of the queue, if it is elastic.
    pub(crate) elastic_gate: Option<ElasticGate<'a>>,
}

impl AssignmentRequest<'_> {
    pub(crate) fn preemptor<'b>(
        &self,
        needs: &'b [FlavorResource],
        request: &'b [Demand],
    ) -> Preemptor<'b> {
        Preemptor {
            queue: self.queue,
            priority: self.priority,
            order_time: self.order_time,
            policy: self.settings.preemption,
            may_preempt: self.may_preempt,
            needs,
            request,
        }
    }
}

/// Returns whether victims can be found for one flavor and resource, and the borrowing level without them.
/// Conformance tests replace it with recorded results.
pub(crate) trait Oracle {
    fn possibility(
        &mut self,
        view: &mut View<'_>,
        assignment_request: &AssignmentRequest<'_>,
        demand: Demand,
        level: u32,
        trace: &mut Trace,
    ) -> (Possibility, u32);
}

/// Searches for victims.
pub(crate) struct VictimSearchOracle<'a> {
    pub(crate) context: &'a SearchContext<'a>,
}

impl Oracle for VictimSearchOracle<'_> {
    fn possibility(
        &mut self,
        view: &mut View<'_>,
        assignment_request: &AssignmentRequest<'_>,
        demand: Demand,
        level: u32,
        trace: &mut Trace,
    ) -> (Possibility, u32) {
        // Each resource is searched alone here; the final search is for the whole request.
        let (needs, request) = ([demand.of], [demand]);
        let preemptor = assignment_request.preemptor(&needs, &request);
        let found = victims::search(view, self.context, &preemptor, trace);
        if found.is_empty() {
            return (Possibility::NoCandidates, level);
        }
        let mark = view.mark();
        for victim in &found {
            if let Some(running) = self.context.admitted.admitted(victim.workload) {
                for (cell, amount) in self.context.index.usage(running) {
                    view.remove(cell, amount);
                }
            }
        }
        let (level, _) = view.borrowing_level(demand.cell, demand.amount);
        view.roll_back(mark);
        let is_own = |reason| reason == PreemptionReason::InClusterQueue;
        if found.iter().any(|victim| is_own(victim.reason)) {
            (Possibility::Preempt, level)
        } else {
            (Possibility::Reclaim, level)
        }
    }
}

/// A possibility and its borrowing level.
type GranularMode = (Possibility, u32);

/// Assigns flavors. Leaves the view unchanged.
pub(crate) fn assign(
    view: &mut View<'_>,
    oracle: &mut dyn Oracle,
    assignment_request: &AssignmentRequest<'_>,
    trace: &mut Trace,
) -> Assignment {
    let mut assignment = Assignment {
        mode: Mode::Fit,
        borrowing_level: 0,
        pod_sets: Vec::with_capacity(assignment_request.pod_sets.len()),
        usage: Vec::new(),
    };
    for (at, pod_set) in assignment_request.pod_sets.iter().enumerate() {
        let count = assignment_request
            .counts
            .get(at)
            .copied()
            .unwrap_or(pod_set.count);
        let mut search = FlavorSearch {
            view: &mut *view,
            oracle: &mut *oracle,
            assignment_request,
            pod_set_index: at,
            pod_set,
            requests: requests(pod_set, count, assignment_request.settings),
            usage: &assignment.usage,
            trace: &mut *trace,
        };
        let found = search.run(count);
        let mode = found.mode;
        assignment.mode = assignment.mode.min(mode);
        if mode == Mode::NoFit {
            assignment.pod_sets.push(found);
            break;
        }
        let booked = std::mem::take(&mut search.requests);
        for flavor in &found.flavors {
            assignment.borrowing_level = assignment.borrowing_level.max(flavor.borrowing_level);
            let of = FlavorResource {
                flavor: flavor.flavor,
                resource: flavor.resource,
            };
            let amount = requested_amount(&booked, flavor.resource);
            add_usage(&mut assignment.usage, of, amount);
        }
        assignment.pod_sets.push(found);
    }
    assignment
}

/// Returns the requests of the pods, including the number of pods if the queue covers the resource `pods`.
fn requests(pod_set: &PodSet, count: i64, settings: &QueueSettings) -> Vec<(ResourceId, Amount)> {
    let totals = pod_set.requests.iter();
    let part = |total: &Amount| pod_set.scaled_request(*total, count);
    let mut requests: Vec<_> = totals.map(|(it, total)| (*it, part(total))).collect();
    let mut covered = settings.groups.iter().flat_map(|group| &group.resources);
    if covered.any(|it| *it == ResourceId::PODS) {
        requests.retain(|(resource, _)| *resource != ResourceId::PODS);
        requests.push((ResourceId::PODS, Amount::new(count)));
    }
    requests
}

fn requested_amount(requests: &[(ResourceId, Amount)], resource: ResourceId) -> Amount {
    let mut requests = requests.iter();
    requests
        .find(|(it, _)| *it == resource)
        .map_or(Amount::ZERO, |(_, amount)| *amount)
}

fn add_usage(usage: &mut Vec<(FlavorResource, Amount)>, of: FlavorResource, amount: Amount) {
    match usage.binary_search_by_key(&of, |(of, _)| *of) {
        Ok(at) => {
            if let Some((_, sum)) = usage.get_mut(at) {
                *sum = sum.plus(amount);
            }
        }
        Err(at) => usage.insert(at, (of, amount)),
    }
}

/// The search for the flavors of one pod set.
struct FlavorSearch<'a, 'v> {
    view: &'a mut View<'v>,
    oracle: &'a mut dyn Oracle,
    assignment_request: &'a AssignmentRequest<'a>,
    pod_set_index: usize,
    pod_set: &'a PodSet,
    requests: Vec<(ResourceId, Amount)>,
    /// The usage of the pod sets before this one.
    usage: &'a [(FlavorResource, Amount)],
    trace: &'a mut Trace,
}

/// The best flavor of a group so far.
struct BestFlavor {
    flavor: FlavorId,
    granular_mode: GranularMode,
    /// The worst mode of the resources, whatever the preference.
    mode: Mode,
    resources: Vec<(ResourceId, GranularMode)>,
}

impl FlavorSearch<'_, '_> {
    fn run(&mut self, count: i64) -> PodSetAssignment {
        let mut assignment = PodSetAssignment {
            pod_set: self.pod_set_index,
            count,
            mode: Mode::Fit,
            flavors: Vec::with_capacity(self.requests.len()),
        };
        let fails = |mut assignment: PodSetAssignment| {
            assignment.mode = Mode::NoFit;
            assignment.flavors.clear();
            assignment
        };
        for index in 0..self.requests.len() {
            let Some((resource, amount)) = self.requests.get(index).copied() else {
                continue;
            };
            if assignment.flavors.iter().any(|it| it.resource == resource) {
                continue;
            }
            let mut groups = self.assignment_request.settings.groups.iter();
            let Some(group) = groups.find(|group| group.resources.contains(&resource)) else {
                if amount == Amount::ZERO {
                    continue;
                }
                return fails(assignment);
            };
            let Some(mode) = self.assign_group(group, &mut assignment.flavors) else {
                return fails(assignment);
            };
            assignment.mode = assignment.mode.min(mode);
        }
        assignment
    }

    /// Tries the flavors of a group for the requested resources of the group.
    fn assign_group(
        &mut self,
        group: &ResourceGroup,
        flavors: &mut Vec<FlavorAssignment>,
    ) -> Option<Mode> {
        let requests: Vec<_> = self
            .requests
            .iter()
            .filter(|(resource, _)| group.resources.contains(resource))
            .copied()
            .collect();
        let mut best: Option<BestFlavor> = None;
        let mut tried_flavor_index = None;
        for (position, quotas) in group
            .flavors
            .iter()
            .enumerate()
            .skip(self.first_flavor_index(&requests))
        {
            tried_flavor_index = Some(position);
            if !self.is_eligible(quotas.flavor) {
                continue;
            }
            let found = self.evaluate_flavor(quotas.flavor, &requests);
            let tries_next = self.should_try_next_flavor(found.granular_mode);
            // The first acceptable flavor ends the search, even if an earlier one was better (Kueue).
            if !tries_next {
                best = Some(found);
                break;
            }
            let is_better = best
                .as_ref()
                .is_none_or(|best| self.is_preferred(found.granular_mode, best.granular_mode));
            if is_better && found.granular_mode.0 != Possibility::NoFit {
                best = Some(found);
            }
        }
        let best = best?;
        let last = group.flavors.len().checked_sub(1);
        let tried_flavor_index = tried_flavor_index.filter(|_| tried_flavor_index != last);
        for (resource, (possibility, borrowing_level)) in best.resources {
            flavors.push(FlavorAssignment {
                resource,
                flavor: best.flavor,
                mode: possibility.into(),
                borrowing_level,
                tried_flavor_index,
            });
        }
        Some(best.mode)
    }

    /// Returns the position of the first flavor to try.
    fn first_flavor_index(&self, requests: &[(ResourceId, Amount)]) -> usize {
        let Some((first, _)) = requests.first() else {
            return 0;
        };
        let mut last_tried = self.assignment_request.last_tried_flavors.iter();
        last_tried
            .find(|(at, resource, _)| *at == self.pod_set_index && resource == first)
            .map_or(0, |(_, _, position)| position.saturating_add(1))
    }

    fn is_eligible(&mut self, flavor: FlavorId) -> bool {
        let pod_set = self.pod_set_index;
        let verdict = if self.pod_set.ineligible.contains(&flavor) {
            FlavorVerdict::Ineligible
        } else if !self.is_nominated(flavor) {
            FlavorVerdict::NotNominated
        } else {
            return true;
        };
        self.trace.record(|| Step::Flavor {
            pod_set,
            flavor,
            verdict,
        });
        false
    }

    fn is_nominated(&self, flavor: FlavorId) -> bool {
        self.assignment_request.allowed_flavors.is_none_or(|only| {
            let mut pod_sets = only.pod_sets.iter();
            pod_sets
                .find(|it| it.pod_set == self.pod_set_index)
                .is_some_and(|it| it.flavors.iter().any(|it| it.flavor == flavor))
        })
    }

    /// Evaluates a flavor: its mode is the worst mode of the resources.
    fn evaluate_flavor(&mut self, flavor: FlavorId, totals: &[(ResourceId, Amount)]) -> BestFlavor {
        let mut best = BestFlavor {
            flavor,
            granular_mode: (Possibility::Fit, 0),
            mode: Mode::Fit,
            resources: Vec::with_capacity(totals.len()),
        };
        for (resource, amount) in totals {
            let of = FlavorResource {
                flavor,
                resource: *resource,
            };
            let granular_mode = self.evaluate_resource(of, *amount);
            if best.resources.is_empty() || self.is_preferred(best.granular_mode, granular_mode) {
                best.granular_mode = granular_mode;
            }
            best.mode = best.mode.min(granular_mode.0.into());
            best.resources.push((*resource, granular_mode));
            if granular_mode.0 == Possibility::NoFit {
                break;
            }
        }
        if self.assignment_request.compatibility == Compatibility::Kueue {
            // With Kueue's preference order, a flavor can count as fitting although one resource does not fit.
            best.mode = best.granular_mode.0.into();
        } else {
            let worst = best
                .resources
                .iter()
                .map(|(_, granular_mode)| granular_mode.0)
                .min();
            best.granular_mode.0 = worst.unwrap_or(best.granular_mode.0);
        }
        let (possibility, borrowing_level) = best.granular_mode;
        if possibility != Possibility::NoFit {
            let pod_set = self.pod_set_index;
            self.trace.record(|| Step::Flavor {
                pod_set,
                flavor,
                verdict: FlavorVerdict::Possible {
                    possibility,
                    borrowing_level,
                },
            });
        }
        best
    }

    fn evaluate_resource(&mut self, of: FlavorResource, amount: Amount) -> GranularMode {
        let before = self.usage.binary_search_by_key(&of, |(of, _)| *of);
        let before = before.ok().and_then(|at| self.usage.get(at));
        let requested = amount.plus(before.map_or(Amount::ZERO, |(_, amount)| *amount));
        let pod_set = self.pod_set_index;
        let flavor = of.flavor;
        let node = self.view.tree.node(self.assignment_request.queue);
        let cell = node.cell(of);
        let potential = cell.map_or(Amount::ZERO, |cell| self.view.tree.cell(cell).potential);
        let Some(cell) = cell.filter(|_| requested <= potential) else {
            self.trace.record(|| Step::Flavor {
                pod_set,
                flavor,
                verdict: FlavorVerdict::ExceedsMaxQuota {
                    of,
                    requested,
                    potential,
                },
            });
            return (Possibility::NoFit, 0);
        };
        if let Some(gate) = &self.assignment_request.elastic_gate
            && let Some(verdict) = gate.rejection(of, requested)
        {
            self.trace.record(|| Step::Flavor {
                pod_set,
                flavor,
                verdict,
            });
            return (Possibility::NoFit, 0);
        }
        let (level, may_reclaim) = self.view.borrowing_level(cell, requested);
        let available = self.view.available(cell).or_zero();
        if requested <= available {
            return (Possibility::Fit, level);
        }
        let is_within_nominal = requested <= self.view.tree.cell(cell).nominal;
        if is_within_nominal || may_reclaim || self.may_preempt_while_borrowing() {
            let demand = Demand {
                of,
                cell,
                amount: requested,
            };
            let assignment_request = self.assignment_request;
            return self.oracle.possibility(
                self.view,
                assignment_request,
                demand,
                level,
                self.trace,
            );
        }
        self.trace.record(|| Step::Flavor {
            pod_set,
            flavor,
            verdict: FlavorVerdict::WaitingForQuota {
                of,
                requested,
                available,
            },
        });
        (Possibility::NoFit, level)
    }

    fn may_preempt_while_borrowing(&self) -> bool {
        let settings = self.assignment_request.settings;
        settings.preemption.borrow_within_cohort != BorrowWithinCohort::Never
            || self.assignment_request.is_fair
                && settings.preemption.reclaim_within_cohort != ReclaimWithinCohort::Never
    }

    /// Returns whether the next flavor is tried after this one.
    fn should_try_next_flavor(&self, (possibility, level): GranularMode) -> bool {
        let fungibility = &self.assignment_request.settings.fungibility;
        match possibility {
            // Unlike in KEP-582, a flavor without candidates always loses to a later one.
            Possibility::NoFit | Possibility::NoCandidates => return true,
            Possibility::Preempt | Possibility::Reclaim
                if fungibility.when_can_preempt == Fungibility::TryNextFlavor =>
            {
                return true;
            }
            _ => {}
        }
        level > 0 && fungibility.when_can_borrow == Fungibility::TryNextFlavor
    }

    /// Returns whether `a` is strictly better than `b`.
    fn is_preferred(&self, a: GranularMode, b: GranularMode) -> bool {
        let (possibility, level) = a;
        let (than, than_level) = b;
        if possibility <= Possibility::NoCandidates || than <= Possibility::NoCandidates {
            // Without candidates, the level decides only between equal possibilities.
            return possibility > than || possibility == than && level < than_level;
        }
        match self.assignment_request.settings.fungibility.preference {
            Preference::BorrowingOverPreemption => {
                possibility > than || possibility == than && level < than_level
            }
            Preference::PreemptionOverBorrowing => {
                level < than_level || level == than_level && possibility > than
            }
        }
    }
}
