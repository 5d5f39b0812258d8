//! Tests of live lookups.
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
    (
        LookupKind::Indexed(IndexedKind::PriorityClass),
        name.to_owned(),
    )
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
        (LookupKind::Indexed(IndexedKind::PriorityClass), ABSENT),
        (
            LookupKind::Indexed(IndexedKind::ClusterQueue(Project::Lockkeeper)),
            ABSENT,
        ),
        (
            LookupKind::Indexed(IndexedKind::ResourceFlavor(Project::Lockkeeper)),
            EXISTS,
        ),
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
