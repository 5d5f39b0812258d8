//! Nomination: flavors and victims for one head, as if no other workload were pending.

use crate::amount::Amount;
use crate::assignment::{Assignment, Mode};
use crate::assignment_request::{AssignmentRequest, Oracle, VictimSearchOracle, WithoutVictims};
use crate::elastic::ElasticGate;
use crate::flavor_assigner::assign;
use crate::ids::{CellId, FlavorId, FlavorResource, NodeId, ResourceId, WorkloadId};
use crate::known_nomination::KnownNomination;
use crate::non_preemptible::NonPreemptibleUsage;
use crate::policy::{Algorithm, Preemption, QueueingStrategy};
use crate::queue::{Queue, QueueSettings};
use crate::quota::{ResourceGroup, View};
use crate::state::{State, victim_protection};
use crate::trace::{Step, Trace};
use crate::victim::Victim;
use crate::victims::{self, Demand, SearchContext};
use crate::workload_table::WorkloadRow;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A head with its assignment and victims.
#[derive(Debug)]
pub(crate) struct NominatedEntry {
    pub(crate) workload: WorkloadId,
    pub(crate) queue: NodeId,
    pub(crate) assignment: Arc<Assignment>,
    pub(crate) victims: Vec<Victim>,
    /// The last flavors tried, by pod set and resource: its next search continues behind them.
    pub(crate) tried_flavors: Vec<(usize, ResourceId, usize)>,
    /// The preemptors that it displaces: it uses the quota held for them.
    pub(crate) displaced: Vec<WorkloadId>,
    /// The second at which a protected candidate reaches its minimum run time, or it has waited long enough itself.
    pub(crate) next_candidate_at_s: Option<i64>,
    /// The version of the tree with which the nomination may be reused; `None` if it may not.
    pub(crate) reusable_version: Option<u64>,
    pub(crate) trace: Trace,
}

impl NominatedEntry {
    /// Returns whether it fits, now or once its victims have released their quota.
    pub(super) fn fits_or_preempts(&self) -> bool {
        is_sufficient(&self.assignment, &self.victims)
    }
}

/// The input for the nomination of one workload.
pub(crate) struct NominationContext<'a> {
    state: &'a State,
    id: WorkloadId,
    row: &'a WorkloadRow,
    queue: &'a Queue,
    /// Preemptors whose held quota counts as free.
    displaced: &'a [WorkloadId],
    /// The second at which a protected candidate reaches its minimum run time, or it has waited long enough itself.
    next_candidate_at_s: Cell<Option<i64>>,
}

impl<'a> NominationContext<'a> {
    pub(crate) fn for_workload(state: &'a State, id: WorkloadId) -> Option<Self> {
        let record = state.workloads.get(id)?;
        Some(Self {
            state,
            id,
            row: record,
            queue: state.queues.get(record.queue.index())?,
            displaced: &[],
            next_candidate_at_s: Cell::new(None),
        })
    }

