//! All clusters of a small grammar: two queues in a cohort, one flavor, and one pending workload.
//!
//! `LOCKKEEPER_SMALL_CLUSTERS=1` runs larger clusters, 2 runs millions of them.

use crate::model::choices::number_from_env;
use crate::model::cluster_model::{
    COHORTS, ClusterModel, Group, Limits, ModelReservation, Pods, QUEUES, Queue, Workload,
};
use crate::model::live::LiveState;
use crate::properties::{
    NominationCase, check_all_limits, check_victims_are_needed, check_victims_suffice,
    check_victims_within_policy,
};
use crate::reference::scheduler::Scheduler;
use crate::reference::tree::Tree;
use lockkeeper_preemption::{
    Algorithm, BorrowWithinCohort, Damping, FairStrategy, FlavorFungibility, Mode, Options,
    Preemption, QueueingStrategy, ReclaimWithinCohort, WithinClusterQueue,
};
use proptest::test_runner::TestCaseResult;
use std::collections::BTreeMap;

/// The flavor and the resource.
const PAIR: (usize, usize) = (0, 1);

/// The ranges of the grammar.
struct ClusterBounds {
    nominal_max: i64,
    limit_max: i64,
    running_max: usize,
    sizes_max: i64,
    priorities: &'static [i32],
}

impl ClusterBounds {
    fn from_env() -> Self {
        let small = Self {
            nominal_max: 1,
            limit_max: 0,
            running_max: 2,
            sizes_max: 2,
            priorities: &[1],
        };
        match number_from_env("LOCKKEEPER_SMALL_CLUSTERS") {
            None => small,
            Some(1) => Self {
                nominal_max: 2,
                ..small
            },
            Some(_) => Self {
                nominal_max: 2,
                limit_max: 1,
                running_max: 3,
                sizes_max: 3,
                priorities: &[0, 1],
            },
        }
    }

    fn limits(&self) -> Vec<Limits> {
        let mut all = Vec::new();
        let limit = || std::iter::once(None).chain((0..=self.limit_max).map(Some));
        for nominal in 0..=self.nominal_max {
            for borrowing in limit() {
                let lending = limit().filter(|it| it.is_none_or(|it| it <= nominal));
                all.extend(lending.map(|lending| Limits {
                    nominal,
                    borrowing,
                    lending,
                }));
            }
        }
        all
    }

    /// All sets of running workloads: queue, priority and size of each, in order.
    fn running(&self) -> Vec<Vec<(usize, i32, i64)>> {
        let queues = 0..2_usize;
        let one: Vec<_> = queues
            .flat_map(|it| [(it, 0), (it, 1)])
            .flat_map(|(queue, priority)| (1..=2).map(move |size| (queue, priority, size)))
            .collect();
        let mut all = vec![Vec::new()];
        let mut last = all.clone();
        for _ in 0..self.running_max {
            let more = last.iter().flat_map(|some: &Vec<_>| {
                let from = one
                    .iter()
                    .filter(|it| some.last().is_none_or(|last| last <= *it));
                from.map(|it| [some.clone(), vec![*it]].concat())
            });
            last = more.collect();
            all.extend(last.iter().cloned());
        }
        all
    }
}

fn policies() -> Vec<Preemption> {
    let mut all = Vec::new();
    for within_cluster_queue in [
        WithinClusterQueue::Never,
        WithinClusterQueue::LowerPriority,
        WithinClusterQueue::LowerOrNewerEqualPriority,
    ] {
        for reclaim_within_cohort in [
            ReclaimWithinCohort::Never,
            ReclaimWithinCohort::LowerPriority,
            ReclaimWithinCohort::Any,
        ] {
            let borrow = |threshold_max| BorrowWithinCohort::LowerPriority { threshold_max };
            for borrow_within_cohort in [BorrowWithinCohort::Never, borrow(None), borrow(Some(-1))]
            {
                all.push(Preemption {
                    within_cluster_queue,
                    reclaim_within_cohort,
                    borrow_within_cohort,
                    ..Preemption::default()
                });
            }
        }
    }
    all
}

fn algorithms() -> [Algorithm; 3] {
    let (last, first) = (
        FairStrategy::LessThanOrEqualToFinalShare,
        FairStrategy::LessThanInitialShare,
    );
    [
        Algorithm::Classical,
        Algorithm::FairSharing(vec![last, first]),
        Algorithm::FairSharing(vec![first]),
    ]
}

fn queue(name: &str, limits: Limits) -> Queue {
    Queue {
        name: name.to_owned(),
        cohort: Some(COHORTS[0].to_owned()),
        groups: vec![Group {
            resources: vec![PAIR.1],
            flavors: vec![(PAIR.0, vec![limits])],
        }],
        preemption: Preemption::default(),
        fungibility: FlavorFungibility::default(),
        strategy: QueueingStrategy::BestEffortFifo,
        weight: 1.0,
        is_active: true,
    }
}

fn workload(name: String, queue: usize, priority: i32, size: i64) -> Workload {
    Workload {
        uid: name.clone(),
        name,
        queue: QUEUES[queue].to_owned(),
        priority,
        preemption_priority: priority,
        order_time: 10,
        pods: vec![Pods {
            count: 1,
            count_min: None,
            requests: vec![(PAIR.1, size)],
            ineligible: Vec::new(),
        }],
        is_in_scope: true,
        reservation: None,
    }
}

