use crate::{lockkeeper_object, object, yaml};
use lockkeeper_api::Workload;
use lockkeeper_api::quota::ResourceGroup;
use lockkeeper_cluster_state::{
    Flavors, PodDefaults, RequestRules, lifecycle_state, pod_sets, reservation,
};
use lockkeeper_preemption::requeue::{
    DeactivationCause, EvictedCondition, EvictionReason, LifecycleState, NotReadyReason, PodsReady,
    QueueOrderTimestamp, RequeueSettings, RequeueState, StopPolicy,
};
use lockkeeper_preemption::{Amount, State};
use serde_json::{Value, json};

fn workload(spec: &Value, status: &Value) -> Workload {
    let mut value = lockkeeper_object("Workload", Some("ns"), "job", spec);
    value["metadata"]["creationTimestamp"] = "1970-01-01T00:00:09Z".into();
    value["status"] = status.clone();
    object(&value)
}

/// With one pod set whose pods have this spec.
fn workload_with_pod(pod: &str) -> Workload {
    let spec = json!({"podSets": [{"count": 3, "template": {"spec": yaml::<Value>(pod)}}]});
    workload(&spec, &json!({}))
}

/// No resource is excluded, and the API server adds nothing.
pub const RULES: RequestRules<'_> = RequestRules {
    excluded_prefixes: &[],
    defaults: &PodDefaults::NONE,
};

fn requests(workload: &Workload) -> Result<Vec<(String, i64)>, String> {
    let mut state = State::default();
    for name in ["cpu", "memory", "gpu"] {
        state.resource(name);
    }
    let pod_sets = pod_sets(workload, &mut state, &[], &Flavors::new(), RULES);
    let pod_sets = pod_sets.map_err(|e| e.to_string())?;
    let requests = pod_sets[0].requests.iter();
    let named = requests.map(|(id, amount)| (state.resource_name(*id).to_owned(), amount.get()));
    let mut named: Vec<_> = named.collect();
    named.sort();
    Ok(named)
}

#[test]
fn pod_requests_match_scheduler() {
    let cases: &[(&str, &[(&str, i64)])] = &[
        ("containers: []", &[]),
        (
            "containers: [{name: a, resources: {requests: {cpu: 500m, memory: 1Gi}}},
                          {name: b, resources: {requests: {cpu: 0.1m}}}]",
            // Added up exactly, then rounded up: 500.1 milli are 501.
            &[("cpu", 1503), ("memory", 3 << 30)],
        ),
        (
            "containers: [{name: a, resources: {limits: {cpu: 1, gpu: 2}, requests: {cpu: 500m}}}]",
            &[("cpu", 1500), ("gpu", 6)],
        ),
        (
            "initContainers: [{name: i, resources: {requests: {cpu: 2}}}]
containers: [{name: a, resources: {requests: {cpu: 1, memory: 1}}}]",
            &[("cpu", 6000), ("memory", 3)],
        ),
        (
            "initContainers:
- {name: first, resources: {requests: {cpu: 2500m}}}
- {name: sidecar, restartPolicy: Always, resources: {requests: {cpu: 1}}}
- {name: second, resources: {requests: {cpu: 2}}}
containers: [{name: a, resources: {requests: {cpu: 1}}}]",
            // The second runs beside the sidecar.
            &[("cpu", 9000)],
        ),
        (
            "overhead: {cpu: 10m}
resources: {requests: {cpu: 2, gpu: 9}, limits: {memory: 5}}
containers: [{name: a, resources: {requests: {cpu: 1, gpu: 1}}}]",
            &[("cpu", 6030), ("gpu", 3), ("memory", 15)],
        ),
    ];
    for (pod, expected) in cases {
        let got = requests(&workload_with_pod(pod)).unwrap();
        let expected: Vec<_> = expected
            .iter()
            .map(|(n, a)| ((*n).to_owned(), *a))
            .collect();
        assert_eq!(got, expected, "{pod}");
    }
}

