//! The objects of a cluster other than workloads, by name.

use crate::flavor_eligibility::Flavors;
use crate::label_selector::{Selector, matches};
use crate::pod_defaults::PodDefaults;
use crate::pod_requests::RequestRules;
use crate::queue_policies::elastic_defaults;
use lockkeeper_api::allowed_priority_classes::is_priority_class_allowed;
use lockkeeper_api::cluster_queue::{ClusterQueueSpec, StopPolicy};
use lockkeeper_api::cohort::CohortSpec;
use lockkeeper_api::local_queue::LocalQueueSpec;
use lockkeeper_api::resource_flavor::ResourceFlavorSpec;
use lockkeeper_api::{ClusterQueue, Workload};
use lockkeeper_preemption::job::ElasticDefaults;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The PriorityClasses that exist in every cluster.
const SYSTEM_PRIORITY_CLASSES: [(&str, i32); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

/// Whether the store has every object of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completeness {
    /// All objects: an object that is not in the store does not exist.
    #[default]
    Complete,
    /// Some objects, as when files are checked: a missing flavor has no taints and no labels, and a missing
    /// namespace matches every namespace selector.
    Partial,
}

pub(crate) type Labels = BTreeMap<String, String>;
/// Namespace and name.
pub(crate) type LocalQueueKey = (String, String);

#[derive(Clone, Debug)]
pub(crate) struct ClusterQueueEntry {
    pub(crate) spec: ClusterQueueSpec,
    pub(crate) selector: Option<Selector>,
    pub(crate) object: Arc<ClusterQueue>,
}

/// Value, default flag and preemption policy of a PriorityClass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PriorityClassEntry {
    pub(crate) value: i32,
    pub(crate) is_default: bool,
    /// Whether its `preemptionPolicy` is `Never`.
    pub(crate) never_preempts: bool,
}

/// ClusterQueues, Cohorts, `ResourceFlavors`, LocalQueues, namespaces and PriorityClasses.
#[derive(Clone, Debug, Default)]
pub struct ObjectStore {
    pub(crate) completeness: Completeness,
    /// Resources whose names start with one of these need no quota.
    pub(crate) excluded_resource_prefixes: Vec<String>,
    pub(crate) cluster_queues: BTreeMap<String, ClusterQueueEntry>,
    pub(crate) cohorts: BTreeMap<String, CohortSpec>,
    pub(crate) flavors: Flavors,
    pub(crate) local_queues: BTreeMap<LocalQueueKey, LocalQueueSpec>,
    pub(crate) namespaces: BTreeMap<String, Labels>,
    pub(crate) priority_classes: BTreeMap<String, PriorityClassEntry>,
    pub(crate) pod_defaults: PodDefaults,
}

impl ObjectStore {
    /// The prefixes of the names of resources that need no quota.
    #[must_use]
    pub fn excluded_resource_prefixes(&self) -> &[String] {
        &self.excluded_resource_prefixes
    }

    /// The `ResourceFlavor` with this name.
    #[must_use]
    pub fn flavor(&self, name: &str) -> Option<&ResourceFlavorSpec> {
        self.flavors.get(name)
    }

