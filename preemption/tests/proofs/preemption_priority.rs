//! No two workloads preempt each other in turn by priority, and no longer chain returns to its start: candidates are
//! compared by their preemption priority, which is at least the scheduling priority, by which preemptors are compared.

use crate::model::choices::{Choices, MODEL_BYTES, cases_from_env, check};
use crate::model::cluster_model::{ClusterModel, Workload};
use crate::model::generate::{GeneratorOptions, reservation, with_pending_workloads};
use crate::model::live::LiveState;
use lockkeeper_preemption::{ReclaimWithinCohort, Trace};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeSet;

const CASES: u32 = 500;

/// A random cluster whose policies all compare priorities, with pending workloads.
fn cluster_with_priority_policies(dice: &mut Choices<'_>) -> ClusterModel {
    let kind = GeneratorOptions {
        is_fair: Some(false),
        ..GeneratorOptions::ANY
    };
    let mut cluster_model = with_pending_workloads(dice, kind);
    for queue in cluster_model.queues.values_mut() {
        let preemption = &mut queue.preemption;
        if preemption.reclaim_within_cohort == ReclaimWithinCohort::Any {
            preemption.reclaim_within_cohort = ReclaimWithinCohort::LowerPriority;
        }
    }
    cluster_model
}

/// Whether `pending` preempts `admitted` while no other workload exists.
fn preempts(cluster_model: &ClusterModel, pending: &Workload, admitted: &Workload) -> bool {
    let mut alone = cluster_model.clone();
    alone.workloads.clear();
    for workload in [pending, admitted] {
        alone
            .workloads
            .insert(workload.name.clone(), workload.clone());
    }
    let mut live = LiveState::from_model(&alone);
    let (nominated, _) = live.nominate(&pending.name, Trace::off());
    !nominated.victims.is_empty()
}

/// Whether the preemptions, from preemptor to victim, have a cycle: repeatedly drops workloads that preempt none.
fn has_cycle(count: usize, preemptions: &BTreeSet<(usize, usize)>) -> bool {
    let mut rest: BTreeSet<usize> = (0..count).collect();
    loop {
        let preempts_none = |at: &usize| !rest.iter().any(|to| preemptions.contains(&(*at, *to)));
        let Some(last) = rest.iter().copied().find(preempts_none) else {
            return !rest.is_empty();
        };
        rest.remove(&last);
    }
}

#[test]
fn preemption_by_priority_has_no_cycle() {
    let (found, refused) = (Cell::new(0_u32), Cell::new(0_u32));
    check(CASES, &vec(any::<u8>(), MODEL_BYTES), |tape| {
        let mut dice = Choices::new(&tape);
        let cluster_model = cluster_with_priority_policies(&mut dice);
        let pending: Vec<&Workload> = cluster_model.workloads.values().collect();
        let mut preemptions = BTreeSet::new();
        for (at, preemptor) in pending.iter().enumerate() {
            for (to, victim) in pending.iter().enumerate() {
                if at == to {
                    continue;
                }
                let preemptor = Workload {
                    reservation: None,
                    ..(*preemptor).clone()
                };
                let admitted = Workload {
                    reservation: Some(reservation(&mut dice, victim, &cluster_model)),
                    ..(*victim).clone()
                };
                if preempts(&cluster_model, &preemptor, &admitted) {
                    prop_assert!(preemptor.priority >= victim.candidate_priority());
                    preemptions.insert((at, to));
                } else if (victim.priority..victim.candidate_priority())
                    .contains(&preemptor.priority)
                {
                    refused.set(refused.get() + 1);
                }
            }
        }
        prop_assert!(
            !has_cycle(pending.len(), &preemptions),
            "{preemptions:?} of {pending:#?}"
        );
        found.set(found.get() + u32::try_from(preemptions.len()).unwrap());
        Ok(())
    });
    println!("{} preemptions, {} refused", found.get(), refused.get());
    assert!(cases_from_env().is_some() || found.get() > 100 && refused.get() > 100);
}
