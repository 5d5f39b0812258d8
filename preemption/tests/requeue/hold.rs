//! Workloads whose backoff is ahead, in the queue.

use lockkeeper_preemption::{
    Amount, Decision, FlavorFungibility, FlavorQuotas, FlavorResource, NodeId, Options, PodSet,
    Preemption, QueueSpec, QueueingStrategy, Quota, Reservation, ResourceGroup, State, WorkloadId,
    WorkloadSpec,
};

/// A queue with one cpu.
fn queue() -> (State, NodeId) {
    let mut state = State::new(Options::default());
    let cpu = state.resource("cpu");
    let flavor = state.flavor("default");
    let quota = Quota {
        nominal: Amount::new(1_000),
        ..Quota::default()
    };
    let queue = state.set_queue(QueueSpec {
        name: "queue",
        cohort: None,
        groups: vec![ResourceGroup {
            resources: vec![cpu],
            flavors: vec![FlavorQuotas {
                flavor,
                quotas: vec![(cpu, quota)],
            }],
        }],
        preemption: Preemption::default(),
        fungibility: FlavorFungibility::default(),
        strategy: QueueingStrategy::BestEffortFifo,
        weight: 1.0,
        is_active: true,
    });
    (state, queue)
}

/// A workload of one cpu. Workloads of different priority are parked one by one.
fn add(state: &mut State, name: &str, priority: i32) -> WorkloadId {
    let cpu = state.resource("cpu");
    state.add_pending(WorkloadSpec {
        name,
        uid: name,
        queue: "queue",
        priority,
        order_time_s: 0,
        pod_sets: vec![PodSet {
            name: "main".into(),
            count: 1,
            count_min: None,
            requests: [(cpu, Amount::new(1_000))].into(),
            ineligible: [].into(),
            shape: 0,
        }],
        is_in_scope: true,
    })
}

fn reservation(state: &mut State) -> Reservation {
    let of = FlavorResource {
        flavor: state.flavor("default"),
        resource: state.resource("cpu"),
    };
    Reservation {
        usage: vec![(of, Amount::new(1_000))],
        reserved_at_s: 0,
        is_evicted: false,
    }
}

/// Who was admitted in a cycle.
fn admitted(state: &mut State, now_s: i64) -> Vec<WorkloadId> {
    let cycle = state.next_cycle(now_s, false);
    let admitted = cycle.entries.iter();
    let admitted = admitted.filter(|it| it.decision == Decision::Admit);
    admitted.map(|it| it.workload).collect()
}

#[test]
fn a_held_workload_is_looked_at_when_its_time_has_come() {
    let (mut state, queue) = queue();
    let job = add(&mut state, "job", 0);
    state.hold(job, 60);
    assert_eq!(state.held(queue), [job]);
    assert!(state.active(queue).is_empty() && state.parked(queue).is_empty());
    let cycle = state.next_cycle(59, false);
    assert!(cycle.heads.is_empty());
    assert_eq!(admitted(&mut state, 60), [job]);
    assert!(state.held(queue).is_empty());
}

#[test]
fn others_have_their_chance_meanwhile() {
    let (mut state, queue) = queue();
    let first = add(&mut state, "first", 9);
    let second = add(&mut state, "second", 0);
    state.hold(first, 60);
    assert_eq!(admitted(&mut state, 0), [second]);
    // It is in its place when it is back.
    let third = add(&mut state, "third", 5);
    state.release(second);
    assert_eq!(admitted(&mut state, 60), [first]);
    assert_eq!(state.active(queue), [third, second]);
}

#[test]
fn quota_that_becomes_free_does_not_end_a_backoff() {
    let (mut state, queue) = queue();
    let running = add(&mut state, "running", 0);
    assert_eq!(admitted(&mut state, 0), [running]);
    let parked = add(&mut state, "parked", 1);
    let held = add(&mut state, "held", 2);
    state.hold(held, 60);
    assert!(admitted(&mut state, 1).is_empty());
    assert_eq!(state.parked(queue), [parked]);
    assert_eq!(state.remove(running), [parked]);
    assert_eq!(state.held(queue), [held]);
    assert_eq!(state.active(queue), [parked]);
}

#[test]
fn a_parked_workload_can_be_held() {
    let (mut state, queue) = queue();
    let running = add(&mut state, "running", 9);
    let parked = add(&mut state, "parked", 0);
    assert_eq!(admitted(&mut state, 0), [running]);
    state.next_cycle(1, false);
    assert_eq!(state.parked(queue), [parked]);
    state.hold(parked, 60);
    assert!(state.parked(queue).is_empty());
    assert!(state.remove(running).is_empty());
    assert_eq!(admitted(&mut state, 60), [parked]);
}

#[test]
fn a_running_workload_is_held_when_it_is_released() {
    let (mut state, queue) = queue();
    let job = add(&mut state, "job", 0);
    assert_eq!(admitted(&mut state, 0), [job]);
    state.mark_evicted(job);
    state.hold(job, 60);
    assert!(state.held(queue).is_empty() && state.active(queue).is_empty());
    assert!(state.next_cycle(100, false).heads.is_empty());
    state.hold(job, 200);
    state.release(job);
    assert_eq!(state.held(queue), [job]);
    assert!(admitted(&mut state, 199).is_empty());
    assert_eq!(admitted(&mut state, 200), [job]);
}

#[test]
fn the_last_hold_counts() {
    let (mut state, queue) = queue();
    let job = add(&mut state, "job", 0);
    state.hold(job, i64::MAX);
    assert!(admitted(&mut state, 1_000_000).is_empty());
    state.hold(job, 30);
    assert_eq!(state.held(queue), [job]);
    assert_eq!(admitted(&mut state, 30), [job]);
}

#[test]
fn those_that_are_held_the_shortest_come_first() {
    let (mut state, queue) = queue();
    let long = add(&mut state, "long", 9);
    let short = add(&mut state, "short", 0);
    state.hold(long, 90);
    state.hold(short, 60);
    assert_eq!(state.held(queue), [short, long]);
}

#[test]
fn whoever_leaves_is_held_no_more() {
    let (mut state, queue) = queue();
    let gone = add(&mut state, "gone", 0);
    let reserved = add(&mut state, "reserved", 0);
    state.hold(gone, 60);
    state.hold(reserved, 60);
    state.remove(gone);
    let quota = reservation(&mut state);
    state.reserve(reserved, &quota);
    assert!(state.held(queue).is_empty());
    assert!(state.next_cycle(60, false).heads.is_empty());
    // An old hold does not come back.
    state.release(reserved);
    assert_eq!(admitted(&mut state, 61), [reserved]);
}