/// All clusters: quotas, and running workloads within them.
fn cluster_models(grammar: &ClusterBounds) -> Vec<ClusterModel> {
    let mut all = Vec::new();
    let running = grammar.running();
    for first in grammar.limits() {
        for second in grammar.limits() {
            let mut empty = ClusterModel::default();
            empty.options.damping = Damping::Off;
            for (name, limits) in QUEUES.iter().zip([first, second]) {
                empty.queues.insert((*name).to_owned(), queue(name, limits));
            }
            for some in &running {
                let mut cluster_model = empty.clone();
                for (at, (queue, priority, size)) in some.iter().enumerate() {
                    let mut admitted = workload(format!("r{at}"), *queue, *priority, *size);
                    // Some running workloads are older than the preemptor, some newer.
                    admitted.order_time = if at % 2 == 0 { 20 } else { 0 };
                    admitted.reservation = Some(ModelReservation {
                        usage: BTreeMap::from([(PAIR, *size)]),
                        reserved_at_s: i64::try_from(at).unwrap(),
                        is_evicted: false,
                    });
                    cluster_model
                        .workloads
                        .insert(admitted.name.clone(), admitted);
                }
                if check_all_limits(&Tree::new(&cluster_model)).is_ok() {
                    all.push(cluster_model);
                }
            }
        }
    }
    all
}

fn has_room(cluster_model: &ClusterModel, size: i64) -> bool {
    let tree = Tree::new(cluster_model);
    let queue = tree.index(QUEUES[0], true);
    size <= tree.available(queue, PAIR) || size > tree.potential(queue, PAIR)
}

/// Checks one nomination: it equals the nomination of the reference, and has all properties. Returns whether it has
/// victims.
fn check_nomination(
    case: &NominationCase,
    plain: &Scheduler,
) -> Result<bool, proptest::test_runner::TestCaseError> {
    let check = || -> TestCaseResult {
        proptest::prop_assert_eq!(&case.nominated, &plain.nominate("asks"));
        check_victims_suffice(case)?;
        check_victims_are_needed(case)?;
        check_victims_within_policy(case)?;
        let mut cluster_model = case.cluster_model.clone();
        for (name, _) in &case.nominated.victims {
            cluster_model.workloads.remove(name);
        }
        if case.nominated.plan.mode == Mode::Preempt && !case.nominated.victims.is_empty() {
            cluster_model.workloads.get_mut("asks").unwrap().reservation = Some(ModelReservation {
                usage: case.nominated.plan.usage.clone(),
                reserved_at_s: 99,
                is_evicted: false,
            });
        }
        check_all_limits(&Tree::new(&cluster_model))
    };
    check()?;
    Ok(!case.nominated.victims.is_empty())
}

#[test]
fn small_clusters_all_match_the_reference() {
    let grammar = ClusterBounds::from_env();
    let (mut checked, mut preempting, mut skipped) = (0_u64, 0_u64, 0_u64);
    for mut cluster_model in cluster_models(&grammar) {
        for size in 1..=grammar.sizes_max {
            if has_room(&cluster_model, size) {
                // No preemption: the request fits, or is more than the queue can ever use.
                skipped += 1;
                continue;
            }
            for priority in grammar.priorities {
                let asks = workload("asks".to_owned(), 0, *priority, size);
                cluster_model.workloads.insert(asks.name.clone(), asks);
                for algorithm in algorithms() {
                    cluster_model.options = Options {
                        algorithm,
                        ..cluster_model.options
                    };
                    preempting += all_policies(&mut cluster_model, &mut checked);
                }
                cluster_model.workloads.remove("asks");
            }
        }
    }
    println!("{checked} nominations, {preempting} with victims; {skipped} skipped");
    assert!(preempting * 5 > checked, "{preempting} of {checked}");
}

/// Checks the cluster with all policies; returns the number of nominations with victims.
fn all_policies(cluster_model: &mut ClusterModel, checked: &mut u64) -> u64 {
    let live = LiveState::from_model(cluster_model);
    let mut plain = Scheduler::new(cluster_model.options.clone());
    plain.cluster_model = cluster_model.clone();
    let is_fair = cluster_model.options.algorithm != Algorithm::Classical;
    let mut preempting = 0;
    for policy in policies() {
        if is_fair && policy.borrow_within_cohort != BorrowWithinCohort::Never {
            // Fair sharing ignores this policy.
            continue;
        }
        let own = cluster_model.queues.get_mut(QUEUES[0]).unwrap();
        own.preemption = policy;
        let mut live = live.clone();
        live.set_queue(own);
        plain
            .cluster_model
            .queues
            .insert(own.name.clone(), own.clone());
        let case = NominationCase::new(cluster_model, live, "asks");
        match check_nomination(&case, &plain) {
            Ok(has_victims) => preempting += u64::from(has_victims),
            Err(e) => panic!("{cluster_model:?}\n{e}"),
        }
        *checked += 1;
    }
    preempting
}
