//! Workloads in the queue: order, backoff and admission.

use crate::{admitted, settings};
use lockkeeper_preemption::requeue::{
    EvictedCondition, EvictionReason, LifecycleState, PodsReady, QueueOrderTimestamp,
    RequeueSettings, may_admit,
};
use lockkeeper_preemption::{
    Amount, Decision, FlavorFungibility, FlavorQuotas, FlavorResource, NodeId, Options, PodSet,
    Preemption, QueueSpec, QueueingStrategy, Quota, Reservation, ResourceGroup, State,
    WithinClusterQueue, WorkloadId, WorkloadSpec,
};

/// A queue with one cpu.
fn queue() -> (State, NodeId) {
    queue_with(1_000, Preemption::default())
}

fn queue_with(milli_cpu: i64, preemption: Preemption) -> (State, NodeId) {
    let mut state = State::new(Options::default());
    let cpu = state.resource("cpu");
    let flavor = state.flavor("default");
    let quota = Quota {
        nominal: Amount::new(milli_cpu),
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
        preemption,
        fungibility: FlavorFungibility::default(),
        strategy: QueueingStrategy::BestEffortFifo,
        backfill: None,
        weight: 1.0,
        is_active: true,
        elastic: None,
    });
    (state, queue)
}

/// A workload of one cpu. Workloads of different priority become inadmissible one by one.
fn add(state: &mut State, name: &str, priority: i32) -> WorkloadId {
    let cpu = state.resource("cpu");
    state.add_pending(WorkloadSpec {
        name,
        uid: name,
        queue: "queue",
        priority,
        preemption_priority: None,
        order_time: 0,
        waiting_since_s: 0,
        pod_sets: vec![PodSet {
            name: "main".into(),
            count: 1,
            count_min: None,
            requests: [(cpu, Amount::new(1_000))].into(),
            ineligible: [].into(),
            template_hash: 0,
        }],
        is_in_scope: true,
        preemption_labels: lockkeeper_preemption::job::PreemptionLabels::default(),
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

/// The workloads admitted in a cycle.
fn admitted_in_cycle(state: &mut State, now_s: i64) -> Vec<WorkloadId> {
    let cycle = state.next_cycle(now_s, false);
    let admitted = cycle.entries.iter();
    let admitted = admitted.filter(|it| it.decision == Decision::Admit);
    admitted.map(|it| it.workload).collect()
}

#[test]
fn held_workload_is_considered_after_hold_ends() {
    let (mut state, queue) = queue();
    let job = add(&mut state, "job", 0);
    state.set_backoff(job, 60);
    assert_eq!(state.node_view(queue).backing_off(), [job]);
    assert!(
        state.node_view(queue).active().is_empty()
            && state.node_view(queue).inadmissible().is_empty()
    );
    let cycle = state.next_cycle(59, false);
    assert!(cycle.heads.is_empty());
    assert_eq!(admitted_in_cycle(&mut state, 60), [job]);
    assert!(state.node_view(queue).backing_off().is_empty());
}

#[test]
fn other_workloads_are_admitted_during_hold() {
    let (mut state, queue) = queue();
    let first = add(&mut state, "first", 9);
    let second = add(&mut state, "second", 0);
    state.set_backoff(first, 60);
    assert_eq!(admitted_in_cycle(&mut state, 0), [second]);
    // It has its old position after the hold.
    let third = add(&mut state, "third", 5);
    state.release(second);
    assert_eq!(admitted_in_cycle(&mut state, 60), [first]);
    assert_eq!(state.node_view(queue).active(), [third, second]);
}

#[test]
fn freed_quota_does_not_end_backoff() {
    let (mut state, queue) = queue();
    let running = add(&mut state, "running", 0);
    assert_eq!(admitted_in_cycle(&mut state, 0), [running]);
    let parked = add(&mut state, "parked", 1);
    let held = add(&mut state, "held", 2);
    state.set_backoff(held, 60);
    assert!(admitted_in_cycle(&mut state, 1).is_empty());
    assert_eq!(state.node_view(queue).inadmissible(), [parked]);
    state.remove(running);
    assert!(state.node_view(queue).inadmissible().is_empty());
    assert_eq!(state.node_view(queue).backing_off(), [held]);
    assert_eq!(state.node_view(queue).active(), [parked]);
}

#[test]
fn inadmissible_workload_can_be_held() {
    let (mut state, queue) = queue();
    let running = add(&mut state, "running", 9);
    let parked = add(&mut state, "parked", 0);
    assert_eq!(admitted_in_cycle(&mut state, 0), [running]);
    state.next_cycle(1, false);
    assert_eq!(state.node_view(queue).inadmissible(), [parked]);
    state.set_backoff(parked, 60);
    assert!(state.node_view(queue).inadmissible().is_empty());
    state.remove(running);
    assert!(state.node_view(queue).active().is_empty());
    assert_eq!(admitted_in_cycle(&mut state, 60), [parked]);
}

#[test]
fn released_workload_is_held() {
    let (mut state, queue) = queue();
    let job = add(&mut state, "job", 0);
    assert_eq!(admitted_in_cycle(&mut state, 0), [job]);
    state.mark_evicted(job);
    state.set_backoff(job, 60);
    assert!(
        state.node_view(queue).backing_off().is_empty()
            && state.node_view(queue).active().is_empty()
    );
    assert!(state.next_cycle(100, false).heads.is_empty());
    state.set_backoff(job, 200);
    state.release(job);
    assert_eq!(state.node_view(queue).backing_off(), [job]);
    assert!(admitted_in_cycle(&mut state, 199).is_empty());
    assert_eq!(admitted_in_cycle(&mut state, 200), [job]);
}

#[test]
fn last_hold_replaces_earlier_hold() {
    let (mut state, queue) = queue();
    let job = add(&mut state, "job", 0);
    state.set_backoff(job, i64::MAX);
    assert!(admitted_in_cycle(&mut state, 1_000_000).is_empty());
    state.set_backoff(job, 30);
    assert_eq!(state.node_view(queue).backing_off(), [job]);
    assert_eq!(admitted_in_cycle(&mut state, 30), [job]);
}

#[test]
fn expired_holds_are_ordered_by_hold_end() {
    let (mut state, queue) = queue();
    let long = add(&mut state, "long", 9);
    let short = add(&mut state, "short", 0);
    state.set_backoff(long, 90);
    state.set_backoff(short, 60);
    assert_eq!(state.node_view(queue).backing_off(), [short, long]);
}

#[test]
fn removed_workload_is_no_longer_held() {
    let (mut state, queue) = queue();
    let gone = add(&mut state, "gone", 0);
    let reserved = add(&mut state, "reserved", 0);
    state.set_backoff(gone, 60);
    state.set_backoff(reserved, 60);
    state.remove(gone);
    let quota = reservation(&mut state);
    state.reserve(reserved, &quota);
    assert!(state.node_view(queue).backing_off().is_empty());
    assert!(state.next_cycle(60, false).heads.is_empty());
    // The removed hold is not restored.
    state.release(reserved);
    assert_eq!(admitted_in_cycle(&mut state, 61), [reserved]);
}

#[test]
fn order_time_depends_on_requeuing_timestamp() {
    let mut job = LifecycleState {
        created_at_s: 5,
        ..LifecycleState::default()
    };
    let by_eviction = RequeueSettings::default();
    let by_creation = settings(|it| it.timestamp = QueueOrderTimestamp::Creation);
    let times = |job: &LifecycleState| [&by_eviction, &by_creation].map(|it| job.order_time_ms(it));
    assert_eq!(times(&job), [5_000, 5_000]);
    let mut evicted = |reason| {
        job.evicted = Some(EvictedCondition { reason, at_s: 90 });
        times(&job)
    };
    assert_eq!(evicted(EvictionReason::PodsReadyTimeout), [90_000, 5_000]);
    assert_eq!(evicted(EvictionReason::AdmissionCheck), [90_000, 90_000]);
    assert_eq!(evicted(EvictionReason::Preempted), [5_000, 5_000]);
    job.reclaimed_while_borrowing_at_s = Some(90);
    assert_eq!(times(&job), [5_000, 5_000]);
    let behind = settings(|it| it.priority_sorting_within_cohort = false);
    assert_eq!(job.order_time_ms(&behind), 90_001);
}

#[test]
fn block_admission_waits_until_all_pods_are_ready() {
    let on = settings(|it| it.block_admission = true);
    let mut holders = [admitted(0), admitted(1)];
    assert!(!may_admit(&on, &holders));
    assert!(may_admit(&settings(|_| {}), &holders));
    holders[0].pods_ready = PodsReady::Yes;
    holders[1].is_finished = true;
    assert!(may_admit(&on, &holders));
    holders[1].is_finished = false;
    assert!(!may_admit(&on, &holders));
    holders[1].on_job_stopped();
    assert!(may_admit(&on, &holders));
    assert!(may_admit(&on, []));
}

/// The name of the victim of `high`: `observed` has an object with an admission in second 0, and `scheduled` is
/// admitted by a cycle in the same second.
fn victim(is_newest: bool) -> String {
    let preemption = Preemption {
        within_cluster_queue: WithinClusterQueue::LowerPriority,
        ..Preemption::default()
    };
    let (mut state, _) = queue_with(2_000, preemption);
    if is_newest {
        state.treat_new_as_newest();
    }
    let observed = add(&mut state, "observed", 0);
    let held = reservation(&mut state);
    state.reserve(observed, &held);
    let scheduled = add(&mut state, "scheduled", 0);
    assert_eq!(admitted_in_cycle(&mut state, 0), [scheduled]);
    add(&mut state, "high", 9);
    let cycle = state.next_cycle(0, false);
    let Decision::Preempt(victims) = &cycle.entries[0].decision else {
        panic!("{:?}", cycle.entries[0].decision);
    };
    state.workload_name(victims[0].workload).to_owned()
}

#[test]
fn workload_admitted_this_cycle_counts_as_newest() {
    assert_eq!(victim(false), "observed", "same second: the uid decides");
    assert_eq!(victim(true), "scheduled");
}
