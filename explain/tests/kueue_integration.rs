//! The worlds of Kueue's integration tests of preemption (v0.19.1, `test/integration/singlecluster/scheduler/preemption_test.go`), as
//! objects: `explain` answers with the preemptions that the tests expect of the scheduler.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use lockkeeper_explain::{Project, WorldBuilder, WorldSettings, explain};
use lockkeeper_preemption::{Compatibility, Options};
use serde_json::{Value, json};

const LOW: i32 = -1;
const MID: i32 = 0;
const HIGH: i32 = 1;
const VERY_HIGH: i32 = 2;

const IN_QUEUE: &str = "InClusterQueue";
const RECLAMATION: &str = "InCohortReclamation";
const WHILE_BORROWING: &str = "InCohortReclaimWhileBorrowing";

/// A workload with quota of the first flavor of its ClusterQueue. Those of a case are created in their order.
struct Admitted(&'static str, &'static str, &'static str, i32);

/// Queues, workloads, and the expected preemptions.
struct Case {
    queues: Vec<Value>,
    /// Name, ClusterQueue, amount of cpu and priority.
    admitted: Vec<Admitted>,
    /// ClusterQueue, amount and priority of the workload in question, which is created before the last `older_than` others.
    incoming: (&'static str, &'static str, i32),
    older_than: usize,
    expected: Vec<(&'static str, &'static str)>,
}

fn kueue(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn quota(flavor: &str, nominal: &str) -> Value {
    json!({"name": flavor, "resources": [{"name": "cpu", "nominalQuota": nominal}]})
}

fn queue(name: &str, cohort: &str, flavors: &Value, preemption: &Value) -> Value {
    let spec = json!({
        "cohortName": cohort,
        "namespaceSelector": {},
        "preemption": preemption,
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
    });
    kueue("ClusterQueue", name, &spec)
}

fn workload(name: &str, queue: &str, cpu: &str, priority: i32, second: usize) -> Value {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {
            "name": name, "namespace": "ns", "uid": name,
            "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
        },
        "spec": {
            "queueName": queue, "priority": priority,
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}],
        },
    })
}

/// The victims of the workload in question, with reasons, sorted by name.
fn victims(case: &Case) -> Vec<(String, String)> {
    let mut builder = WorldBuilder::new();
    for flavor in ["alpha", "one", "fallback"] {
        builder.add(kueue("ResourceFlavor", flavor, &json!({})));
    }
    let flavor_of = |queue: &str| {
        let spec = case
            .queues
            .iter()
            .find(|it| it["metadata"]["name"] == queue);
        spec.unwrap()["spec"]["resourceGroups"][0]["flavors"][0]["name"].clone()
    };
    for queue in &case.queues {
        if queue["kind"] == "ClusterQueue" {
            let name = queue["metadata"]["name"].as_str().unwrap();
            let mut local = kueue("LocalQueue", name, &json!({"clusterQueue": name}));
            local["metadata"]["namespace"] = json!("ns");
            builder.add(local);
        }
        builder.add(queue.clone());
    }
    let is_newer = |at: usize| at + case.older_than >= case.admitted.len();
    for (at, Admitted(name, queue, cpu, priority)) in case.admitted.iter().enumerate() {
        let second = if is_newer(at) { 40 + at } else { at };
        let mut workload = workload(name, queue, cpu, *priority, second);
        let assignment = json!({"name": "main", "count": 1, "flavors": {"cpu": flavor_of(queue)}, "resourceUsage": {"cpu": cpu}});
        let time = "2026-01-01T00:00:50Z";
        let condition = |kind| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": time});
        workload["status"] = json!({
            "admission": {"clusterQueue": queue, "podSetAssignments": [assignment]},
            "conditions": [condition("QuotaReserved"), condition("Admitted")],
        });
        builder.add(workload);
    }
    let (queue, cpu, priority) = case.incoming;
    builder.add(workload("incoming", queue, cpu, priority, 30));
    let options = Options {
        compatibility: Compatibility::Kueue,
        ..Options::default()
    };
    let world = builder.build(WorldSettings {
        options,
        ..WorldSettings::default()
    });
    assert_eq!(
        (world.project(), world.unreadable()),
        (Project::Kueue, &[][..])
    );
    let answer = explain(&world, "ns/incoming").unwrap();
    let victims = answer.victims.iter();
    let mut victims: Vec<(String, String)> = victims
        .map(|it| (it.workload.replace("ns/", ""), it.reason.to_owned()))
        .collect();
    victims.sort();
    victims
}

