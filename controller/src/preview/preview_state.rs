//! The objects of a cluster with the decisions that the controller is about to make.

use super::outcome::{Preview, PreviewedPods};
use super::unconfirmed::UnconfirmedDecisions;
use crate::job_adapters::JobKinds;
use crate::key::{Kind, ObjectKey};
use crate::pod_default_changes::{observe_limit_range, observe_runtime_class};
use crate::reconciler::{
    AdoptionHolds, Change, Input, TemplateInterner, adoption_needs_quota, inactive_message,
    namespace_mismatch,
};
use lockkeeper_api::{JobKind, Workload};
use lockkeeper_cluster_state::decision_text::flavor_verdict_text;
use lockkeeper_cluster_state::journal::mark_evicted;
use lockkeeper_cluster_state::pending_reason::not_queued_message;
use lockkeeper_cluster_state::{
    ClusterState, Completeness, FlavorSearches, WorkloadPhase, apply_reported_status,
    uncovered_resources_message, workload_key,
};
use lockkeeper_preemption::requeue::{RequeueSettings, may_admit};
use lockkeeper_preemption::{
    Decision, Entry, FlavorVerdict, NextDecision, Options, State, Step, Victim, WhatIf, WorkloadId,
    active_class_count,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most workloads in front of a workload that are counted.
const AHEAD_MAX: usize = 1_000;

/// The most flavors whose verdict an answer states.
const FLAVORS_MAX: usize = 3;

/// Why a workload waits in a tree of cohorts where running jobs are adopted.
const ADOPTION_RESERVES: &str =
    "lockkeeper adopt reserves quota in the same cohort, for at most two minutes";

/// Why a workload waits whose quota is about to be released.
const VICTIMS_RELEASE: &str = "preempted workloads have to release their quota first";

/// The settings of the controller that decisions depend on.
#[derive(Clone, Debug, Default)]
pub struct PreviewSettings {
    /// Scheduling options.
    pub options: Options,
    /// `waitForPodsReady`.
    pub requeue: RequeueSettings,
    /// Prefixes of the resources that need no quota.
    pub excluded_resource_prefixes: Vec<String>,
}

/// The objects of a cluster, with the decisions of its own cycles. Those that the controller does not write within ten seconds
/// are withdrawn.
#[derive(Debug)]
pub struct PreviewState {
    cluster: ClusterState,
    /// By `namespace/name`.
    workloads: BTreeMap<ObjectKey, Arc<Workload>>,
    /// Most workloads have the template of another one.
    templates: TemplateInterner,
    listed: BTreeSet<Kind>,
    declarations: BTreeMap<ObjectKey, Box<JobKind>>,
    job_kinds: JobKinds,
    searches: FlavorSearches,
    unconfirmed: UnconfirmedDecisions,
    adoption_holds: AdoptionHolds,
    /// Whether a cycle may find something to do.
    is_due: bool,
    /// Whether workloads are admitted one at a time (`waitForPodsReady.blockAdmission`).
    blocks_admission: bool,
    requeue: RequeueSettings,
}

impl PreviewState {
    /// A state without objects.
    #[must_use]
    pub fn new(settings: PreviewSettings) -> Self {
        let requeue = settings.requeue;
        let mut cluster =
            ClusterState::new(settings.options, requeue.clone(), Completeness::Complete);
        cluster.exclude_resources(settings.excluded_resource_prefixes);
        // As in the reconciler: an admission that is not written yet is the newest.
        cluster.state_mut().treat_new_as_newest();
        Self {
            cluster,
            workloads: BTreeMap::new(),
            templates: TemplateInterner::default(),
            listed: BTreeSet::new(),
            declarations: BTreeMap::new(),
            job_kinds: JobKinds::default(),
            searches: FlavorSearches::default(),
            unconfirmed: UnconfirmedDecisions::default(),
            adoption_holds: AdoptionHolds::default(),
            is_due: true,
            blocks_admission: requeue.is_enabled && requeue.block_admission,
            requeue,
        }
    }

    /// Whether the initial lists of all kinds in [`Kind::FIXED`] are complete.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        Kind::FIXED.iter().all(|kind| self.listed.contains(kind))
    }

    /// Whether its cycles have made decisions that no watch has shown yet.
    #[must_use]
    pub fn has_unconfirmed_decisions(&self) -> bool {
        !self.unconfirmed.is_empty()
    }

    /// Handles an input. Those of kinds outside [`Kind::FIXED`] have no effect, except declared kinds of jobs.
    pub fn handle_input(&mut self, now_ms: i64, input: Input) {
        self.cluster.set_now(now_ms);
        self.searches.reset_limits();
        self.is_due = true;
        let cluster = &mut self.cluster;
        match input {
            // A rejected object keeps its last valid version, as in the reconciler.
            Input::ClusterQueue(Change::Applied(it)) => {
                let _ = cluster.set_cluster_queue(Arc::from(it));
            }
            Input::ClusterQueue(Change::Deleted(key)) => cluster.remove_cluster_queue(key.name()),
            Input::Cohort(Change::Applied(it)) => {
                let _ = cluster.set_cohort(&it);
            }
            Input::Cohort(Change::Deleted(key)) => cluster.remove_cohort(key.name()),
            Input::LocalQueue(Change::Applied(it)) => cluster.set_local_queue(&it),
            Input::LocalQueue(Change::Deleted(key)) => {
                cluster.remove_local_queue(key.namespace(), key.name());
            }
            Input::ResourceFlavor(Change::Applied(it)) => cluster.set_resource_flavor(&it),
            Input::ResourceFlavor(Change::Deleted(key)) => {
                cluster.remove_resource_flavor(key.name());
            }
            Input::PriorityClass(Change::Applied(it)) => cluster.set_priority_class(&it),
            Input::PriorityClass(Change::Deleted(key)) => cluster.remove_priority_class(key.name()),
            Input::Namespace(Change::Applied(it)) => {
                let labels = it.metadata.labels.unwrap_or_default();
                cluster.set_namespace(it.metadata.name.as_deref().unwrap_or_default(), labels);
            }
            Input::Namespace(Change::Deleted(key)) => cluster.remove_namespace(key.name()),
            Input::LimitRange(change) => observe_limit_range(cluster, change),
            Input::RuntimeClass(change) => observe_runtime_class(cluster, change),
            Input::Workload(Change::Applied(mut it)) => {
                self.templates.intern(&mut it);
                self.set_workload(now_ms, Arc::from(it));
            }
            Input::Workload(Change::Deleted(key)) => {
                cluster.remove_workload(key.key());
                self.workloads.remove(&key);
                self.unconfirmed.remove(key.key());
                self.update_adoption(&key, now_ms);
            }
            Input::JobKind(Change::Applied(it)) => {
                let key = ObjectKey::from_metadata(&it.metadata);
                self.declarations.insert(key, it);
                self.declare_kinds();
            }
            Input::JobKind(Change::Deleted(key)) => {
                self.declarations.remove(&key);
                self.declare_kinds();
            }
            Input::Listed(kind) => {
                self.listed.insert(kind);
            }
            _ => {}
        }
    }

    /// The kinds of jobs: the built-in and the declared ones.
    #[must_use]
    pub const fn job_kinds(&self) -> &JobKinds {
        &self.job_kinds
    }

    /// Compiles all declarations. One with mistakes is left out.
    fn declare_kinds(&mut self) {
        self.job_kinds = JobKinds::default();
        for declaration in self.declarations.values() {
            let _ = self.job_kinds.declare_object(declaration);
        }
    }

    fn set_workload(&mut self, now_ms: i64, workload: Arc<Workload>) {
        let key = ObjectKey::from_metadata(&workload.metadata);
        self.unconfirmed.remove(key.key());
        let _ = self.cluster.set_workload(Arc::clone(&workload));
        let is_admitted = workload
            .status
            .as_ref()
            .is_some_and(|it| it.admission.is_some());
        if self.cluster.is_assumed(key.key()) && !is_admitted {
            // Another change came first: the controller decides again.
            self.cluster.revert_admission(key.key());
        }
        apply_reported_status(&mut self.cluster, &workload);
        self.workloads.insert(key.clone(), workload);
        self.update_adoption(&key, now_ms);
    }

    /// Follows the hold of an adoption. A preview does not know which admissions are under way, and takes the hold to begin
    /// with its request.
    fn update_adoption(&mut self, key: &ObjectKey, now_ms: i64) {
        let workload = self.workloads.get(key);
        let adoption = workload.filter(|it| adoption_needs_quota(it));
        let adoption = adoption.map(|it| &**it);
        let holds = &mut self.adoption_holds;
        self.is_due |= holds.update(&mut self.cluster, key, adoption, now_ms, |_, _| false);
    }

    /// Runs cycles until they change nothing, at most `cycles_max`. True if the state is settled: the controller has nothing to
    /// decide before the next input.
    pub fn settle(&mut self, now_ms: i64, cycles_max: usize) -> bool {
        self.cluster.set_now(now_ms);
        self.is_due |= self.unconfirmed.withdraw_expired(&mut self.cluster, now_ms);
        for key in self.adoption_holds.expired(now_ms) {
            self.update_adoption(&key, now_ms);
        }
        for _ in 0..cycles_max {
            if !self.is_due || self.is_blocked() {
                return true;
            }
            self.run_cycle(now_ms);
        }
        !self.is_due
    }

    /// Whether `blockAdmission` forbids admissions until the pods of all admitted workloads are ready.
    fn is_blocked(&self) -> bool {
        if !self.blocks_admission {
            return false;
        }
        let workloads = self.workloads.iter();
        let admitted = workloads.filter(|(key, it)| {
            let status = it.status.as_ref();
            status.is_some_and(|it| it.admission.is_some()) || self.cluster.is_assumed(key.key())
        });
        let admitted: Vec<_> = admitted
            .map(|(_, it)| self.cluster.lifecycle_state(it))
            .collect();
        !may_admit(&self.requeue, &admitted)
    }

    fn run_cycle(&mut self, now_ms: i64) {
        let cycle = self.cluster.next_cycle(now_ms, false);
        let mut has_changed = cycle.has_reactivated || !cycle.out_of_scope.is_empty();
        let mut has_admitted = false;
        let held = self.adoption_holds.trees(&self.cluster, now_ms);
        for entry in &cycle.entries {
            has_changed |= self.searches.record(self.cluster.state(), entry);
            if held.holds(self.cluster.state(), entry) {
                let key = self.cluster.state().workload_name(entry.workload);
                let key = key.to_owned();
                self.cluster.revert_admission(&key);
                continue;
            }
            match &entry.decision {
                Decision::Admit => {
                    let key = self
                        .cluster
                        .state()
                        .workload_name(entry.workload)
                        .to_owned();
                    if self.blocks_admission && has_admitted {
                        self.cluster.revert_admission(&key);
                        continue;
                    }
                    self.unconfirmed.insert(&key, now_ms);
                    has_admitted = true;
                    has_changed = true;
                }
                Decision::Preempt(victims) => has_changed |= self.evict(victims, now_ms),
                _ => {}
            }
        }
        has_changed |= self.searches.requeue(&mut self.cluster);
        self.is_due = has_changed;
    }

    /// Evicts victims without an earlier eviction; false if there are none.
    fn evict(&mut self, victims: &[Victim], now_ms: i64) -> bool {
        let mut has_new = false;
        for victim in victims {
            let state = self.cluster.state();
            let reservation = state.workload_view(victim.workload).reservation();
            if reservation.is_none_or(|it| it.is_evicted) {
                continue;
            }
            let key = state.workload_name(victim.workload).to_owned();
            if self.cluster.is_assumed(&key) {
                // Its admission is not written: the controller withdraws it.
                self.cluster.revert_admission(&key);
                self.unconfirmed.remove(&key);
            } else {
                mark_evicted(&mut self.cluster, victim.workload);
                self.unconfirmed.insert(&key, now_ms);
            }
            has_new = true;
        }
        has_new
    }

    /// What the controller will do with a workload that is being created; `None` if one of its name exists. Settle first. Costs
    /// a cycle, two if the workload waits for quota.
    pub fn preview(&mut self, now_ms: i64, workload: Workload) -> Option<Preview> {
        self.cluster.set_now(now_ms);
        let key = workload_key(&workload);
        if self.workloads.contains_key(&ObjectKey::from_key(&key)) {
            return None;
        }
        let workload = Arc::new(workload);
        let active_before = active_class_count(self.cluster.state());
        let preview = match self.cluster.set_workload(Arc::clone(&workload)) {
            Err(error) => Preview::Never {
                why: error.to_string(),
            },
            Ok(WorkloadPhase::NotQueued(reason)) => Preview::Never {
                why: not_queued_message(self.cluster.objects(), &workload, reason),
            },
            Ok(_) => self.preview_queued(now_ms, &key, &workload),
        };
        self.cluster.remove_workload(&key);
        // Its removal may have reactivated others. Heads that were active before repeat their decisions.
        self.is_due |= active_class_count(self.cluster.state()) != active_before;
        Some(preview)
    }

    fn preview_queued(&mut self, now_ms: i64, key: &str, workload: &Workload) -> Preview {
        let id = self.cluster.state().workload(key);
        let queue = id.and_then(|id| self.cluster.state().workload_view(id).queue());
        let (Some(id), Some(queue)) = (id, queue) else {
            return Preview::Never {
                why: "it is in no ClusterQueue".to_owned(),
            };
        };
        let cluster_queue = self.cluster.state().node_view(queue).name().to_owned();
        if let Some(why) = uncovered_resources_message(&self.cluster, workload) {
            return Preview::Never { why };
        }
        let object = self.cluster.objects().cluster_queue(&cluster_queue);
        let inactive = object.and_then(|it| inactive_message(it));
        let inactive = inactive.map_or_else(
            || format!("ClusterQueue {cluster_queue} is inactive"),
            str::to_owned,
        );
        let needs_nodes = object.is_some_and(|it| it.spec.places_on_nodes());
        let counted = AHEAD_MAX.saturating_add(1);
        let ahead = self
            .cluster
            .state()
            .node_view(queue)
            .count_ahead(id, counted);
        let waits = |why: String| Preview::Waits {
            cluster_queue,
            ahead: ahead.min(AHEAD_MAX),
            is_ahead_cut: ahead > AHEAD_MAX,
            why,
        };
        if self.is_blocked() {
            return waits(
                "the pods of another workload are not ready yet (blockAdmission)".to_owned(),
            );
        }
        let held = self.adoption_holds.trees(&self.cluster, now_ms);
        match WhatIf::new(self.cluster.state_mut()).next_decision(id, false) {
            NextDecision::OutOfScope => Preview::Never {
                why: namespace_mismatch().message,
            },
            NextDecision::Inactive => Preview::Never { why: inactive },
            NextDecision::NotConsidered if held.contains(self.cluster.state(), queue) => {
                waits(ADOPTION_RESERVES.to_owned())
            }
            NextDecision::NotConsidered => waits(String::new()),
            NextDecision::Decided(entry) if held.holds(self.cluster.state(), &entry) => {
                waits(ADOPTION_RESERVES.to_owned())
            }
            NextDecision::Decided(entry) => match &entry.decision {
                Decision::Admit => starts(self.cluster.state(), &entry, needs_nodes),
                Decision::Preempt(victims) => preempts(self.cluster.state(), id, victims)
                    .unwrap_or_else(|| waits(VICTIMS_RELEASE.to_owned())),
                Decision::DeferredFit => waits(VICTIMS_RELEASE.to_owned()),
                Decision::Skip(_) => waits("workloads ahead of it get the quota".to_owned()),
                Decision::NoCandidates | Decision::NoFit => {
                    match quota_verdict(self.cluster.state_mut(), id) {
                        QuotaVerdict::Short(why) => waits(why),
                        QuotaVerdict::TooLarge(why) => Preview::Never { why },
                    }
                }
            },
        }
    }
}

