//! One live question to the API server when the stores miss something.
//!
//! `kubectl apply` of a PriorityClass and a Workload that uses it, in one file, sends the second
//! before the watch has told of the first.

use crate::metrics::{self, LookupCounters};
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

/// Somebody who can be asked for a PriorityClass, and whether other objects exist.
pub trait ObjectLookup: Send + Sync {
    /// The PriorityClass of this name; `None` when it does not exist.
    fn priority_class<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<PriorityClassFacts>, kube::Error>>;

    /// Whether there is an object of this name, of a kind that is in no namespace. Who cannot tell says that
    /// there is, so that nobody is told of something missing.
    fn exists<'a>(
        &'a self,
        _kind: IndexedKind,
        _name: &'a str,
    ) -> BoxFuture<'a, Result<bool, kube::Error>> {
        async { Ok(true) }.boxed()
    }
}

/// The API server.
pub struct ApiServerLookup {
    classes: Api<PriorityClass>,
    queues: Api<ClusterQueue>,
    flavors: Api<ResourceFlavor>,
    kueue_queues: Api<kueue::ClusterQueue>,
    kueue_flavors: Api<kueue::ResourceFlavor>,
}

impl ApiServerLookup {
    /// Asks by this client.
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
                _ => true,
            })
        }
        .boxed()
    }
}

/// How it is remembered what does not exist. A client that applies a thousand bad objects must not
/// cause a thousand questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegativeCache {
    /// How long.
    pub ttl: Duration,
    /// The most names; past it they are all forgotten.
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