#[track_caller]
fn check(case: &Case) {
    let found = victims(case);
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    assert_eq!(found, case.expected);
}

/// "In a single ClusterQueue".
fn single_queue() -> Vec<Value> {
    let preemption = json!({"withinClusterQueue": "LowerOrNewerEqualPriority"});
    vec![queue("cq", "", &json!([quota("alpha", "4")]), &preemption)]
}

#[test]
fn lower_priorities_are_preempted_without_quota() {
    let case = |incoming, expected| Case {
        queues: single_queue(),
        admitted: vec![
            Admitted("low-wl-1", "cq", "1", LOW),
            Admitted("low-wl-2", "cq", "1", LOW),
            Admitted("mid-wl", "cq", "1", MID),
            Admitted("high-wl-1", "cq", "1", HIGH),
        ],
        incoming,
        older_than: 0,
        expected,
    };
    check(&case(("cq", "1", LOW), vec![]));
    let both = vec![("low-wl-1", IN_QUEUE), ("low-wl-2", IN_QUEUE)];
    check(&case(("cq", "2", HIGH), both));
}

#[test]
fn newer_workloads_of_the_same_priority_are_preempted() {
    check(&Case {
        queues: single_queue(),
        admitted: vec![
            Admitted("wl-2", "cq", "1", LOW),
            Admitted("wl-4", "cq", "1", LOW),
        ],
        incoming: ("cq", "3", LOW),
        older_than: 1,
        expected: vec![("wl-4", IN_QUEUE)],
    });
}

#[test]
fn all_workloads_of_a_queue_are_preempted_once() {
    let names = [
        "low-priority-wl-1",
        "low-priority-wl-2",
        "low-priority-wl-3",
        "low-priority-wl-4",
        "low-priority-wl-5",
        "low-priority-wl-6",
        "low-priority-wl-7",
        "low-priority-wl-8",
    ];
    check(&Case {
        queues: single_queue(),
        admitted: names.map(|it| Admitted(it, "cq", "500m", 10)).into(),
        incoming: ("cq", "4", 100),
        older_than: 0,
        expected: names.map(|it| (it, IN_QUEUE)).into(),
    });
}

/// "In a ClusterQueue that is part of a cohort".
fn cohort() -> Vec<Value> {
    let preemption = json!({"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"});
    let flavors = json!([quota("alpha", "2")]);
    vec![
        queue("alpha-cq", "all", &flavors, &preemption),
        queue("beta-cq", "all", &flavors, &json!({})),
        queue("gamma-cq", "all", &flavors, &preemption),
    ]
}

#[test]
fn borrowed_quota_is_reclaimed_below_the_nominal_quota() {
    check(&Case {
        queues: cohort(),
        admitted: vec![
            Admitted("alpha-low", "alpha-cq", "1", LOW),
            Admitted("beta-mid", "beta-cq", "1", MID),
            Admitted("beta-high", "beta-cq", "4", HIGH),
        ],
        incoming: ("alpha-cq", "2", MID),
        older_than: 0,
        expected: vec![("alpha-low", IN_QUEUE), ("beta-mid", RECLAMATION)],
    });
}

#[test]
fn borrowed_quota_is_not_reclaimed_by_a_queue_that_borrows() {
    check(&Case {
        queues: cohort(),
        admitted: vec![
            Admitted("alpha-high-1", "alpha-cq", "2", HIGH),
            Admitted("beta-low", "beta-cq", "4", LOW),
        ],
        incoming: ("alpha-cq", "2", HIGH),
        older_than: 0,
        expected: vec![],
    });
}

#[test]
fn the_lowest_priority_of_a_borrowing_queue_is_preempted() {
    check(&Case {
        queues: cohort(),
        admitted: vec![
            Admitted("beta-mid", "beta-cq", "3", MID),
            Admitted("beta-high", "beta-cq", "3", HIGH),
        ],
        incoming: ("alpha-cq", "2", MID),
        older_than: 0,
        expected: vec![("beta-mid", RECLAMATION)],
    });
}

