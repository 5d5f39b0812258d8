//! A proxy between the controller and the API server is slow, rejects requests, loses responses and breaks watches.
//! No workload is lost, no write has its effect twice, and quota is never exceeded at any version that the API server
//! has stored; the trials read these without the proxy.
//!
//! `LOCKKEEPER_FLOOD_WORKLOADS` is the number of workloads in the flood, at least and by default 1,000.

use std::collections::BTreeSet;
use std::env;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::Trial;
use super::faults::{LIMITS, queues, submit_random_job, wait_until_drained};
use super::fixture::{self, ControllerFixture};
use super::invariants::{self, Limits};
use super::probes;
use super::quota_use::holds_quota;
use crate::client::Client;
use crate::fixture::{DEFAULTS, Fixture};
use crate::objects::collection;
use crate::proxy::{FaultCounts, Faults, Proxy};
use crate::wait;
use crate::watcher::Watch;
use lockkeeper_testkit::Rng;

pub const TRIALS: [Trial; 6] = [
    ("every request and event is slow", slow_api_server),
    (
        "writes are rejected, and responses are lost",
        rejected_and_lost_writes,
    ),
    ("writes of statuses conflict repeatedly", status_conflicts),
    ("watches of workloads expire repeatedly", expired_watches),
    ("every watch is cut repeatedly", cut_watches),
    ("a flood of workloads drains", workload_flood),
];

/// Names the number of workloads in the flood.
const FLOOD: &str = "LOCKKEEPER_FLOOD_WORKLOADS";

/// The default of `controller.writesMax`.
const WRITES_MAX: usize = 16;

/// A cluster without the webhook, with a proxy in front of it and no controller yet.
#[track_caller]
fn behind_proxy(stage: &mut Fixture) -> (ControllerFixture<'_>, Proxy) {
    stage.without_webhook();
    let mut site = ControllerFixture::without_controller(stage);
    let proxy = site.proxy();
    (site, proxy)
}

/// Runs Jobs to completion with these faults, and returns the counts of the faults.
#[track_caller]
fn run_with_faults(
    stage: &mut Fixture,
    mut chance: Rng,
    count: usize,
    faults: Faults,
) -> FaultCounts {
    let (mut site, proxy) = behind_proxy(stage);
    queues(&site);
    let (workloads, jobs) = (site.watch("Workload"), site.watch("Job"));
    let pods = site.watch("Pod");
    proxy.set(faults);
    site.start_controller_through(&proxy, DEFAULTS);
    for number in 0..count {
        submit_random_job(&site.objects, number, &mut chance);
    }
    wait_until_drained(&site.objects, count);
    for queue in ["a", "b", "c"] {
        site.wait_for_counts("ClusterQueue", queue, 0, 0);
    }
    let seen = invariants::check_history(
        &workloads.versions(),
        &jobs.versions(),
        &pods.versions(),
        &LIMITS,
    );
    let counts = proxy.counts();
    println!("  {count} Jobs: {seen:?}\n  {counts:?}");
    assert!(seen.admissions >= count && seen.starts >= count, "{seen:?}");
    site.stop();
    counts
}

/// 300 ms in each direction: every decision is based on old data.
fn slow_api_server(stage: &mut Fixture) {
    let (mut site, proxy) = behind_proxy(stage);
    site.flavor("default");
    site.classes();
    let reclaim = json!({"cohortName": "lab", "preemption": {"reclaimWithinCohort": "Any"}});
    site.queue("a", 4, &reclaim);
    site.queue("b", 4, &json!({"cohortName": "lab"}));
    let (workloads, jobs) = (site.watch("Workload"), site.watch("Job"));
    let pods = site.watch("Pod");
    let latency_ms = 300;
    proxy.set(Faults {
        latency_ms,
        ..Faults::default()
    });
    site.start_controller_through(&proxy, DEFAULTS);
    site.job("stays", "b", 4, "mid", &json!({}));
    site.job("victim", "b", 2, "low", &json!({}));
    site.wait_until_running("stays");
    site.wait_until_running("victim");
    site.job("owner", "a", 4, "low", &json!({}));
    site.wait_until_stopped("victim");
    site.wait_until_running("owner");
    site.finish("owner");
    site.wait_until_running("victim");
    let limits = Limits {
        queues: &[("a", 8), ("b", 8)],
        total: 8,
    };
    let seen = invariants::check_history(
        &workloads.versions(),
        &jobs.versions(),
        &pods.versions(),
        &limits,
    );
    let counts = proxy.counts();
    println!("  {seen:?}\n  {counts:?}");
    assert_eq!((seen.admissions, seen.preemptions), (4, 1), "{seen:?}");
    assert_eq!((seen.starts, seen.stops), (4, 1), "{seen:?}");
    assert!(
        counts.late > counts.writes && counts.writes > 0,
        "{counts:?}"
    );
    site.stop();
}

/// The controller repeats a write before it observes the first one.
fn rejected_and_lost_writes(stage: &mut Fixture) {
    let faults = Faults {
        lag_ms: 250,
        busy: 5,
        lost: 7,
        broken: 11,
        ..Faults::default()
    };
    let counts = run_with_faults(stage, Rng::new(5), 10, faults);
    assert!(
        counts.busy > 5 && counts.lost > 5 && counts.broken > 5,
        "{counts:?}"
    );
}

