//! Invalid input: nothing panics, nothing overflows, and valid objects keep their correct numbers.

mod random;

use lockkeeper_preemption::{
    Algorithm, Amount, BorrowWithinCohort, CohortSpec, Decision, FlavorFungibility, FlavorQuotas,
    FlavorResource, Mode, Options, PodSet, Preemption, QueueSpec, QueueingStrategy, Quota,
    ReclaimWithinCohort, Reservation, ResourceGroup, State, Trace, WhatIf, WithinClusterQueue,
    WorkloadId, WorkloadSpec,
};

fn preempts_all() -> Preemption {
    Preemption {
        within_cluster_queue: WithinClusterQueue::LowerOrNewerEqualPriority,
        reclaim_within_cohort: ReclaimWithinCohort::Any,
        borrow_within_cohort: BorrowWithinCohort::LowerPriority {
            threshold_max: None,
        },
        ..Preemption::default()
    }
}

fn nominal(amount: i64) -> Quota {
    Quota {
        nominal: Amount::new(amount),
        borrowing_limit: None,
        lending_limit: None,
    }
}

/// A queue with one flavor and one resource, `f` and `cpu`.
fn queue<'a>(
    state: &mut State,
    name: &'a str,
    cohort: Option<&'a str>,
    quota: Quota,
) -> QueueSpec<'a> {
    let of = cpu(state);
    QueueSpec {
        name,
        cohort,
        groups: vec![ResourceGroup {
            resources: vec![of.resource],
            flavors: vec![FlavorQuotas {
                flavor: of.flavor,
                quotas: vec![(of.resource, quota)],
            }],
        }],
        preemption: preempts_all(),
        fungibility: FlavorFungibility::default(),
        strategy: QueueingStrategy::BestEffortFifo,
        backfill: None,
        weight: 1.0,
        is_active: true,
        elastic: None,
    }
}

fn cpu(state: &mut State) -> FlavorResource {
    FlavorResource {
        flavor: state.flavor("f"),
        resource: state.resource("cpu"),
    }
}

fn workload<'a>(state: &mut State, name: &'a str, queue: &'a str, asks: i64) -> WorkloadSpec<'a> {
    WorkloadSpec {
        name,
        uid: name,
        queue,
        priority: 0,
        preemption_priority: None,
        order_time: 0,
        waiting_since_s: 0,
        pod_sets: vec![PodSet {
            name: "main".into(),
            count: 1,
            count_min: None,
            requests: Box::new([(cpu(state).resource, Amount::new(asks))]),
            ineligible: Box::new([]),
            template_hash: 0,
        }],
        is_in_scope: true,
        preemption_labels: lockkeeper_preemption::job::PreemptionLabels::default(),
    }
}

fn reservation(state: &mut State, amount: i64) -> Reservation {
    Reservation {
        usage: vec![(cpu(state), Amount::new(amount))],
        reserved_at_s: 1,
        is_evicted: false,
    }
}

/// The usage of `f` and `cpu` by a queue.
fn used(state: &State, queue: &str) -> i64 {
    let usage = state.node_view(state.queue(queue).unwrap()).usage();
    usage.iter().map(|(_, amount)| amount.get()).sum()
}

fn names(state: &State, cycle: &lockkeeper_preemption::Cycle) -> Vec<String> {
    let admitted = cycle.entries.iter();
    let admitted = admitted.filter(|it| it.decision == Decision::Admit);
    admitted
        .map(|it| state.workload_name(it.workload).to_owned())
        .collect()
}

#[test]
fn tree_with_ten_thousand_nested_cohorts_is_decided() {
    const DEPTH: usize = 10_000;
    let mut state = State::new(Options::default());
    let of = cpu(&mut state);
    let cohorts: Vec<String> = (0..DEPTH).map(|it| format!("c{it}")).collect();
    let mut root = None;
    for at in 0..DEPTH {
        let quota = (of, nominal(7));
        let id = state.set_cohort(CohortSpec {
            name: &cohorts[at],
            parent: at.checked_sub(1).map(|it| &*cohorts[it]),
            quotas: if at == 0 { vec![quota] } else { Vec::new() },
            weight: 1.0,
        });
        root = root.or(Some(id));
    }
    for name in ["a", "b"] {
        let spec = queue(&mut state, name, cohorts.last().map(|it| &**it), nominal(0));
        state.set_queue(spec);
    }
    let spec = workload(&mut state, "low", "a", 7);
    let low = state.add_pending(spec);
    let nomination = WhatIf::new(&mut state).nominate(low, Trace::on()).unwrap();
    let level = nomination.assignment.borrowing_level;
    assert_eq!(nomination.assignment.mode, Mode::Fit);
    assert_eq!(usize::try_from(level).unwrap(), DEPTH);
    assert_eq!(names(&state, &state.clone().next_cycle(1, true)), ["low"]);
    state.next_cycle(1, false);
    let of_root = state.node_view(root.unwrap()).usage();
    assert_eq!(of_root, [(of, Amount::new(7))]);
    let mut spec = workload(&mut state, "high", "b", 7);
    spec.priority = 1;
    state.add_pending(spec);
    let cycle = state.next_cycle(2, true);
    let Decision::Preempt(victims) = &cycle.entries[0].decision else {
        panic!("{:?}", cycle.entries[0].decision);
    };
    assert_eq!(victims[0].workload, low);
}

