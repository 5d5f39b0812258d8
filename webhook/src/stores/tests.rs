#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::feed::{apply_event, feed_index, lock_for_change};
use super::*;
use axum::http::StatusCode;
use futures_util::{FutureExt, stream};
use kube::runtime::watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
use kube::runtime::watcher::{Event, Result as WatchResult};
use lockkeeper_policies::cluster_view::{ClusterView, Lookup, PreemptibleLabel};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::pin::pin;

fn decoded<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

fn class(name: &str) -> PriorityClass {
    decoded(json!({"metadata": {"name": name}, "value": 1}))
}

const CLASS_FACTS: fn(&PriorityClass) -> Option<Facts> =
    |class| Some(Facts::PriorityClass(facts::priority_class_facts(class)));

/// A pod of job `j`, or without a job.
fn pod(name: &str, in_job: bool) -> SlimPod {
    let labels = if in_job {
        json!({labels::JOB: "j"})
    } else {
        json!({"app": "a"})
    };
    decoded(json!({"metadata": {"name": name, "namespace": "team", "labels": labels}}))
}

fn pod_facts(pod: &SlimPod) -> Option<Facts> {
    facts::partial_pod_facts(pod.metadata.labels.as_ref())
}

/// A workload of class `high`.
fn workload(name: &str, status: &Value) -> SlimWorkload {
    decoded(json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Workload",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"priorityClassName": "high", "podSets": []}, "status": status,
    }))
}

fn feed<K: Resource>(
    index: &mut Index,
    kind: IndexedKind,
    events: Vec<Event<K>>,
    facts_of: impl Fn(&K) -> Option<Facts>,
) {
    let mut listed = BTreeSet::new();
    for event in events {
        apply_event(index, kind, &mut listed, event, &facts_of);
    }
}

/// Feeds events of PriorityClasses and checks the classes in the index.
#[track_caller]
fn check(events: Vec<Event<PriorityClass>>, expected: &[&str]) {
    let mut index = Index::default();
    let kind = IndexedKind::PriorityClass;
    feed(&mut index, kind, events, CLASS_FACTS);
    assert_eq!(index.priority_class_names(usize::MAX), expected);
}

#[test]
fn store_applies_and_deletes_objects() {
    check(vec![], &[]);
    check(vec![Apply(class("a")), Apply(class("b"))], &["a", "b"]);
    check(vec![Apply(class("a")), Apply(class("a"))], &["a"]);
    check(
        vec![
            Apply(class("a")),
            Delete(class("a")),
            Delete(class("never")),
        ],
        &[],
    );
}

#[test]
fn relist_adds_at_once_and_removes_at_the_end() {
    let (a, b, c) = (|| class("a"), || class("b"), || class("c"));
    let first = vec![Init, InitApply(a()), InitApply(b()), InitDone];
    check(first.clone(), &["a", "b"]);
    // Until the second list is complete, deletions are unknown.
    let under_way = [first.clone(), vec![Init, InitApply(c())]].concat();
    check(under_way.clone(), &["a", "b", "c"]);
    check([under_way.clone(), vec![InitDone]].concat(), &["c"]);
    check([first.clone(), vec![Init, InitDone]].concat(), &[]);
    // Names of an interrupted list do not count for the next one.
    let restarted = vec![Init, InitApply(b()), InitDone];
    check([under_way, restarted].concat(), &["b"]);
    let later = vec![Apply(c()), Delete(a())];
    check([first, later].concat(), &["b", "c"]);
}

#[test]
fn empty_list_marks_store_as_listed() {
    let mut index = Index::default();
    let kind = IndexedKind::PriorityClass;
    feed(&mut index, kind, vec![Init], CLASS_FACTS);
    assert_eq!(index.priority_class("a"), Lookup::Unknown);
    feed(&mut index, kind, vec![InitDone], CLASS_FACTS);
    assert_eq!(index.priority_class("a"), Lookup::Absent);
}

