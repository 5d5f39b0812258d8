use crate::{lockkeeper_object, object, yaml};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use lockkeeper_api::{ClusterQueue, LocalQueue, Workload};
use lockkeeper_cluster_state::{
    ClusterState, Completeness, PreemptionCause, PreemptionMessage, WorkloadPhase, admission,
    lifecycle_state, preemption_conditions, reservation, stop_policy,
};
use lockkeeper_preemption::requeue::RequeueSettings;
use lockkeeper_preemption::{Options, PreemptionReason, Reservation};
use serde_json::{Value, json};
use std::sync::Arc;

/// A queue with 4 CPUs, 8 pods and memory of another flavor, and a workload with these pod sets.
fn cluster_state(pod_sets: &str) -> (ClusterState, Workload) {
    let mut objects = ClusterState::new(
        Options::default(),
        RequeueSettings::default(),
        Completeness::Partial,
    );
    let spec: Value = yaml(
        "
namespaceSelector: {}
resourceGroups:
- coveredResources: [cpu, pods]
  flavors: [{name: f, resources: [{name: cpu, nominalQuota: 4}, {name: pods, nominalQuota: 8}]}]
- coveredResources: [memory]
  flavors: [{name: m, resources: [{name: memory, nominalQuota: 4Gi}]}]
",
    );
    let queue: ClusterQueue = object(&lockkeeper_object("ClusterQueue", None, "team", &spec));
    objects.set_cluster_queue(Arc::new(queue)).unwrap();
    let door = json!({"clusterQueue": "team"});
    let door: LocalQueue = object(&lockkeeper_object("LocalQueue", Some("ns"), "door", &door));
    objects.set_local_queue(&door);
    let spec = json!({"queueName": "door", "podSets": yaml::<Value>(pod_sets)});
    (
        objects,
        object(&lockkeeper_object("Workload", Some("ns"), "job", &spec)),
    )
}

#[test]
fn admission_written_reads_back_as_reservation() {
    let pod = "template: {spec: {containers: [{name: a, resources: {requests: {cpu: 700m, memory: 1Mi}}}]}}";
    let cases = [
        (
            format!("[{{count: 2, {pod}}}, {{name: b, template: {{spec: {{containers: []}}}}}}]"),
            json!([
                {"name": "main", "count": 2, "flavors": {"cpu": "f", "pods": "f", "memory": "m"},
                 "resourceUsage": {"cpu": "1400m", "pods": "2", "memory": "2Mi"}},
                {"name": "b", "count": 1, "flavors": {"pods": "f"}, "resourceUsage": {"pods": "1"}},
            ]),
        ),
        // Of 8 pods only 5 fit.
        (
            format!("[{{count: 8, minCount: 1, {pod}}}]"),
            json!([
                {"name": "main", "count": 5, "flavors": {"cpu": "f", "pods": "f", "memory": "m"},
                 "resourceUsage": {"cpu": "3500m", "pods": "5", "memory": "5Mi"}},
            ]),
        ),
    ];
    for (pod_sets, expected) in cases {
        let (mut objects, mut workload) = cluster_state(&pod_sets);
        let place = objects.set_workload(Arc::new(workload.clone()));
        assert_eq!(place, Ok(WorkloadPhase::Pending));
        let cycle = objects.next_cycle(5_000, false);
        let entry = &cycle.entries[0];
        let state = objects.state();
        let written = admission(state, entry.workload, entry.assignment()).unwrap();
        assert_eq!(written.cluster_queue, "team");
        let got = serde_json::to_value(&written.pod_set_assignments).unwrap();
        assert_eq!(got, expected);

        workload.status.get_or_insert_default().admission = Some(written);
        let read = reservation(&workload, &mut state.clone()).unwrap().unwrap();
        let held = state.workload_view(entry.workload).reservation().unwrap();
        let mut usage = read.usage.clone();
        usage.sort_unstable();
        assert_eq!(usage, held.usage);
        assert_eq!(
            usage,
            Reservation::from_assignment(entry.assignment(), 5).usage
        );
        let place = objects.set_workload(Arc::new(workload));
        assert_eq!(place, Ok(WorkloadPhase::Admitted));
    }
}

#[test]
fn admission_without_fit_is_none() {
    let pod = "template: {spec: {containers: [{name: a, resources: {requests: {cpu: 5}}}]}}";
    let (mut objects, workload) = cluster_state(&format!("[{{{pod}}}]"));
    objects.set_workload(Arc::new(workload)).unwrap();
    let cycle = objects.next_cycle(0, false);
    let entry = &cycle.entries[0];
    assert_eq!(
        admission(objects.state(), entry.workload, entry.assignment()),
        None
    );
}

#[test]
fn preemption_conditions_state_the_reason() {
    let now = Time(Timestamp::from_second(7).unwrap());
    let conditions = preemption_conditions(
        PreemptionCause::Quota(PreemptionReason::InCohortReclamation),
        "u1",
        "",
        &now,
        Some(3),
    );
    let message = "Preempted to accommodate a workload (UID: u1, JobUID: UNKNOWN) due to \
                   reclamation within the cohort";
    for (it, of) in conditions.iter().zip([
        ("Evicted", "Preempted"),
        ("Preempted", "InCohortReclamation"),
    ]) {
        assert_eq!((it.type_.as_str(), it.reason.as_str()), of);
        assert_eq!((it.status.as_str(), it.message.as_str()), ("True", message));
        assert_eq!(
            (it.observed_generation, &it.last_transition_time),
            (Some(3), &now)
        );
    }
    assert_eq!(PreemptionMessage::parse(message).uid, Some("u1"));
    let borrows = preemption_conditions(
        PreemptionCause::Quota(PreemptionReason::InCohortReclaimWhileBorrowing),
        "u1",
        "j",
        &now,
        None,
    );
    let unknown = preemption_conditions(PreemptionCause::Nodes, "", "", &now, None);
    for other in [
        unknown[0].message.as_str(),
        "",
        "Preempted by another component",
    ] {
        assert_eq!(PreemptionMessage::parse(other).uid, None, "{other}");
    }
    let mut workload: Workload = object(&lockkeeper_object(
        "Workload",
        Some("ns"),
        "w",
        &json!({"podSets": []}),
    ));
    workload.status.get_or_insert_default().conditions = borrows.into();
    // The written conditions are read back.
    let read = lifecycle_state(&workload, stop_policy(None), stop_policy(None));
    assert_eq!(read.reclaimed_while_borrowing_at_s, Some(7));
    assert_eq!(
        read.evicted.map(|it| (it.reason.as_str(), it.at_s)),
        Some(("Preempted", 7))
    );
}
