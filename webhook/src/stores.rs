//! Stores fed by watches: the objects that rules ask about, kept down to the facts they use.

use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::{ApiResource, Object, PartialObjectMeta};
use kube::runtime::watcher::{Config, Event, Result as WatchResult};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource};
use lockkeeper_api::{Workload, labels};
use lockkeeper_policies::facts;
use lockkeeper_policies::index::{Facts, Index, IndexedKind};
use lockkeeper_policies::world::ObjectName;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

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
#[derive(Clone, Debug, Deserialize)]
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

type LeanWorkload = Object<WorkloadSpec, WorkloadStatus>;

const PRIORITY_CLASSES: &str = "priorityclasses";
const WORKLOADS: &str = "workloads";
const PODS: &str = "pods";

/// Starts the watches. They go on until the runtime ends; a broken watch is taken up again with
/// growing pauses, and meanwhile the stores answer from what they have.
pub fn follow(client: &Client, index: &Arc<RwLock<Index>>) -> Readiness {
    let readiness = Readiness::of([PRIORITY_CLASSES, WORKLOADS, PODS]);
    let config = Config::default;

    let classes: Api<PriorityClass> = Api::all(client.clone());
    let classes = watcher(classes, config());
    spawn(
        PRIORITY_CLASSES,
        IndexedKind::PriorityClass,
        classes,
        index,
        &readiness,
        |class| Some(Facts::PriorityClass(facts::of_priority_class(class))),
    );

    let resource = ApiResource::erase::<Workload>(&());
    let workloads: Api<LeanWorkload> = Api::all_with(client.clone(), &resource);
    let workloads = watcher(workloads, config());
    spawn(
        WORKLOADS,
        IndexedKind::Workload,
        workloads,
        index,
        &readiness,
        |workload| Some(of_workload(workload)),
    );

    let pods: Api<PartialObjectMeta<Pod>> = Api::all(client.clone());
    let pods = watcher(pods, config().labels(labels::JOB));
    spawn(PODS, IndexedKind::Pod, pods, index, &readiness, |pod| {
        facts::of_pod(pod.metadata.labels.as_ref())
    });
    readiness
}

fn of_workload(workload: &LeanWorkload) -> Facts {
    let conditions = workload
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice());
    let finished = conditions
        .unwrap_or_default()
        .iter()
        .any(|condition| condition.type_ == "Finished" && condition.status == "True");
    let classes = [
        workload.spec.priority_class_name.as_deref(),
        workload.spec.preemption_priority_class_name.as_deref(),
    ];
    facts::of_workload(classes, finished)
}

/// Feeds one watch into the index, in a task of its own.
fn spawn<K>(
    name: &'static str,
    kind: IndexedKind,
    events: impl Stream<Item = WatchResult<Event<K>>> + Send + 'static,
    index: &Arc<RwLock<Index>>,
    readiness: &Readiness,
    facts_of: impl Fn(&K) -> Option<Facts> + Send + 'static,
) where
    K: Resource + Send + 'static,
{
    let (index, readiness) = (Arc::clone(index), readiness.clone());
    tokio::spawn(async move {
        let mut events = pin!(events.default_backoff());
        let mut listed = BTreeSet::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    let done = matches!(event, Event::InitDone);
                    let mut index = index.write().unwrap_or_else(PoisonError::into_inner);
                    take(&mut index, kind, &mut listed, event, &facts_of);
                    drop(index);
                    if done {
                        readiness.set(name);
                    }
                }
                Err(error) => tracing::warn!(store = name, %error, "the watch broke; trying again"),
            }
        }
    });
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