#[test]
fn cohort_cycle_admits_no_workload_on_or_below_it() {
    for circle in [vec!["x"], vec!["x", "y"], vec!["x", "y", "z"]] {
        for algorithm in [Algorithm::Classical, Algorithm::FairSharing(Vec::new())] {
            let mut state = State::new(Options {
                algorithm,
                ..Options::default()
            });
            let of = cpu(&mut state);
            for (at, name) in circle.iter().enumerate() {
                state.set_cohort(CohortSpec {
                    name,
                    parent: Some(circle[(at + 1) % circle.len()]),
                    quotas: vec![(of, nominal(5))],
                    weight: 1.0,
                });
            }
            state.set_cohort(CohortSpec {
                name: "below",
                parent: Some("x"),
                quotas: Vec::new(),
                weight: 1.0,
            });
            for (name, cohort) in [("a", "x"), ("b", "below"), ("free", "other")] {
                let spec = queue(&mut state, name, Some(cohort), nominal(5));
                state.set_queue(spec);
                let spec = workload(&mut state, name, name, 1);
                let id = state.add_pending(spec);
                WhatIf::new(&mut state).nominate(id, Trace::on());
            }
            let cycle = state.next_cycle(1, true);
            assert_eq!(names(&state, &cycle), ["free"]);
            // Without the cycle, its workloads are admitted.
            state.remove_cohort("x");
            let cycle = state.next_cycle(2, true);
            assert_eq!(names(&state, &cycle).len(), 2);
        }
    }
}

#[test]
fn usage_sum_beyond_i64_fits_nowhere() {
    for (quota, holds, asks) in [
        (i64::MAX - 1, i64::MAX - 2, 2),
        (i64::MAX - 1, i64::MAX - 1, i64::MAX - 1),
        (i64::MAX - 1, 0, i64::MAX),
        (0, i64::MAX, 1),
        (5, i64::MAX - 1, 6),
        (i64::MIN, 0, 1),
        (-1, 0, 1),
    ] {
        let mut state = State::new(Options::default());
        let mut spec = queue(&mut state, "q", None, nominal(quota));
        spec.preemption = Preemption::default();
        state.set_queue(spec);
        let spec = workload(&mut state, "runs", "q", holds);
        let reservation = reservation(&mut state, holds);
        state.add_admitted(spec, &reservation);
        let spec = workload(&mut state, "asks", "q", asks);
        state.add_pending(spec);
        let cycle = state.next_cycle(1, true);
        let admitted = names(&state, &cycle);
        assert!(admitted.is_empty(), "{asks} beside {holds} of {quota}");
        assert_eq!(used(&state, "q"), holds);
    }
}

/// The quotas of both queues exceed 64 bits together, so their sum is unlimited; the usage is not.
#[test]
fn overflowing_quota_lends_what_it_has() {
    let mut state = State::new(Options::default());
    for name in ["a", "b"] {
        let spec = queue(&mut state, name, Some("all"), nominal(i64::MAX - 1));
        state.set_queue(spec);
        let spec = workload(&mut state, name, name, i64::MAX - 1);
        state.add_pending(spec);
    }
    let cycle = state.next_cycle(1, true);
    assert_eq!(names(&state, &cycle), ["a", "b"]);
    assert_eq!(used(&state, "a"), i64::MAX - 1);
}

#[test]
fn duplicate_name_replaces_the_earlier_object() {
    let mut state = State::new(Options::default());
    // A queue and its cohort may have the same name: this is not a cycle.
    for quota in [3, 5] {
        let spec = queue(&mut state, "q", Some("q"), nominal(quota));
        state.set_queue(spec);
    }
    for holds in [2, 4] {
        let spec = workload(&mut state, "w", "q", holds);
        let reservation = reservation(&mut state, holds);
        state.add_admitted(spec, &reservation);
    }
    assert_eq!(used(&state, "q"), 4);
    let spec = workload(&mut state, "w", "q", 5);
    state.add_pending(spec);
    let cycle = state.next_cycle(1, true);
    assert_eq!(state.node_view(cycle.heads[0].queue).name(), "q");
    assert_eq!(names(&state, &cycle), ["w"]);
    assert_eq!((used(&state, "q"), cycle.entries.len()), (5, 1));
}

/// Lists of unique names, each with a duplicate.
#[test]
fn duplicate_list_items_do_not_panic() {
    let mut state = State::new(Options::default());
    let of = cpu(&mut state);
    let mut spec = queue(&mut state, "q", Some("all"), nominal(5));
    let mut group = spec.groups[0].clone();
    group.resources.push(of.resource);
    let quotas = group.flavors[0].quotas[0];
    group.flavors[0].quotas.push(quotas);
    group.flavors.push(group.flavors[0].clone());
    spec.groups = vec![group.clone(), group];
    state.set_queue(spec);
    let mut spec = workload(&mut state, "twice", "q", 2);
    spec.pod_sets[0].requests =
        Box::new([(of.resource, Amount::new(2)), (of.resource, Amount::new(2))]);
    state.add_pending(spec);
    state.next_cycle(1, true);
    let spec = workload(&mut state, "runs", "q", 1);
    let mut reservation = reservation(&mut state, 1);
    reservation.usage.push(reservation.usage[0]);
    let id = state.add_admitted(spec, &reservation);
    let before = used(&state, "q");
    state.remove(id);
    // Usage that was counted twice is released twice.
    assert_eq!(used(&state, "q"), before - 2);
}

