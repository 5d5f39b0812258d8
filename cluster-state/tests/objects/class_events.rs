//! Changes of priority classes, and queues that allow only some.

use crate::event_cluster::{
    admits_in_cycle, cluster_without_workloads, local_queue, priority_class, queue, set,
    with_status, workload,
};
use lockkeeper_api::ClusterQueue;
use lockkeeper_cluster_state::{ClusterState, NotQueuedReason, WorkloadPhase};
use serde_json::json;
use std::sync::Arc;

#[test]
fn priority_prefers_status_over_class() {
    let mut objects = cluster_without_workloads();
    let priority = |objects: &ClusterState| {
        let id = objects.state().workload("ns/job");
        id.map(|id| objects.state().workload_view(id).priority())
    };
    let mut job = workload("job", "1");
    set(&mut objects, &job);
    assert_eq!(priority(&objects), Some(0));
    objects.set_priority_class(&priority_class("usual", 5, true));
    assert_eq!(priority(&objects), Some(5));
    job.spec.priority_class_name = Some("high".to_owned());
    let place = set(&mut objects, &job);
    assert_eq!(
        place,
        WorkloadPhase::NotQueued(NotQueuedReason::NoPriorityClass)
    );
    assert_eq!(priority(&objects), None);
    objects.set_priority_class(&priority_class("high", 9, false));
    assert_eq!(priority(&objects), Some(9));
    objects.remove_priority_class("high");
    assert_eq!(priority(&objects), None);
    set(&mut objects, &with_status(&job, json!({"priority": 7})));
    assert_eq!(priority(&objects), Some(7));
    job.spec.priority_class_name = Some("system-node-critical".to_owned());
    objects
        .set_cluster_queue(with_classes(&["system-node-critical"]))
        .unwrap();
    set(&mut objects, &job);
    assert_eq!(priority(&objects), Some(2_000_001_000));
}

/// The ClusterQueue `a` with a list of allowed classes.
fn with_classes(classes: &[&str]) -> Arc<ClusterQueue> {
    let mut queue = ClusterQueue::clone(&queue("a", "2"));
    let classes = classes.iter().map(|it| (*it).to_owned());
    queue.spec.allowed_priority_classes = Some(classes.collect());
    Arc::new(queue)
}

#[test]
fn workload_with_disallowed_class_is_not_queued() {
    let mut objects = cluster_without_workloads();
    objects.set_priority_class(&priority_class("high", 9, false));
    let not_allowed = WorkloadPhase::NotQueued(NotQueuedReason::PriorityClassNotAllowed);
    let mut system = workload("system", "1");
    system.spec.priority_class_name = Some("system-node-critical".to_owned());
    assert_eq!(set(&mut objects, &system), not_allowed);
    let mut job = workload("job", "1");
    job.spec.preemption_priority_class_name = Some("high".to_owned());
    assert_eq!(set(&mut objects, &job), WorkloadPhase::Pending);
    // A change of either list is a change for its workloads.
    objects.set_cluster_queue(with_classes(&["low"])).unwrap();
    assert_eq!(objects.phase("ns/job"), Some(Ok(not_allowed)));
    let both = ["high", "system-node-critical"];
    objects.set_cluster_queue(with_classes(&both)).unwrap();
    assert_eq!(objects.phase("ns/job"), Some(Ok(WorkloadPhase::Pending)));
    assert_eq!(objects.phase("ns/system"), Some(Ok(WorkloadPhase::Pending)));
    let mut narrow = local_queue("a");
    narrow.spec.allowed_priority_classes = Some(vec!["high".to_owned()]);
    objects.set_local_queue(&narrow);
    assert_eq!(objects.phase("ns/job"), Some(Ok(WorkloadPhase::Pending)));
    assert_eq!(objects.phase("ns/system"), Some(Ok(not_allowed)));
    // Admitted workloads keep their quota.
    assert!(admits_in_cycle(&mut objects));
    objects.set_cluster_queue(with_classes(&[])).unwrap();
    assert_eq!(objects.phase("ns/job"), Some(Ok(WorkloadPhase::Admitted)));
}
