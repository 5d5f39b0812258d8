use crate::{object, ours, yaml};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_preemption::requeue::Settings;
use lockkeeper_preemption::{Amount, Decision, NodeId, Options};
use lockkeeper_snapshot::objects::{Knowledge, Objects, Outside, Place, admission};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const EMPTY: Place = Place::Outside(Outside::NoLocalQueue);

fn queue(name: &str, nominal: &str) -> Arc<ClusterQueue> {
    let spec: Value = yaml(&format!(
        "
cohortName: all
namespaceSelector: {{matchLabels: {{team: a}}}}
preemption: {{withinClusterQueue: LowerPriority}}
resourceGroups:
- coveredResources: [cpu]
  flavors: [{{name: f, resources: [{{name: cpu, nominalQuota: {nominal}}}]}}]
"
    ));
    Arc::new(object(&ours("ClusterQueue", None, name, &spec)))
}

fn door(cluster_queue: &str) -> LocalQueue {
    let spec = json!({"clusterQueue": cluster_queue});
    object(&ours("LocalQueue", Some("ns"), "door", &spec))
}

fn flavor() -> ResourceFlavor {
    object(&ours("ResourceFlavor", None, "f", &json!({})))
}

fn labels(team: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("team".to_owned(), team.to_owned())])
}

fn class(name: &str, value: i32, is_default: bool) -> PriorityClass {
    object(&json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": name}, "value": value, "globalDefault": is_default,
    }))
}

