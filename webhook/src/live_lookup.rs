//! One live lookup at the API server for an object that the stores miss.
//!
//! `kubectl apply` of a PriorityClass and a Workload that uses it, in one file, sends the Workload before
//! the watch has delivered the class.

use crate::metric_labels::LookupOutcome;
use crate::metrics::LookupCounters;
use crate::request_view::{LOCAL_QUEUE, LookedUp, LookupKey, LookupKind, LookupResults};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client};
use lockkeeper_api::config::LimitSettings;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::{ClusterQueue, LocalQueue, ResourceFlavor};
use lockkeeper_kube_support::error_chain::ErrorChain;
use lockkeeper_policies::cluster_view::{Lookup, PriorityClassFacts};
use lockkeeper_policies::cohort_trees::{LocalQueueFacts, Project};
use lockkeeper_policies::facts;
use lockkeeper_policies::index::IndexedKind;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The longest name of an object, in characters.
const NAME_LENGTH_MAX: usize = 253;

/// Looks up objects: PriorityClasses, and whether objects of other kinds exist.
pub trait ObjectLookup: Send + Sync {
    /// Returns the PriorityClass with this name; `None` if it does not exist.
    fn priority_class<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<PriorityClassFacts>, kube::Error>>;

    /// Returns the LocalQueue with this namespace and name; `None` if it does not exist. An implementation that cannot
    /// look it up returns one without a ClusterQueue, so that no rule reports it as missing.
    fn local_queue<'a>(
        &'a self,
        _namespace: &'a str,
        _name: &'a str,
    ) -> BoxFuture<'a, Result<Option<LocalQueueFacts>, kube::Error>> {
        async { Ok(Some(LocalQueueFacts::default())) }.boxed()
    }

    /// Returns the `CustomResourceDefinition` with this name; `None` if it does not exist, or cannot be looked up.
    fn definition<'a>(
        &'a self,
        _name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, kube::Error>> {
        async { Ok(None) }.boxed()
    }

    /// Returns true if the object of a cluster-scoped kind exists. An implementation that cannot look it up
    /// returns true, so that no rule reports it as missing.
    fn exists<'a>(
        &'a self,
        _kind: IndexedKind,
        _name: &'a str,
    ) -> BoxFuture<'a, Result<bool, kube::Error>> {
        async { Ok(true) }.boxed()
    }
}

/// Looks up objects at the API server.
pub struct ApiServerLookup {
    client: Client,
    classes: Api<PriorityClass>,
    queues: Api<ClusterQueue>,
    flavors: Api<ResourceFlavor>,
    kueue_queues: Api<kueue::ClusterQueue>,
    kueue_flavors: Api<kueue::ResourceFlavor>,
}

impl ApiServerLookup {
    /// Creates a lookup with this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            classes: Api::all(client.clone()),
            queues: Api::all(client.clone()),
            flavors: Api::all(client.clone()),
            kueue_queues: Api::all(client.clone()),
            kueue_flavors: Api::all(client.clone()),
            client,
        }
    }
}

impl ObjectLookup for ApiServerLookup {
    fn priority_class<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<PriorityClassFacts>, kube::Error>> {
        async move {
            let class = self.classes.get_opt(name).await?;
            Ok(class.as_ref().map(facts::priority_class_facts))
        }
        .boxed()
    }

    fn local_queue<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<LocalQueueFacts>, kube::Error>> {
        async move {
            let queues: Api<LocalQueue> = Api::namespaced(self.client.clone(), namespace);
            let queue = queues.get_opt(name).await?;
            Ok(queue.as_ref().map(facts::own_local_queue_facts))
        }
        .boxed()
    }

    fn definition<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, kube::Error>> {
        async move {
            // Not typed: the schema of a definition has fields that only the comparison knows.
            let resource = ApiResource::erase::<CustomResourceDefinition>(&());
            let definitions: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            let definition = definitions.get_opt(name).await?;
            definition
                .map(|it| serde_json::to_value(it).map_err(kube::Error::SerdeError))
                .transpose()
        }
        .boxed()
    }

    fn exists<'a>(
        &'a self,
        kind: IndexedKind,
        name: &'a str,
    ) -> BoxFuture<'a, Result<bool, kube::Error>> {
        async move {
            Ok(match kind {
                IndexedKind::ClusterQueue(Project::Lockkeeper) => {
                    self.queues.get_metadata_opt(name).await?.is_some()
                }
                IndexedKind::ResourceFlavor(Project::Lockkeeper) => {
                    self.flavors.get_metadata_opt(name).await?.is_some()
                }
                IndexedKind::ClusterQueue(Project::Kueue) => {
                    self.kueue_queues.get_metadata_opt(name).await?.is_some()
                }
                IndexedKind::ResourceFlavor(Project::Kueue) => {
                    self.kueue_flavors.get_metadata_opt(name).await?.is_some()
                }
                // Other kinds are not looked up, so no rule may report them as missing.
                _ => true,
            })
        }
        .boxed()
    }
}

/// Limits of the negative cache, which remembers absent objects: a client that applies a thousand invalid
/// objects must not cause a thousand requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegativeCache {
    /// Time that an absent object is cached.
    pub ttl: Duration,
    /// Cached names; one more empties the cache.
    pub names_max: usize,
}

