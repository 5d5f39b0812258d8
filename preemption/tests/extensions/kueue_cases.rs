//! Cases of Kueue that are rare in random clusters: queues that admit nothing, requests of zero, unlimited quota.

use crate::fixture::{Fixture, TestQueue, test_queue};
use lockkeeper_preemption::{
    Algorithm, Amount, Decision, FairStrategy, FlavorQuotas, FlavorResource, Options, QueueSpec,
    QueueingStrategy, Quota, Reservation, ResourceGroup, State, WorkloadSpec,
};

fn algorithms() -> [Options; 2] {
    let strategies = vec![
        FairStrategy::LessThanOrEqualToFinalShare,
        FairStrategy::LessThanInitialShare,
    ];
    [Algorithm::Classical, Algorithm::FairSharing(strategies)].map(|algorithm| Options {
        algorithm,
        ..Options::default()
    })
}

/// Kueue's snapshot has no inactive queues: their usage counts in the cohort, and their workloads stay.
#[test]
fn workloads_of_inactive_queues_are_no_candidates() {
    for options in algorithms() {
        for is_active in [true, false] {
            let guest = TestQueue {
                is_active,
                ..test_queue("guest", 0)
            };
            let owner = test_queue("owner", 4);
            let mut house = Fixture::new(options.clone(), &[owner, guest]);
            house.add_admitted("lent", "guest", 0, 4);
            house.add_pending("mine", "owner", 5, 4);
            let expected = if is_active {
                "mine preempts lent"
            } else {
                "mine NoCandidates"
            };
            let decisions = house.run_cycle();
            assert_eq!(decisions, [expected], "{is_active}");
        }
    }
}

/// A queue of two resources of the flavor `f`.
fn set_queue(state: &mut State, name: &str, quotas: [(FlavorResource, Quota); 2]) {
    let resources = quotas.iter().map(|(of, _)| of.resource).collect();
    let flavor = quotas[0].0.flavor;
    let quotas = quotas
        .iter()
        .map(|(of, quota)| (of.resource, *quota))
        .collect();
    state.set_queue(QueueSpec {
        name,
        cohort: Some("all"),
        groups: vec![ResourceGroup {
            resources,
            flavors: vec![FlavorQuotas { flavor, quotas }],
        }],
        preemption: lockkeeper_preemption::Preemption {
            within_cluster_queue: lockkeeper_preemption::WithinClusterQueue::LowerPriority,
            reclaim_within_cohort: lockkeeper_preemption::ReclaimWithinCohort::LowerPriority,
            ..lockkeeper_preemption::Preemption::default()
        },
        fungibility: lockkeeper_preemption::FlavorFungibility::default(),
        strategy: QueueingStrategy::BestEffortFifo,
        backfill: None,
        weight: 1.0,
        is_active: true,
        elastic: None,
    });
}

fn spec<'a>(
    name: &'a str,
    queue: &'a str,
    priority: i32,
    requests: &[(FlavorResource, i64)],
) -> WorkloadSpec<'a> {
    let requests = requests.iter();
    let requests = requests.map(|(of, amount)| (of.resource, Amount::new(*amount)));
    WorkloadSpec {
        name,
        uid: name,
        queue,
        priority,
        preemption_priority: None,
        order_time: 0,
        waiting_since_s: 0,
        pod_sets: vec![lockkeeper_preemption::PodSet {
            name: "main".into(),
            count: 1,
            count_min: None,
            requests: requests.collect(),
            ineligible: Box::new([]),
            template_hash: 0,
        }],
        is_in_scope: true,
        preemption_labels: lockkeeper_preemption::job::PreemptionLabels::default(),
    }
}

fn quota(nominal: i64) -> Quota {
    Quota {
        nominal: Amount::new(nominal),
        ..Quota::default()
    }
}

/// A workload with a flavor for a request of zero is a candidate for that resource, as in Kueue. With a candidate in another queue the
/// preemptor is tried without borrowing first, which needs more quota of its own.
#[test]
fn request_of_zero_makes_a_candidate() {
    for (gpus, expected) in [(None, "o1"), (Some(0), "o2"), (Some(1), "o2")] {
        let mut state = State::new(Options::default());
        let flavor = state.flavor("f");
        let [cpu, gpu] = ["cpu", "gpu"].map(|name| FlavorResource {
            flavor,
            resource: state.resource(name),
        });
        for (name, gpus) in [("own", 4), ("guest", 4), ("lender", 2)] {
            set_queue(&mut state, name, [(cpu, quota(100)), (gpu, quota(gpus))]);
        }
        let mut admit = |name, queue, priority, usage: &[(FlavorResource, i64)]| {
            let held = usage.iter().map(|(of, amount)| (*of, Amount::new(*amount)));
            let held = Reservation {
                usage: held.collect(),
                reserved_at_s: 10,
                is_evicted: false,
            };
            state.add_admitted(spec(name, queue, priority, usage), &held);
        };
        admit("o1", "own", 0, &[(gpu, 1)]);
        admit("o2", "own", 1, &[(gpu, 2)]);
        let others = 5 - gpus.unwrap_or_default();
        admit("g1", "guest", 100, &[(gpu, others)]);
        let mut usage = vec![(cpu, 1)];
        usage.extend(gpus.map(|it| (gpu, it)));
        admit("z", "guest", 0, &usage);
        state.add_pending(spec("p", "own", 10, &[(gpu, 3)]));
        let cycle = state.next_cycle(1_000, false);
        let Decision::Preempt(victims) = &cycle.entries[0].decision else {
            panic!("{:?}", cycle.entries[0].decision);
        };
        let names: Vec<&str> = victims
            .iter()
            .map(|it| state.workload_name(it.workload))
            .collect();
        assert_eq!(names, [expected], "{gpus:?}");
    }
}

/// An unlimited quota lends no more than its lending limit.
#[test]
fn unlimited_quota_lends_its_limit() {
    let lends = |nominal: i64, lending_limit: Option<i64>| {
        let mut state = State::new(Options::default());
        let flavor = state.flavor("f");
        let [cpu, gpu] = ["cpu", "gpu"].map(|name| FlavorResource {
            flavor,
            resource: state.resource(name),
        });
        let lender = Quota {
            lending_limit: lending_limit.map(Amount::new),
            ..quota(nominal)
        };
        set_queue(&mut state, "lender", [(cpu, lender), (gpu, quota(0))]);
        set_queue(&mut state, "borrower", [(cpu, quota(0)), (gpu, quota(0))]);
        state.add_pending(spec("w", "borrower", 0, &[(cpu, 100)]));
        let cycle = state.next_cycle(1, false);
        cycle.entries[0].decision == Decision::Admit
    };
    assert!(lends(i64::MAX, None));
    assert!(lends(1_000_000, Some(100)));
    for nominal in [1_000_000, i64::MAX] {
        assert!(!lends(nominal, Some(5)), "{nominal}");
    }
}