#[test]
fn pod_sets_invalid_requests_rejected_with_path() {
    let container = |requests: &str| {
        workload_with_pod(&format!(
            "containers: [{{name: a, resources: {{requests: {requests}}}}}]"
        ))
    };
    let with = |field: &str, value: Value| {
        let mut pod_set = json!({"template": {"spec": {"containers": []}}});
        pod_set[field] = value;
        workload(&json!({"podSets": [pod_set]}), &json!({}))
    };
    let at = "Workload ns/job: spec.podSets[0].template.spec.containers[0].resources.requests[cpu]";
    let cases = [
        (container("{cpu: \"-1\"}"), format!("{at}: -1 is negative; give zero or more")),
        (
            container("{cpu: lots}"),
            format!(
                "{at}: not a quantity; accepted is a number with an optional suffix, as in 500m, 4 \
                 or 16Gi"
            ),
        ),
        (
            container("{cpu: 9E}"),
            "Workload ns/job: spec.podSets[0].template.spec.containers: the amount is too large; \
             keep the total of a resource below 2^63 of its unit"
                .to_owned(),
        ),
        (
            container("{memory: 4E}"),
            "Workload ns/job: spec.podSets[0].count: the amount is too large; keep the total of a resource \
             below 2^63 of its unit"
                .to_owned(),
        ),
        (
            with("count", json!(-1)),
            "Workload ns/job: spec.podSets[0].count: -1 is out of range; give a count of zero \
             or more"
                .to_owned(),
        ),
        (
            with("minCount", json!(2)),
            "Workload ns/job: spec.podSets[0].minCount: 2 is out of range; give at least 0 and \
             at most the count"
                .to_owned(),
        ),
    ];
    for (workload, expected) in cases {
        assert_eq!(requests(&workload).unwrap_err(), expected);
    }
    let twice = json!({"podSets": [{"template": {}}, {"template": {}, "name": "main"}]});
    assert_eq!(
        requests(&workload(&twice, &json!({}))).unwrap_err(),
        "Workload ns/job: spec.podSets[1].name: \"main\" is duplicated; give each a unique name"
    );
}

fn groups_and_flavors() -> (Vec<ResourceGroup>, Flavors) {
    let groups: Vec<ResourceGroup> = yaml(
        "[{coveredResources: [cpu], flavors: [{name: spot, resources: []}, {name: gpu, resources: []},
           {name: plain, resources: []}]}]",
    );
    let flavors: Flavors = yaml(
        "
spot:
  nodeTaints: [{key: spot, value: 'yes', effect: NoSchedule}, {key: soft, effect: PreferNoSchedule}]
  nodeLabels: {tier: spot, cores: '8'}
gpu:
  nodeTaints: [{key: gpu, effect: NoExecute}]
  tolerations: [{key: gpu, operator: Exists}]
  nodeLabels: {tier: gpu, cores: '64'}
plain: {}
",
    );
    (groups, flavors)
}

#[test]
fn pod_sets_exclude_ineligible_flavors() {
    let (groups, flavors) = groups_and_flavors();
    let terms = |terms: &str| {
        format!(
            "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
             {{nodeSelectorTerms: [{terms}]}}}}}}"
        )
    };
    let tolerant = "tolerations: [{operator: Exists}]";
    let cases: &[(String, &[&str])] = &[
        (String::new(), &["spot"]),
        (tolerant.into(), &[]),
        ("tolerations: [{key: spot, value: 'yes'}]".into(), &[]),
        ("tolerations: [{key: spot, value: 'no'}]".into(), &["spot"]),
        (
            "tolerations: [{key: spot, operator: Exists, effect: NoExecute}]".into(),
            &["spot"],
        ),
        // A label counts for the flavors that have it, as in Kueue.
        ("nodeSelector: {zone: a, tier: gpu}".into(), &["spot"]),
        (
            format!(
                "{tolerant}\n{}",
                terms("{matchExpressions: [{key: cores, operator: Gt, values: ['8']}]}")
            ),
            &["spot"],
        ),
        (
            format!(
                "{tolerant}\n{}",
                terms("{matchExpressions: [{key: tier, operator: NotIn, values: [gpu]}]}")
            ),
            &["gpu"],
        ),
        (
            format!(
                "{tolerant}\n{}",
                terms(
                    "{matchExpressions: [{key: tier, operator: In, values: [gpu]}]},
                     {matchExpressions: [{key: zone, operator: Exists}]}"
                )
            ),
            &[],
        ),
    ];
    for (pod, expected) in cases {
        let workload = workload_with_pod(&format!("containers: []\n{pod}"));
        let mut state = State::default();
        let got = pod_sets(&workload, &mut state, &groups, &flavors, RULES).unwrap();
        let got = got[0].ineligible.iter().map(|id| state.flavor_name(*id));
        let mut got: Vec<_> = got.collect();
        got.sort_unstable();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(got, expected, "{pod}");
    }
}

fn condition(type_: &str, status: &str, reason: &str, second: u32) -> Value {
    let time = format!("1970-01-01T00:00:{second:02}Z");
    json!({"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": time})
}

fn workload_with_conditions(conditions: &[Value]) -> Workload {
    workload(&json!({"podSets": []}), &json!({"conditions": conditions}))
}

