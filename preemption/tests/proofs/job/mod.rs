//! Rounds of job preemption: comparison with a literal implementation of the proposal, and properties.

mod invalid_input;
mod model;
mod reference;

use crate::model::choices::{Choices, MODEL_BYTES, check};
use lockkeeper_preemption::Trace;
use lockkeeper_preemption::job::{
    BlockedReason, JobOutcome, JobPlan, JobRejection, JobStep, Preemptibility, RoundsInFlight,
    plan_round,
};
use model::{Built, Model, RESOURCES, fits, sum};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use reference::{ReferenceOutcome, reference_outcome};
use std::cell::Cell;
use std::collections::BTreeSet;

const CASES: u32 = 4_000;

fn for_each_model(test: impl Fn(&Model) -> TestCaseResult) {
    check(CASES, &vec(any::<u8>(), MODEL_BYTES), |tape| {
        test(&Model::random(&mut Choices::new(&tape)))
    });
}

fn decide(built: &Built) -> JobOutcome {
    let rounds = RoundsInFlight::default();
    plan_round(
        &built.cluster,
        &rounds,
        built.job,
        &built.excluded,
        0,
        &mut Trace::off(),
    )
}

/// An outcome by name.
fn named_outcome(built: &Built, outcome: &JobOutcome) -> ReferenceOutcome {
    match outcome {
        JobOutcome::Preempt(plan) => ReferenceOutcome::Preempt {
            nominations: plan
                .nominations
                .iter()
                .map(|(pod, host)| (built.pod(*pod), built.host(*host)))
                .collect(),
            victims: plan.victims.iter().map(|it| built.pod(*it)).collect(),
        },
        JobOutcome::Rejected(rejection) => ReferenceOutcome::Rejected(match rejection {
            JobRejection::MixedPods => "mixed",
            JobRejection::TriggerNotAllowed => "trigger",
            JobRejection::Quota(_) => "quota",
            JobRejection::OverMax { .. } => "over max",
            JobRejection::NoPlacement { .. } => "no place",
            JobRejection::Blocked(_) | JobRejection::IncompleteGang { .. } => "not generated",
        }),
    }
}

#[test]
fn plan_round_matches_reference() {
    let tallies: Cell<[u32; 7]> = Cell::default();
    for_each_model(|model| {
        let built = model.build();
        let got = named_outcome(&built, &decide(&built));
        let expected = reference_outcome(model);
        let mut counts = tallies.get();
        counts[match &got {
            ReferenceOutcome::Rejected("mixed") => 0,
            ReferenceOutcome::Rejected("trigger") => 1,
            ReferenceOutcome::Rejected("quota") => 2,
            ReferenceOutcome::Rejected("over max") => 3,
            ReferenceOutcome::Rejected(_) => 4,
            ReferenceOutcome::Preempt { victims, .. } if victims.is_empty() => 5,
            ReferenceOutcome::Preempt { .. } => 6,
        }] += 1;
        tallies.set(counts);
        prop_assert_eq!(got, expected, "{:#?}", model);
        Ok(())
    });
    let tallies = tallies.get();
    println!("mixed, trigger, quota, over max, no place, fits, preempts: {tallies:?}");
    let full_run = tallies.iter().sum::<u32>() >= CASES;
    assert!(
        !full_run || tallies.iter().all(|it| *it > 20),
        "{tallies:?}"
    );
}

#[test]
fn plan_round_is_independent_of_pod_order() {
    for_each_model(|model| {
        let mut turned = model.clone();
        turned.pods.reverse();
        let (built, other) = (model.build(), turned.build());
        let [a, b] = [&built, &other].map(|it| named_outcome(it, &decide(it)));
        prop_assert_eq!(a, b);
        Ok(())
    });
}

/// The model after a plan: victims and terminating pods are gone, and nominated pods have their node.
fn apply_plan(model: &Model, built: &Built, plan: &JobPlan) -> Model {
    let mut after = model.clone();
    let gone: BTreeSet<_> = plan.victims.iter().map(|it| built.pod(*it)).collect();
    after
        .pods
        .retain(|it| !it.is_leaving && !gone.contains(&it.full_name()));
    for (pod, host) in &plan.nominations {
        let (name, host) = (built.pod(*pod), built.host(*host));
        let position = model.hosts.iter().position(|it| it.name == host);
        let mut pods = after.pods.iter_mut();
        let pod = pods.find(|it| it.full_name() == name).unwrap();
        (pod.host, pod.nominated) = (position, None);
    }
    after
}

