//! Stores fed by watches: the objects that rules ask about, kept down to the facts they use.

mod lean;

use crate::chain::Chain;
use crate::watching::unending;
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::runtime::watcher::{Config, Event, Result as WatchResult};
use kube::{Api, Client, Resource};
use lean::Lean;
use lockkeeper_api::{Workload, labels};
use lockkeeper_policies::facts;
use lockkeeper_policies::index::{Facts, Index, IndexedKind};
use lockkeeper_policies::world::ObjectName;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard, TryLockError};
use std::time::Duration;
use tokio::time::Instant;

/// Between two tries to lock the index for a change, in milliseconds.
const LOCK_PAUSE_MS: u64 = 1;

/// Objects in one answer to a list. They are in memory together, three times for a moment: as they came,
/// as text and decoded.
const PAGE_SIZE: u32 = 100;

/// Which stores have listed everything once.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    stores: Arc<[(&'static str, AtomicBool)]>,
}

impl Readiness {
    /// Nothing has to be listed.
    #[must_use]
    pub fn always() -> Self {
        Self::default()
    }

    fn of(names: [&'static str; 3]) -> Self {
        Self {
            stores: names.map(|name| (name, AtomicBool::new(false))).into(),
        }
    }

    fn set(&self, name: &str) {
        for (store, synced) in self.stores.iter() {
            if *store == name && !synced.swap(true, Ordering::Release) {
                tracing::info!(store = name, "synced");
            }
        }
    }

    /// The stores that have not listed everything yet.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let unsynced = self
            .stores
            .iter()
            .filter(|(_, synced)| !synced.load(Ordering::Acquire));
        unsynced.map(|(name, _)| *name).collect()
    }
}

/// Only what rules use of a Workload's spec is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadSpec {
    priority_class_name: Option<String>,
    preemption_priority_class_name: Option<String>,
}

/// Only what rules use of a Workload's status is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
struct WorkloadStatus {
    #[serde(default)]
    conditions: Vec<Condition>,
}

type LeanWorkload = Lean<Workload, WorkloadSpec, WorkloadStatus>;

/// A pod is its metadata, and that is all that is asked for.
type LeanPod = Lean<PartialObjectMeta<Pod>>;

const PRIORITY_CLASSES: &str = "priorityclasses";
const WORKLOADS: &str = "workloads";
const PODS: &str = "pods";

/// All stores, and what they hold.
pub(crate) const STORES: [(&str, IndexedKind); 3] = [
    (PRIORITY_CLASSES, IndexedKind::PriorityClass),
    (WORKLOADS, IndexedKind::Workload),
    (PODS, IndexedKind::Pod),
];

/// Starts the watches. They go on until the runtime ends; a broken watch is taken up again with
/// growing pauses, and meanwhile the stores answer from what they have. A change waits for at most
/// `lag_max` for requests that are being judged.
pub fn follow(client: &Client, index: &Arc<RwLock<Index>>, lag_max: Duration) -> Readiness {
    let readiness = Readiness::of([PRIORITY_CLASSES, WORKLOADS, PODS]);
    let config = || Config::default().page_size(PAGE_SIZE);
    let feed = Feed {
        index: Arc::clone(index),
        lag_max,
        readiness: readiness.clone(),
    };

    let classes: Api<PriorityClass> = Api::all(client.clone());
    spawn(
        PRIORITY_CLASSES,
        IndexedKind::PriorityClass,
        move || watcher(classes.clone(), config()),
        &feed,
        |class| Some(Facts::PriorityClass(facts::of_priority_class(class))),
    );

    let workloads: Api<LeanWorkload> = Api::all(client.clone());
    spawn(
        WORKLOADS,
        IndexedKind::Workload,
        move || watcher(workloads.clone(), config()),
        &feed,
        |workload| Some(of_workload(workload)),
    );

    let pods: Api<LeanPod> = Api::all(client.clone());
    let of_jobs = move || watcher(pods.clone(), config().labels(labels::JOB));
    spawn(PODS, IndexedKind::Pod, of_jobs, &feed, |pod| {
        facts::of_pod(pod.metadata.labels.as_ref())
    });
    readiness
}

fn of_workload(workload: &LeanWorkload) -> Facts {
    let status = workload.status.as_ref();
    let finished = status.is_some_and(|status| facts::is_finished(&status.conditions));
    let classes = [
        workload.spec.priority_class_name.as_deref(),
        workload.spec.preemption_priority_class_name.as_deref(),
    ];
    facts::of_workload(classes, finished)
}

/// What all watches feed.
#[derive(Clone)]
struct Feed {
    index: Arc<RwLock<Index>>,
    /// Longest that a change waits for requests that are being judged.
    lag_max: Duration,
    readiness: Readiness,
}

/// Feeds one watch into the index, in a task of its own. `watch` begins it, and begins it anew.
fn spawn<K, S>(
    name: &'static str,
    kind: IndexedKind,
    watch: impl Fn() -> S + Send + 'static,
    feed: &Feed,
    facts_of: impl Fn(&K) -> Option<Facts> + Send + Sync + 'static,
) where
    K: Resource + Send + 'static,
    S: Stream<Item = WatchResult<Event<K>>> + Send + 'static,
{
    let feed = feed.clone();
    tokio::spawn(async move { follow_one(name, kind, unending(watch), &feed, &facts_of).await });
}