fn starts(state: &State, entry: &Entry, needs_nodes: bool) -> Preview {
    let pod_sets = &entry.assignment().pod_sets;
    let flavors = pod_sets.iter().flat_map(|it| &it.flavors);
    let flavors: BTreeSet<&str> = flavors.map(|it| state.flavor_name(it.flavor)).collect();
    let admitted: i64 = pod_sets.iter().map(|it| it.count).sum();
    let requested = state.workload_view(entry.workload).pod_sets().iter();
    let requested: i64 = requested.map(|it| it.count).sum();
    Preview::Starts {
        flavors: flavors.into_iter().map(str::to_owned).collect(),
        pods: (admitted < requested).then_some(PreviewedPods {
            admitted,
            requested,
        }),
        needs_nodes,
    }
}

/// `None` if all victims are being evicted already.
fn preempts(state: &State, id: WorkloadId, victims: &[Victim]) -> Option<Preview> {
    let namespace = |id: WorkloadId| {
        ObjectKey::from_key(state.workload_name(id))
            .namespace()
            .to_owned()
    };
    let own = namespace(id);
    let is_evicted = |id: WorkloadId| {
        let reservation = state.workload_view(id).reservation();
        reservation.is_none_or(|it| it.is_evicted)
    };
    let victims = victims.iter().map(|it| it.workload);
    let victims = victims.filter(|it| !is_evicted(*it));
    let (own, other): (Vec<_>, Vec<_>) = victims.partition(|it| namespace(*it) == own);
    let preempts = Preview::Preempts {
        in_namespace: own.len(),
        elsewhere: other.len(),
    };
    (!own.is_empty() || !other.is_empty()).then_some(preempts)
}