fn workload(name: &str, cpu: &str) -> Workload {
    let spec: Value = yaml(&format!(
        "
queueName: door
podSets:
- template: {{spec: {{containers: [{{name: a, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}
"
    ));
    let mut value = ours("Workload", Some("ns"), name, &spec);
    value["metadata"]["uid"] = name.into();
    object(&value)
}

fn with(workload: &Workload, status: Value) -> Workload {
    let mut value = serde_json::to_value(workload).unwrap();
    value["status"] = status;
    object(&value)
}

fn runs(workload: &Workload, queue: &str, cpu: &str) -> Workload {
    with(
        workload,
        json!({"admission": {"clusterQueue": queue, "podSetAssignments": [
            {"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": cpu}},
        ]}}),
    )
}

fn nothing() -> Objects {
    Objects::new(Options::default(), Settings::default(), Knowledge::Whole)
}

/// Everything but a workload.
fn world() -> Objects {
    let mut objects = nothing();
    objects.set_cluster_queue(queue("a", "2")).unwrap();
    objects.set_resource_flavor(&flavor());
    objects.set_local_queue(&door("a"));
    objects.set_namespace("ns", labels("a"));
    objects
}

fn node(objects: &Objects, name: &str) -> NodeId {
    objects.state().queue(name).unwrap()
}

fn used(objects: &Objects, queue: &str) -> i64 {
    let usage = objects.state().usage(node(objects, queue));
    usage.iter().map(|(_, amount)| amount.get()).sum()
}

fn waits(objects: &Objects, queue: &str) -> usize {
    objects.state().active(node(objects, queue)).len()
}

fn set(objects: &mut Objects, workload: &Workload) -> Place {
    objects.set_workload(Arc::new(workload.clone())).unwrap()
}

fn admits(objects: &mut Objects) -> bool {
    let cycle = objects.next_cycle(1_000, false);
    cycle
        .entries
        .iter()
        .any(|it| it.decision == Decision::Admit)
}

#[test]
fn nobody_is_admitted_before_all_that_it_needs_is_there() {
    let job = workload("job", "1");
    let steps: [fn(&mut Objects); 4] = [
        |it| it.set_cluster_queue(queue("a", "2")).unwrap(),
        |it| it.set_resource_flavor(&flavor()),
        |it| it.set_local_queue(&door("a")),
        |it| it.set_namespace("ns", labels("a")),
    ];
    for last in 0..steps.len() {
        let mut objects = nothing();
        set(&mut objects, &job);
        for (at, step) in steps.iter().enumerate() {
            if at != last {
                step(&mut objects);
            }
        }
        assert!(!admits(&mut objects), "without step {last}");
        steps[last](&mut objects);
        assert!(admits(&mut objects), "after step {last}");
        assert_eq!(objects.place("ns/job"), Some(Ok(Place::Waits)));
        assert_eq!(used(&objects, "a"), 1000);
    }
}

#[test]
fn what_goes_away_stops_what_needs_it() {
    let steps: [fn(&mut Objects); 5] = [
        |it| it.remove_cluster_queue("a"),
        |it| it.remove_resource_flavor("f"),
        |it| it.remove_local_queue("ns", "door"),
        |it| it.remove_namespace("ns"),
        |it| it.set_namespace("ns", labels("b")),
    ];
    for (at, step) in steps.iter().enumerate() {
        let mut objects = world();
        set(&mut objects, &workload("job", "1"));
        step(&mut objects);
        assert!(!admits(&mut objects), "after step {at}");
    }
}

#[test]
fn a_stopped_queue_admits_nobody_and_keeps_who_runs() {
    let mut objects = world();
    let job = workload("job", "1");
    set(&mut objects, &workload("other", "1"));
    assert_eq!(set(&mut objects, &runs(&job, "a", "1")), Place::Runs);
    let mut stopped = ClusterQueue::clone(&queue("a", "2"));
    stopped.spec.stop_policy = Some(lockkeeper_api::cluster_queue::StopPolicy::Hold);
    objects.set_cluster_queue(Arc::new(stopped)).unwrap();
    assert!(!admits(&mut objects));
    assert_eq!(used(&objects, "a"), 1000);
    objects.set_cluster_queue(queue("a", "2")).unwrap();
    let mut stopped = door("a");
    stopped.spec.stop_policy = Some(lockkeeper_api::cluster_queue::StopPolicy::HoldAndDrain);
    objects.set_local_queue(&stopped);
    assert!(!admits(&mut objects));
    let outside = Place::Outside(Outside::LocalQueueStopped);
    assert_eq!(objects.place("ns/other"), Some(Ok(outside)));
    assert_eq!(used(&objects, "a"), 1000);
    objects.set_local_queue(&door("a"));
    assert!(admits(&mut objects));
}

#[test]
fn a_workload_goes_its_way() {
    let mut objects = world();
    objects.set_cluster_queue(queue("b", "4")).unwrap();
    let job = workload("job", "1");
    assert_eq!(set(&mut objects, &job), Place::Waits);
    // Its LocalQueue leads elsewhere.
    objects.set_local_queue(&door("b"));
    assert_eq!((waits(&objects, "a"), waits(&objects, "b")), (0, 1));
    // It holds quota where its admission says.
    assert_eq!(set(&mut objects, &runs(&job, "a", "1")), Place::Runs);
    assert_eq!((used(&objects, "a"), used(&objects, "b")), (1000, 0));
    assert_eq!((waits(&objects, "a"), waits(&objects, "b")), (0, 0));
    // Less than it asked for.
    set(&mut objects, &runs(&job, "a", "500m"));
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
        set(&mut objects, &with(&job, evicted.clone())),
        Place::Held(120)
    );
    assert_eq!((used(&objects, "a"), waits(&objects, "b")), (0, 0));
    assert_eq!(objects.state().held(node(&objects, "b")).len(), 1);
    assert!(!admits(&mut objects));
    // Its backoff is over.
    let mut over = evicted;
    over["conditions"][1]["status"] = "True".into();
    over["requeueState"] = Value::Null;
    assert_eq!(set(&mut objects, &with(&job, over)), Place::Waits);
    assert!(admits(&mut objects));
    assert_eq!(used(&objects, "b"), 1000);
    // Finished.
    let finished = json!({"conditions": [{"type": "Finished", "status": "True", "reason": "Done",
        "message": "", "lastTransitionTime": at}]});
    let place = set(&mut objects, &with(&job, finished));
    assert_eq!(place, Place::Outside(Outside::Finished));
    assert_eq!(used(&objects, "b"), 0);
    objects.remove_workload("ns/job");
    assert_eq!(objects.place("ns/job"), None);
    assert_eq!(objects.state().workload("ns/job"), None);
}

#[test]
fn who_is_not_active_holds_quota_until_it_is_given_back() {
    let mut objects = world();
    let mut job = workload("job", "1");
    job.spec.active = Some(false);
    assert_eq!(set(&mut objects, &runs(&job, "a", "1")), Place::Runs);
    assert_eq!(used(&objects, "a"), 1000);
    assert_eq!(set(&mut objects, &job), Place::Outside(Outside::Inactive));
    assert_eq!(used(&objects, "a"), 0);
}

#[test]
fn an_admission_that_nobody_has_seen_yet_counts() {
    let mut objects = world();
    let job = workload("job", "1");
    set(&mut objects, &job);
    let cycle = objects.next_cycle(1_000, false);
    assert_eq!(cycle.entries[0].decision, Decision::Admit);
    let entry = &cycle.entries[0];
    let written = admission(objects.state(), entry.workload, entry.assignment()).unwrap();
    // An update that was on its way.
    let mut labelled = job.clone();
    labelled.metadata.labels = Some(labels("x"));
    assert_eq!(set(&mut objects, &labelled), Place::Runs);
    assert_eq!(used(&objects, "a"), 1000);
    // It was seen, and then evicted.
    let mut seen = job.clone();
    seen.status.get_or_insert_default().admission = Some(written);
    assert_eq!(set(&mut objects, &seen), Place::Runs);
    assert_eq!(set(&mut objects, &job), Place::Waits);
    assert_eq!((used(&objects, "a"), waits(&objects, "a")), (0, 1));
    // It could not be written.
    assert!(admits(&mut objects));
    objects.give_up("ns/job");
    assert_eq!((used(&objects, "a"), waits(&objects, "a")), (0, 1));
    assert!(admits(&mut objects));
}

#[test]
fn an_update_that_changes_nothing_leaves_who_is_parked_parked() {
    let mut objects = world();
    let job = workload("job", "3");
    set(&mut objects, &job);
    assert!(!admits(&mut objects));
    let parked = |objects: &Objects| objects.state().parked(node(objects, "a")).len();
    assert_eq!(parked(&objects), 1);
    let pending = json!({"conditions": [{"type": "QuotaReserved", "status": "False",
        "reason": "Pending", "message": "", "lastTransitionTime": "1970-01-01T00:00:01Z"}]});
    set(&mut objects, &with(&job, pending));
    objects.set_cluster_queue(queue("a", "2")).unwrap();
    assert_eq!(parked(&objects), 1);
    objects.set_cluster_queue(queue("a", "3")).unwrap();
    assert!(admits(&mut objects));
}

#[test]
fn priority_is_that_of_the_status_else_of_the_class() {
    let mut objects = world();
    let priority = |objects: &Objects| {
        let id = objects.state().workload("ns/job");
        id.map(|id| objects.state().priority(id))
    };
    let mut job = workload("job", "1");
    set(&mut objects, &job);
    assert_eq!(priority(&objects), Some(0));
    objects.set_priority_class(&class("usual", 5, true));
    assert_eq!(priority(&objects), Some(5));
    job.spec.priority_class_name = Some("high".to_owned());
    let place = set(&mut objects, &job);
    assert_eq!(place, Place::Outside(Outside::NoPriorityClass));
    assert_eq!(priority(&objects), None);
    objects.set_priority_class(&class("high", 9, false));
    assert_eq!(priority(&objects), Some(9));
    objects.remove_priority_class("high");
    assert_eq!(priority(&objects), None);
    set(&mut objects, &with(&job, json!({"priority": 7})));
    assert_eq!(priority(&objects), Some(7));
    job.spec.priority_class_name = Some("system-node-critical".to_owned());
    set(&mut objects, &job);
    assert_eq!(priority(&objects), Some(2_000_001_000));
}

#[test]
fn a_taint_keeps_away_who_waits_from_then_on() {
    let mut objects = world();
    set(&mut objects, &workload("job", "1"));
    let taints = json!({"nodeTaints": [{"key": "repair", "effect": "NoSchedule"}]});
    let tainted: ResourceFlavor = object(&ours("ResourceFlavor", None, "f", &taints));
    objects.set_resource_flavor(&tainted);
    assert!(!admits(&mut objects));
    objects.set_resource_flavor(&flavor());
    assert!(admits(&mut objects));
}

#[test]
fn who_is_told_to_go_holds_its_quota_until_it_has_gone() {
    let mut objects = world();
    let job = runs(&workload("job", "1"), "a", "1");
    set(&mut objects, &job);
    let held = |objects: &Objects| {
        let state = objects.state();
        let held = state.held_by(state.workload("ns/job")?)?;
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
fn what_runs_counts_without_its_class_or_its_local_queue() {
    let mut objects = world();
    let mut job = workload("job", "1");
    job.spec.priority_class_name = Some("gone".to_owned());
    assert_eq!(set(&mut objects, &runs(&job, "a", "1")), Place::Runs);
    objects.remove_local_queue("ns", "door");
    assert_eq!(used(&objects, "a"), 1000);

    // And while its admission is written.
    let mut objects = world();
    set(&mut objects, &workload("job", "1"));
    assert!(admits(&mut objects));
    objects.set_local_queue(&door("b"));
    assert_eq!(used(&objects, "a"), 1000);
    objects.remove_local_queue("ns", "door");
    assert_eq!(used(&objects, "a"), 1000);
    objects.give_up("ns/job");
    assert_eq!(objects.place("ns/job"), Some(Ok(EMPTY)));
    assert_eq!(used(&objects, "a"), 0);
}

#[test]
fn another_workload_of_the_same_name_begins_anew() {
    let mut objects = world();
    set(&mut objects, &workload("job", "1"));
    assert!(admits(&mut objects));
    let mut again = workload("job", "1");
    again.metadata.uid = Some("another".to_owned());
    assert_eq!(set(&mut objects, &again), Place::Waits);
    assert_eq!(used(&objects, "a"), 0);
}

#[test]
fn what_is_refused_leaves_the_state_as_it_was() {
    let mut objects = world();
    let job = workload("job", "1");
    set(&mut objects, &runs(&job, "a", "1"));
    let error = objects.set_workload(Arc::new(runs(&job, "a", "-1")));
    let error = error.unwrap_err();
    assert_eq!(
        error.field,
        "status.admission.podSetAssignments[0].resourceUsage[cpu]"
    );
    assert_eq!(objects.refused().collect::<Vec<_>>(), [&error]);
    assert_eq!(used(&objects, "a"), 1000);
    assert_eq!(set(&mut objects, &runs(&job, "a", "2")), Place::Runs);
    assert_eq!((used(&objects, "a"), objects.refused().count()), (2000, 0));

    assert!(objects.set_cluster_queue(queue("a", "-1")).is_err());
    set(&mut objects, &workload("more", "1"));
    assert!(!admits(&mut objects));
    objects.set_cluster_queue(queue("a", "3")).unwrap();
    assert!(admits(&mut objects));
}

#[test]
fn all_of_a_resource_together_stays_a_number() {
    let mut objects = world();
    let half = "5P";
    objects.set_cluster_queue(queue("b", half)).unwrap();
    let error = objects.set_cluster_queue(queue("c", half)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ClusterQueue c: spec.resourceGroups: the amount is too large; keep all of a resource \
         together below 2^63 of its unit"
    );
    let cohort = json!({"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
        {"name": "f", "resources": [{"name": "cpu", "nominalQuota": half}]}]}]});
    let cohort: Cohort = object(&ours("Cohort", None, "all", &cohort));
    assert!(objects.set_cohort(&cohort).is_err());
    // What is unlimited is no number.
    let unlimited = format!("{}m", Amount::UNLIMITED.get());
    objects.set_cluster_queue(queue("b", &unlimited)).unwrap();
    objects.set_cluster_queue(queue("c", half)).unwrap();
    objects.remove_cluster_queue("c");
    objects.set_cohort(&cohort).unwrap();
    objects.remove_cohort("all");
    objects.set_cluster_queue(queue("c", half)).unwrap();

    let [one, two] = ["one", "two"].map(|name| runs(&workload(name, "1"), "a", half));
    assert_eq!(set(&mut objects, &one), Place::Runs);
    assert!(objects.set_workload(Arc::new(two.clone())).is_err());
    objects.remove_workload("ns/one");
    assert_eq!(set(&mut objects, &two), Place::Runs);
}

#[test]
fn files_need_not_say_what_flavors_and_namespaces_are() {
    let mut objects = Objects::new(Options::default(), Settings::default(), Knowledge::Partial);
    objects.set_cluster_queue(queue("a", "2")).unwrap();
    assert_eq!(set(&mut objects, &workload("job", "1")), EMPTY);
    objects.set_local_queue(&door("a"));
    assert!(admits(&mut objects));
}
