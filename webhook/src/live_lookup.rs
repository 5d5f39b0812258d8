//! One live lookup at the API server for an object that the stores miss.
//!
//! `kubectl apply` of a PriorityClass and a Workload that uses it, in one file, sends the Workload before
//! the watch has delivered the class.

use crate::metric_labels::LookupOutcome;
use crate::metrics::LookupCounters;
use crate::request_view::{LookedUp, LookupKey, LookupResults};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::{Api, Client};
use lockkeeper_api::config::LimitSettings;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::{ClusterQueue, ResourceFlavor};
use lockkeeper_kube_support::error_chain::ErrorChain;
use lockkeeper_policies::cluster_view::{Lookup, PriorityClassFacts};
use lockkeeper_policies::cohort_trees::Project;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::IndexedKind;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
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
            kueue_flavors: Api::all(client),
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
        // The name becomes a part of a URL, so only a valid one is sent.
        if !is_valid_object_name(name) {
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
        kind: IndexedKind,
        name: &str,
    ) -> Result<Option<LookedUp>, kube::Error> {
        if kind == IndexedKind::PriorityClass {
            let class = self.source.priority_class(name).await?;
            return Ok(class.map(LookedUp::PriorityClass));
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
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "tests fail by panicking"
    )]

    use super::*;
    use std::sync::Arc;
    use tokio::runtime::Builder;

    /// The class that exists.
    const HIGH: PriorityClassFacts = PriorityClassFacts {
        value: 1000,
        global_default: false,
        preemption_policy: None,
    };

    const FOUND: Lookup<LookedUp> = Lookup::Found(LookedUp::PriorityClass(HIGH));
    const EXISTS: Lookup<LookedUp> = Lookup::Found(LookedUp::Exists);
    const ABSENT: Lookup<LookedUp> = Lookup::Absent;
    const UNKNOWN: Lookup<LookedUp> = Lookup::Unknown;

    /// The latency of the fake source, and the deadline of a lookup, in milliseconds.
    const LATENCY_MS: u64 = 100;
    const DEADLINE_MS: u64 = 1_000;

    /// Limits of the negative cache, in milliseconds and entries. Different from the defaults.
    const ABSENT_MS: u64 = 2_000;
    const ABSENT_NAMES_MAX: usize = 100;

    fn live(source: &FakeLookup) -> LiveLookup {
        LiveLookup::new(Box::new(source.clone())).with_negative_cache(NegativeCache {
            ttl: Duration::from_millis(ABSENT_MS),
            names_max: ABSENT_NAMES_MAX,
        })
    }

    /// The name selects the response: `broken` is an error, `hanging` never responds, `high` exists, every
    /// other name does not.
    #[derive(Clone, Default)]
    struct FakeLookup {
        requests: Arc<Mutex<Vec<String>>>,
    }

    impl FakeLookup {
        fn request_count(&self) -> usize {
            self.requests.lock().unwrap().len()
        }
    }

    impl ObjectLookup for FakeLookup {
        fn priority_class<'a>(
            &'a self,
            name: &'a str,
        ) -> BoxFuture<'a, Result<Option<PriorityClassFacts>, kube::Error>> {
            self.requests.lock().unwrap().push(name.to_owned());
            async move {
                tokio::time::sleep(Duration::from_millis(LATENCY_MS)).await;
                match name {
                    "high" => Ok(Some(HIGH)),
                    "broken" => Err(kube::Error::TlsRequired),
                    "hanging" => std::future::pending().await,
                    _ => Ok(None),
                }
            }
            .boxed()
        }

        /// Every flavor exists, and no queue.
        fn exists<'a>(
            &'a self,
            kind: IndexedKind,
            name: &'a str,
        ) -> BoxFuture<'a, Result<bool, kube::Error>> {
            self.requests.lock().unwrap().push(name.to_owned());
            async move { Ok(kind == IndexedKind::ResourceFlavor(Project::Lockkeeper)) }.boxed()
        }
    }

    fn class(name: &str) -> LookupKey {
        (IndexedKind::PriorityClass, name.to_owned())
    }

    async fn fetch(live: &LiveLookup, names: &[&str]) -> LookupResults {
        let keys = names.iter().map(|name| class(name)).collect();
        let deadline = Instant::now() + Duration::from_millis(DEADLINE_MS);
        live.fetch(keys, deadline).await
    }

    /// Runs a future with a paused clock, which advances to the next timer when all tasks wait. Returns the
    /// value and the elapsed time in milliseconds.
    fn run<T>(future: impl Future<Output = T>) -> (T, u128) {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let started = Instant::now();
            let value = future.await;
            (value, started.elapsed().as_millis())
        })
    }

    /// Looks up one name step by step. A step is a wait in milliseconds, the expected result, and the number
    /// of requests that the source got so far.
    #[track_caller]
    fn check(name: &str, steps: &[(u64, Lookup<LookedUp>, usize)]) {
        let source = FakeLookup::default();
        let live = live(&source);
        let observed = steps.iter().map(async |(wait_ms, ..)| {
            tokio::time::sleep(Duration::from_millis(*wait_ms)).await;
            let result = fetch(&live, &[name]).await[&class(name)].clone();
            (*wait_ms, result, source.request_count())
        });
        let (observed, _) = run(async {
            let mut out = Vec::new();
            for step in observed {
                out.push(step.await);
            }
            out
        });
        assert_eq!(observed, steps);
    }

    #[test]
    fn existing_object_is_looked_up_every_time() {
        check("high", &[(0, FOUND, 1), (0, FOUND, 2)]);
    }

    #[test]
    fn absent_object_is_cached_for_ttl() {
        let last_ms = ABSENT_MS - 1;
        check(
            "lost",
            &[
                (0, ABSENT, 1),
                (last_ms, ABSENT, 1),
                (1, ABSENT, 2),
                (last_ms, ABSENT, 2),
            ],
        );
    }

    #[test]
    fn absence_is_cached_per_kind() {
        let source = FakeLookup::default();
        let live = live(&source);
        let kinds = [
            (IndexedKind::PriorityClass, ABSENT),
            (IndexedKind::ClusterQueue(Project::Lockkeeper), ABSENT),
            (IndexedKind::ResourceFlavor(Project::Lockkeeper), EXISTS),
        ];
        let keys = kinds.clone().map(|(kind, _)| (kind, "lost".to_owned()));
        run(async {
            // The second time, absent objects are cached.
            for requests in [3, 4] {
                let deadline = Instant::now() + Duration::from_millis(DEADLINE_MS);
                let results = live.fetch(keys.clone().into(), deadline).await;
                for (key, (_, expected)) in keys.iter().zip(&kinds) {
                    assert_eq!(results[key], *expected);
                }
                assert_eq!(source.request_count(), requests);
            }
        });
    }

    #[test]
    fn failed_lookup_is_unknown_and_not_cached() {
        check("broken", &[(0, UNKNOWN, 1), (0, UNKNOWN, 2)]);
        check("hanging", &[(0, UNKNOWN, 1), (0, UNKNOWN, 2)]);
    }

    #[test]
    fn invalid_name_is_absent_without_lookup() {
        let long = "a".repeat(NAME_LENGTH_MAX + 1);
        for name in [
            "",
            "high?",
            "../high",
            "high/status",
            "..",
            "a..b",
            "-a",
            "High",
            &long,
        ] {
            check(name, &[(0, ABSENT, 0)]);
        }
        let longest = "a".repeat(NAME_LENGTH_MAX);
        for name in ["a", "a-b.c-0", &longest] {
            check(name, &[(0, ABSENT, 1)]);
        }
    }

    #[test]
    fn lookups_run_concurrently() {
        let live = live(&FakeLookup::default());
        let names: Vec<String> = (0..100).map(|number| format!("lost-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (results, took_ms) = run(fetch(&live, &names));
        assert_eq!(results.len(), names.len());
        assert_eq!(took_ms, u128::from(LATENCY_MS));
    }

    #[test]
    fn hanging_lookup_does_not_delay_others() {
        let live = live(&FakeLookup::default());
        let (results, took_ms) = run(fetch(&live, &["broken", "hanging", "high", "lost"]));
        let results: Vec<_> = results.into_values().collect();
        assert_eq!(results, [UNKNOWN, UNKNOWN, FOUND, ABSENT]);
        assert_eq!(took_ms, u128::from(DEADLINE_MS));
    }

    #[test]
    fn negative_cache_is_bounded() {
        let source = FakeLookup::default();
        let live = live(&source);
        let names: Vec<String> = (0..=ABSENT_NAMES_MAX)
            .map(|n| format!("lost-{n}"))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (full, one_more) = names.split_at(ABSENT_NAMES_MAX);
        run(async {
            fetch(&live, full).await;
            assert_eq!(live.absent_since.lock().unwrap().len(), ABSENT_NAMES_MAX);
            fetch(&live, one_more).await;
            assert_eq!(live.absent_since.lock().unwrap().len(), 1);
            // The last one is still cached, the first one is not.
            fetch(&live, &[one_more[0], full[0]]).await;
        });
        assert_eq!(source.request_count(), ABSENT_NAMES_MAX + 2);
    }
}
