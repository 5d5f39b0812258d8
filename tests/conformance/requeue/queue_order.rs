//! The order of pending workloads, in a real queue.

use super::{differ, evicted, lifecycle_state, second, settings};
use lockkeeper_preemption::requeue::LifecycleState;
use lockkeeper_preemption::{
    Amount, Compatibility, Damping, Decision, FlavorFungibility, FlavorQuotas, FlavorResource,
    NodeId, Options, PodSet, Preemption, QueueSpec, QueueingStrategy, Quota, Reservation,
    ResourceGroup, State, WithinClusterQueue, WorkloadSpec,
};
use serde_json::Value;

/// The workload that is preempted so that another becomes the one that the queue waits for.
const VICTIM: &str = "the victim of the sticky workload";

pub fn head(value: &Value) -> Vec<String> {
    let order = order(value);
    let head = order.first().map(String::as_str);
    Vec::from_iter(differ("head", head, value["expected_head"].as_str()))
}

pub fn all(value: &Value) -> Vec<String> {
    let expected = value["expected_order"].as_array().unwrap();
    let expected: Vec<String> = expected.iter().map(text).collect();
    Vec::from_iter(differ("order", order(value), expected))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn order(value: &Value) -> Vec<String> {
    let mut config = value["config"].clone();
    if !value["priority_sorting_within_cohort"].is_null() {
        config["priority_sorting_within_cohort"] = value["priority_sorting_within_cohort"].clone();
    }
    let settings = settings(&config);
    let (mut state, queue) = queue();
    let mut workloads: Vec<&Value> = value["workloads"].as_array().unwrap().iter().collect();
    // If the queue waits for a preemptor, that workload comes first, and no other workload is considered.
    workloads.sort_by_key(|workload| workload["sticky"] != true);
    for workload in workloads {
        let time_ms = placed(workload).order_time_ms(&settings);
        let name = text(&workload["name"]);
        let uid = workload["uid"].as_str().unwrap_or_default();
        let priority = workload["priority"].as_i64().unwrap_or_default();
        let priority = i32::try_from(priority).unwrap();
        let pending = spec(&mut state, &name, uid, priority, time_ms);
        state.add_pending(pending);
        if workload["sticky"] == true {
            let cycle = state.next_cycle(0, false);
            let decision = &cycle.entries[0].decision;
            assert!(matches!(decision, Decision::Preempt(_)), "{decision:?}");
        }
    }
    let active = state.node_view(queue).active().into_iter();
    active
        .map(|it| state.workload_name(it).to_owned())
        .collect()
}

/// The fields that determine the position of a workload.
fn placed(workload: &Value) -> LifecycleState {
    let mut standing = lifecycle_state(workload);
    let is_true = |condition: &Value| condition["status"] != false && !condition.is_null();
    let condition = &workload["evicted"];
    if is_true(condition) {
        let at_s = second(&condition["at_s"]).unwrap();
        standing.evicted = Some(evicted(&text(&condition["reason"]), at_s));
    }
    let condition = &workload["preempted"];
    if is_true(condition) && condition["reason"] == "InCohortReclaimWhileBorrowing" {
        standing.reclaimed_while_borrowing_at_s = second(&condition["at_s"]);
    }
    standing
}

/// A queue with one cpu, used by a workload of the lowest priority.
fn queue() -> (State, NodeId) {
    let mut state = State::new(Options {
        compatibility: Compatibility::Kueue,
        damping: Damping::Off,
        ..Options::default()
    });
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
        preemption: Preemption {
            within_cluster_queue: WithinClusterQueue::LowerPriority,
            ..Preemption::default()
        },
        fungibility: FlavorFungibility::default(),
        strategy: QueueingStrategy::BestEffortFifo,
        backfill: None,
        weight: 1.0,
        elastic: None,
        is_active: true,
    });
    let of = FlavorResource {
        flavor,
        resource: cpu,
    };
    let held = Reservation {
        usage: vec![(of, Amount::new(1_000))],
        reserved_at_s: 0,
        is_evicted: false,
    };
    let victim = spec(&mut state, VICTIM, VICTIM, i32::MIN, 0);
    state.add_admitted(victim, &held);
    (state, queue)
}

/// A workload of one cpu. The state only compares times, so milliseconds can be used for seconds.
fn spec<'a>(
    state: &mut State,
    name: &'a str,
    uid: &'a str,
    priority: i32,
    time_ms: i64,
) -> WorkloadSpec<'a> {
    let cpu = state.resource("cpu");
    WorkloadSpec {
        name,
        uid,
        queue: "queue",
        priority,
        preemption_priority: None,
        order_time: time_ms,
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
    }
}
