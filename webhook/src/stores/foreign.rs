//! Stores of other projects' kinds: only if they are enabled, and only while the kinds are installed.

use super::{Facts, IndexedKind, Store, Watches};
use kube::Resource;
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use lockkeeper_api::config::ForeignKinds;
use lockkeeper_policies::cohort_trees::Project;
use lockkeeper_policies::facts;
use serde::de::DeserializeOwned;

const fn store(name: &'static str, kind: IndexedKind) -> Store {
    Store {
        name,
        kind,
        is_optional: true,
    }
}

const CLUSTER_QUEUES: Store = store(
    "clusterqueues.kueue.x-k8s.io",
    IndexedKind::ClusterQueue(Project::Kueue),
);
const COHORTS: Store = store(
    "cohorts.kueue.x-k8s.io",
    IndexedKind::Cohort(Project::Kueue),
);
const RESOURCE_FLAVORS: Store = store(
    "resourceflavors.kueue.x-k8s.io",
    IndexedKind::ResourceFlavor(Project::Kueue),
);
const LOCAL_QUEUES: Store = store(
    "localqueues.kueue.x-k8s.io",
    IndexedKind::LocalQueue(Project::Kueue),
);
const CLASSES: Store = store(
    "workloadpriorityclasses.kueue.x-k8s.io",
    IndexedKind::WorkloadPriorityClass,
);
const QUOTAS: Store = store(
    "elasticquotas.scheduling.sigs.k8s.io",
    IndexedKind::ElasticQuota,
);

/// Returns the stores of a project's kinds.
pub(super) fn stores(kinds: ForeignKinds) -> &'static [Store] {
    match kinds {
        ForeignKinds::Kueue => &[
            CLUSTER_QUEUES,
            COHORTS,
            RESOURCE_FLAVORS,
            LOCAL_QUEUES,
            CLASSES,
        ],
        ForeignKinds::Koordinator => &[QUOTAS],
    }
}

/// Starts the watches of a project's kinds.
pub(super) fn start_watches(watches: &Watches<'_>, kinds: ForeignKinds) {
    match kinds {
        ForeignKinds::Kueue => {
            watch(watches, CLUSTER_QUEUES, facts::kueue_cluster_queue_facts);
            watch(watches, COHORTS, facts::kueue_cohort_facts);
            watch(watches, RESOURCE_FLAVORS, facts::kueue_flavor_facts);
            watch(watches, LOCAL_QUEUES, facts::kueue_local_queue_facts);
            watch(watches, CLASSES, facts::workload_priority_class_facts);
        }
        ForeignKinds::Koordinator => watch(watches, QUOTAS, facts::elastic_quota_facts),
    }
}

fn watch<K>(watches: &Watches<'_>, store: Store, facts_of: fn(&K) -> Facts)
where
    K: Resource<DynamicType = ()> + DeserializeOwned + 'static,
{
    let kind = ApiResource::erase::<K>(&());
    watches.watch_dynamic(store, &kind, move |object: &DynamicObject| {
        let read = decode_lenient::<K>(object);
        if read.is_none() {
            let name = object.metadata.name.as_deref();
            tracing::debug!(
                store = store.name,
                name,
                "not read: rules see nothing of it"
            );
        }
        read.as_ref().map(facts_of)
    });
}

/// Decodes the object, if it has the supported schema.
pub(super) fn decode_lenient<K: Resource + DeserializeOwned>(object: &DynamicObject) -> Option<K> {
    // An object of a newer version of its project must not prevent the list of the others.
    let mut read = K::deserialize(&object.data).ok()?;
    // `DynamicObject` has the metadata outside of its data.
    read.meta_mut().clone_from(&object.metadata);
    Some(read)
}
