//! Stores of other projects' kinds: only where they are wanted, and only as long as the cluster has them.

use super::{Facts, IndexedKind, Store, Watches};
use kube::Resource;
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use lockkeeper_api::config::ForeignKinds;
use lockkeeper_policies::facts;
use lockkeeper_policies::trees::Family;
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
    IndexedKind::ClusterQueue(Family::Kueue),
);
const COHORTS: Store = store("cohorts.kueue.x-k8s.io", IndexedKind::Cohort(Family::Kueue));
const RESOURCE_FLAVORS: Store = store(
    "resourceflavors.kueue.x-k8s.io",
    IndexedKind::ResourceFlavor(Family::Kueue),
);
const LOCAL_QUEUES: Store = store(
    "localqueues.kueue.x-k8s.io",
    IndexedKind::LocalQueue(Family::Kueue),
);
const CLASSES: Store = store(
    "workloadpriorityclasses.kueue.x-k8s.io",
    IndexedKind::WorkloadPriorityClass,
);
const QUOTAS: Store = store(
    "elasticquotas.scheduling.sigs.k8s.io",
    IndexedKind::ElasticQuota,
);

/// The stores of a project's kinds.
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
pub(super) fn follow(watches: &Watches<'_>, kinds: ForeignKinds) {
    match kinds {
        ForeignKinds::Kueue => {
            watch(watches, CLUSTER_QUEUES, facts::of_kueue_cluster_queue);
            watch(watches, COHORTS, facts::of_kueue_cohort);
            watch(watches, RESOURCE_FLAVORS, facts::of_kueue_flavor);
            watch(watches, LOCAL_QUEUES, facts::of_kueue_local_queue);
            watch(watches, CLASSES, facts::of_workload_priority_class);
        }
        ForeignKinds::Koordinator => watch(watches, QUOTAS, facts::of_quota),
    }
}

fn watch<K>(watches: &Watches<'_>, store: Store, facts_of: fn(&K) -> Facts)
where
    K: Resource<DynamicType = ()> + DeserializeOwned + 'static,
{
    let kind = ApiResource::erase::<K>(&());
    watches.objects(store, &kind, move |object: &DynamicObject| {
        let read = read::<K>(object);
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

/// The object, if it has the form that rules know. One that a newer version of its project has written must not
/// keep the others from being listed.
pub(super) fn read<K: Resource + DeserializeOwned>(object: &DynamicObject) -> Option<K> {
    let mut read = K::deserialize(&object.data).ok()?;
    read.meta_mut().clone_from(&object.metadata);
    Some(read)
}
