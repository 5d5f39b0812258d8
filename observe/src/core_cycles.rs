//! Runs scheduling cycles of the core on a state.

use crate::decision::{KueueDecision, What, admission_text, is_same_admission, victims_text};
use lockkeeper_cluster_state::pending_reason::decision_message;
use lockkeeper_cluster_state::{ClusterState, FlavorSearches, admission};
use lockkeeper_preemption::{Decision, Entry, State, Victim};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most cycles until the decision on a workload.
const CYCLES_MAX: usize = 256;

/// The decision of the core on one workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CoreDecision {
    /// As Kueue.
    Same,
    /// It preempts a part of the victims of Kueue, and no others.
    PartOfVictims(BTreeSet<Arc<str>>),
    /// Another decision, as text.
    Other(String),
    /// No cycle considers the workload.
    NotConsidered,
}

/// A decision of the core on another workload.
#[derive(Clone, Debug)]
pub(crate) struct OtherDecision {
    /// The workload.
    pub(crate) key: Arc<str>,
    pub(crate) action: Action,
}

/// A decision that changes quota.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// The workload is admitted.
    Admission,
    /// These workloads are preempted for it.
    Preemption(BTreeSet<Arc<str>>),
}

/// The decision of the core on a workload, and what came before.
#[derive(Clone, Debug)]
pub(crate) struct Decided {
    pub(crate) decision: CoreDecision,
    /// The workloads that are admitted or preempt before, in order.
    pub(crate) before: Vec<OtherDecision>,
    /// How many of them are so in the first cycle that has any.
    pub(crate) in_first_cycle: usize,
    /// The workloads that were heads of their queues until then, and do not fit.
    pub(crate) unfit: BTreeSet<Arc<str>>,
}

/// Runs cycles until the core decides on the workload of `wanted`, or no cycle changes anything. `is_traced` adds the reason
/// to the text of another decision.
pub(crate) fn decide(
    cluster: &mut ClusterState,
    wanted: &KueueDecision,
    is_traced: bool,
) -> Decided {
    let now_ms = wanted.decided_s.saturating_mul(1000);
    let mut decision = CoreDecision::NotConsidered;
    let mut before = Vec::new();
    let mut unfit = BTreeSet::new();
    let mut in_first_cycle = None;
    let mut searches = FlavorSearches::default();
    for _ in 0..CYCLES_MAX {
        let cycle = cluster.next_cycle(now_ms, is_traced);
        let mut has_progress = cycle.has_reactivated || !cycle.out_of_scope.is_empty();
        for entry in &cycle.entries {
            let name: Arc<str> = Arc::from(cluster.state().workload_name(entry.workload));
            let is_wanted = name == wanted.key;
            if is_wanted {
                decision = compare(cluster.state(), entry, wanted);
                let is_final = !matches!(decision, CoreDecision::Other(_))
                    || matches!(entry.decision, Decision::Admit);
                if is_final || preempts(cluster.state(), &entry.decision) {
                    return Decided {
                        decision,
                        in_first_cycle: in_first_cycle.unwrap_or(before.len()),
                        before,
                        unfit,
                    };
                }
            }
            if let Some(action) = action(cluster.state(), &entry.decision) {
                evict_victims(cluster, &entry.decision);
                before.push(OtherDecision { key: name, action });
                has_progress = true;
            } else if !is_wanted
                && matches!(entry.decision, Decision::NoFit | Decision::NoCandidates)
            {
                unfit.insert(name);
            }
            has_progress |= searches.record(cluster.state(), entry);
        }
        // A cycle without a decision only removes workloads from the heads of their queues.
        if !before.is_empty() {
            in_first_cycle.get_or_insert(before.len());
        }
        has_progress |= searches.requeue(cluster);
        if !has_progress {
            break;
        }
    }
    Decided {
        decision,
        in_first_cycle: in_first_cycle.unwrap_or_default(),
        before,
        unfit,
    }
}

/// A cycle.
#[derive(Clone, Debug)]
pub(crate) struct DecidedCycle {
    /// The decision on the workload of interest.
    pub(crate) decision: CoreDecision,
    /// The decisions on other workloads; on this one, too, if it is another decision.
    pub(crate) others: Vec<OtherDecision>,
}

