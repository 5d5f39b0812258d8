//! Properties of every decision, in every random cluster.

use crate::model::choices::{Choices, MODEL_BYTES, cases_from_env, check, tapes};
use crate::model::cluster_model::ClusterModel;
use crate::model::events::{ComparedAnswers, Comparison};
use crate::model::generate::{GeneratorOptions, with_pending_workloads};
use crate::model::live::LiveState;
use crate::model::named_decisions::{NamedCycle, NamedNomination, NamedVictim};
use crate::reference::Preemptor;
use crate::reference::nominate::needs;
use crate::reference::tree::Tree;
use crate::trace::{check_trace, may_borrow};
use lockkeeper_preemption::{
    Algorithm, BorrowWithinCohort, Damping, Mode, PreemptionReason, Trace,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::cell::Cell;

/// The number of cases, unless the environment sets another one.
const CASES: u32 = 500;

/// The nomination of one workload, with its trace.
pub struct NominationCase {
    pub cluster_model: ClusterModel,
    tree: Tree,
    preemptor: Preemptor,
    pub nominated: NamedNomination,
    trace: Trace,
    live: LiveState,
}

impl NominationCase {
    /// Nominates every pending workload of a random cluster, each by itself.
    fn all(tape: &[u8]) -> Vec<Self> {
        let cluster_model = with_pending_workloads(&mut Choices::new(tape), GeneratorOptions::ANY);
        let names = cluster_model.names(false);
        let cases = names
            .iter()
            .map(|it| Self::new(&cluster_model, LiveState::from_model(&cluster_model), it));
        cases.collect()
    }

    /// Nominates one workload in a state with all objects of a cluster.
    pub fn new(cluster_model: &ClusterModel, mut live: LiveState, name: &str) -> Self {
        let tree = Tree::new(cluster_model);
        let (nominated, trace) = live.nominate(name, Trace::on());
        let workload = &cluster_model.workloads[name];
        let preemptor = Preemptor {
            queue: tree.index(&workload.queue, true),
            priority: workload.priority,
            order_time: workload.order_time,
            policy: cluster_model.queues[&workload.queue].preemption,
            needs: needs(&nominated.plan),
            request: nominated.plan.usage.clone(),
        };
        Self {
            cluster_model: cluster_model.clone(),
            tree,
            preemptor,
            nominated,
            trace,
            live,
        }
    }

    /// Whether the preemptor fits without these workloads.
    fn fits_without(&self, gone: &[&NamedVictim], may_borrow: bool) -> bool {
        let mut cluster_model = self.cluster_model.clone();
        for (name, _) in gone {
            cluster_model.workloads.remove(name);
        }
        // A queue without a spec, known only by its workloads, may be absent from the new tree: positions are looked up
        // by name.
        let tree = Tree::new(&cluster_model);
        let name = &self.tree.nodes[self.preemptor.queue].name;
        let preemptor = Preemptor {
            queue: tree.index(name, true),
            ..self.preemptor.clone()
        };
        preemptor.fits(&tree, may_borrow)
    }
}

/// Runs a property on all nominations of many random clusters. At least a tenth of them must have victims, unless the
/// environment reduces the number of cases.
fn on_nominations(property: impl Fn(&NominationCase) -> TestCaseResult) {
    let with_victims = Cell::new(0_u32);
    check(CASES, &vec(any::<u8>(), MODEL_BYTES), |tape| {
        for case in NominationCase::all(&tape) {
            let found = !case.nominated.victims.is_empty();
            with_victims.set(with_victims.get() + u32::from(found));
            property(&case)
                .map_err(|e| TestCaseError::fail(format!("{:?}\n{e}", case.cluster_model)))?;
        }
        Ok(())
    });
    let cases = cases_from_env().unwrap_or(CASES);
    let enough = if cases < CASES { 0 } else { cases / 10 };
    assert!(with_victims.get() > enough, "{}", with_victims.get());
}

#[test]
fn victims_make_the_preemptor_fit() {
    on_nominations(check_victims_suffice);
}

pub fn check_victims_suffice(case: &NominationCase) -> TestCaseResult {
    let victims: Vec<&NamedVictim> = case.nominated.victims.iter().collect();
    match case.nominated.plan.mode {
        Mode::Fit => {
            prop_assert!(victims.is_empty());
            // Upstream counts a flavor as fitting by its preferred resource.
            let all_fit = case.preemptor.needs.is_empty();
            prop_assert!(!all_fit || case.fits_without(&[], true));
        }
        Mode::Preempt if !victims.is_empty() => {
            prop_assert!(!case.fits_without(&[], true));
            prop_assert!(case.fits_without(&victims, true));
        }
        _ => prop_assert!(victims.is_empty()),
    }
    Ok(())
}

#[test]
fn victims_are_all_needed() {
    on_nominations(check_victims_are_needed);
}

pub fn check_victims_are_needed(case: &NominationCase) -> TestCaseResult {
    let victims = &case.nominated.victims;
    let may_borrow = may_borrow(&case.live, &case.trace, &case.nominated);
    let Some(may_borrow) = may_borrow.filter(|_| !victims.is_empty()) else {
        return Ok(());
    };
    let all: Vec<&NamedVictim> = victims.iter().collect();
    prop_assert!(case.fits_without(&all, may_borrow));
    for spared in victims {
        let others: Vec<&NamedVictim> = victims.iter().filter(|it| *it != spared).collect();
        prop_assert!(!case.fits_without(&others, may_borrow), "{spared:?}");
    }
    Ok(())
}

#[test]
fn victims_are_within_the_policy() {
    on_nominations(check_victims_within_policy);
}

pub fn check_victims_within_policy(case: &NominationCase) -> TestCaseResult {
    let mut victims = case.nominated.victims.iter();
    victims.try_for_each(|it| is_within_policy(case, it))
}

fn is_within_policy(case: &NominationCase, (name, reason): &NamedVictim) -> TestCaseResult {
    let (tree, preemptor) = (&case.tree, &case.preemptor);
    let victim = &case.cluster_model.workloads[name];
    let held = victim.reservation.as_ref();
    let queue = tree.index(&victim.queue, true);
    let is_own = queue == preemptor.queue;
    let is_fair = case.cluster_model.options.algorithm != Algorithm::Classical;
    prop_assert!(held.is_some(), "{} does not run", name);
    prop_assert!(preemptor.may_preempt(victim, is_own), "{victim:?}");
    let mut needs = preemptor.needs.iter();
    prop_assert!(needs.any(|it| held.is_some_and(|held| held.usage.contains_key(it))));
    prop_assert_eq!(is_own, *reason == PreemptionReason::InClusterQueue);
    if !is_own {
        prop_assert_eq!(tree.root(queue), tree.root(preemptor.queue));
        let mut needs = preemptor.needs.iter();
        prop_assert!(needs.any(|it| tree.usage(queue, *it) > tree.nominal(queue, *it)));
    }
    match reason {
        PreemptionReason::InCohortReclaimWhileBorrowing => {
            let priority = victim.candidate_priority();
            prop_assert!(!is_fair && priority < preemptor.priority);
            let BorrowWithinCohort::LowerPriority { threshold_max } =
                preemptor.policy.borrow_within_cohort
            else {
                return Err(TestCaseError::fail("borrowWithinCohort is Never"));
            };
            prop_assert!(threshold_max.is_none_or(|most| priority <= most));
        }
        PreemptionReason::InCohortFairSharing => prop_assert!(is_fair),
        PreemptionReason::InClusterQueue | PreemptionReason::InCohortReclamation => {}
    }
    Ok(())
}

#[test]
fn trace_matches_the_decision() {
    on_nominations(|case| check_trace(&case.live, &case.trace, &case.nominated));
}

#[test]
fn nomination_repeated_is_equal() {
    on_nominations(|case| {
        let name = case.cluster_model.names(false);
        for name in name {
            let mut live = case.live.clone();
            let (first, trace) = live.nominate(&name, Trace::on());
            let (second, other) = live.nominate(&name, Trace::on());
            let (silent, none) = live.nominate(&name, Trace::off());
            prop_assert_eq!(&first, &second);
            prop_assert_eq!(trace.steps(), other.steps());
            prop_assert_eq!(&first, &silent);
            prop_assert!(none.steps().is_empty());
        }
        Ok(())
    });
}

/// The nominations of all pending workloads, then four cycles whose victims release their quota immediately.
fn decisions(
    mut live: LiveState,
    cluster_model: &ClusterModel,
) -> (Vec<NamedNomination>, Vec<NamedCycle>) {
    let names = cluster_model.names(false);
    let nominate = |it: &String| live.nominate(it, Trace::off()).0;
    let nominated = names.iter().map(nominate).collect();
    let mut cycles = Vec::new();
    for now_s in 3000..3004 {
        let cycle = live.next_cycle(now_s);
        for victim in cycle.victims() {
            let id = live.id(&victim);
            live.state.release(id);
        }
        cycles.push(cycle);
    }
    (nominated, cycles)
}

#[test]
fn decisions_with_shuffled_input_are_equal() {
    let tapes = (vec(any::<u8>(), MODEL_BYTES), vec(any::<u8>(), 30));
    check(CASES, &tapes, |(tape, order)| {
        let mut cluster_model =
            with_pending_workloads(&mut Choices::new(&tape), GeneratorOptions::ANY);
        if order[0] % 2 == 1 {
            cluster_model.options.damping = Damping::On;
        }
        let (nominated, cycles) = decisions(LiveState::from_model(&cluster_model), &cluster_model);
        let (other, others) = decisions(
            LiveState::from_model_in_order(&cluster_model, &order),
            &cluster_model,
        );
        prop_assert_eq!(nominated, other, "{:?}", cluster_model);
        prop_assert_eq!(cycles, others, "{:?}", cluster_model);
        Ok(())
    });
}

#[test]
fn decisions_with_same_input_are_equal() {
    check(CASES, &vec(any::<u8>(), MODEL_BYTES), |tape| {
        let mut cluster_model =
            with_pending_workloads(&mut Choices::new(&tape), GeneratorOptions::ANY);
        cluster_model.options.damping = Damping::On;
        let live = LiveState::from_model(&cluster_model);
        let first = decisions(live.clone(), &cluster_model);
        prop_assert_eq!(
            &first,
            &decisions(live, &cluster_model),
            "{:?}",
            cluster_model
        );
        prop_assert_eq!(
            &first,
            &decisions(LiveState::from_model(&cluster_model), &cluster_model),
            "{:?}",
            cluster_model
        );
        Ok(())
    });
}

#[test]
fn quota_limits_hold_after_every_event() {
    let kind = GeneratorOptions {
        may_overcommit: false,
        has_fixed_queues: true,
        ..GeneratorOptions::ANY
    };
    check(CASES / 8, &tapes(24), |tapes| {
        let mut both = Comparison::new(&tapes.cluster_model, kind);
        for tape in &tapes.events {
            both.step(tape);
            let used = both.compare_usage();
            let is_same = matches!(used, ComparedAnswers::Same);
            prop_assert!(is_same, "{}\n{used:?}", both.event_log.join("\n"));
            check_all_limits(&Tree::new(both.cluster_model()))
                .map_err(|e| TestCaseError::fail(format!("{}\n{e}", both.event_log.join("\n"))))?;
        }
        Ok(())
    });
}

pub fn check_all_limits(tree: &Tree) -> TestCaseResult {
    (0..tree.nodes.len()).try_for_each(|node| check_limits(tree, node))
}

fn check_limits(tree: &Tree, node: usize) -> TestCaseResult {
    for pair in (0..3).flat_map(|flavor| (0..3).map(move |it| (flavor, it))) {
        let (usage, subtree) = (tree.usage(node, pair), tree.subtree(node, pair));
        prop_assert!(usage >= 0);
        let name = &tree.nodes[node].name;
        if tree.nodes[node].parent.is_none() {
            // A root cannot borrow.
            prop_assert!(usage <= subtree, "{name} {pair:?}: {usage} of {subtree}");
        } else if let Some(limit) = tree.limits(node, pair).borrowing {
            let local = tree.local(node, pair);
            let borrowed = (usage - local).max(0) - (subtree - local);
            prop_assert!(borrowed <= limit, "{name} {pair:?}: {borrowed} of {limit}");
        }
    }
    Ok(())
}