#[test]
fn applied_plan_fits_nodes_and_quotas() {
    for_each_model(|model| {
        let built = model.build();
        let JobOutcome::Preempt(plan) = decide(&built) else {
            return Ok(());
        };
        let job = model.job();
        // All or nothing: every pod without a place gets one, each once.
        let pending: BTreeSet<_> = job.iter().filter(|it| it.host.is_none()).collect();
        let nominated: BTreeSet<_> = plan
            .nominations
            .iter()
            .map(|(it, _)| built.pod(*it))
            .collect();
        prop_assert_eq!(pending.len(), plan.nominations.len());
        let pending: BTreeSet<_> = pending.iter().map(|it| it.full_name()).collect();
        prop_assert_eq!(&pending, &nominated);
        check_victims_are_candidates(model, &built, &plan)?;
        let after = apply_plan(model, &built, &plan);
        check_fits_nodes_and_quotas(model, &after, &plan, &built)?;
        check_every_victim_is_necessary(model, &after, &plan, &built)
    });
}

fn check_victims_are_candidates(model: &Model, built: &Built, plan: &JobPlan) -> TestCaseResult {
    let job = model.job();
    let names: BTreeSet<_> = plan.victims.iter().map(|it| built.pod(*it)).collect();
    prop_assert_eq!(names.len(), plan.victims.len(), "duplicate victim");
    for victim in model
        .pods
        .iter()
        .filter(|it| names.contains(&it.full_name()))
    {
        prop_assert!(victim.priority < job[0].priority, "{:?}", victim);
        prop_assert_eq!(model.class(victim), Preemptibility::Preemptible);
        prop_assert!(victim.host.is_some() && !victim.is_leaving);
    }
    Ok(())
}

/// Checks that the job fits on each node and in each quota on its path.
fn check_fits_nodes_and_quotas(
    model: &Model,
    after: &Model,
    plan: &JobPlan,
    built: &Built,
) -> TestCaseResult {
    let priority = model.job()[0].priority;
    for (at, host) in after.hosts.iter().enumerate() {
        let is_used = plan
            .nominations
            .iter()
            .any(|(_, it)| built.host(*it) == host.name);
        if !is_used {
            continue;
        }
        prop_assert!(!host.is_excluded);
        let heeded = |pod: &&model::Pod| {
            pod.host == Some(at) || pod.nominated == Some(at) && pod.priority >= priority
        };
        let used = sum(after.pods.iter().filter(heeded).map(|it| it.request));
        let ours = model.job().into_iter().filter(|it| it.host.is_none());
        let ours: Vec<_> = ours
            .filter(|it| nominated_to(plan, built, it) == host.name)
            .collect();
        let is_requested = |it: usize| ours.iter().any(|pod| pod.request[it] > 0);
        let overdrawn =
            (0..RESOURCES).any(|it| is_requested(it) && used[it] > host.allocatable[it]);
        prop_assert!(
            !overdrawn,
            "{} has {:?} of {:?}",
            host.name,
            used,
            host.allocatable
        );
    }
    for level in model.path(model.job()[0].quota) {
        let quota = &model.quotas[level];
        let used = after.used(level, None);
        prop_assert!(
            fits(used, quota.max),
            "{} uses {:?} of max {:?}",
            level,
            used,
            quota.max
        );
        if model.class(model.job()[0]) == Preemptibility::NonPreemptible {
            let used = after.used(level, Some(Preemptibility::NonPreemptible));
            prop_assert!(fits(used, quota.min), "{} of min {:?}", level, quota.min);
        }
    }
    Ok(())
}

fn nominated_to(plan: &JobPlan, built: &Built, pod: &model::Pod) -> String {
    let name = pod.full_name();
    let mut all = plan.nominations.iter();
    let found = all.find(|(it, _)| built.pod(*it) == name);
    found.map_or(String::new(), |(_, host)| built.host(*host))
}

/// Checks that without any one of the victims' removals a node or a quota is exceeded.
fn check_every_victim_is_necessary(
    model: &Model,
    after: &Model,
    plan: &JobPlan,
    built: &Built,
) -> TestCaseResult {
    for victim in &plan.victims {
        let name = built.pod(*victim);
        let mut with = after.clone();
        let known = model.pods.iter().find(|it| it.full_name() == name).unwrap();
        with.pods.push(known.clone());
        prop_assert!(
            check_fits_nodes_and_quotas(model, &with, plan, built).is_err(),
            "{} is not a necessary victim",
            name
        );
    }
    Ok(())
}