/// "When most quota is in a shared ClusterQueue in a cohort".
fn shared_quota() -> Vec<Value> {
    let flavors = json!([
        {"name": "one", "resources": [{"name": "cpu", "nominalQuota": "1", "borrowingLimit": "10"}]},
        {"name": "fallback", "resources": [{"name": "cpu", "nominalQuota": "10", "borrowingLimit": "0"}]},
    ]);
    let best_effort = json!({
        "reclaimWithinCohort": "LowerPriority",
        "borrowWithinCohort": {"policy": "LowerPriority"},
    });
    let mut standard = best_effort.clone();
    standard["borrowWithinCohort"]["maxPriorityThreshold"] = json!(MID);
    let mut queues = vec![
        queue("a-standard-cq", "all", &flavors, &standard),
        queue("a-best-effort-cq", "all", &flavors, &best_effort),
        queue("b-best-effort-cq", "all", &flavors, &best_effort),
        queue("b-standard-cq", "all", &flavors, &standard),
    ];
    for queue in &mut queues {
        queue["spec"]["flavorFungibility"] =
            json!({"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"});
    }
    queues.push(queue(
        "shared-cq",
        "all",
        &json!([quota("one", "10")]),
        &json!({}),
    ));
    queues
}

#[test]
fn workloads_are_preempted_while_borrowing() {
    check(&Case {
        queues: shared_quota(),
        admitted: vec![
            Admitted("a-best-effort-low", "a-best-effort-cq", "5", LOW),
            Admitted("b-best-effort-low", "b-best-effort-cq", "1", LOW),
            Admitted("b-standard-high", "b-standard-cq", "5", HIGH),
        ],
        incoming: ("a-standard-cq", "7", VERY_HIGH),
        older_than: 0,
        expected: vec![("a-best-effort-low", WHILE_BORROWING)],
    });
}

#[test]
fn lent_quota_is_reclaimed_with_a_lending_limit() {
    let lending = json!([{"name": "alpha", "resources": [
        {"name": "cpu", "nominalQuota": "5", "lendingLimit": "4"},
    ]}]);
    check(&Case {
        queues: vec![
            queue(
                "prod-cq",
                "all",
                &lending,
                &json!({"reclaimWithinCohort": "Any"}),
            ),
            queue("dev-cq", "all", &json!([quota("alpha", "5")]), &json!({})),
        ],
        admitted: vec![
            Admitted("wl-1", "dev-cq", "4", 0),
            Admitted("wl-2", "dev-cq", "5", 1),
        ],
        incoming: ("prod-cq", "4", 0),
        older_than: 0,
        expected: vec![("wl-1", RECLAMATION)],
    });
}

#[test]
fn a_guaranteed_cohort_reclaims_from_the_root() {
    let preemption = json!({"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"});
    let none = json!([quota("one", "0")]);
    let group = json!([{"coveredResources": ["cpu"], "flavors": [quota("one", "3")]}]);
    check(&Case {
        queues: vec![
            kueue("Cohort", "root", &json!({})),
            kueue(
                "Cohort",
                "guaranteed",
                &json!({"parentName": "root", "resourceGroups": group}),
            ),
            queue("best-effort", "root", &none, &preemption),
            queue("guaranteed", "guaranteed", &none, &preemption),
        ],
        admitted: vec![Admitted("best-effort-wl", "best-effort", "3", HIGH)],
        incoming: ("guaranteed", "3", MID),
        older_than: 0,
        expected: vec![("best-effort-wl", RECLAMATION)],
    });
}

#[test]
fn a_strict_queue_reclaims_although_another_has_pending_workloads() {
    let preemption = json!({"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"});
    let flavors = json!([quota("one", "2")]);
    let mut queues = vec![
        queue("alpha-cq", "all", &flavors, &preemption),
        queue("beta-cq", "all", &flavors, &preemption),
    ];
    for queue in &mut queues {
        queue["spec"]["queueingStrategy"] = json!("StrictFIFO");
    }
    queues.push(workload("pending", "alpha-cq", "1", 0, 20));
    check(&Case {
        queues,
        admitted: vec![Admitted("use-all", "alpha-cq", "4", 1)],
        incoming: ("beta-cq", "1", -1),
        older_than: 0,
        expected: vec![("use-all", RECLAMATION)],
    });
}