/// Runs one cycle, and compares its decision on the workload of `wanted`.
pub(crate) fn decided_cycle(
    cluster: &mut ClusterState,
    second: i64,
    wanted: &KueueDecision,
) -> DecidedCycle {
    let cycle = cluster.next_cycle(second.saturating_mul(1000), false);
    let mut decision = CoreDecision::NotConsidered;
    let mut others = Vec::new();
    for entry in &cycle.entries {
        let key: Arc<str> = Arc::from(cluster.state().workload_name(entry.workload));
        if key == wanted.key {
            decision = compare(cluster.state(), entry, wanted);
            match decision {
                CoreDecision::Same => break,
                CoreDecision::PartOfVictims(_) => {
                    evict_victims(cluster, &entry.decision);
                    continue;
                }
                CoreDecision::Other(_) | CoreDecision::NotConsidered => {}
            }
        }
        if let Some(action) = action(cluster.state(), &entry.decision) {
            evict_victims(cluster, &entry.decision);
            others.push(OtherDecision { key, action });
        }
    }
    DecidedCycle { decision, others }
}

/// The workloads that the core admits or for which it preempts on a state, with the decision as text.
pub(crate) fn all_decisions(cluster: &mut ClusterState, now_ms: i64) -> BTreeMap<Arc<str>, String> {
    let mut found = BTreeMap::new();
    let mut searches = FlavorSearches::default();
    for _ in 0..CYCLES_MAX {
        let cycle = cluster.next_cycle(now_ms, false);
        let mut has_progress = cycle.has_reactivated || !cycle.out_of_scope.is_empty();
        for entry in &cycle.entries {
            if preempts(cluster.state(), &entry.decision)
                || matches!(entry.decision, Decision::Admit)
            {
                let name: Arc<str> = Arc::from(cluster.state().workload_name(entry.workload));
                found
                    .entry(name)
                    .or_insert_with(|| decision_text(cluster.state(), entry));
                evict_victims(cluster, &entry.decision);
                has_progress = true;
            }
            has_progress |= searches.record(cluster.state(), entry);
        }
        has_progress |= searches.requeue(cluster);
        if !has_progress {
            break;
        }
    }
    found
}

/// The victims of a decision that are not evicted yet, with the reasons.
fn new_victims(state: &State, victims: &[Victim]) -> BTreeMap<Arc<str>, String> {
    let victims = victims.iter().filter(|it| {
        let reservation = state.workload_view(it.workload).reservation();
        reservation.is_some_and(|it| !it.is_evicted)
    });
    let victims = victims.map(|it| {
        let name = Arc::from(state.workload_name(it.workload));
        (name, it.reason.as_str().to_owned())
    });
    victims.collect()
}

/// What a decision changes; `None` if it changes no quota.
fn action(state: &State, decision: &Decision) -> Option<Action> {
    match decision {
        Decision::Admit => Some(Action::Admission),
        Decision::Preempt(victims) => {
            let victims: BTreeSet<Arc<str>> = new_victims(state, victims).into_keys().collect();
            (!victims.is_empty()).then_some(Action::Preemption(victims))
        }
        _ => None,
    }
}

fn preempts(state: &State, decision: &Decision) -> bool {
    match decision {
        Decision::Preempt(victims) => !new_victims(state, victims).is_empty(),
        _ => false,
    }
}

/// Marks the victims as evicted: the next cycle does not preempt them again.
fn evict_victims(cluster: &mut ClusterState, decision: &Decision) {
    if let Decision::Preempt(victims) = decision {
        for victim in victims {
            cluster.state_mut().mark_evicted(victim.workload);
        }
    }
}

fn compare(state: &State, entry: &Entry, wanted: &KueueDecision) -> CoreDecision {
    let other = || CoreDecision::Other(decision_text(state, entry));
    match (&entry.decision, &wanted.what) {
        (Decision::Admit, What::Admission(given)) => {
            let own = admission(state, entry.workload, entry.assignment());
            if own.is_some_and(|it| is_same_admission(&it, given)) {
                CoreDecision::Same
            } else {
                other()
            }
        }
        (Decision::Preempt(victims), What::Preemption(given)) => {
            let own = new_victims(state, victims);
            if own == *given {
                CoreDecision::Same
            } else if !own.is_empty() && own.iter().all(|(key, why)| given.get(key) == Some(why)) {
                CoreDecision::PartOfVictims(own.into_keys().collect())
            } else {
                other()
            }
        }
        _ => other(),
    }
}

/// A decision as text.
pub(crate) fn decision_text(state: &State, entry: &Entry) -> String {
    match &entry.decision {
        Decision::Admit => {
            let own = admission(state, entry.workload, entry.assignment());
            let own = own.map(|it| admission_text(&it));
            format!("admits it {}", own.unwrap_or_default())
        }
        Decision::Preempt(victims) => {
            let new = new_victims(state, victims);
            if new.is_empty() {
                "waits for its victims".to_owned()
            } else {
                format!("preempts {}", victims_text(&new))
            }
        }
        _ => {
            let message = decision_message(state, entry);
            format!("keeps it pending: {message}")
        }
    }
}
