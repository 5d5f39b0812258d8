//! With damping every cluster becomes quiescent; without damping some clusters have preemption loops.

use crate::model::choices::{Choices, MODEL_BYTES, cases_from_env, check};
use crate::model::cluster_model::ClusterModel;
use crate::model::generate::{GeneratorOptions, contended_cluster, with_pending_workloads};
use crate::model::live::LiveState;
use crate::model::named_decisions::NamedDecision;
use crate::reference::tree::Tree;
use lockkeeper_preemption::{
    BorrowWithinCohort, Compatibility, Damping, DampingView, ReclaimWithinCohort,
    WithinClusterQueue,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;

/// The number of cases, unless the environment sets another one.
const CASES: u32 = 2_000;
/// More than any of the small clusters needs.
const CYCLES_MAX: usize = 300;
/// The cycle before which the later workloads arrive.
const ARRIVAL_CYCLE: usize = 10;
/// Cycles without a change after which a run is quiescent: a search over the flavors may continue over several cycles.
const QUIET_CYCLES: usize = 8;

fn cluster_model(tape: &[u8], damping: Damping) -> ClusterModel {
    let kind = GeneratorOptions {
        may_overcommit: false,
        ..GeneratorOptions::ANY
    };
    let mut dice = Choices::new(tape);
    let is_scarce = dice.one_in(2);
    let mut cluster_model = if is_scarce {
        contended_cluster(&mut dice, kind)
    } else {
        with_pending_workloads(&mut dice, kind)
    };
    cluster_model.options.damping = damping;
    // Kueue admits over the quota while victims are still terminating.
    cluster_model.options.compatibility = Compatibility::Lockkeeper;
    if is_scarce {
        make_contended(&mut dice, &mut cluster_model);
    }
    cluster_model
}

/// Reduces the quotas, and lets almost every queue preempt in others.
fn make_contended(dice: &mut Choices<'_>, cluster_model: &mut ClusterModel) {
    for queue in cluster_model.queues.values_mut() {
        queue.preemption.within_cluster_queue = dice.pick(&[
            WithinClusterQueue::LowerPriority,
            WithinClusterQueue::LowerOrNewerEqualPriority,
        ]);
        queue.preemption.reclaim_within_cohort = dice.pick(&[
            ReclaimWithinCohort::Any,
            ReclaimWithinCohort::Any,
            ReclaimWithinCohort::LowerPriority,
        ]);
        queue.preemption.borrow_within_cohort = dice.pick(&[
            BorrowWithinCohort::Never,
            BorrowWithinCohort::LowerPriority {
                threshold_max: None,
            },
        ]);
        let flavors = queue.groups.iter_mut().flat_map(|it| &mut it.flavors);
        for limits in flavors.flat_map(|(_, limits)| limits) {
            limits.nominal = dice.amount(0, 4);
        }
    }
}

/// The number of cycles until nothing changes any more, if each victim terminates at its own pace and no workload
/// finishes; `None` if there is no such cycle. Checks the state after each cycle.
fn cycles_until_quiescent(
    cluster_model: &ClusterModel,
    pace: &[u8],
    mut look: impl FnMut(&mut LiveState) -> Result<(), TestCaseError>,
) -> Result<Option<usize>, TestCaseError> {
    // Every other workload arrives after the first ones are admitted or pending.
    let mut early = cluster_model.clone();
    let late = cluster_model.names(false).into_iter().step_by(2);
    let late: Vec<_> = late.filter_map(|it| early.workloads.remove(&it)).collect();
    let mut live = LiveState::from_model(&early);
    let mut pace = pace.iter().cycle();
    // Evicted workloads, with the number of cycles until they release their quota.
    let mut leaving: BTreeMap<String, usize> = BTreeMap::new();
    let mut quiet = 0;
    let mut story = Vec::new();
    for cycle in 0..CYCLES_MAX {
        if cycle == ARRIVAL_CYCLE {
            for workload in &late {
                live.add(workload);
            }
        }
        let outcome = live.next_cycle(1_000 + i64::try_from(cycle).unwrap());
        let moves =
            |it: &NamedDecision| matches!(it, NamedDecision::Admit | NamedDecision::Preempt(_));
        let is_quiet = leaving.is_empty() && !outcome.entries.iter().any(|it| moves(&it.decision));
        quiet = if is_quiet { quiet + 1 } else { 0 };
        if quiet >= QUIET_CYCLES && cycle > ARRIVAL_CYCLE + QUIET_CYCLES {
            return Ok(Some(cycle));
        }
        for name in outcome.victims() {
            let grace = usize::from(pace.next().copied().unwrap_or(0)) % 3;
            leaving.entry(name).or_insert(grace);
        }
        for (name, grace) in std::mem::take(&mut leaving) {
            let id = live.id(&name);
            if let Some(less) = grace.checked_sub(1) {
                live.state.mark_evicted(id);
                leaving.insert(name, less);
            } else {
                live.state.release(id);
            }
        }
        let decisions = outcome.entries.iter();
        let decisions = decisions.map(|it| format!("{}: {:?}", it.workload, it.decision));
        story.push(format!(
            "{cycle}. {}",
            decisions.collect::<Vec<_>>().join("; ")
        ));
        look(&mut live).map_err(|e| TestCaseError::fail(format!("{e}\n{}", story.join("\n"))))?;
    }
    Ok(None)
}

#[test]
fn damping_with_any_policy_reaches_quiescence() {
    let (loop_count, preempted) = (Cell::new(0_u32), Cell::new(0_u64));
    let tapes = (vec(any::<u8>(), MODEL_BYTES), vec(any::<u8>(), 1..16));
    check(CASES, &tapes, |(tape, pace)| {
        let damped = cluster_model(&tape, Damping::On);
        let mut repeats = lockkeeper_preemption::RepeatStats::default();
        let rest = cycles_until_quiescent(&damped, &pace, |live| {
            repeats = DampingView::new(&live.state).repeat_stats();
            roots_are_within_quota(&damped, live)
        })?;
        prop_assert!(rest.is_some(), "{repeats:?} in {damped:?}");
        preempted.set(preempted.get() + repeats.preempted);
        let undamped = cluster_model(&tape, Damping::Off);
        let rest = cycles_until_quiescent(&undamped, &pace, |_| Ok(()))?;
        loop_count.set(loop_count.get() + u32::from(rest.is_none()));
        Ok(())
    });
    let (loop_count, preempted) = (loop_count.get(), preempted.get());
    if cases_from_env().is_some() {
        return;
    }
    assert!(preempted > 200, "{preempted}");
    assert!(
        loop_count > 0,
        "too few preemption loops to test damping: {preempted} preemptions"
    );
}

fn roots_are_within_quota(
    cluster_model: &ClusterModel,
    live: &mut LiveState,
) -> Result<(), TestCaseError> {
    let tree = Tree::new(cluster_model);
    for (name, usage) in live.usage() {
        let of_name = tree.nodes.iter().position(|it| it.name == name);
        let Some(root) = of_name.filter(|at| tree.nodes[*at].parent.is_none()) else {
            continue;
        };
        for (pair, amount) in usage {
            let subtree = tree.subtree(root, pair);
            prop_assert!(
                amount <= subtree,
                "{name} {pair:?}: {amount} of {subtree} in {cluster_model:?}"
            );
        }
    }
    Ok(())
}