/// A source with a short memory for what does not exist.
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

    /// Remembers in another way.
    pub(crate) fn with_negative_cache(mut self, memory: NegativeCache) -> Self {
        self.negative_cache = memory;
        self
    }

    /// Counts what comes of each question.
    pub(crate) fn with_counters(mut self, lookups: LookupCounters) -> Self {
        self.counters = lookups;
        self
    }

    /// Asks for all at once. What is not answered by the deadline is unknown.
    pub(crate) async fn fetch(
        &self,
        asked: BTreeSet<LookupKey>,
        deadline: impl Into<Instant>,
    ) -> LookupResults {
        let deadline = deadline.into();
        let answers = asked.into_iter().map(async |asked| {
            let (answer, result) = self.lookup_one(&asked, deadline).await;
            self.counters.count(result);
            (asked, answer)
        });
        join_all(answers).await.into_iter().collect()
    }

    /// The answer, and how it was come by.
    async fn lookup_one(
        &self,
        asked: &LookupKey,
        deadline: Instant,
    ) -> (Lookup<LookedUp>, metrics::LookupOutcome) {
        use metrics::LookupOutcome as Result;
        let (kind, name) = asked;
        if !is_valid_object_name(name) {
            return (Lookup::Absent, Result::Absent);
        }
        if self.is_cached_absent(asked) {
            return (Lookup::Absent, Result::Cached);
        }
        match timeout_at(deadline, self.query_source(*kind, name)).await {
            Ok(Ok(Some(answered))) => (Lookup::Found(answered), Result::Found),
            Ok(Ok(None)) => {
                self.cache_absent(asked);
                (Lookup::Absent, Result::Absent)
            }
            Ok(Err(error)) => {
                let (kind, error) = (kind.name(), ErrorChain(&error));
                tracing::warn!(kind, name, %error, "the API server could not be asked");
                (Lookup::Unknown, Result::Failed)
            }
            Err(_) => {
                let kind = kind.name();
                tracing::warn!(kind, name, "the API server did not answer in time");
                (Lookup::Unknown, Result::TimedOut)
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

    fn is_cached_absent(&self, asked: &LookupKey) -> bool {
        let absent = self
            .absent_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        absent
            .get(asked)
            .is_some_and(|since| since.elapsed() < self.negative_cache.ttl)
    }

    fn cache_absent(&self, asked: &LookupKey) {
        let mut absent = self
            .absent_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if absent.len() >= self.negative_cache.names_max {
            absent.clear();
        }
        absent.insert(asked.clone(), Instant::now());
    }
}

/// Whether an object can have this name: a DNS-1123 subdomain. Others must not be asked for, as the
/// name becomes a part of a URL.
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

    /// How long the fake source takes, and how long it is waited for, in milliseconds.
    const ANSWER_MS: u64 = 100;
    const DEADLINE_MS: u64 = 1_000;

    /// What is remembered, and for how long, in milliseconds. Other than by default.
    const ABSENT_MS: u64 = 2_000;
    const ABSENT_NAMES_MAX: usize = 100;

    /// Asks this source.
    fn live(source: &FakeLookup) -> LiveLookup {
        LiveLookup::new(Box::new(source.clone())).with_negative_cache(NegativeCache {
            ttl: Duration::from_millis(ABSENT_MS),
            names_max: ABSENT_NAMES_MAX,
        })
    }

    /// What a question is answered with is in the name: `broken` gives an error, `hanging` never an
    /// answer; `high` exists, everything else does not.
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
                tokio::time::sleep(Duration::from_millis(ANSWER_MS)).await;
                match name {
                    "high" => Ok(Some(HIGH)),
                    "broken" => Err(kube::Error::TlsRequired),
                    "hanging" => std::future::pending().await,
                    _ => Ok(None),
                }
            }
            .boxed()
        }

        /// There are flavors, and no queues.
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
        let asked = names.iter().map(|name| class(name)).collect();
        let deadline = Instant::now() + Duration::from_millis(DEADLINE_MS);
        live.fetch(asked, deadline).await
    }

    /// Runs a future on a clock of its own, which jumps to the next timer when all wait. Gives back
    /// its value and how long it took, in milliseconds.
    fn run<T>(future: impl Future<Output = T>) -> (T, u128) {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let started = Instant::now();
            let value = future.await;
            (value, started.elapsed().as_millis())
        })
    }

    /// Asks for one name step by step. A step waits some milliseconds first; then come the answer
    /// and how many questions the source has seen in all.
    #[track_caller]
    fn check(name: &str, steps: &[(u64, Lookup<LookedUp>, usize)]) {
        let source = FakeLookup::default();
        let live = live(&source);
        let seen = steps.iter().map(async |(wait_ms, ..)| {
            tokio::time::sleep(Duration::from_millis(*wait_ms)).await;
            let answer = fetch(&live, &[name]).await[&class(name)].clone();
            (*wait_ms, answer, source.request_count())
        });
        let (seen, _) = run(async {
            let mut out = Vec::new();
            for step in seen {
                out.push(step.await);
            }
            out
        });
        assert_eq!(seen, steps);
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
        let asked = kinds.clone().map(|(kind, _)| (kind, "lost".to_owned()));
        run(async {
            // The second time, what is absent is remembered.
            for questions in [3, 4] {
                let deadline = Instant::now() + Duration::from_millis(DEADLINE_MS);
                let answers = live.fetch(asked.clone().into(), deadline).await;
                for (asked, (_, expected)) in asked.iter().zip(&kinds) {
                    assert_eq!(answers[asked], *expected);
                }
                assert_eq!(source.request_count(), questions);
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
        let (answers, took_ms) = run(fetch(&live, &names));
        assert_eq!(answers.len(), names.len());
        assert_eq!(took_ms, u128::from(ANSWER_MS));
    }

    #[test]
    fn hanging_lookup_does_not_delay_others() {
        let live = live(&FakeLookup::default());
        let (answers, took_ms) = run(fetch(&live, &["broken", "hanging", "high", "lost"]));
        let answers: Vec<_> = answers.into_values().collect();
        assert_eq!(answers, [UNKNOWN, UNKNOWN, FOUND, ABSENT]);
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
            // The last one is still remembered, the first one was forgotten.
            fetch(&live, &[one_more[0], full[0]]).await;
        });
        assert_eq!(source.request_count(), ABSENT_NAMES_MAX + 2);
    }
}
