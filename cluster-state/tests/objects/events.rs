//! Events of objects in any order change the state of the core.

use crate::event_cluster::{
    NO_LOCAL_QUEUE, active_count, admits_in_cycle, admitted, cluster_without_workloads,
    empty_cluster, flavor, labels, local_queue, node, queue, set, used, with_status, workload,
};
use crate::{lockkeeper_object, object};
use lockkeeper_api::{ClusterQueue, Cohort, ResourceFlavor};
use lockkeeper_cluster_state::{
    ClusterState, Completeness, NotQueuedReason, WorkloadPhase, admission,
};
use lockkeeper_preemption::requeue::RequeueSettings;
use lockkeeper_preemption::{Amount, Decision, Options};
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
fn workload_is_admitted_only_with_all_dependencies() {
    let job = workload("job", "1");
    let steps: [fn(&mut ClusterState); 4] = [
        |it| it.set_cluster_queue(queue("a", "2")).unwrap(),
        |it| it.set_resource_flavor(&flavor()),
        |it| it.set_local_queue(&local_queue("a")),
        |it| it.set_namespace("ns", labels("a")),
    ];
    for last in 0..steps.len() {
        let mut objects = empty_cluster();
        set(&mut objects, &job);
        for (at, step) in steps.iter().enumerate() {
            if at != last {
                step(&mut objects);
            }
        }
        assert!(!admits_in_cycle(&mut objects), "without step {last}");
        steps[last](&mut objects);
        assert!(admits_in_cycle(&mut objects), "after step {last}");
        assert_eq!(objects.phase("ns/job"), Some(Ok(WorkloadPhase::Pending)));
        assert_eq!(used(&objects, "a"), 1000);
    }
}

#[test]
fn removed_dependency_stops_admission() {
    let steps: [fn(&mut ClusterState); 5] = [
        |it| it.remove_cluster_queue("a"),
        |it| it.remove_resource_flavor("f"),
        |it| it.remove_local_queue("ns", "door"),
        |it| it.remove_namespace("ns"),
        |it| it.set_namespace("ns", labels("b")),
    ];
    for (at, step) in steps.iter().enumerate() {
        let mut objects = cluster_without_workloads();
        set(&mut objects, &workload("job", "1"));
        step(&mut objects);
        assert!(!admits_in_cycle(&mut objects), "after step {at}");
    }
}

#[test]
fn stopped_queue_keeps_admitted_workloads() {
    let mut objects = cluster_without_workloads();
    let job = workload("job", "1");
    set(&mut objects, &workload("other", "1"));
    assert_eq!(
        set(&mut objects, &admitted(&job, "a", "1")),
        WorkloadPhase::Admitted
    );
    let mut stopped = ClusterQueue::clone(&queue("a", "2"));
    stopped.spec.stop_policy = Some(lockkeeper_api::cluster_queue::StopPolicy::Hold);
    objects.set_cluster_queue(Arc::new(stopped)).unwrap();
    assert!(!admits_in_cycle(&mut objects));
    assert_eq!(used(&objects, "a"), 1000);
    objects.set_cluster_queue(queue("a", "2")).unwrap();
    let mut stopped = local_queue("a");
    stopped.spec.stop_policy = Some(lockkeeper_api::cluster_queue::StopPolicy::HoldAndDrain);
    objects.set_local_queue(&stopped);
    assert!(!admits_in_cycle(&mut objects));
    let outside = WorkloadPhase::NotQueued(NotQueuedReason::LocalQueueStopped);
    assert_eq!(objects.phase("ns/other"), Some(Ok(outside)));
    assert_eq!(used(&objects, "a"), 1000);
    objects.set_local_queue(&local_queue("a"));
    assert!(admits_in_cycle(&mut objects));
}

