//! Assigns flavors to a workload, with preemption if needed.
//!
//! Source: Kueue `pkg/scheduler/flavorassigner`, KEP-83 "Flavor assignment", KEP-582 (fungibility).
//! Pod sets are processed in order; for each, every resource group of the queue once, with its flavors in order.
//!
//! Unlike in the documents, borrowing has a level: the height of the node that lends the quota.

use crate::amount::Amount;
use crate::assignment::{Assignment, FlavorAssignment, Mode, PodSet, PodSetAssignment};
use crate::assignment_request::{AssignmentRequest, Oracle};
use crate::ids::{CellId, FlavorId, FlavorResource, ResourceId};
use crate::policy::{
    BorrowWithinCohort, Compatibility, Fungibility, Preference, ReclaimWithinCohort,
};
use crate::queue::QueueSettings;
use crate::quota::{ResourceGroup, View};
use crate::quota_comparison::{ComparedResource, QuotaOutcome};
use crate::trace::{FlavorVerdict, Possibility, Step, Trace};
use crate::victims::Demand;

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
            compared: Vec::new(),
            spare: Vec::new(),
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
    /// The resources of the current flavor. Reused to save allocations, as is `spare`.
    compared: Vec<ComparedResource>,
    /// An empty vector for the resources of a [`BestFlavor`].
    spare: Vec<(ResourceId, GranularMode)>,
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
                let pod_set = self.pod_set_index;
                self.trace
                    .record(|| Step::ResourceNotCovered { pod_set, resource });
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
            let mut found = self.evaluate_flavor(quotas.flavor, &requests);
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
            } else {
                found.resources.clear();
                self.spare = found.resources;
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
            resources: std::mem::take(&mut self.spare),
        };
        if !self.compare_quota(flavor, totals) {
            best.granular_mode.0 = Possibility::NoFit;
            best.mode = Mode::NoFit;
            return best;
        }
        for at in 0..totals.len() {
            let Some(compared) = self.compared.get(at).copied() else {
                continue;
            };
            let granular_mode = self.evaluate_resource(compared);
            if best.resources.is_empty() || self.is_preferred(best.granular_mode, granular_mode) {
                best.granular_mode = granular_mode;
            }
            best.mode = best.mode.min(granular_mode.0.into());
            best.resources.push((compared.of.resource, granular_mode));
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

    /// Compares the requests with the quota of a flavor. Returns false if a resource fits neither now nor after
    /// preemption: then the searches for victims for the other resources are in vain. A trace shows them nevertheless.
    fn compare_quota(&mut self, flavor: FlavorId, totals: &[(ResourceId, Amount)]) -> bool {
        let queue = self.assignment_request.queue;
        let cells = self.view.tree.node(queue).flavor_cells(flavor);
        let may_give_up = !self.trace.is_on() && self.assignment_request.elastic_gate.is_none();
        self.compared.clear();
        for (resource, amount) in totals {
            let of = FlavorResource {
                flavor,
                resource: *resource,
            };
            let mut cells = cells.iter();
            let cell = cells.find(|(it, _)| it.resource == of.resource);
            let compared = self.compare_resource(of, cell.map(|(_, cell)| *cell), *amount);
            if may_give_up && !compared.has_chance() {
                return false;
            }
            self.compared.push(compared);
        }
        true
    }

    fn compare_resource(
        &self,
        of: FlavorResource,
        cell: Option<CellId>,
        amount: Amount,
    ) -> ComparedResource {
        let before = self.usage.binary_search_by_key(&of, |(of, _)| *of);
        let before = before.ok().and_then(|at| self.usage.get(at));
        let requested = amount.plus(before.map_or(Amount::ZERO, |(_, amount)| *amount));
        let may_borrow = self.may_preempt_while_borrowing();
        ComparedResource::new(self.view, (of, cell), requested, may_borrow)
    }

    fn evaluate_resource(&mut self, compared: ComparedResource) -> GranularMode {
        let ComparedResource { of, level, .. } = compared;
        let (pod_set, flavor) = (self.pod_set_index, of.flavor);
        if let Some(cell) = compared.cell {
            let gate = self.assignment_request.elastic_gate.as_ref();
            let mut demand = Demand {
                of,
                cell,
                amount: compared.requested,
                own_usage_max: None,
            };
            if let Some(verdict) = gate.and_then(|it| it.rejection(of, compared.requested)) {
                demand.own_usage_max =
                    gate.and_then(|it| it.own_usage_max(self.view, cell, of, compared.requested));
                return self.preempt_within_max(demand, level, verdict);
            }
            match compared.outcome {
                QuotaOutcome::Fit => return (Possibility::Fit, level),
                QuotaOutcome::MayPreempt => return self.search_victims(demand, level),
                QuotaOutcome::Waits { .. } | QuotaOutcome::ExceedsMax { .. } => {}
            }
        }
        self.trace.record(|| Step::Flavor {
            pod_set,
            flavor,
            verdict: compared.verdict(),
        });
        (Possibility::NoFit, level)
    }

    /// Searches for victims of an elastic queue at its limit: only preemption in the queue itself can help, and only a
    /// preemptible workload that may trigger it. Otherwise the verdict of the gate stays.
    fn preempt_within_max(
        &mut self,
        demand: Demand,
        level: u32,
        verdict: FlavorVerdict,
    ) -> GranularMode {
        if demand.own_usage_max.is_some() && self.assignment_request.may_preempt {
            let found = self.search_victims(demand, level);
            if found.0 > Possibility::NoCandidates {
                return found;
            }
        }
        let (pod_set, flavor) = (self.pod_set_index, demand.of.flavor);
        self.trace.record(|| Step::Flavor {
            pod_set,
            flavor,
            verdict,
        });
        (Possibility::NoFit, 0)
    }

    fn search_victims(&mut self, demand: Demand, level: u32) -> GranularMode {
        let assignment_request = self.assignment_request;
        self.oracle
            .possibility(self.view, assignment_request, demand, level, self.trace)
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
