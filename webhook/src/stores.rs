//! Stores fed by watches: the objects that rules ask about, kept down to the facts they use.

mod feed;
mod lean;
#[cfg(test)]
mod tests;

use feed::{Feed, spawn};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource};
use lean::Lean;
use lockkeeper_api::{Workload, labels};
use lockkeeper_policies::facts;
use lockkeeper_policies::index::{Facts, Index, IndexedKind};
use lockkeeper_policies::trees::Family;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

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

    fn of(stores: &[(&'static str, IndexedKind)]) -> Self {
        let names = stores.iter().map(|(name, _)| *name);
        Self {
            stores: names.map(|name| (name, AtomicBool::new(false))).collect(),
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
const CLUSTER_QUEUES: &str = "clusterqueues";
const COHORTS: &str = "cohorts";
const RESOURCE_FLAVORS: &str = "resourceflavors";
const LOCAL_QUEUES: &str = "localqueues";

/// All stores, and what they hold.
pub(crate) const STORES: [(&str, IndexedKind); 7] = [
    (PRIORITY_CLASSES, IndexedKind::PriorityClass),
    (WORKLOADS, IndexedKind::Workload),
    (PODS, IndexedKind::Pod),
    (CLUSTER_QUEUES, IndexedKind::ClusterQueue(Family::Own)),
    (COHORTS, IndexedKind::Cohort(Family::Own)),
    (RESOURCE_FLAVORS, IndexedKind::ResourceFlavor(Family::Own)),
    (LOCAL_QUEUES, IndexedKind::LocalQueue(Family::Own)),
];

/// Starts the watches. They go on until the runtime ends; a broken watch is taken up again with
/// growing pauses, and meanwhile the stores answer from what they have. A change waits for at most
/// `lag_max` for requests that are being judged.
pub fn follow(client: &Client, index: &Arc<RwLock<Index>>, lag_max: Duration) -> Readiness {
    let readiness = Readiness::of(&STORES);
    let feed = Feed {
        index: Arc::clone(index),
        lag_max,
        readiness: readiness.clone(),
    };
    let watches = Watches {
        client,
        feed: &feed,
    };
    watches.all(
        PRIORITY_CLASSES,
        IndexedKind::PriorityClass,
        |class: &PriorityClass| Facts::PriorityClass(facts::of_priority_class(class)),
    );
    watches.all(WORKLOADS, IndexedKind::Workload, of_workload);
    watches.pods(PODS, IndexedKind::Pod);
    watches.all(
        CLUSTER_QUEUES,
        IndexedKind::ClusterQueue(Family::Own),
        facts::of_cluster_queue,
    );
    watches.all(COHORTS, IndexedKind::Cohort(Family::Own), facts::of_cohort);
    watches.all(
        RESOURCE_FLAVORS,
        IndexedKind::ResourceFlavor(Family::Own),
        facts::of_flavor,
    );
    watches.all(
        LOCAL_QUEUES,
        IndexedKind::LocalQueue(Family::Own),
        facts::of_local_queue,
    );
    readiness
}

/// What watches are started with.
struct Watches<'a> {
    client: &'a Client,
    feed: &'a Feed,
}

impl Watches<'_> {
    /// Starts the watch of all objects of a kind.
    fn all<K>(
        &self,
        name: &'static str,
        kind: IndexedKind,
        facts_of: impl Fn(&K) -> Facts + Send + Sync + 'static,
    ) where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let all: Api<K> = Api::all(self.client.clone());
        let watch = move || watcher(all.clone(), Config::default().page_size(PAGE_SIZE));
        spawn(name, kind, watch, self.feed, move |object| {
            Some(facts_of(object))
        });
    }

    /// Starts the watch of the pods of jobs.
    fn pods(&self, name: &'static str, kind: IndexedKind) {
        let pods: Api<LeanPod> = Api::all(self.client.clone());
        let config = || Config::default().page_size(PAGE_SIZE).labels(labels::JOB);
        let watch = move || watcher(pods.clone(), config());
        spawn(name, kind, watch, self.feed, |pod: &LeanPod| {
            facts::of_pod(pod.metadata.labels.as_ref())
        });
    }
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