/// A 409 for an object that has not changed: no watch event follows.
fn status_conflicts(stage: &mut Fixture) {
    let faults = Faults {
        conflict: 3,
        ..Faults::default()
    };
    let counts = run_with_faults(stage, Rng::new(6), 8, faults);
    assert!(counts.conflicts > 10, "{counts:?}");
}

fn expired_watches(stage: &mut Fixture) {
    let faults = Faults {
        watches: "/workloads",
        gone: 3,
        ..Faults::default()
    };
    let counts = run_with_faults(stage, Rng::new(7), 10, faults);
    let gone = (counts.gone_in_stream, counts.gone_at_start);
    assert!(gone.0 > 0 && gone.1 > 0, "{counts:?}");
}

fn cut_watches(stage: &mut Fixture) {
    let faults = Faults {
        cut: 3,
        ..Faults::default()
    };
    let counts = run_with_faults(stage, Rng::new(8), 10, faults);
    assert!(counts.cut > 20, "{counts:?}");
}

/// Many workloads at once, without Jobs: the trial finishes each admitted workload. The controller starts in the
/// middle, and its first list expires between two pages.
fn workload_flood(stage: &mut Fixture) {
    let count = env::var(FLOOD).map_or(1_000, |it| it.parse().expect("a number"));
    assert!(
        count >= 1_000,
        "a listing of {count} has no second page when the controller starts"
    );
    let (mut site, proxy) = behind_proxy(stage);
    site.flavor("default");
    site.queue("a", 50, &json!({"cohortName": "lab"}));
    site.queue("b", 50, &json!({"cohortName": "lab"}));
    let limits = Limits {
        queues: &[("a", 100), ("b", 100)],
        total: 100,
    };
    let watch = site.watch("Workload");
    proxy.set(Faults {
        latency_ms: 3,
        pages: 2,
        ..Faults::default()
    });
    let made = AtomicUsize::new(0);
    thread::scope(|scope| {
        for part in 0..4 {
            let (mut client, made) = (site.stage.cluster().client(), &made);
            scope.spawn(move || {
                for number in (part..count).step_by(4) {
                    create_workload(&mut client, number);
                    made.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        wait::until(
            // More than one page of a list.
            || Ok((made.load(Ordering::Relaxed) > count * 3 / 5).then_some(())),
            || "the workloads are not created".to_owned(),
        )
        .unwrap();
        site.start_controller_through(&proxy, DEFAULTS);
        let mut client = site.stage.cluster().client();
        let probes = probes::count_while(site.controller.as_ref().unwrap(), || {
            wait_until_full(&watch, 100);
            finish_all(&watch, &mut client, count);
        });
        println!("  {count} workloads, {probes} probes answered");
        assert!(probes > 0);
    });
    for queue in ["a", "b"] {
        site.wait_for_counts("ClusterQueue", queue, 0, 0);
    }
    let versions = watch.versions();
    let seen = invariants::check_history(&versions, &[], &[], &limits);
    let counts = proxy.counts();
    println!("  {seen:?}\n  {counts:?}");
    assert_eq!(seen.admissions, count, "each workload is admitted once");
    assert_eq!(seen.max_usage, 100, "the quota is used to the full");
    assert_eq!(counts.max_in_flight, WRITES_MAX, "{counts:?}");
    assert!(
        counts.pages > counts.pages_gone && counts.pages_gone == 2,
        "{counts:?}"
    );
    site.stop();
}

#[track_caller]
fn create_workload(client: &mut Client, number: usize) {
    let queue = if number.is_multiple_of(2) { "a" } else { "b" };
    let workload = fixture::workload(&format!("w-{number}"), queue, 1);
    let answer = client.create(&collection("Workload"), &workload).unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
}

/// Waits until this many workloads have quota.
#[track_caller]
fn wait_until_full(watch: &Watch, count: usize) {
    let mut holders = BTreeSet::new();
    let mut from = 0;
    let found = wait::until(
        || {
            let fresh = watch.versions_after(from);
            from += fresh.len();
            for workload in fresh.iter().filter(|it| holds_quota(it)) {
                holders.insert(workload["metadata"]["name"].to_string());
            }
            Ok((holders.len() == count).then_some(()))
        },
        || format!("fewer than {count} are admitted"),
    );
    found.unwrap_or_else(|e| panic!("{e}"));
}

/// Finishes every admitted workload, until all were admitted.
#[track_caller]
fn finish_all(watch: &Watch, client: &mut Client, count: usize) {
    let (mut from, mut done) = (0, BTreeSet::new());
    while done.len() < count {
        let fresh = wait::until(
            || {
                let fresh = watch.versions_after(from);
                Ok((!fresh.is_empty()).then_some(fresh))
            },
            || format!("{} of {count} were admitted", done.len()),
        );
        let fresh: Vec<Value> = fresh.unwrap_or_else(|e| panic!("{e}"));
        from += fresh.len();
        for workload in fresh.iter().filter(|it| holds_quota(it)) {
            let name = workload["metadata"]["name"].as_str().unwrap();
            if !done.insert(name.to_owned()) {
                continue;
            }
            let mut conditions = workload["status"]["conditions"].clone();
            conditions.as_array_mut().unwrap().push(json!({
                "type": "Finished", "status": "True", "reason": "Succeeded", "message": "Done",
                "lastTransitionTime": "2030-01-01T00:00:00Z",
            }));
            let path = format!("{}/{name}/status", collection("Workload"));
            let change = json!({"status": {"conditions": conditions}});
            let answer = client.patch(&path, &change).unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }
}
