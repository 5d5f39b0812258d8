//! The reconciler against an API server in memory: the order of events, faults and time come from a seed.
//!
//! `LOCKKEEPER_SEEDS` is the number of runs, `LOCKKEEPER_FIRST_SEED` the first seed.
//! `LOCKKEEPER_SEED` runs one and prints its log: each input, each write with its result, each change by users or
//! the controller of Jobs.
//!
//! A run has a few queues, flavors and classes, and a dozen Jobs and workloads. It starts with a phase of
//! faults: users change objects at random, responses are late, reordered or lost, watches break, the controller is
//! killed or loses its leadership. Then the faults stop, and the system has to become quiescent. [`invariants`]
//! lists the checks of each write, [`quiescence`] those at the end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests fail by panicking, and the log of a run is printed"
)]

mod actions;
mod adoption;
mod api;
mod api_validation;
mod bypasses;
mod decision_log;
mod declared_jobs;
mod directed_pods;
mod field_effects;
mod fields;
mod fixture;
mod invariants;
mod job_lifecycle;
mod job_resize;
mod job_stop;
mod jobs;
mod late_declarations;
mod many_queues;
mod mass_eviction;
mod memory;
mod objects;
mod placed_at_random;
mod placed_workloads;
mod pod_group_reports;
mod pod_groups;
mod pods;
mod previews;
mod process;
mod queue_admins;
mod queued_pods;
mod quiescence;
mod quota;
mod reclaimable_pods;
mod rejected_admissions;
mod restore;
mod scheduling_groups;
mod simulation;
mod soft_evictions;
mod template_reads;
mod user_history;
mod users;
mod write;

use previews::Comparison;
use simulation::RunResult;
use simulation::Simulation;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The default number of seeds; the nightly recipe runs 200,000.
const SEEDS: u64 = 2_000;

/// The number of failures after which the test stops.
const FAILURES_SHOWN_MAX: usize = 8;

fn env_number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().expect("a number"))
}

fn run_seed(seed: u64, is_logged: bool) -> Result<RunResult, String> {
    let run = || Simulation::new(seed, is_logged).run();
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()));
            Err(format!("it panicked: {}", text.unwrap_or_default()))
        }
    }
}

#[test]
fn every_seed_keeps_invariants_and_becomes_quiescent() {
    if let Some(seed) = env_number("LOCKKEEPER_SEED") {
        let result = run_seed(seed, true);
        assert!(result.is_ok(), "seed {seed}: {}", result.unwrap_err());
        return;
    }
    let first = env_number("LOCKKEEPER_FIRST_SEED").unwrap_or(0);
    let end = first + env_number("LOCKKEEPER_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(first);
    let writes = AtomicU64::new(0);
    let logged = AtomicU64::new(0);
    let previews = Mutex::new(BTreeMap::<Comparison, u64>::new());
    let found = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || found.load(Ordering::Relaxed) >= FAILURES_SHOWN_MAX {
                        return;
                    }
                    match run_seed(seed, false) {
                        Ok(run) => {
                            writes.fetch_add(run.writes, Ordering::Relaxed);
                            logged.fetch_add(run.logged_decisions, Ordering::Relaxed);
                            *previews.lock().unwrap().entry(run.preview).or_default() += 1;
                        }
                        Err(why) => {
                            found.fetch_add(1, Ordering::Relaxed);
                            failures.lock().unwrap().push((seed, why));
                        }
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort_unstable();
    let reports: Vec<String> = failures
        .iter()
        .map(|(seed, why)| {
            format!(
                "seed {seed}: {why}\n  to print its log: LOCKKEEPER_SEED={seed} cargo test \
                 --package lockkeeper-controller --test simulation -- --nocapture"
            )
        })
        .collect();
    assert!(reports.is_empty(), "{}", reports.join("\n"));
    let previews = previews.into_inner().unwrap();
    println!(
        "{} writes in {} runs; {} logged decisions replayed; previews: {previews:?}",
        writes.into_inner(),
        end - first,
        logged.load(Ordering::Relaxed)
    );
    if first == 0 && end >= SEEDS {
        let logged = logged.into_inner();
        assert!(logged > end, "only {logged} logged decisions were replayed");
        let count = |it: Comparison| previews.get(&it).copied().unwrap_or_default();
        for it in Comparison::COMPARED {
            assert!(count(it) > 0, "no preview was {it:?}");
        }
        let not_compared = count(Comparison::Interrupted) + count(Comparison::Damped);
        assert!(
            not_compared * 50 < end,
            "{not_compared} previews were not compared"
        );
    }
}