#[test]
fn relist_of_one_kind_keeps_other_kinds() {
    let mut index = Index::default();
    let classes = vec![Apply(class("a"))];
    feed(&mut index, IndexedKind::PriorityClass, classes, CLASS_FACTS);
    let pods = vec![Apply(pod("a", true))];
    feed(&mut index, IndexedKind::Pod, pods, pod_facts);
    let nothing = || vec![Init, InitDone];
    feed(&mut index, IndexedKind::Pod, nothing(), pod_facts);
    assert_eq!(index.count(IndexedKind::Pod), 0);
    assert_eq!(index.priority_class_names(usize::MAX), ["a"]);
}

/// Feeds events of the pod `p`; returns true if it belongs to the job at the end.
#[track_caller]
fn check_pod(events: Vec<Event<SlimPod>>, expected: bool) {
    let mut index = Index::default();
    feed(&mut index, IndexedKind::Pod, events, pod_facts);
    let found = index.job_pod_with_label("team", "j", PreemptibleLabel::Missing, "");
    assert_eq!(found.as_deref(), expected.then_some("p"));
    assert_eq!(index.count(IndexedKind::Pod), usize::from(expected));
}

#[test]
fn pod_without_job_label_is_ignored() {
    let (with, without) = (|| pod("p", true), || pod("p", false));
    check_pod(vec![Apply(with())], true);
    check_pod(vec![Apply(without()), Apply(with())], true);
    check_pod(vec![Apply(with()), Apply(without())], false);
    // Lost while the watch was interrupted.
    let listing = vec![Init, InitApply(without()), InitDone];
    check_pod([vec![Apply(with())], listing].concat(), false);
    // The API server sends a delete event to a watch by label for an object that loses the label.
    check_pod(vec![Apply(with()), Delete(without())], false);
}