/// Why a workload has no quota.
enum QuotaVerdict {
    /// Not enough quota is free.
    Short(String),
    /// No flavor could ever hold it.
    TooLarge(String),
}

/// Why the next cycle does not admit a workload, by flavor. The verdicts name no other workload.
fn quota_verdict(state: &mut State, id: WorkloadId) -> QuotaVerdict {
    let NextDecision::Decided(entry) = WhatIf::new(state).next_decision(id, true) else {
        return QuotaVerdict::Short(String::new());
    };
    let mut texts: Vec<String> = Vec::new();
    // By pod set: whether a flavor is too small, and whether another could hold it.
    let mut pod_sets: BTreeMap<usize, (bool, bool)> = BTreeMap::new();
    for step in entry.trace.steps() {
        let Step::Flavor {
            pod_set,
            flavor,
            verdict,
        } = step
        else {
            continue;
        };
        let (is_too_large, is_possible) = pod_sets.entry(*pod_set).or_default();
        match verdict {
            FlavorVerdict::NotNominated => continue,
            FlavorVerdict::Ineligible => {}
            FlavorVerdict::ExceedsMaxQuota { .. } => *is_too_large = true,
            _ => *is_possible = true,
        }
        let verdict = flavor_verdict_text(state, verdict);
        let text = format!("flavor {}: {verdict}", state.flavor_name(*flavor));
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.truncate(FLAVORS_MAX);
    let why = texts.join("; ");
    let mut pod_sets = pod_sets.values();
    if pod_sets.any(|(is_too_large, is_possible)| *is_too_large && !is_possible) {
        QuotaVerdict::TooLarge(why)
    } else {
        QuotaVerdict::Short(why)
    }
}
