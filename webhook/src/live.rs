//! One live question to the API server when the stores miss something.
//!
//! `kubectl apply` of a PriorityClass and a Workload that uses it, in one file, sends the second
//! before the watch has told of the first.

use crate::chain::Chain;
use crate::metrics::{self, Lookups};
use crate::world::{Answered, Asked, Fetched};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::{Api, Client};
use lockkeeper_api::config::LimitSettings;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::{ClusterQueue, ResourceFlavor};
use lockkeeper_policies::facts;
use lockkeeper_policies::index::IndexedKind;
use lockkeeper_policies::trees::Family;
use lockkeeper_policies::world::{Lookup, PriorityClassFacts};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The longest name of an object, in characters.
const NAME_LENGTH_MAX: usize = 253;

/// Somebody who can be asked for a PriorityClass, and whether other objects exist.
pub trait Source: Send + Sync {
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
pub struct ApiServer {
    classes: Api<PriorityClass>,
    queues: Api<ClusterQueue>,
    flavors: Api<ResourceFlavor>,
    kueue_queues: Api<kueue::ClusterQueue>,
    kueue_flavors: Api<kueue::ResourceFlavor>,
}

impl ApiServer {
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

impl Source for ApiServer {
    fn priority_class<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<PriorityClassFacts>, kube::Error>> {
        async move {
            let class = self.classes.get_opt(name).await?;
            Ok(class.as_ref().map(facts::of_priority_class))
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
                IndexedKind::ClusterQueue(Family::Own) => {
                    self.queues.get_metadata_opt(name).await?.is_some()
                }
                IndexedKind::ResourceFlavor(Family::Own) => {
                    self.flavors.get_metadata_opt(name).await?.is_some()
                }
                IndexedKind::ClusterQueue(Family::Kueue) => {
                    self.kueue_queues.get_metadata_opt(name).await?.is_some()
                }
                IndexedKind::ResourceFlavor(Family::Kueue) => {
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
pub struct Memory {
    /// How long.
    pub absent: Duration,
    /// The most names; past it they are all forgotten.
    pub names_max: usize,
}

impl From<&LimitSettings> for Memory {
    fn from(settings: &LimitSettings) -> Self {
        Self {
            absent: settings.absent_memory_milliseconds.milliseconds(),
            names_max: settings.absent_names_max.count(),
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::from(&LimitSettings::default())
    }
}

/// A source with a short memory for what does not exist.
pub(crate) struct Live {
    source: Box<dyn Source>,
    memory: Memory,
    absent: Mutex<BTreeMap<Asked, Instant>>,
    lookups: Lookups,
}

impl Live {
    pub(crate) fn new(source: Box<dyn Source>) -> Self {
        Self {
            source,
            memory: Memory::default(),
            absent: Mutex::default(),
            lookups: Lookups::default(),
        }
    }

    /// Remembers in another way.
    pub(crate) fn remembering(mut self, memory: Memory) -> Self {
        self.memory = memory;
        self
    }

    /// Counts what comes of each question.
    pub(crate) fn counted(mut self, lookups: Lookups) -> Self {
        self.lookups = lookups;
        self
    }

    /// Asks for all at once. What is not answered by the deadline is unknown.
    pub(crate) async fn fetch(
        &self,
        asked: BTreeSet<Asked>,
        deadline: impl Into<Instant>,
    ) -> Fetched {
        let deadline = deadline.into();
        let answers = asked.into_iter().map(async |asked| {
            let (answer, result) = self.one(&asked, deadline).await;
            self.lookups.count(result);
            (asked, answer)
        });
        join_all(answers).await.into_iter().collect()
    }

    /// The answer, and how it was come by.
    async fn one(&self, asked: &Asked, deadline: Instant) -> (Lookup<Answered>, metrics::Lookup) {
        use metrics::Lookup as Result;
        let (kind, name) = asked;
        if !can_exist(name) {
            return (Lookup::Absent, Result::Absent);
        }
        if self.known_absent(asked) {
            return (Lookup::Absent, Result::Remembered);
        }
        match timeout_at(deadline, self.answer(*kind, name)).await {
            Ok(Ok(Some(answered))) => (Lookup::Found(answered), Result::Found),
            Ok(Ok(None)) => {
                self.remember_absent(asked);
                (Lookup::Absent, Result::Absent)
            }
            Ok(Err(error)) => {
                let (kind, error) = (kind.name(), Chain(&error));
                tracing::warn!(kind, name, %error, "the API server could not be asked");
                (Lookup::Unknown, Result::Failed)
            }
            Err(_) => {
                let kind = kind.name();
                tracing::warn!(kind, name, "the API server did not answer in time");
                (Lookup::Unknown, Result::Late)
            }
        }
    }

    async fn answer(&self, kind: IndexedKind, name: &str) -> Result<Option<Answered>, kube::Error> {
        if kind == IndexedKind::PriorityClass {
            let class = self.source.priority_class(name).await?;
            return Ok(class.map(Answered::Class));
        }
        let exists = self.source.exists(kind, name).await?;
        Ok(exists.then_some(Answered::There))
    }

    fn known_absent(&self, asked: &Asked) -> bool {
        let absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        absent
            .get(asked)
            .is_some_and(|since| since.elapsed() < self.memory.absent)
    }

    fn remember_absent(&self, asked: &Asked) {
        let mut absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        if absent.len() >= self.memory.names_max {
            absent.clear();
        }
        absent.insert(asked.clone(), Instant::now());
    }
}

/// Whether an object can have this name: a DNS-1123 subdomain. Others must not be asked for, as the
/// name becomes a part of a URL.
fn can_exist(name: &str) -> bool {
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

    const FOUND: Lookup<Answered> = Lookup::Found(Answered::Class(HIGH));
    const THERE: Lookup<Answered> = Lookup::Found(Answered::There);
    const ABSENT: Lookup<Answered> = Lookup::Absent;
    const UNKNOWN: Lookup<Answered> = Lookup::Unknown;

    /// How long the fake source takes, and how long it is waited for, in milliseconds.
    const ANSWER_MS: u64 = 100;
    const DEADLINE_MS: u64 = 1_000;

    /// What is remembered, and for how long, in milliseconds. Other than by default.
    const ABSENT_MS: u64 = 2_000;
    const ABSENT_NAMES_MAX: usize = 100;

    /// Asks this source.
    fn live(source: &Fake) -> Live {
        Live::new(Box::new(source.clone())).remembering(Memory {
            absent: Duration::from_millis(ABSENT_MS),
            names_max: ABSENT_NAMES_MAX,
        })
    }

    /// What a question is answered with is in the name: `broken` gives an error, `hanging` never an
    /// answer; `high` exists, everything else does not.
    #[derive(Clone, Default)]
    struct Fake {
        asked: Arc<Mutex<Vec<String>>>,
    }

    impl Fake {
        fn questions(&self) -> usize {
            self.asked.lock().unwrap().len()
        }
    }

    impl Source for Fake {
        fn priority_class<'a>(
            &'a self,
            name: &'a str,
        ) -> BoxFuture<'a, Result<Option<PriorityClassFacts>, kube::Error>> {
            self.asked.lock().unwrap().push(name.to_owned());
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
            self.asked.lock().unwrap().push(name.to_owned());
            async move { Ok(kind == IndexedKind::ResourceFlavor(Family::Own)) }.boxed()
        }
    }

    fn class(name: &str) -> Asked {
        (IndexedKind::PriorityClass, name.to_owned())
    }

    async fn fetch(live: &Live, names: &[&str]) -> Fetched {
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
    fn check(name: &str, steps: &[(u64, Lookup<Answered>, usize)]) {
        let source = Fake::default();
        let live = live(&source);
        let seen = steps.iter().map(async |(wait_ms, ..)| {
            tokio::time::sleep(Duration::from_millis(*wait_ms)).await;
            let answer = fetch(&live, &[name]).await[&class(name)].clone();
            (*wait_ms, answer, source.questions())
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
    fn what_exists_is_found_and_asked_for_again() {
        check("high", &[(0, FOUND, 1), (0, FOUND, 2)]);
    }

    #[test]
    fn what_does_not_exist_is_asked_for_once_in_a_while() {
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
    fn what_is_not_there_of_one_kind_may_be_of_another() {
        let source = Fake::default();
        let live = live(&source);
        let kinds = [
            (IndexedKind::PriorityClass, ABSENT),
            (IndexedKind::ClusterQueue(Family::Own), ABSENT),
            (IndexedKind::ResourceFlavor(Family::Own), THERE),
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
                assert_eq!(source.questions(), questions);
            }
        });
    }

    #[test]
    fn failures_are_unknown_and_not_remembered() {
        check("broken", &[(0, UNKNOWN, 1), (0, UNKNOWN, 2)]);
        check("hanging", &[(0, UNKNOWN, 1), (0, UNKNOWN, 2)]);
    }

    #[test]
    fn a_name_that_no_object_can_have_is_not_asked_for() {
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
    fn all_names_are_asked_for_at_once() {
        let live = live(&Fake::default());
        let names: Vec<String> = (0..100).map(|number| format!("lost-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (answers, took_ms) = run(fetch(&live, &names));
        assert_eq!(answers.len(), names.len());
        assert_eq!(took_ms, u128::from(ANSWER_MS));
    }

    #[test]
    fn one_that_hangs_does_not_spoil_the_others() {
        let live = live(&Fake::default());
        let (answers, took_ms) = run(fetch(&live, &["broken", "hanging", "high", "lost"]));
        let answers: Vec<_> = answers.into_values().collect();
        assert_eq!(answers, [UNKNOWN, UNKNOWN, FOUND, ABSENT]);
        assert_eq!(took_ms, u128::from(DEADLINE_MS));
    }

    #[test]
    fn the_memory_is_bounded() {
        let source = Fake::default();
        let live = live(&source);
        let names: Vec<String> = (0..=ABSENT_NAMES_MAX)
            .map(|n| format!("lost-{n}"))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (full, one_more) = names.split_at(ABSENT_NAMES_MAX);
        run(async {
            fetch(&live, full).await;
            assert_eq!(live.absent.lock().unwrap().len(), ABSENT_NAMES_MAX);
            fetch(&live, one_more).await;
            assert_eq!(live.absent.lock().unwrap().len(), 1);
            // The last one is still remembered, the first one was forgotten.
            fetch(&live, &[one_more[0], full[0]]).await;
        });
        assert_eq!(source.questions(), ABSENT_NAMES_MAX + 2);
    }
}