#[test]
fn workload_passes_through_all_phases() {
    let mut objects = cluster_without_workloads();
    objects.set_cluster_queue(queue("b", "4")).unwrap();
    let job = workload("job", "1");
    assert_eq!(set(&mut objects, &job), WorkloadPhase::Pending);
    // Its LocalQueue leads elsewhere.
    objects.set_local_queue(&local_queue("b"));
    assert_eq!(
        (active_count(&objects, "a"), active_count(&objects, "b")),
        (0, 1)
    );
    // It holds quota where its admission says.
    assert_eq!(
        set(&mut objects, &admitted(&job, "a", "1")),
        WorkloadPhase::Admitted
    );
    assert_eq!((used(&objects, "a"), used(&objects, "b")), (1000, 0));
    assert_eq!(
        (active_count(&objects, "a"), active_count(&objects, "b")),
        (0, 0)
    );
    // Less than it asked for.
    set(&mut objects, &admitted(&job, "a", "500m"));
    assert_eq!(used(&objects, "a"), 500);
    // Evicted, and put off.
    let at = "1970-01-01T00:01:00Z";
    let evicted = json!({"conditions": [
        {"type": "Evicted", "status": "True", "reason": "PodsReadyTimeout", "message": "",
         "lastTransitionTime": at},
        {"type": "Requeued", "status": "False", "reason": "PodsReadyTimeout", "message": "",
         "lastTransitionTime": at},
    ], "requeueState": {"count": 1, "requeueAt": "1970-01-01T00:02:00Z"}});
    assert_eq!(
        set(&mut objects, &with_status(&job, evicted.clone())),
        WorkloadPhase::OnHold(120)
    );
    assert_eq!((used(&objects, "a"), active_count(&objects, "b")), (0, 0));
    assert_eq!(
        objects
            .state()
            .node_view(node(&objects, "b"))
            .backing_off()
            .len(),
        1
    );
    assert!(!admits_in_cycle(&mut objects));
    // Its backoff is over.
    let mut over = evicted;
    over["conditions"][1]["status"] = "True".into();
    over["requeueState"] = Value::Null;
    assert_eq!(
        set(&mut objects, &with_status(&job, over)),
        WorkloadPhase::Pending
    );
    assert!(admits_in_cycle(&mut objects));
    assert_eq!(used(&objects, "b"), 1000);
    // Finished.
    let finished = json!({"conditions": [{"type": "Finished", "status": "True", "reason": "Done",
        "message": "", "lastTransitionTime": at}]});
    let place = set(&mut objects, &with_status(&job, finished));
    assert_eq!(place, WorkloadPhase::NotQueued(NotQueuedReason::Finished));
    assert_eq!(used(&objects, "b"), 0);
    objects.remove_workload("ns/job");
    assert_eq!(objects.phase("ns/job"), None);
    assert_eq!(objects.state().workload("ns/job"), None);
}

#[test]
fn inactive_workload_holds_quota_until_released() {
    let mut objects = cluster_without_workloads();
    let mut job = workload("job", "1");
    job.spec.active = Some(false);
    assert_eq!(
        set(&mut objects, &admitted(&job, "a", "1")),
        WorkloadPhase::Admitted
    );
    assert_eq!(used(&objects, "a"), 1000);
    assert_eq!(
        set(&mut objects, &job),
        WorkloadPhase::NotQueued(NotQueuedReason::Inactive)
    );
    assert_eq!(used(&objects, "a"), 0);
}