#[test]
fn workload_uses_priority_class_until_finished() {
    let condition = |kind: &str, status: &str| {
        json!({"conditions": [{
            "type": kind, "status": status, "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]})
    };
    for (status, users) in [
        (Value::Null, 1),
        (json!({}), 1),
        (condition("Admitted", "True"), 1),
        (condition("Finished", "False"), 1),
        (condition("Finished", "True"), 0),
    ] {
        let mut index = Index::default();
        let events = vec![
            Apply(workload("w", &Value::Null)),
            Apply(workload("w", &status)),
        ];
        let facts_of = |workload: &SlimWorkload| Some(workload_facts(workload));
        feed(&mut index, IndexedKind::Workload, events, facts_of);
        assert_eq!(index.priority_class_referrers("high", 1).total, users);
    }
}

#[test]
fn readiness_reports_unsynced_stores() {
    assert_eq!(StoreReadiness::always().missing(), [""; 0]);
    let named = |name| store(name, IndexedKind::Pod);
    let readiness =
        StoreReadiness::from_stores(["a", "b", "c"].map(named).into_iter(), WatchAges::default());
    assert_eq!(readiness.missing(), ["a", "b", "c"]);
    readiness.clone().mark_synced("b");
    readiness.mark_synced("no such store");
    assert_eq!(readiness.missing(), ["a", "c"], "clones share it");
    for name in ["a", "b", "c"] {
        readiness.mark_synced(name);
    }
    assert_eq!(readiness.missing(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn readiness_reports_watch_without_response() {
    let watches = WatchAges::default();
    let named = ["workloads", "pods"].map(|name| store(name, IndexedKind::Pod));
    let readiness = StoreReadiness::from_stores(named.into_iter(), watches.clone());
    for name in ["workloads", "pods"] {
        readiness.mark_synced(name);
    }
    assert_eq!(readiness.problem(), None);
    watches.record("workloads.lockkeeper.dev".to_owned(), StatusCode::OK);
    tokio::time::advance(WATCH_AGE_MAX).await;
    assert_eq!(readiness.problem(), None);
    // One watch is enough, although the other is answered.
    watches.record("pods".to_owned(), StatusCode::OK);
    tokio::time::advance(Duration::from_secs(1)).await;
    let problem = "no response to the watch of workloads.lockkeeper.dev for 91 s";
    assert_eq!(readiness.problem().as_deref(), Some(problem));
    // The metric shows the age of each.
    let ages = ["workloads", "pods"].map(|it| readiness.watch_age(it).as_secs());
    assert_eq!(ages, [91, 1]);
    watches.record("workloads.lockkeeper.dev".to_owned(), StatusCode::OK);
    assert_eq!(readiness.problem(), None);
}

/// Returns the classes in the index after a watch with these results, and the readiness of the store.
#[track_caller]
fn check_watch(results: Vec<WatchResult<Event<PriorityClass>>>, names: &[&str], ready: bool) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().build().unwrap();
    let feed = IndexFeed {
        index: Arc::new(RwLock::new(Index::default())),
        lag_max: Duration::from_secs(1),
        readiness: StoreReadiness::from_stores(stores([]), WatchAges::default()),
    };
    runtime.block_on(async {
        let results = stream::iter(results);
        feed_index(PRIORITY_CLASSES, results, &feed, &CLASS_FACTS).await;
    });
    let index = feed.index.read().unwrap();
    assert_eq!(index.priority_class_names(usize::MAX), names);
    let readiness = &feed.readiness;
    assert_eq!(!readiness.missing().contains(&PRIORITY_CLASSES.name), ready);
    let waiting = STORES.len() - usize::from(ready);
    assert_eq!(readiness.missing().len(), waiting);
}

#[test]
fn store_is_ready_after_first_complete_list() {
    let broken = || Err(watcher::Error::NoResourceVersion);
    check_watch(vec![], &[], false);
    check_watch(vec![broken(), Ok(Init)], &[], false);
    check_watch(vec![Ok(Init), Ok(InitApply(class("a")))], &["a"], false);
    check_watch(vec![Ok(Init), Ok(InitDone)], &[], true);
}

#[tokio::test]
async fn waiting_index_change_does_not_block_requests() {
    let index = RwLock::new(Index::default());
    let judging = index.read().unwrap();
    let mut waiting = pin!(lock_for_change(&index, Duration::from_secs(1)));
    assert!((&mut waiting).now_or_never().is_none());
    drop(index.try_read().unwrap());
    drop(judging);
    drop(waiting.await);
}

#[test]
fn broken_watch_keeps_listed_objects() {
    let listing = |name| [Ok(Init), Ok(InitApply(class(name))), Ok(InitDone)];
    let broken = || Err(watcher::Error::NoResourceVersion);
    let mut results = Vec::from(listing("a"));
    results.extend([broken(), broken()]);
    check_watch(results, &["a"], true);

    let mut results = Vec::from(listing("a"));
    results.push(broken());
    results.extend(listing("b"));
    check_watch(results, &["b"], true);
}

fn absent() -> watcher::Error {
    let status = kube::core::Status::failure("404 page not found", "").with_code(404);
    watcher::Error::InitialListFailed(kube::Error::Api(status.boxed()))
}

/// Returns the stores that are not ready after a watch with these results; the kind may be missing if
/// `is_optional`.
async fn unready_stores(
    is_optional: bool,
    results: Vec<WatchResult<Event<PriorityClass>>>,
) -> usize {
    let optional = Store {
        is_optional,
        ..PRIORITY_CLASSES
    };
    let feed = IndexFeed {
        index: Arc::new(RwLock::new(Index::default())),
        lag_max: Duration::from_secs(1),
        readiness: StoreReadiness::from_stores([optional].into_iter(), WatchAges::default()),
    };
    feed_index(optional, stream::iter(results), &feed, &CLASS_FACTS).await;
    feed.readiness.missing().len()
}

#[tokio::test]
async fn optional_kind_is_not_waited_for() {
    assert_eq!(unready_stores(true, vec![Ok(Init), Err(absent())]).await, 0);
    assert_eq!(
        unready_stores(false, vec![Ok(Init), Err(absent())]).await,
        1
    );
    // With another error, the kind may be installed.
    let broken = || Err(watcher::Error::NoResourceVersion);
    assert_eq!(unready_stores(true, vec![Ok(Init), broken()]).await, 1);
    assert_eq!(unready_stores(true, vec![Ok(Init)]).await, 1);
}

#[test]
fn foreign_kinds_are_watched_only_if_enabled() {
    let names = |wanted: &[ForeignKinds]| -> Vec<&str> {
        let stores = stores(wanted.iter().copied());
        stores.skip(STORES.len()).map(|it| it.name).collect()
    };
    assert_eq!(names(&[]), [""; 0]);
    let kueue = [
        "clusterqueues.kueue.x-k8s.io",
        "cohorts.kueue.x-k8s.io",
        "resourceflavors.kueue.x-k8s.io",
        "localqueues.kueue.x-k8s.io",
        "workloadpriorityclasses.kueue.x-k8s.io",
    ];
    let koordinator = "elasticquotas.scheduling.sigs.k8s.io";
    assert_eq!(names(&[ForeignKinds::Kueue]), kueue);
    assert_eq!(names(&[ForeignKinds::Koordinator]), [koordinator]);
    assert_eq!(
        names(&ForeignKinds::ALL),
        [&kueue[..], &[koordinator]].concat()
    );
    let all: BTreeSet<&str> = stores(ForeignKinds::ALL).map(|it| it.name).collect();
    assert_eq!(all.len(), stores(ForeignKinds::ALL).count(), "names differ");
}

#[test]
fn foreign_object_is_decoded_leniently_or_skipped() {
    use lockkeeper_api::foreign::{koordinator, kueue};

    let object = |rest: Value| -> kube::core::DynamicObject {
        let mut object = json!({
            "apiVersion": "v", "kind": "k",
            "metadata": {"name": "q", "namespace": "team", "labels": {koordinator::PARENT: "p"}},
        });
        object
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        decoded(object)
    };
    let queue =
        object(json!({"spec": {"cohortName": "c", "unheardOf": 1}, "status": {"more": []}}));
    let queue: kueue::ClusterQueue = foreign::decode_lenient(&queue).unwrap();
    assert_eq!(
        (queue.metadata.name.as_deref(), &*queue.spec.cohort_name),
        (Some("q"), "c")
    );
    let class: kueue::WorkloadPriorityClass =
        foreign::decode_lenient(&object(json!({"value": 7}))).unwrap();
    assert_eq!(class.value, 7);
    let quota: koordinator::ElasticQuota = foreign::decode_lenient(&object(json!({}))).unwrap();
    assert_eq!(quota.parent(), "p", "labels are part of it");
    let odd = object(json!({"spec": {"cohortName": {"name": "c"}}}));
    assert!(foreign::decode_lenient::<kueue::ClusterQueue>(&odd).is_none());
}

#[test]
fn declaration_is_found_by_its_kind_until_it_is_deleted() {
    let declaration = |path: &str| -> JobKind {
        decoded(json!({
            "metadata": {"name": "runs.example.com"},
            "spec": {
                "version": "v1", "kind": "Run", "suspend": {"path": path},
                "podSets": [{"name": "main", "template": "spec.template"}],
            },
        }))
    };
    let mut index = Index::default();
    let mut apply = |event| {
        feed(
            &mut index,
            IndexedKind::JobKind,
            vec![event],
            job_kind_facts,
        );
        index.declared_suspension("example.com", "Run").is_some()
    };
    assert!(apply(Apply(declaration("spec.suspend"))));
    assert!(!apply(Apply(declaration("status.suspend"))), "a mistake");
    assert!(apply(Apply(declaration("spec.suspend"))));
    assert!(!apply(Delete(declaration("spec.suspend"))));
}