#[test]
fn second_round_plans_no_new_victims() {
    for_each_model(|model| {
        let built = model.build();
        let mut rounds = RoundsInFlight::default();
        let ask = |rounds: &RoundsInFlight, now_s| {
            plan_round(
                &built.cluster,
                rounds,
                built.job,
                &built.excluded,
                now_s,
                &mut Trace::off(),
            )
        };
        let first = ask(&rounds, 0);
        // The plan was not applied: the result is the same.
        prop_assert_eq!(&ask(&rounds, 0), &first);
        let JobOutcome::Preempt(plan) = first else {
            return Ok(());
        };
        rounds.begin(built.job, plan.awaited(), 0);
        let awaited = plan.awaited().count();
        let again = ask(&rounds, 599);
        if awaited > 0 {
            let unfinished = BlockedReason::Unfinished { victims: awaited };
            prop_assert_eq!(
                again,
                JobOutcome::Rejected(JobRejection::Blocked(unfinished))
            );
        }
        for pod in plan.awaited() {
            rounds.pod_removed(pod);
        }
        prop_assert!(rounds.is_empty());
        // After the whole plan is applied, there is no further victim.
        let after = apply_plan(model, &built, &plan).build();
        if let JobOutcome::Preempt(plan) = decide(&after) {
            prop_assert_eq!((plan.nominations.len(), plan.victims.len()), (0, 0));
        }
        Ok(())
    });
}

#[test]
fn restore_after_restart_rebuilds_rounds() {
    for_each_model(|model| {
        let built = model.build();
        let JobOutcome::Preempt(plan) = decide(&built) else {
            return Ok(());
        };
        // The victims are marked, the nominations are written, and a new state is built from them.
        let mut after = model.clone();
        let victims: BTreeSet<_> = plan.victims.iter().map(|it| built.pod(*it)).collect();
        for pod in &mut after.pods {
            pod.is_leaving |= victims.contains(&pod.full_name());
        }
        for (pod, host) in &plan.nominations {
            let position = model
                .hosts
                .iter()
                .position(|it| it.name == built.host(*host));
            let name = built.pod(*pod);
            let mut pods = after.pods.iter_mut();
            pods.find(|it| it.full_name() == name).unwrap().nominated = position;
        }
        let again = after.build();
        let marked = again.cluster.leaving();
        let marked: Vec<_> = marked
            .filter(|it| victims.contains(&again.pod(*it)))
            .map(|it| (it, again.job))
            .collect();
        let rounds = RoundsInFlight::restore(
            lockkeeper_preemption::job::RoundLimits::default(),
            &again.cluster,
            &marked,
            50,
        );
        let is_blocked = rounds.blocked_reason(again.job, 50).is_some();
        prop_assert_eq!(is_blocked, plan.awaited().count() > 0);
        prop_assert_eq!(rounds.blocked_reason(again.job, 650), None);
        Ok(())
    });
}

#[test]
fn trace_agrees_with_plan() {
    for_each_model(|model| {
        let built = model.build();
        let mut trace = Trace::on();
        let rounds = RoundsInFlight::default();
        let outcome = plan_round(
            &built.cluster,
            &rounds,
            built.job,
            &built.excluded,
            0,
            &mut trace,
        );
        prop_assert_eq!(&outcome, &decide(&built), "tracing changes the decision");
        let (mut removed, mut back, mut victims, mut placed) = (
            BTreeSet::new(),
            BTreeSet::new(),
            BTreeSet::new(),
            BTreeSet::new(),
        );
        for step in trace.steps() {
            let is_new = match step {
                JobStep::Removed { pod, .. } => removed.insert(*pod),
                JobStep::AssignedBack { pod } => back.insert(*pod),
                JobStep::Victim { pod, .. } => victims.insert(*pod),
                JobStep::Nominated { pod, .. } => placed.insert(*pod),
                _ => true,
            };
            prop_assert!(is_new, "{:?} twice", step);
        }
        if let JobOutcome::Preempt(plan) = outcome {
            let planned: BTreeSet<_> = plan.victims.iter().copied().collect();
            prop_assert_eq!(&victims, &planned);
            let nominated: BTreeSet<_> = plan.nominations.iter().map(|(it, _)| *it).collect();
            prop_assert_eq!(placed, nominated);
            back.extend(victims);
            prop_assert_eq!(removed, back, "a candidate is neither victim nor reprieved");
        } else {
            prop_assert!(victims.is_empty() && back.is_empty());
        }
        Ok(())
    });
}