#[test]
fn assumed_admission_holds_quota() {
    let mut objects = cluster_without_workloads();
    let job = workload("job", "1");
    set(&mut objects, &job);
    let cycle = objects.next_cycle(1_000, false);
    assert_eq!(cycle.entries[0].decision, Decision::Admit);
    let entry = &cycle.entries[0];
    let written = admission(objects.state(), entry.workload, entry.assignment()).unwrap();
    // An update that was on its way.
    let mut labelled = job.clone();
    labelled.metadata.labels = Some(labels("x"));
    assert_eq!(set(&mut objects, &labelled), WorkloadPhase::Admitted);
    assert_eq!(used(&objects, "a"), 1000);
    // It was seen, and then evicted.
    let mut seen = job.clone();
    seen.status.get_or_insert_default().admission = Some(written);
    assert_eq!(set(&mut objects, &seen), WorkloadPhase::Admitted);
    assert_eq!(set(&mut objects, &job), WorkloadPhase::Pending);
    assert_eq!((used(&objects, "a"), active_count(&objects, "a")), (0, 1));
    // It could not be written.
    assert!(admits_in_cycle(&mut objects));
    objects.revert_admission("ns/job");
    assert_eq!((used(&objects, "a"), active_count(&objects, "a")), (0, 1));
    assert!(admits_in_cycle(&mut objects));
}

#[test]
fn unchanged_update_keeps_workload_inadmissible() {
    let mut objects = cluster_without_workloads();
    let job = workload("job", "3");
    set(&mut objects, &job);
    assert!(!admits_in_cycle(&mut objects));
    let parked = |objects: &ClusterState| {
        objects
            .state()
            .node_view(node(objects, "a"))
            .inadmissible()
            .len()
    };
    assert_eq!(parked(&objects), 1);
    let pending = json!({"conditions": [{"type": "QuotaReserved", "status": "False",
        "reason": "Pending", "message": "", "lastTransitionTime": "1970-01-01T00:00:01Z"}]});
    set(&mut objects, &with_status(&job, pending));
    objects.set_cluster_queue(queue("a", "2")).unwrap();
    assert_eq!(parked(&objects), 1);
    objects.set_cluster_queue(queue("a", "3")).unwrap();
    assert!(admits_in_cycle(&mut objects));
}

#[test]
fn new_taint_excludes_flavor_for_pending_workloads() {
    let mut objects = cluster_without_workloads();
    set(&mut objects, &workload("job", "1"));
    let taints = json!({"nodeTaints": [{"key": "repair", "effect": "NoSchedule"}]});
    let tainted: ResourceFlavor = object(&lockkeeper_object("ResourceFlavor", None, "f", &taints));
    objects.set_resource_flavor(&tainted);
    assert!(!admits_in_cycle(&mut objects));
    objects.set_resource_flavor(&flavor());
    assert!(admits_in_cycle(&mut objects));
}

#[test]
fn evicted_workload_keeps_its_quota() {
    let mut objects = cluster_without_workloads();
    let job = admitted(&workload("job", "1"), "a", "1");
    set(&mut objects, &job);
    let held = |objects: &ClusterState| {
        let state = objects.state();
        let held = state
            .workload_view(state.workload("ns/job")?)
            .reservation()?;
        Some((held.usage[0].1.get(), held.is_evicted))
    };
    assert_eq!(held(&objects), Some((1000, false)));
    let mut evicted = serde_json::to_value(&job).unwrap();
    evicted["status"]["conditions"] = json!([{"type": "Evicted", "status": "True",
        "reason": "Preempted", "message": "", "lastTransitionTime": "1970-01-01T00:00:01Z"}]);
    set(&mut objects, &object(&evicted));
    assert_eq!(held(&objects), Some((1000, true)));
    set(&mut objects, &job);
    assert_eq!(held(&objects), Some((1000, false)));
}

#[test]
fn admitted_workload_counts_without_class_or_local_queue() {
    let mut objects = cluster_without_workloads();
    let mut job = workload("job", "1");
    job.spec.priority_class_name = Some("gone".to_owned());
    assert_eq!(
        set(&mut objects, &admitted(&job, "a", "1")),
        WorkloadPhase::Admitted
    );
    objects.remove_local_queue("ns", "door");
    assert_eq!(used(&objects, "a"), 1000);

    // And while its admission is written.
    let mut objects = cluster_without_workloads();
    set(&mut objects, &workload("job", "1"));
    assert!(admits_in_cycle(&mut objects));
    objects.set_local_queue(&local_queue("b"));
    assert_eq!(used(&objects, "a"), 1000);
    objects.remove_local_queue("ns", "door");
    assert_eq!(used(&objects, "a"), 1000);
    objects.revert_admission("ns/job");
    assert_eq!(objects.phase("ns/job"), Some(Ok(NO_LOCAL_QUEUE)));
    assert_eq!(used(&objects, "a"), 0);
}