#[test]
fn uncovered_resource_does_not_fit() {
    let mut state = State::new(Options::default());
    let empty = ResourceGroup {
        resources: Vec::new(),
        flavors: Vec::new(),
    };
    let mut spec = queue(&mut state, "q", Some("all"), nominal(5));
    spec.groups.push(empty.clone());
    state.set_queue(spec);
    let mut spec = queue(&mut state, "bare", Some("all"), nominal(5));
    spec.groups = vec![empty];
    state.set_queue(spec);
    let gpu = state.resource("gpu");
    let mut spec = workload(&mut state, "gpu", "q", 1);
    spec.pod_sets[0].requests = Box::new([(gpu, Amount::new(1))]);
    state.add_pending(spec);
    for (name, queue) in [("bare", "bare"), ("nowhere", "nowhere")] {
        let spec = workload(&mut state, name, queue, 1);
        state.add_pending(spec);
    }
    let cycle = state.next_cycle(1, true);
    let decided = cycle.entries.iter();
    let decided: Vec<_> = decided
        .map(|it| (state.workload_name(it.workload), &it.decision))
        .collect();
    assert_eq!(
        decided,
        [("bare", &Decision::NoFit), ("gpu", &Decision::NoFit)]
    );
}

#[test]
fn workload_with_empty_request_is_admitted() {
    let mut state = State::new(Options::default());
    let spec = queue(&mut state, "q", None, nominal(0));
    state.set_queue(spec);
    for (name, count) in [("none", 0), ("zero", 1)] {
        let mut spec = workload(&mut state, name, "q", 0);
        spec.pod_sets[0].count = count;
        state.add_pending(spec);
    }
    let mut spec = workload(&mut state, "bare", "q", 0);
    spec.pod_sets.clear();
    state.add_pending(spec);
    let mut admitted = Vec::new();
    for now_s in 0..3 {
        let cycle = state.next_cycle(now_s, true);
        admitted.extend(names(&state, &cycle));
    }
    admitted.sort();
    assert_eq!(admitted, ["bare", "none", "zero"]);
    assert_eq!(used(&state, "q"), 0);
}

#[test]
fn removed_workload_id_has_no_effect() {
    let mut state = State::new(Options::default());
    let spec = queue(&mut state, "q", None, nominal(5));
    state.set_queue(spec);
    let spec = workload(&mut state, "gone", "q", 3);
    let reservation = reservation(&mut state, 3);
    let gone = state.add_admitted(spec, &reservation);
    state.remove(gone);
    let before = format!("{:?}", state.node_view(state.queue("q").unwrap()).usage());
    let everything = |state: &mut State, id: WorkloadId| {
        state.release(id);
        state.mark_evicted(id);
        state.set_backoff(id, 9);
        state.reserve(id, &reservation);
        state.remove(id);
        assert!(WhatIf::new(state).nominate(id, Trace::on()).is_none());
        assert!(
            WhatIf::new(state)
                .search(id, &[], &[], &mut Trace::on())
                .is_empty()
        );
        assert_eq!(state.workload_name(id), "");
        assert!(
            state.workload_view(id).pod_sets().is_empty()
                && state.workload_view(id).queue().is_none()
        );
    };
    everything(&mut state, gone);
    assert!(state.next_cycle(1, true).entries.is_empty());
    assert_eq!(
        format!("{:?}", state.node_view(state.queue("q").unwrap()).usage()),
        before
    );
}

#[test]
fn workload_with_very_many_pod_sets_is_decided() {
    const SETS: usize = 50_000;
    let mut state = State::new(Options::default());
    let most = i64::try_from(SETS).unwrap();
    let spec = queue(&mut state, "q", None, nominal(most));
    state.set_queue(spec);
    for (name, asks, expected) in [("small", 1, Mode::Fit), ("large", 2, Mode::NoFit)] {
        let mut spec = workload(&mut state, name, "q", asks);
        spec.pod_sets = vec![spec.pod_sets[0].clone(); SETS];
        let id = state.add_pending(spec);
        let nomination = WhatIf::new(&mut state).nominate(id, Trace::off()).unwrap();
        assert_eq!(nomination.assignment.mode, expected);
        if expected == Mode::Fit {
            let usage = nomination.assignment.usage;
            assert_eq!(usage, [(cpu(&mut state), Amount::new(most))]);
        }
    }
    let cycle = state.next_cycle(1, false);
    assert_eq!(names(&state, &cycle), ["large"; 0]);
    assert_eq!(used(&state, "q"), 0);
}
