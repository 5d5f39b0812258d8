//! Stores fed by watches: objects that rules look up, reduced to the facts that rules use.

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
use kube::{Api, Client, Resource};
use lockkeeper_api::config::ForeignKinds;
use lockkeeper_api::{GROUP, JobKind, Workload, labels};
use lockkeeper_kube_support::api_client::{ApiClients, WatchAges};
use lockkeeper_kube_support::list_item::ListItem;
use lockkeeper_kube_support::slim_object::SlimObject;
use lockkeeper_kube_support::watch_stream::watch_config;
use lockkeeper_policies::cohort_trees::Project;
use lockkeeper_policies::declared_suspension::DeclaredSuspension;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::{Facts, Index, IndexedKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// Objects per page of a list. Each may have one and a half megabytes, and kube has a page in memory three times for
/// a moment.
const PAGE_SIZE: u32 = 20;

/// The stores that have synced.
#[derive(Clone, Debug, Default)]
pub struct StoreReadiness {
    stores: Arc<[(&'static str, AtomicBool)]>,
    watches: WatchAges,
}

/// The longest time without a response to a watch. A watch starts again every 20 s, and a dead connection is noticed
/// within 45 s; after this time another replica may have newer stores.
const WATCH_AGE_MAX: Duration = Duration::from_secs(90);

impl StoreReadiness {
    /// Returns a readiness without stores.
    #[must_use]
    pub fn always() -> Self {
        Self::default()
    }

    fn from_stores(stores: impl Iterator<Item = Store>, watches: WatchAges) -> Self {
        let unsynced = stores.map(|store| (store.name, AtomicBool::new(false)));
        Self {
            stores: unsynced.collect(),
            watches,
        }
    }

    /// Returns the time since the last response to the watch of a store; zero if it is not watched.
    pub(crate) fn watch_age(&self, store: &str) -> Duration {
        let ages = self.watches.ages();
        let collection = watched_collection(store);
        let found = ages.into_iter().find(|(kind, _)| *kind == collection);
        found.map(|(_, age)| age).unwrap_or_default()
    }

    /// Marks a store as synced.
    fn mark_synced(&self, name: &str) {
        if self.mark_settled(name) {
            tracing::info!(store = name, "synced");
        }
    }

    /// Marks a store as synced or not installed. Returns true if it was not marked before.
    fn mark_settled(&self, name: &str) -> bool {
        let mut stores = self.stores.iter();
        let found = stores.find(|(store, _)| *store == name);
        found.is_some_and(|(_, settled)| !settled.swap(true, Ordering::Release))
    }

    /// Returns why the stores cannot be used yet; `None` if they can.
    pub(crate) fn problem(&self) -> Option<String> {
        let missing = self.missing();
        if !missing.is_empty() {
            return Some(format!("still listing {}", missing.join(", ")));
        }
        let (kind, age) = self.watches.oldest()?;
        let seconds = age.as_secs();
        (age > WATCH_AGE_MAX).then(|| format!("no response to the watch of {kind} for {seconds} s"))
    }

    /// Returns the stores that have not synced.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let unsynced = self
            .stores
            .iter()
            .filter(|(_, synced)| !synced.load(Ordering::Acquire));
        unsynced.map(|(name, _)| *name).collect()
    }
}

/// Returns the collection that a store watches, as [`WatchAges`] names it.
fn watched_collection(store: &str) -> String {
    match store {
        "pods" => store.to_owned(),
        "priorityclasses" => format!("{store}.scheduling.k8s.io"),
        _ if store.contains('.') => store.to_owned(),
        _ => format!("{store}.{GROUP}"),
    }
}

/// The fields of a Workload's spec that rules use.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadSpec {
    priority_class_name: Option<String>,
    preemption_priority_class_name: Option<String>,
}

/// The fields of a Workload's status that rules use.
#[derive(Clone, Debug, Default, Deserialize)]
struct WorkloadStatus {
    #[serde(default)]
    conditions: Vec<Condition>,
}

type SlimWorkload = SlimObject<Workload, WorkloadSpec, WorkloadStatus>;

/// Pods are watched as metadata only.
type SlimPod = SlimObject<PartialObjectMeta<Pod>>;

/// The store of one kind, with its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Store {
    pub(crate) name: &'static str,
    pub(crate) kind: IndexedKind,
    /// True if the kind may be missing in the cluster.
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

/// Absent while the CRDs of an earlier release are installed.
const JOB_KINDS: Store = Store {
    name: "jobkinds",
    kind: IndexedKind::JobKind,
    is_optional: true,
};

/// The stores of the kinds that rules and defaults of every configuration read.
const STORES: [Store; 8] = [
    PRIORITY_CLASSES,
    WORKLOADS,
    PODS,
    CLUSTER_QUEUES,
    COHORTS,
    RESOURCE_FLAVORS,
    LOCAL_QUEUES,
    JOB_KINDS,
];

/// Returns all stores, with those of these projects' kinds.
pub(crate) fn stores(
    wanted: impl IntoIterator<Item = ForeignKinds>,
) -> impl Iterator<Item = Store> {
    let foreign = wanted.into_iter().flat_map(foreign::stores);
    STORES.into_iter().chain(foreign.copied())
}

/// Starts the watches, for other projects' kinds only those that are enabled. They run until the runtime
/// ends; a failed watch is restarted with exponential backoff, and meanwhile the stores keep their
/// objects. An update waits at most `lag_max` for requests that are being evaluated.
pub fn start_watches(
    clients: &ApiClients,
    index: &Arc<RwLock<Index>>,
    lag_max: Duration,
    wanted: &BTreeSet<ForeignKinds>,
) -> StoreReadiness {
    let readiness =
        StoreReadiness::from_stores(stores(wanted.iter().copied()), clients.ages.clone());
    let feed = IndexFeed {
        index: Arc::clone(index),
        lag_max,
        readiness: readiness.clone(),
    };
    let watches = Watches {
        client: &clients.watches,
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
    watches.watch_valid(JOB_KINDS, job_kind_facts);
    for kinds in wanted {
        foreign::start_watches(&watches, *kinds);
    }
    readiness
}

/// Parameters of all watches.
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
        self.watch_valid(store, move |object: &K| Some(facts_of(object)));
    }

    /// Starts the watch of all objects of a kind, of which some have no facts.
    fn watch_valid<K>(
        &self,
        store: Store,
        facts_of: impl Fn(&K) -> Option<Facts> + Send + Sync + 'static,
    ) where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let all: Api<ListItem<K>> = Api::all(self.client.clone());
        let watch = move || watcher(all.clone(), watch_config(PAGE_SIZE));
        spawn(store, watch, self.feed, facts_of);
    }

    /// Starts the watch of all objects of a kind, decoded dynamically.
    fn watch_dynamic(
        &self,
        store: Store,
        kind: &ApiResource,
        facts_of: impl Fn(&DynamicObject) -> Option<Facts> + Send + Sync + 'static,
    ) {
        let all: Api<ListItem<DynamicObject>> = Api::all_with(self.client.clone(), kind);
        let watch = move || watcher(all.clone(), watch_config(PAGE_SIZE));
        spawn(store, watch, self.feed, facts_of);
    }

    /// Starts the watch of the pods of jobs.
    fn watch_job_pods(&self, store: Store) {
        let pods: Api<ListItem<SlimPod>> = Api::all(self.client.clone());
        // The API server filters by the label: most pods belong to no job.
        let config = || watch_config(PAGE_SIZE).labels(labels::JOB);
        let watch = move || watcher(pods.clone(), config());
        spawn(store, watch, self.feed, |pod: &SlimPod| {
            facts::partial_pod_facts(pod.metadata.labels.as_ref())
        });
    }
}

/// The facts of a `JobKind`; none if it has mistakes.
fn job_kind_facts(declaration: &JobKind) -> Option<Facts> {
    let suspension = DeclaredSuspension::new(declaration)?;
    Some(Facts::JobKind(Arc::new(suspension)))
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