#[test]
fn lifecycle_state_reads_conditions() {
    let new = LifecycleState {
        created_at_s: 9,
        ..LifecycleState::default()
    };
    let cases = [
        (vec![], new.clone()),
        (
            vec![condition("Evicted", "True", "PodsReadyTimeout", 20)],
            LifecycleState {
                evicted: Some(EvictedCondition {
                    reason: EvictionReason::PodsReadyTimeout,
                    at_s: 20,
                }),
                ..new.clone()
            },
        ),
        (
            vec![condition("Evicted", "False", "QuotaReserved", 20)],
            new.clone(),
        ),
        (
            vec![
                condition("Preempted", "True", "InCohortReclaimWhileBorrowing", 21),
                condition("Requeued", "False", "PodsReadyTimeout", 22),
                condition("DeactivationTarget", "True", "RequeuingLimitExceeded", 23),
            ],
            LifecycleState {
                reclaimed_while_borrowing_at_s: Some(21),
                not_requeued_reason: Some(EvictionReason::PodsReadyTimeout),
                deactivation_target: Some(DeactivationCause::RequeuingLimitExceeded),
                ..new.clone()
            },
        ),
        (
            vec![
                condition("Preempted", "True", "InClusterQueue", 21),
                condition("Requeued", "True", "BackoffFinished", 22),
                condition("Admitted", "True", "Admitted", 24),
                condition("PodsReady", "False", "WaitForRecovery", 25),
            ],
            LifecycleState {
                admitted_at_s: Some(24),
                pods_ready: PodsReady::No {
                    reason: NotReadyReason::WaitForRecovery,
                    since_s: 25,
                },
                ..new.clone()
            },
        ),
        (
            vec![
                condition("Finished", "True", "Done", 30),
                condition("PodsReady", "True", "", 29),
            ],
            LifecycleState {
                is_finished: true,
                pods_ready: PodsReady::Yes,
                ..new.clone()
            },
        ),
    ];
    for (conditions, expected) in cases {
        let got = lifecycle_state(
            &workload_with_conditions(&conditions),
            StopPolicy::None,
            StopPolicy::None,
        );
        assert_eq!(got, expected, "{conditions:?}");
    }
}

#[test]
fn lifecycle_state_reads_other_fields() {
    let state = json!({"requeueState": {
        "count": 2,
        "requeueAt": "1970-01-01T00:01:00Z",
        "firstEvictedAt": "1970-01-01T00:00:07Z",
    }});
    let put_back = workload(&json!({"podSets": [], "active": false}), &state);
    let expected = LifecycleState {
        is_active: false,
        requeue_state: Some(RequeueState {
            count: Some(2),
            requeue_at_s: Some(60),
            first_evicted_at_s: Some(7),
        }),
        cluster_queue: StopPolicy::Hold,
        created_at_s: 9,
        ..LifecycleState::default()
    };
    assert_eq!(
        lifecycle_state(&put_back, StopPolicy::Hold, StopPolicy::None),
        expected
    );
}

#[test]
fn order_time_follows_timestamp_strategy() {
    let workload =
        workload_with_conditions(&[condition("Evicted", "True", "PodsReadyTimeout", 20)]);
    let standing = lifecycle_state(&workload, StopPolicy::None, StopPolicy::None);
    let by = |timestamp| {
        standing.order_time_ms(&RequeueSettings {
            timestamp,
            ..RequeueSettings::default()
        })
    };
    assert_eq!(
        (
            by(QueueOrderTimestamp::Eviction),
            by(QueueOrderTimestamp::Creation)
        ),
        (20_000, 9_000)
    );
}

/// Flavor, resource and amount; since when; whether it is evicted.
type ReservationFields = (Vec<(String, String, Amount)>, i64, bool);

/// The usage of a workload with the pod sets `main` and `b`.
fn read_reservation(
    admission: &Value,
    conditions: &[Value],
) -> Result<Option<ReservationFields>, String> {
    read_status_reservation(&json!({"admission": admission, "conditions": conditions}))
}

fn read_status_reservation(status: &Value) -> Result<Option<ReservationFields>, String> {
    let spec = json!({"podSets": [{"template": {}}, {"name": "b", "template": {}}]});
    let mut state = State::default();
    let held = reservation(&workload(&spec, status), &mut state).map_err(|e| e.to_string())?;
    Ok(held.map(|held| {
        let usage = held.usage.iter().map(|(of, amount)| {
            let flavor = state.flavor_name(of.flavor).to_owned();
            (flavor, state.resource_name(of.resource).to_owned(), *amount)
        });
        (usage.collect(), held.reserved_at_s, held.is_evicted)
    }))
}