    /// Returns the same context with the quota held for these preemptors counted as free.
    pub(super) fn displacing<'b>(&self, displaced: &'b [WorkloadId]) -> NominationContext<'b>
    where
        'a: 'b,
    {
        NominationContext {
            displaced,
            next_candidate_at_s: self.next_candidate_at_s.clone(),
            ..*self
        }
    }

    pub(super) fn state(&self) -> &'a State {
        self.state
    }

    pub(super) fn known_nomination(&self) -> Option<&'a KnownNomination> {
        self.row.nomination.as_deref()
    }

    /// The flavors of the queue that some pod set may use; a flavor may occur several times.
    pub(super) fn usable_flavors(&self) -> impl Iterator<Item = FlavorId> {
        let groups = self.queue.settings.groups.iter();
        let flavors = groups.flat_map(|group| &group.flavors).map(|it| it.flavor);
        flavors.filter(|flavor| {
            let mut pod_sets = self.row.pod_sets.iter();
            pod_sets.any(|it| !it.ineligible.contains(flavor))
        })
    }

    pub(super) fn id(&self) -> WorkloadId {
        self.id
    }

    pub(super) fn queue(&self) -> NodeId {
        self.row.queue
    }

    pub(super) fn priority(&self) -> i32 {
        self.row.priority
    }

    pub(super) fn is_strict(&self) -> bool {
        self.queue.settings.strategy == QueueingStrategy::StrictFifo
    }

    pub(super) fn policy(&self) -> Preemption {
        self.queue.settings.preemption
    }

    pub(super) fn may_preempt(&self) -> bool {
        self.settings().may_preempt(self.row.preemption_labels)
    }

    /// The second from which it may preempt; `None` if it has waited long enough.
    pub(super) fn delayed_until_s(&self) -> Option<i64> {
        let delay_s = self.settings().preemption.limits.delay_s?;
        let until_s = self.row.waiting_since_s.saturating_add(delay_s);
        (self.state.now_s < until_s).then_some(until_s)
    }

    /// Assigns flavors to all pods, and finds victims if needed. If that fails, tries fewer pods, if partial admission
    /// is enabled.
    ///
    /// `removed` are workloads that count as removed. `only` limits the flavors to those of an earlier nomination.
    pub(crate) fn nominate(
        &self,
        view: &mut View<'_>,
        removed: &BTreeSet<WorkloadId>,
        only: Option<&Assignment>,
        mut trace: Trace,
    ) -> NominatedEntry {
        // As in Kueue, a second nomination starts at the first flavor.
        let last_tried_flavors = if only.is_none() {
            self.last_tried_flavors()
        } else {
            &[]
        };
        let attempt = |view: &mut View<'_>, counts: &[i64], trace: &mut Trace| {
            self.attempt(view, removed, only, last_tried_flavors, counts, trace)
        };
        // Without counts, all pods are assigned.
        let full = attempt(view, &[], &mut trace);
        let found = if is_sufficient(&full.0, &full.1) {
            full
        } else {
            let fewer = |counts: &[i64]| {
                trace.record(|| Step::FewerPods {
                    counts: counts.to_vec(),
                });
                attempt(view, counts, &mut trace)
            };
            // Kueue reports the assignment of all pods if no smaller number is sufficient.
            self.reduce_pods(fewer).unwrap_or((full.0, Vec::new()))
        };
        let (assignment, victims) = found;
        NominatedEntry {
            workload: self.id,
            queue: self.row.queue,
            tried_flavors: assignment.last_tried_flavors(),
            assignment: Arc::new(assignment),
            victims,
            displaced: Vec::new(),
            next_candidate_at_s: self.next_candidate_at_s.get(),
            reusable_version: None,
            trace,
        }
    }

    /// Finds the smallest reduction of the pods that is sufficient, by binary search (Kueue `PodSetReducer`).
    fn reduce_pods(
        &self,
        mut attempt: impl FnMut(&[i64]) -> (Assignment, Vec<Victim>),
    ) -> Option<(Assignment, Vec<Victim>)> {
        if self.state.options.disable_partial_admission {
            return None;
        }
        let pod_sets = &self.row.pod_sets;
        let spare = |count: i64, least: Option<i64>| {
            least.map_or(0, |least| count.saturating_sub(least).max(0))
        };
        let spares: Vec<i64> = pod_sets
            .iter()
            .map(|it| spare(it.count, it.count_min))
            .collect();
        let total = spares.iter().fold(0_i64, |sum, it| sum.saturating_add(*it));
        if total == 0 {
            return None;
        }
        let counts = |reduction: i64| -> Vec<i64> {
            let less = |spare: i64| {
                // The product of two counts may exceed 64 bits.
                let product = i128::from(spare).saturating_mul(i128::from(reduction));
                let less = product.checked_div(i128::from(total)).unwrap_or_default();
                i64::try_from(less).unwrap_or(i64::MAX)
            };
            let both = pod_sets.iter().zip(&spares);
            both.map(|(it, spare)| it.count.saturating_sub(less(*spare)))
                .collect()
        };
        // As Go's `sort.Search`: assumes that every larger reduction is sufficient too.
        let (mut low, mut high) = (0_i64, total.saturating_add(1));
        let mut best = None;
        while low < high {
            let middle = low.midpoint(high);
            let found = attempt(&counts(middle));
            if is_sufficient(&found.0, &found.1) {
                best = Some((middle, found));
                high = middle;
            } else {
                low = middle.saturating_add(1);
            }
        }
        best.filter(|(at, _)| *at == low).map(|(_, found)| found)
    }

    fn attempt(
        &self,
        view: &mut View<'_>,
        removed: &BTreeSet<WorkloadId>,
        only: Option<&Assignment>,
        last_tried_flavors: &[(usize, ResourceId, usize)],
        counts: &[i64],
        trace: &mut Trace,
    ) -> (Assignment, Vec<Victim>) {
        let context = self.search_context(removed);
        let mut assignment_request = self.assignment_request(counts);
        assignment_request.allowed_flavors = only;
        assignment_request.last_tried_flavors = last_tried_flavors;
        let mut oracle = VictimSearchOracle { context: &context };
        let assignment = assign(view, &mut oracle, &assignment_request, trace);
        if assignment.mode != Mode::Preempt {
            return (assignment, Vec::new());
        }
        // `needs` are the parts in mode Preempt; the request includes those that fit, as in Kueue.
        let needs = assignment.needs();
        let gate = assignment_request.elastic_gate.as_ref();
        let request = demands(view, &assignment.usage, self.row.queue, gate);
        let preemptor = assignment_request.preemptor(&needs, &request);
        let victims = victims::search(view, &context, &preemptor, trace);
        (assignment, victims)
    }

    /// Assigns flavors with free quota to all pods, from the first flavor on. Never searches for victims.
    pub(super) fn assign_free_quota(&self, view: &mut View<'_>) -> Assignment {
        let pod_sets = self.row.pod_sets.iter();
        let counts: Vec<i64> = pod_sets.map(|pod_set| pod_set.count).collect();
        let assignment_request = self.assignment_request(&counts);
        assign(
            view,
            &mut WithoutVictims,
            &assignment_request,
            &mut Trace::off(),
        )
    }

    /// The requests of all pods at the cells of the queue, if each of its resource groups has one flavor, so that no search for
    /// flavors is needed. The number of pods is left out.
    pub(super) fn only_demands(&self, view: &View<'_>) -> Option<Vec<(CellId, Amount)>> {
        let groups = &self.settings().groups;
        let node = view.tree.node(self.row.queue);
        let requests = self.row.pod_sets.iter().flat_map(|it| &it.requests);
        let mut demands: BTreeMap<CellId, Amount> = BTreeMap::new();
        for (resource, amount) in requests.filter(|(it, _)| *it != ResourceId::PODS) {
            let group = groups.iter().find(|it| it.resources.contains(resource))?;
            let [only] = group.flavors.as_slice() else {
                return None;
            };
            let cell = node.cell(FlavorResource {
                flavor: only.flavor,
                resource: *resource,
            })?;
            let sum = demands.entry(cell).or_default();
            *sum = sum.plus(*amount);
        }
        let has_one = |it: &ResourceGroup| it.flavors.len() == 1;
        let is_fixed = groups.iter().all(has_one);
        is_fixed.then(|| demands.into_iter().collect())
    }

    /// Assigns flavors to all pods.
    pub(crate) fn assign(
        &self,
        view: &mut View<'_>,
        oracle: Option<&mut dyn Oracle>,
        trace: &mut Trace,
    ) -> Assignment {
        let removed = BTreeSet::new();
        let context = self.search_context(&removed);
        let pod_sets = self.row.pod_sets.iter();
        let counts: Vec<i64> = pod_sets.map(|pod_set| pod_set.count).collect();
        let assignment_request = self.assignment_request(&counts);
        match oracle {
            Some(oracle) => assign(view, oracle, &assignment_request, trace),
            None => assign(
                view,
                &mut VictimSearchOracle { context: &context },
                &assignment_request,
                trace,
            ),
        }
    }

    /// Searches for the victims for a request.
    pub(crate) fn search(
        &self,
        view: &mut View<'_>,
        removed: &BTreeSet<WorkloadId>,
        needs: &[FlavorResource],
        request: &[Demand],
        trace: &mut Trace,
    ) -> Vec<Victim> {
        let assignment_request = self.assignment_request(&[]);
        let preemptor = assignment_request.preemptor(needs, request);
        victims::search(view, &self.search_context(removed), &preemptor, trace)
    }

    fn search_context<'b>(&'b self, removed: &'b BTreeSet<WorkloadId>) -> SearchContext<'b>
    where
        'a: 'b,
    {
        SearchContext {
            index: &self.state.admitted_index,
            admitted: &self.state.workloads,
            algorithm: &self.state.options.algorithm,
            kueue_bugs: self.state.options.kueue_bugs,
            removed,
            protection: victim_protection(
                self.state,
                self.id,
                self.displaced,
                &self.next_candidate_at_s,
            ),
        }
    }

    fn assignment_request<'b>(&self, counts: &'b [i64]) -> AssignmentRequest<'b>
    where
        'a: 'b,
    {
        let options = &self.state.options;
        AssignmentRequest {
            queue: self.row.queue,
            settings: self.settings(),
            priority: self.row.priority,
            order_time: self.row.order_time,
            pod_sets: &self.row.pod_sets,
            counts,
            last_tried_flavors: &[],
            allowed_flavors: None,
            compatibility: options.compatibility,
            is_fair: matches!(options.algorithm, Algorithm::FairSharing(_)),
            may_preempt: self.may_preempt(),
            delayed_until_s: self.delayed_until_s(),
            elastic_gate: self.elastic_gate(),
        }
    }

    fn elastic_gate(&self) -> Option<ElasticGate<'a>> {
        static NOTHING: NonPreemptibleUsage = NonPreemptibleUsage::EMPTY;
        let class = self
            .settings()
            .elastic?
            .preemptibility(self.row.preemption_labels);
        Some(ElasticGate {
            preemptibility: class,
            queue: self.row.queue,
            settings: self.settings(),
            non_preemptible: self.queue.non_preemptible.as_deref().unwrap_or(&NOTHING),
            tree: &self.state.tree,
            usage: &self.state.usage,
        })
    }

    fn settings(&self) -> &'a QueueSettings {
        &self.queue.settings
    }

    /// Returns the last flavors tried; none if quota of the queue may have become free since.
    pub(super) fn last_tried_flavors(&self) -> &'a [(usize, ResourceId, usize)] {
        let Some(progress) = &self.row.last_assignment else {
            return &[];
        };
        // Kueue gate `FlavorFungibilityPreserveScanProgress`: the result of the last cycle is used
        // even if the generation has changed.
        let is_fresh = progress.cycle.saturating_add(1) >= self.state.cycle;
        if is_fresh || progress.generation >= self.queue.generation {
            &progress.tried_flavors
        } else {
            &[]
        }
    }
}

/// Converts usage into demands at the cells of the queue. Zero amounts and missing cells are left out.
pub(crate) fn demands(
    view: &View<'_>,
    usage: &[(FlavorResource, Amount)],
    queue: NodeId,
    gate: Option<&ElasticGate<'_>>,
) -> Vec<Demand> {
    let node = view.tree.node(queue);
    usage
        .iter()
        .filter(|(_, amount)| amount.get() != 0)
        .filter_map(|(of, amount)| {
            let cell = node.cell(*of)?;
            Some(Demand {
                of: *of,
                cell,
                amount: *amount,
                own_usage_max: gate.and_then(|it| it.own_usage_max(view, cell, *of, *amount)),
            })
        })
        .collect()
}

fn is_sufficient(assignment: &Assignment, victims: &[Victim]) -> bool {
    match assignment.mode {
        Mode::Fit => true,
        Mode::Preempt => !victims.is_empty(),
        Mode::NoFit => false,
    }
}