/// Feeds a watch into the index.
async fn follow_one<K: Resource>(
    name: &'static str,
    kind: IndexedKind,
    events: impl Stream<Item = WatchResult<Event<K>>>,
    feed: &Feed,
    facts_of: &impl Fn(&K) -> Option<Facts>,
) {
    let mut events = pin!(events);
    let mut listed = BTreeSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                let done = matches!(event, Event::InitDone);
                let mut index = locked(&feed.index, feed.lag_max).await;
                take(&mut index, kind, &mut listed, event, facts_of);
                drop(index);
                if done {
                    feed.readiness.set(name);
                }
            }
            Err(error) => {
                let error = Chain(&error);
                tracing::warn!(store = name, %error, "the watch broke; trying again");
            }
        }
    }
}

/// Locks the index for a change. Where this can wait, it does so without standing in the lock's own
/// queue: who stands there holds up every request that comes after, and a large object is judged for
/// a tenth of a second and more.
async fn locked(index: &RwLock<Index>, lag_max: Duration) -> RwLockWriteGuard<'_, Index> {
    let started = Instant::now();
    loop {
        match index.try_write() {
            Ok(index) => return index,
            Err(TryLockError::Poisoned(index)) => return index.into_inner(),
            Err(TryLockError::WouldBlock) if started.elapsed() >= lag_max => break,
            Err(TryLockError::WouldBlock) => {}
        }
        tokio::time::sleep(Duration::from_millis(LOCK_PAUSE_MS)).await;
    }
    // The stores must not fall behind for ever.
    index.write().unwrap_or_else(PoisonError::into_inner)
}

/// Takes one event into the index. `listed` holds the names of a listing that is under way.
fn take<K: Resource>(
    index: &mut Index,
    kind: IndexedKind,
    listed: &mut BTreeSet<ObjectName>,
    event: Event<K>,
    facts_of: impl Fn(&K) -> Option<Facts>,
) {
    match event {
        Event::Init => listed.clear(),
        Event::InitApply(object) => {
            listed.insert(facts::name_of(object.meta()));
            put(index, kind, &object, facts_of);
        }
        Event::InitDone => {
            index.retain(kind, listed);
            listed.clear();
        }
        Event::Apply(object) => put(index, kind, &object, facts_of),
        Event::Delete(object) => index.remove(kind, &facts::name_of(object.meta())),
    }
}