fn pod_set_assignment(name: &str, flavors: &Value, usage: &Value) -> Value {
    json!({"name": name, "count": 1, "flavors": flavors, "resourceUsage": usage})
}

fn admission(assignments: &[Value]) -> Value {
    json!({"clusterQueue": "q", "podSetAssignments": assignments})
}

#[test]
fn reservation_reads_admission() {
    let cpu = json!({"cpu": "f"});
    let one = pod_set_assignment("main", &cpu, &json!({"cpu": "1500m", "gone": "0"}));
    let both = admission(&[one, pod_set_assignment("b", &cpu, &json!({"cpu": 1}))]);
    let usage = vec![("f".to_owned(), "cpu".to_owned(), Amount::new(2500))];
    assert_eq!(
        read_reservation(&both, &[]),
        Ok(Some((usage.clone(), 9, false)))
    );
    let reserved = condition("QuotaReserved", "True", "QuotaReserved", 11);
    let evicted = condition("Evicted", "True", "Preempted", 12);
    assert_eq!(
        read_reservation(&both, &[reserved, evicted]),
        Ok(Some((usage, 11, true)))
    );
    assert_eq!(read_reservation(&Value::Null, &[]), Ok(None));
    let back = condition("QuotaReserved", "False", "Pending", 13);
    assert_eq!(read_reservation(&both, &[back]), Ok(None));
}

#[test]
fn reservation_excludes_reclaimable_pods() {
    let cpu = json!({"cpu": "f"});
    let main = json!({"name": "main", "count": 4, "flavors": cpu, "resourceUsage": {"cpu": 2}});
    let b = json!({"name": "b", "count": 3, "flavors": cpu, "resourceUsage": {"cpu": 1}});
    let milli_cpu = |reclaimable: Value| {
        let admission = admission(&[main.clone(), b.clone()]);
        let status = json!({"admission": admission, "reclaimablePods": reclaimable});
        let (usage, ..) = read_status_reservation(&status).unwrap().unwrap();
        usage.iter().map(|(_, _, amount)| amount.get()).sum::<i64>()
    };
    for (reclaimable, expected) in [
        (json!([]), 3_000),
        (json!([{"name": "main", "count": 1}]), 2_500),
        (json!([{"name": "main", "count": 4}]), 1_000),
        // The rest of an amount that the count does not divide is rounded up.
        (json!([{"name": "b", "count": 1}]), 2_667),
        (
            json!([{"name": "main", "count": 2}, {"name": "b", "count": 2}]),
            1_334,
        ),
        // More than were admitted, fewer than none, and of another pod set.
        (json!([{"name": "main", "count": 9}]), 1_000),
        (json!([{"name": "main", "count": -1}]), 3_000),
        (json!([{"name": "other", "count": 1}]), 3_000),
    ] {
        assert_eq!(milli_cpu(reclaimable.clone()), expected, "{reclaimable}");
    }
}

#[test]
fn reservation_invalid_admission_rejected_with_path() {
    let at = "Workload ns/job: status.admission.podSetAssignments";
    let (cpu, none, one) = (json!({"cpu": "f"}), json!({}), json!({"cpu": 1}));
    let first = pod_set_assignment("main", &cpu, &one);
    let bad = [
        (
            admission(&[first.clone(), first]),
            format!("{at}[1].name: \"main\" is duplicated; give each a unique name"),
        ),
        (
            admission(&[pod_set_assignment("c", &none, &none)]),
            format!(
                "{at}[0].name: there is no pod set \"c\"; name one of spec.podSets, or clear \
                 status.admission"
            ),
        ),
        (
            admission(&[pod_set_assignment("b", &none, &one)]),
            format!(
                "{at}[0].resourceUsage[cpu]: no flavor of \"cpu\" is given; name it in flavors, or \
                 clear status.admission"
            ),
        ),
        (
            admission(&[pod_set_assignment("b", &cpu, &json!({"cpu": -1}))]),
            format!("{at}[0].resourceUsage[cpu]: -1 is negative; give zero or more"),
        ),
        (
            admission(&[pod_set_assignment(
                "b",
                &json!({"x": "f"}),
                &json!({"x": i64::MAX}),
            )]),
            format!(
                "{at}[0].resourceUsage[x]: the amount is too large; keep the total of a resource \
                 below 2^63 of its unit"
            ),
        ),
    ];
    for (admission, expected) in bad {
        assert_eq!(read_reservation(&admission, &[]), Err(expected));
    }
}