#[test]
fn recreated_workload_starts_without_old_state() {
    let mut objects = cluster_without_workloads();
    set(&mut objects, &workload("job", "1"));
    assert!(admits_in_cycle(&mut objects));
    let mut again = workload("job", "1");
    again.metadata.uid = Some("another".to_owned());
    assert_eq!(set(&mut objects, &again), WorkloadPhase::Pending);
    assert_eq!(used(&objects, "a"), 0);
}

#[test]
fn rejected_object_leaves_state_unchanged() {
    let mut objects = cluster_without_workloads();
    let job = workload("job", "1");
    set(&mut objects, &admitted(&job, "a", "1"));
    let error = objects.set_workload(Arc::new(admitted(&job, "a", "-1")));
    let error = error.unwrap_err();
    assert_eq!(
        error.field,
        "status.admission.podSetAssignments[0].resourceUsage[cpu]"
    );
    assert_eq!(objects.phase("ns/job"), Some(Err(&error)));
    assert_eq!(used(&objects, "a"), 1000);
    assert_eq!(
        set(&mut objects, &admitted(&job, "a", "2")),
        WorkloadPhase::Admitted
    );
    assert_eq!(used(&objects, "a"), 2000);

    assert!(objects.set_cluster_queue(queue("a", "-1")).is_err());
    set(&mut objects, &workload("more", "1"));
    assert!(!admits_in_cycle(&mut objects));
    objects.set_cluster_queue(queue("a", "3")).unwrap();
    assert!(admits_in_cycle(&mut objects));
}

#[test]
fn resource_total_overflow_is_rejected() {
    let mut objects = cluster_without_workloads();
    let half = "5P";
    objects.set_cluster_queue(queue("b", half)).unwrap();
    let error = objects.set_cluster_queue(queue("c", half)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ClusterQueue c: spec.resourceGroups: the amount is too large; keep the total of a resource \
         below 2^63 of its unit"
    );
    let cohort = json!({"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
        {"name": "f", "resources": [{"name": "cpu", "nominalQuota": half}]}]}]});
    let cohort: Cohort = object(&lockkeeper_object("Cohort", None, "all", &cohort));
    assert!(objects.set_cohort(&cohort).is_err());
    // An unlimited quota has no number.
    let unlimited = format!("{}m", Amount::UNLIMITED.get());
    objects.set_cluster_queue(queue("b", &unlimited)).unwrap();
    objects.set_cluster_queue(queue("c", half)).unwrap();
    objects.remove_cluster_queue("c");
    objects.set_cohort(&cohort).unwrap();
    objects.remove_cohort("all");
    objects.set_cluster_queue(queue("c", half)).unwrap();

    let [one, two] = ["one", "two"].map(|name| admitted(&workload(name, "1"), "a", half));
    assert_eq!(set(&mut objects, &one), WorkloadPhase::Admitted);
    assert!(objects.set_workload(Arc::new(two.clone())).is_err());
    objects.remove_workload("ns/one");
    assert_eq!(set(&mut objects, &two), WorkloadPhase::Admitted);
}

#[test]
fn partial_state_assumes_missing_flavors_and_namespaces() {
    let mut objects = ClusterState::new(
        Options::default(),
        RequeueSettings::default(),
        Completeness::Partial,
    );
    objects.set_cluster_queue(queue("a", "2")).unwrap();
    assert_eq!(set(&mut objects, &workload("job", "1")), NO_LOCAL_QUEUE);
    objects.set_local_queue(&local_queue("a"));
    assert!(admits_in_cycle(&mut objects));
}