fn put<K: Resource>(
    index: &mut Index,
    kind: IndexedKind,
    object: &K,
    facts_of: impl Fn(&K) -> Option<Facts>,
) {
    let name = facts::name_of(object.meta());
    match facts_of(object) {
        Some(facts) => index.apply(name, facts),
        None => index.remove(kind, &name),
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "tests fail by panicking"
    )]

    use super::*;
    use Event::{Apply, Delete, Init, InitApply, InitDone};
    use futures_util::{FutureExt, stream};
    use lockkeeper_policies::world::{Lookup, PreemptibleLabel, World};
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    fn decoded<T: DeserializeOwned>(object: Value) -> T {
        serde_json::from_value(object).unwrap()
    }

    fn class(name: &str) -> PriorityClass {
        decoded(json!({"metadata": {"name": name}, "value": 1}))
    }

    const CLASS_FACTS: fn(&PriorityClass) -> Option<Facts> =
        |class| Some(Facts::PriorityClass(facts::of_priority_class(class)));

    /// A pod of job `j`, or of none.
    fn pod(name: &str, in_job: bool) -> LeanPod {
        let labels = if in_job {
            json!({labels::JOB: "j"})
        } else {
            json!({"app": "a"})
        };
        decoded(json!({"metadata": {"name": name, "namespace": "team", "labels": labels}}))
    }

    fn pod_facts(pod: &LeanPod) -> Option<Facts> {
        facts::of_pod(pod.metadata.labels.as_ref())
    }

    /// A workload of class `high`.
    fn workload(name: &str, status: &Value) -> LeanWorkload {
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
            take(index, kind, &mut listed, event, &facts_of);
        }
    }

    /// Feeds events of PriorityClasses; these are there in the end.
    #[track_caller]
    fn check(events: Vec<Event<PriorityClass>>, expected: &[&str]) {
        let mut index = Index::default();
        let kind = IndexedKind::PriorityClass;
        feed(&mut index, kind, events, CLASS_FACTS);
        assert_eq!(index.priority_class_names(usize::MAX), expected);
    }

    #[test]
    fn objects_come_and_go() {
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
    fn a_listing_adds_at_once_and_drops_at_its_end() {
        let (a, b, c) = (|| class("a"), || class("b"), || class("c"));
        let first = vec![Init, InitApply(a()), InitApply(b()), InitDone];
        check(first.clone(), &["a", "b"]);
        // Until the second listing is complete, nobody can say what is gone.
        let under_way = [first.clone(), vec![Init, InitApply(c())]].concat();
        check(under_way.clone(), &["a", "b", "c"]);
        check([under_way.clone(), vec![InitDone]].concat(), &["c"]);
        check([first.clone(), vec![Init, InitDone]].concat(), &[]);
        // What a broken listing had seen does not count for the next one.
        let restarted = vec![Init, InitApply(b()), InitDone];
        check([under_way, restarted].concat(), &["b"]);
        let later = vec![Apply(c()), Delete(a())];
        check([first, later].concat(), &["b", "c"]);
    }

    #[test]
    fn an_empty_listing_says_that_there_is_nothing() {
        let mut index = Index::default();
        let kind = IndexedKind::PriorityClass;
        feed(&mut index, kind, vec![Init], CLASS_FACTS);
        assert_eq!(index.priority_class("a"), Lookup::Unknown);
        feed(&mut index, kind, vec![InitDone], CLASS_FACTS);
        assert_eq!(index.priority_class("a"), Lookup::Absent);
    }

    #[test]
    fn a_listing_of_one_kind_leaves_the_others_alone() {
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

    /// Feeds events of the pod `p`; whether it is a pod of the job in the end.
    #[track_caller]
    fn check_pod(events: Vec<Event<LeanPod>>, expected: bool) {
        let mut index = Index::default();
        feed(&mut index, IndexedKind::Pod, events, pod_facts);
        let found = index.job_pod("team", "j", PreemptibleLabel::Missing, "");
        assert_eq!(found.as_deref(), expected.then_some("p"));
        assert_eq!(index.count(IndexedKind::Pod), usize::from(expected));
    }

    #[test]
    fn a_pod_without_the_job_label_is_no_pod_of_the_job() {
        let (with, without) = (|| pod("p", true), || pod("p", false));
        check_pod(vec![Apply(with())], true);
        check_pod(vec![Apply(without()), Apply(with())], true);
        check_pod(vec![Apply(with()), Apply(without())], false);
        // Lost while the watch was broken.
        let listing = vec![Init, InitApply(without()), InitDone];
        check_pod([vec![Apply(with())], listing].concat(), false);
        // The API server deletes from a watch by label what has lost the label.
        check_pod(vec![Apply(with()), Delete(without())], false);
    }

    #[test]
    fn a_workload_uses_its_class_until_it_is_finished() {
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
            let facts_of = |workload: &LeanWorkload| Some(of_workload(workload));
            feed(&mut index, IndexedKind::Workload, events, facts_of);
            assert_eq!(index.priority_class_users("high", 1).total, users);
        }
    }

    #[test]
    fn ready_is_what_has_listed_everything() {
        assert_eq!(Readiness::always().missing(), [""; 0]);
        let readiness = Readiness::of(["a", "b", "c"]);
        assert_eq!(readiness.missing(), ["a", "b", "c"]);
        readiness.clone().set("b");
        readiness.set("no such store");
        assert_eq!(readiness.missing(), ["a", "c"], "clones share it");
        for name in ["a", "b", "c"] {
            readiness.set(name);
        }
        assert_eq!(readiness.missing(), [""; 0]);
    }

    /// What a watch has made of these results once it has ended: the classes there are, and whether
    /// the store is ready.
    #[track_caller]
    fn check_watch(results: Vec<WatchResult<Event<PriorityClass>>>, names: &[&str], ready: bool) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().build().unwrap();
        let feed = Feed {
            index: Arc::new(RwLock::new(Index::default())),
            lag_max: Duration::from_secs(1),
            readiness: Readiness::of([PRIORITY_CLASSES, WORKLOADS, PODS]),
        };
        runtime.block_on(async {
            let kind = IndexedKind::PriorityClass;
            let results = stream::iter(results);
            follow_one(PRIORITY_CLASSES, kind, results, &feed, &CLASS_FACTS).await;
        });
        let index = feed.index.read().unwrap();
        assert_eq!(index.priority_class_names(usize::MAX), names);
        let readiness = &feed.readiness;
        assert_eq!(!readiness.missing().contains(&PRIORITY_CLASSES), ready);
        assert_eq!(readiness.missing().len(), if ready { 2 } else { 3 });
    }

    #[test]
    fn a_store_is_ready_when_its_first_listing_is_complete() {
        let broken = || Err(watcher::Error::NoResourceVersion);
        check_watch(vec![], &[], false);
        check_watch(vec![broken(), Ok(Init)], &[], false);
        check_watch(vec![Ok(Init), Ok(InitApply(class("a")))], &["a"], false);
        check_watch(vec![Ok(Init), Ok(InitDone)], &[], true);
    }

    #[tokio::test]
    async fn a_change_that_waits_holds_up_no_request() {
        let index = RwLock::new(Index::default());
        let judging = index.read().unwrap();
        let mut waiting = pin!(locked(&index, Duration::from_secs(1)));
        assert!((&mut waiting).now_or_never().is_none());
        drop(index.try_read().unwrap());
        drop(judging);
        drop(waiting.await);
    }

    #[test]
    fn a_broken_watch_keeps_what_it_has() {
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
}