    /// Whether objects that were not added do not exist.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.completeness == Completeness::Complete
    }

    /// The ClusterQueue with this name.
    #[must_use]
    pub fn cluster_queue(&self, name: &str) -> Option<&Arc<ClusterQueue>> {
        self.cluster_queues.get(name).map(|it| &it.object)
    }

    /// The names of all ClusterQueues.
    pub fn cluster_queue_names(&self) -> impl Iterator<Item = &str> {
        self.cluster_queues.keys().map(String::as_str)
    }

    /// What requests depend on, with these excluded prefixes in place of the configured ones.
    pub(crate) fn request_rules<'a>(
        &'a self,
        excluded: Option<&'a [String; 1]>,
    ) -> RequestRules<'a> {
        let configured = self.excluded_resource_prefixes.as_slice();
        RequestRules {
            excluded_prefixes: excluded.map_or(configured, |it| it.as_slice()),
            defaults: &self.pod_defaults,
        }
    }

    /// What the API server adds to the requests of new pods.
    #[must_use]
    pub const fn pod_defaults(&self) -> &PodDefaults {
        &self.pod_defaults
    }

    /// The PriorityClasses: name and value.
    pub fn priority_classes(&self) -> impl Iterator<Item = (&str, i32)> {
        let classes = self.priority_classes.iter();
        classes.map(|(name, it)| (name.as_str(), it.value))
    }

    /// The LocalQueue with this name.
    #[must_use]
    pub fn local_queue(&self, namespace: &str, name: &str) -> Option<&LocalQueueSpec> {
        let key = (namespace.to_owned(), name.to_owned());
        self.local_queues.get(&key)
    }

    /// Whether a ClusterQueue admits workloads only when their pods fit on nodes.
    #[must_use]
    pub fn places_on_nodes(&self, cluster_queue: &str) -> bool {
        let queue = self.cluster_queues.get(cluster_queue);
        queue.is_some_and(|it| it.spec.places_on_nodes())
    }

    /// The switches of an elastic ClusterQueue; `None` for others.
    #[must_use]
    pub fn elastic_defaults(&self, cluster_queue: &str) -> Option<ElasticDefaults> {
        let queue = self.cluster_queues.get(cluster_queue)?;
        queue.spec.elastic.as_ref().map(elastic_defaults)
    }

    /// Whether the ClusterQueue exists and is valid.
    #[must_use]
    pub fn has_cluster_queue(&self, name: &str) -> bool {
        self.cluster_queues.contains_key(name)
    }

    /// The flavors that a ClusterQueue references and that do not exist.
    #[must_use]
    pub fn missing_flavors(&self, cluster_queue: &str) -> Vec<&str> {
        let entry = self.cluster_queues.get(cluster_queue);
        entry
            .into_iter()
            .flat_map(|it| flavor_names(&it.spec))
            .filter(|name| !self.flavors.contains_key(*name))
            .collect()
    }

    /// The ClusterQueues that reference a flavor.
    #[must_use]
    pub fn queues_using_flavor(&self, name: &str) -> Vec<&str> {
        self.cluster_queues
            .iter()
            .filter(|(_, queue)| flavor_names(&queue.spec).any(|it| it == name))
            .map(|(queue, _)| queue.as_str())
            .collect()
    }

    /// The value of a PriorityClass; without a name, that of the default class, or 0. `None` if the class does
    /// not exist.
    #[must_use]
    pub fn priority_for_class(&self, name: Option<&str>) -> Option<i32> {
        let Some(name) = name else {
            let mut classes = self.priority_classes.values();
            let default = classes.find(|it| it.is_default);
            return Some(default.map_or(0, |it| it.value));
        };
        let class = self.priority_classes.get(name).map(|it| it.value);
        // A file or a watch may lack the classes that the API server creates itself.
        let system = SYSTEM_PRIORITY_CLASSES.iter().find(|it| it.0 == name);
        class.or(system.map(|(_, value)| *value))
    }

    /// Whether the `preemptionPolicy` of a PriorityClass is `Never`; without a name, that of the default class.
    #[must_use]
    pub fn class_never_preempts(&self, name: Option<&str>) -> bool {
        let class = match name {
            Some(name) => self.priority_classes.get(name),
            None => self.priority_classes.values().find(|it| it.is_default),
        };
        class.is_some_and(|it| it.never_preempts)
    }

    /// The first PriorityClass of a workload that its queues do not allow.
    #[must_use]
    pub fn disallowed_priority_class<'a>(&self, workload: &'a Workload) -> Option<&'a str> {
        let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
        let name = workload.spec.queue_name.as_deref()?;
        let local_queue = self.local_queue(namespace, name);
        let cluster_queue = local_queue.and_then(|it| self.cluster_queues.get(&it.cluster_queue));
        let by_cluster_queue =
            cluster_queue.and_then(|it| it.spec.allowed_priority_classes.as_deref());
        let by_local_queue = local_queue.and_then(|it| it.allowed_priority_classes.as_deref());
        let spec = &workload.spec;
        let classes = [
            &spec.priority_class_name,
            &spec.preemption_priority_class_name,
        ];
        let mut classes = classes.into_iter().flatten().map(String::as_str);
        classes.find(|it| !is_priority_class_allowed(it, by_cluster_queue, by_local_queue))
    }

    /// Whether a ClusterQueue admits workloads.
    pub(crate) fn is_active(&self, queue: &ClusterQueue) -> bool {
        let exists = |name: &str| {
            self.completeness == Completeness::Partial || self.flavors.contains_key(name)
        };
        // A deletion completes when the admitted workloads have ended: no further ones may start.
        queue.metadata.deletion_timestamp.is_none()
            && queue.spec.stop_policy.unwrap_or_default() == StopPolicy::None
            && flavor_names(&queue.spec).all(exists)
    }

    /// Whether the namespace selector of a ClusterQueue matches a namespace.
    pub(crate) fn accepts_namespace(&self, cluster_queue: &str, namespace: &str) -> bool {
        // A ClusterQueue that does not exist admits nothing anyway.
        let Some(queue) = self.cluster_queues.get(cluster_queue) else {
            return true;
        };
        // As in Kueue, an absent selector matches no namespace, and an empty one matches all.
        let Some(selector) = &queue.selector else {
            return false;
        };
        match self.namespaces.get(namespace) {
            Some(labels) => matches(selector, labels),
            None if self.completeness == Completeness::Partial => true,
            // A missing namespace has no labels; `NotIn` and `DoesNotExist` match.
            None => matches(selector, &Labels::new()),
        }
    }

    /// The namespaces with their labels.
    pub fn namespaces(&self) -> impl Iterator<Item = (&str, &BTreeMap<String, String>)> {
        let all = self.namespaces.iter();
        all.map(|(name, labels)| (name.as_str(), labels))
    }

    /// The LocalQueues that point to a ClusterQueue.
    pub(crate) fn local_queues_of(&self, cluster_queue: &str) -> Vec<LocalQueueKey> {
        self.local_queues
            .iter()
            .filter(|(_, spec)| spec.cluster_queue == cluster_queue)
            .map(|(key, _)| key.clone())
            .collect()
    }
}

/// The flavors of a ClusterQueue, in order.
fn flavor_names(spec: &ClusterQueueSpec) -> impl Iterator<Item = &str> {
    let flavors = spec.resource_groups.iter().flat_map(|it| &it.flavors);
    flavors.map(|it| it.name.as_str())
}