impl From<&LimitSettings> for NegativeCache {
    fn from(settings: &LimitSettings) -> Self {
        Self {
            ttl: settings.negative_cache_milliseconds.milliseconds(),
            names_max: settings.negative_cache_entries_max.count(),
        }
    }
}

impl Default for NegativeCache {
    fn default() -> Self {
        Self::from(&LimitSettings::default())
    }
}

/// A lookup source with a negative cache.
pub(crate) struct LiveLookup {
    source: Box<dyn ObjectLookup>,
    negative_cache: NegativeCache,
    absent_since: Mutex<BTreeMap<LookupKey, Instant>>,
    counters: LookupCounters,
}

impl LiveLookup {
    pub(crate) fn new(source: Box<dyn ObjectLookup>) -> Self {
        Self {
            source,
            negative_cache: NegativeCache::default(),
            absent_since: Mutex::default(),
            counters: LookupCounters::default(),
        }
    }

    /// Sets the limits of the negative cache.
    pub(crate) fn with_negative_cache(mut self, limits: NegativeCache) -> Self {
        self.negative_cache = limits;
        self
    }

    /// Sets the counters of the results.
    pub(crate) fn with_counters(mut self, counters: LookupCounters) -> Self {
        self.counters = counters;
        self
    }

    /// Looks up all keys concurrently. A lookup without a response at the deadline is `Unknown`.
    pub(crate) async fn fetch(
        &self,
        keys: BTreeSet<LookupKey>,
        deadline: impl Into<Instant>,
    ) -> LookupResults {
        let deadline = deadline.into();
        let lookups = keys.into_iter().map(async |key| {
            let (result, outcome) = self.lookup_one(&key, deadline).await;
            self.counters.count(outcome);
            (key, result)
        });
        join_all(lookups).await.into_iter().collect()
    }

    /// Returns the result and its metric label.
    async fn lookup_one(
        &self,
        key: &LookupKey,
        deadline: Instant,
    ) -> (Lookup<LookedUp>, LookupOutcome) {
        let (kind, name) = key;
        // The name becomes a part of a URL, so only a valid one is sent. Only the key of a LocalQueue has two parts.
        let is_valid = match (*kind, name.split_once('/')) {
            (LookupKind::Indexed(LOCAL_QUEUE), Some((namespace, name))) => {
                is_valid_object_name(namespace) && is_valid_object_name(name)
            }
            _ => is_valid_object_name(name),
        };
        if !is_valid {
            return (Lookup::Absent, LookupOutcome::Absent);
        }
        if self.is_cached_absent(key) {
            return (Lookup::Absent, LookupOutcome::Cached);
        }
        match timeout_at(deadline, self.query_source(*kind, name)).await {
            Ok(Ok(Some(object))) => (Lookup::Found(object), LookupOutcome::Found),
            Ok(Ok(None)) => {
                self.cache_absent(key);
                (Lookup::Absent, LookupOutcome::Absent)
            }
            Ok(Err(error)) => {
                let (kind, error) = (kind.name(), ErrorChain(&error));
                tracing::warn!(kind, name, %error, "live lookup failed");
                (Lookup::Unknown, LookupOutcome::Failed)
            }
            Err(_) => {
                let kind = kind.name();
                tracing::warn!(kind, name, "live lookup timed out");
                (Lookup::Unknown, LookupOutcome::TimedOut)
            }
        }
    }

    async fn query_source(
        &self,
        kind: LookupKind,
        name: &str,
    ) -> Result<Option<LookedUp>, kube::Error> {
        let LookupKind::Indexed(kind) = kind else {
            let definition = self.source.definition(name).await?;
            return Ok(definition.map(|it| LookedUp::Definition(Arc::new(it))));
        };
        if kind == IndexedKind::PriorityClass {
            let class = self.source.priority_class(name).await?;
            return Ok(class.map(LookedUp::PriorityClass));
        }
        if let (LOCAL_QUEUE, Some((namespace, name))) = (kind, name.split_once('/')) {
            let queue = self.source.local_queue(namespace, name).await?;
            return Ok(queue.map(LookedUp::LocalQueue));
        }
        let exists = self.source.exists(kind, name).await?;
        Ok(exists.then_some(LookedUp::Exists))
    }

    fn is_cached_absent(&self, key: &LookupKey) -> bool {
        let absent = self
            .absent_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        absent
            .get(key)
            .is_some_and(|since| since.elapsed() < self.negative_cache.ttl)
    }

    fn cache_absent(&self, key: &LookupKey) {
        let mut absent = self
            .absent_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if absent.len() >= self.negative_cache.names_max {
            absent.clear();
        }
        absent.insert(key.clone(), Instant::now());
    }
}

/// Returns true if an object can have this name: a DNS-1123 subdomain.
fn is_valid_object_name(name: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut labels = name.split('.');
    name.len() <= NAME_LENGTH_MAX
        && labels.all(|label| {
            label.starts_with(edge)
                && label.ends_with(edge)
                && label.chars().all(|c| edge(c) || c == '-')
        })
}

#[cfg(test)]
mod tests;
