//! Stores fed by watches: the objects that rules ask about, kept down to the facts they use.

mod feed;
mod foreign;
#[cfg(test)]
mod tests;

use feed::{IndexFeed, spawn};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::discovery::ApiResource;
use kube::runtime::watcher;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource};
use lockkeeper_api::config::ForeignKinds;
use lockkeeper_api::{Workload, labels};
use lockkeeper_kube_support::slim_object::SlimObject;
use lockkeeper_policies::cohort_trees::Project;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::{Facts, Index, IndexedKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// Objects in one answer to a list. They are in memory together, three times for a moment: as they came,
/// as text and decoded.
const PAGE_SIZE: u32 = 100;

/// Which stores have listed everything once.
#[derive(Clone, Debug, Default)]
pub struct StoreReadiness {
    stores: Arc<[(&'static str, AtomicBool)]>,
}

impl StoreReadiness {
    /// Nothing has to be listed.
    #[must_use]
    pub fn always() -> Self {
        Self::default()
    }

    fn from_stores(stores: impl Iterator<Item = Store>) -> Self {
        let unsynced = stores.map(|store| (store.name, AtomicBool::new(false)));
        Self {
            stores: unsynced.collect(),
        }
    }

    /// A store has listed everything.
    fn mark_synced(&self, name: &str) {
        if self.mark_settled(name) {
            tracing::info!(store = name, "synced");
        }
    }

    /// A store need not be waited for. Whether it was till now.
    fn mark_settled(&self, name: &str) -> bool {
        let mut stores = self.stores.iter();
        let found = stores.find(|(store, _)| *store == name);
        found.is_some_and(|(_, settled)| !settled.swap(true, Ordering::Release))
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

type SlimWorkload = SlimObject<Workload, WorkloadSpec, WorkloadStatus>;

/// A pod is its metadata, and that is all that is asked for.
type SlimPod = SlimObject<PartialObjectMeta<Pod>>;

/// One kind of objects, and what it is called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Store {
    pub(crate) name: &'static str,
    pub(crate) kind: IndexedKind,
    /// Whether the cluster need not have the kind.
    is_optional: bool,
}

const fn store(name: &'static str, kind: IndexedKind) -> Store {
    Store {
        name,
        kind,
        is_optional: false,
    }
}

const PRIORITY_CLASSES: Store = store("priorityclasses", IndexedKind::PriorityClass);
const WORKLOADS: Store = store("workloads", IndexedKind::Workload);
const PODS: Store = store("pods", IndexedKind::Pod);
const CLUSTER_QUEUES: Store = store(
    "clusterqueues",
    IndexedKind::ClusterQueue(Project::Lockkeeper),
);
const COHORTS: Store = store("cohorts", IndexedKind::Cohort(Project::Lockkeeper));
const RESOURCE_FLAVORS: Store = store(
    "resourceflavors",
    IndexedKind::ResourceFlavor(Project::Lockkeeper),
);
const LOCAL_QUEUES: Store = store("localqueues", IndexedKind::LocalQueue(Project::Lockkeeper));

/// The stores that there are in any case.
const STORES: [Store; 7] = [
    PRIORITY_CLASSES,
    WORKLOADS,
    PODS,
    CLUSTER_QUEUES,
    COHORTS,
    RESOURCE_FLAVORS,
    LOCAL_QUEUES,
];

/// The stores that there are where the kinds of these projects are wanted.
pub(crate) fn stores(
    wanted: impl IntoIterator<Item = ForeignKinds>,
) -> impl Iterator<Item = Store> {
    let foreign = wanted.into_iter().flat_map(foreign::stores);
    STORES.into_iter().chain(foreign.copied())
}

/// Starts the watches, of other projects' kinds those that are wanted. They go on until the runtime ends; a broken
/// watch is taken up again with growing pauses, and meanwhile the stores answer from what they have. A change waits
/// for at most `lag_max` for requests that are being judged.
pub fn start_watches(
    client: &Client,
    index: &Arc<RwLock<Index>>,
    lag_max: Duration,
    wanted: &BTreeSet<ForeignKinds>,
) -> StoreReadiness {
    let readiness = StoreReadiness::from_stores(stores(wanted.iter().copied()));
    let feed = IndexFeed {
        index: Arc::clone(index),
        lag_max,
        readiness: readiness.clone(),
    };
    let watches = Watches {
        client,
        feed: &feed,
    };
    watches.watch_kind(PRIORITY_CLASSES, |class: &PriorityClass| {
        Facts::PriorityClass(facts::priority_class_facts(class))
    });
    watches.watch_kind(WORKLOADS, workload_facts);
    watches.watch_job_pods(PODS);
    watches.watch_kind(CLUSTER_QUEUES, facts::cluster_queue_facts);
    watches.watch_kind(COHORTS, facts::cohort_facts);
    watches.watch_kind(RESOURCE_FLAVORS, facts::flavor_facts);
    watches.watch_kind(LOCAL_QUEUES, facts::local_queue_facts);
    for kinds in wanted {
        foreign::start_watches(&watches, *kinds);
    }
    readiness
}

/// What watches are started with.
struct Watches<'a> {
    client: &'a Client,
    feed: &'a IndexFeed,
}

impl Watches<'_> {
    /// Starts the watch of all objects of a kind.
    fn watch_kind<K>(&self, store: Store, facts_of: impl Fn(&K) -> Facts + Send + Sync + 'static)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let all: Api<K> = Api::all(self.client.clone());
        let watch = move || watcher(all.clone(), Config::default().page_size(PAGE_SIZE));
        spawn(store, watch, self.feed, move |object| {
            Some(facts_of(object))
        });
    }

    /// Starts the watch of all objects of a kind, whatever their form.
    fn watch_dynamic(
        &self,
        store: Store,
        kind: &ApiResource,
        facts_of: impl Fn(&DynamicObject) -> Option<Facts> + Send + Sync + 'static,
    ) {
        let all: Api<DynamicObject> = Api::all_with(self.client.clone(), kind);
        let watch = move || watcher(all.clone(), Config::default().page_size(PAGE_SIZE));
        spawn(store, watch, self.feed, facts_of);
    }

    /// Starts the watch of the pods of jobs.
    fn watch_job_pods(&self, store: Store) {
        let pods: Api<SlimPod> = Api::all(self.client.clone());
        let config = || Config::default().page_size(PAGE_SIZE).labels(labels::JOB);
        let watch = move || watcher(pods.clone(), config());
        spawn(store, watch, self.feed, |pod: &SlimPod| {
            facts::partial_pod_facts(pod.metadata.labels.as_ref())
        });
    }
}

fn workload_facts(workload: &SlimWorkload) -> Facts {
    let status = workload.status.as_ref();
    let finished = status.is_some_and(|status| facts::is_finished(&status.conditions));
    let classes = [
        workload.spec.priority_class_name.as_deref(),
        workload.spec.preemption_priority_class_name.as_deref(),
    ];
    facts::workload_facts(classes, finished)
}
