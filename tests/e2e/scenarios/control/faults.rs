//! The controller is killed, loses conflicts and loses its connection; no workload is lost, and quota is never
//! exceeded at any version that the API server has stored.
//!
//! `LOCKKEEPER_DRILL_SECONDS` is how long it is killed repeatedly, 10 by default.

use std::env;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lockkeeper_testkit::Rng;
use serde_json::json;

use super::fixture::{self, ControllerFixture, NO_LEADER_ELECTION, pods_with};
use super::invariants::{self, Limits};
use super::{Trial, render};
use crate::fixture::{DEFAULTS, Fixture};
use crate::objects::{Objects, collection, merge};
use crate::wait;

pub const TRIALS: [Trial; 7] = [
    (
        "the checker detects pods without quota",
        invariants::checker_detects_pods_without_quota,
    ),
    (
        "the checker detects usage above quota",
        invariants::checker_detects_usage_above_quota,
    ),
    (
        "the checker detects violations",
        invariants::checker_detects_violations,
    ),
    (
        "the controller is killed repeatedly under load",
        controller_killed,
    ),
    (
        "another replica takes over, and the old leader stops writing",
        leader_takeover,
    ),
    (
        "the API server is killed and restarted",
        api_server_restarted,
    ),
    ("another client writes the same objects", competing_writer),
];

/// Names the seconds for which the controller is killed.
const SECONDS: &str = "LOCKKEEPER_DRILL_SECONDS";

/// Three queues of 4 cpu that lend all of it to each other and reclaim it.
pub const LIMITS: Limits<'_> = Limits {
    queues: &[("a", 12), ("b", 12), ("c", 8)],
    total: 12,
};

fn seconds() -> u64 {
    env::var(SECONDS).map_or(10, |it| it.parse().expect("seconds"))
}

#[track_caller]
pub fn queues(site: &ControllerFixture<'_>) {
    site.flavor("default");
    site.classes();
    for (name, more) in [
        (
            "a",
            json!({"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}),
        ),
        ("b", json!({"reclaimWithinCohort": "LowerPriority"})),
        ("c", json!({"withinClusterQueue": "LowerPriority"})),
    ] {
        let mut spec = json!({"cohortName": "lab", "preemption": more});
        if name == "c" {
            spec["resourceGroups"] = json!([{
                "coveredResources": ["cpu"],
                "flavors": [{"name": "default", "resources": [
                    {"name": "cpu", "nominalQuota": 4, "borrowingLimit": 4},
                ]}],
            }]);
        }
        site.queue(name, 4, &spec);
    }
}

/// Creates a Job of random size, queue and class that runs for a second or two.
#[track_caller]
pub fn submit_random_job(objects: &Objects, number: usize, chance: &mut Rng) {
    let pick = |of: [&'static str; 3], at: u64| of[usize::try_from(at).unwrap()];
    let queue = pick(["a", "b", "c"], chance.below(3));
    let class = pick(["low", "mid", "high"], chance.below(3));
    let pods = 1 + chance.below(3);
    let mut more = pods_with(&json!({
        "test.lockkeeper.dev/run-for": format!("{}ms", 500 + chance.below(1500)),
    }));
    merge(
        &mut more,
        &json!({"spec": {"parallelism": pods, "completions": pods}}),
    );
    let cpu = u32::try_from(1 + chance.below(2)).unwrap();
    objects.create(&fixture::job(
        &format!("job-{number}"),
        queue,
        cpu,
        class,
        &more,
    ));
}

/// Waits until all Jobs are finished and their workloads report it; fails if one is lost.
#[track_caller]
pub fn wait_until_drained(objects: &Objects, count: usize) {
    let mut left = Vec::new();
    let found = wait::until(
        || {
            let jobs = objects.list("Job");
            let workloads = objects.list("Workload");
            left.clear();
            left.extend(jobs.iter().chain(&workloads).cloned());
            left.retain(|workload| {
                !render::has_status(workload, "Complete", "True")
                    && !render::has_status(workload, "Finished", "True")
            });
            let all = jobs.len() == count && workloads.len() == count;
            Ok((all && left.is_empty()).then_some(()))
        },
        || format!("{count} Jobs are not done"),
    );
    found.unwrap_or_else(|e| {
        let names = left.iter().map(|workload| {
            let (kind, name) = (&workload["kind"], &workload["metadata"]["name"]);
            format!(
                "{kind} {name}: {} {}",
                workload["spec"]["suspend"], workload["status"]
            )
        });
        panic!("{e}:\n{}", names.collect::<Vec<_>>().join("\n"))
    });
}

/// Kills the controller at random moments.
fn controller_killed(stage: &mut Fixture) {
    let mut site = ControllerFixture::open_without_webhook(stage, DEFAULTS);
    queues(&site);
    let (workloads, jobs) = (site.watch("Workload"), site.watch("Job"));
    let pods = site.watch("Pod");
    let mut chance = Rng::new(1);
    let (mut count, mut kills) = (0, 0);
    let end = Instant::now() + Duration::from_secs(seconds());
    while Instant::now() < end {
        // Keeps twice as many Jobs as there is room for.
        let open = site.objects.list("Job");
        let open = open
            .iter()
            .filter(|it| !render::has_status(it, "Complete", "True"));
        for _ in open.count()..16 {
            submit_random_job(&site.objects, count, &mut chance);
            count += 1;
        }
        // The lifetime of the controller is random.
        thread::sleep(Duration::from_millis(100 + chance.below(1900)));
        drop(site.controller.take());
        kills += 1;
        let folder = site.stage.new_folder();
        let account = site.stage.controller();
        let next = crate::controller::Controller::start_unready(
            &account,
            &folder,
            DEFAULTS,
            &[NO_LEADER_ELECTION],
        );
        site.controller = Some(next.unwrap_or_else(|e| panic!("{e}")));
    }
    wait_until_drained(&site.objects, count);
    let seen = invariants::check_history(
        &workloads.versions(),
        &jobs.versions(),
        &pods.versions(),
        &LIMITS,
    );
    println!("  killed {kills} times, {count} Jobs: {seen:?}");
    assert!(seen.preemptions > 0 && seen.stops > 0, "{seen:?}");
    assert!(seen.admissions >= count && seen.starts >= count, "{seen:?}");
    site.stop();
}

/// Short Lease durations, so that a Lease expires soon.
const TERMS: &str = "controller: {leaderElection: \
    {leaseSeconds: 3, renewSeconds: 2, retrySeconds: 1}}\n";

/// Two controllers and one Lease. The leader is paused for a while, as on a paused machine, and resumes; later the
/// other one is killed.
fn leader_takeover(stage: &mut Fixture) {
    stage.without_webhook();
    let mut site = ControllerFixture::without_controller(stage);
    queues(&site);
    let (workloads, jobs) = (site.watch("Workload"), site.watch("Job"));
    let pods = site.watch("Pod");
    let mut first = site.start_another_controller(TERMS, &[]);
    is_leading(&first);
    let second = site.start_another_controller(TERMS, &[]);
    assert_eq!(second.metric("leading"), Some(0));
    let mut chance = Rng::new(2);
    for number in 0..4 {
        submit_random_job(&site.objects, number, &mut chance);
    }
    wait_until_drained(&site.objects, 4);
    wait::until(
        || Ok((first.metric("writes_under_way") == Some(0)).then_some(())),
        || "the controller does not stop writing".to_owned(),
    )
    .unwrap();
    first.freeze();
    let wrote = first.log().matches(" written ").count();
    is_leading(&second);
    for number in 4..12 {
        submit_random_job(&site.objects, number, &mut chance);
    }
    first.resume();
    wait::until(
        || Ok((first.metric("leading") == Some(0)).then_some(())),
        || "the controller does not notice that it lost the Lease".to_owned(),
    )
    .unwrap();
    wait_until_drained(&site.objects, 12);
    assert!(first.is_running());
    let log = first.log();
    assert_eq!(
        log.matches(" written ").count(),
        wrote,
        "it continued to write:\n{log}"
    );

    for number in 12..20 {
        submit_random_job(&site.objects, number, &mut chance);
    }
    drop(second);
    wait_until_drained(&site.objects, 20);
    is_leading(&first);
    // A stopping controller releases the Lease: the next one leads at its next attempt.
    first.stop().unwrap();
    let holder = &site.objects.list("Lease")[0]["spec"]["holderIdentity"];
    assert!(holder.is_null() || holder == "", "{holder}");
    let seen = invariants::check_history(
        &workloads.versions(),
        &jobs.versions(),
        &pods.versions(),
        &LIMITS,
    );
    assert!(seen.admissions >= 20, "{seen:?}");
}

#[track_caller]
pub fn is_leading(controller: &crate::controller::Controller) {
    wait::until(
        || Ok((controller.metric("leading") == Some(1)).then_some(())),
        || format!("the controller does not lead:\n{}", controller.log()),
    )
    .unwrap_or_else(|e| panic!("{e}"));
}

/// The same process continues with the stored state.
fn api_server_restarted(stage: &mut Fixture) {
    let mut site = ControllerFixture::open_without_webhook(stage, DEFAULTS);
    queues(&site);
    let mut chance = Rng::new(3);
    for number in 0..12 {
        submit_random_job(&site.objects, number, &mut chance);
    }
    wait::until(
        || {
            let jobs = site.objects.list("Job");
            let done = jobs
                .iter()
                .filter(|it| render::has_status(it, "Complete", "True"));
            Ok((done.count() >= 3).then_some(()))
        },
        || "no Job finishes".to_owned(),
    )
    .unwrap();
    site.stage.cluster_mut().kill_api_server();
    let controller = site.controller.as_ref().unwrap();
    wait::until(
        || {
            Ok(controller
                .log()
                .contains("watch failed; restarting")
                .then_some(()))
        },
        || "the controller does not notice the broken watch".to_owned(),
    )
    .unwrap();
    assert!(site.controller().is_running());
    let cluster = site.stage.cluster_mut();
    cluster.start_api_server().unwrap_or_else(|e| panic!("{e}"));
    site.objects = Objects::new(cluster.client());
    for number in 12..16 {
        submit_random_job(&site.objects, number, &mut chance);
    }
    wait_until_drained(&site.objects, 16);
    site.wait_for_counts("ClusterQueue", "a", 0, 0);
    // An API server that has just started may not have its RBAC rules yet: rejected requests are repeated.
    site.stop_and_read_log();
}

/// Objects change between every read and write of the controller.
fn competing_writer(stage: &mut Fixture) {
    let mut site = ControllerFixture::open_without_webhook(stage, DEFAULTS);
    queues(&site);
    let (workloads, jobs) = (site.watch("Workload"), site.watch("Job"));
    let pods = site.watch("Pod");
    let is_over = AtomicBool::new(false);
    let (mut one, mut two) = (site.stage.cluster().client(), site.stage.cluster().client());
    let (touched, conflicts) = thread::scope(|scope| {
        let is_over = &is_over;
        let touch = move |client: &mut crate::client::Client, kind: &str| {
            let mut number = 0_u64;
            while !is_over.load(Ordering::Relaxed) {
                let all = client.get(&collection(kind)).unwrap().body;
                for item in all["items"].as_array().unwrap() {
                    if render::has_status(item, "Finished", "True")
                        || render::has_status(item, "Complete", "True")
                    {
                        continue;
                    }
                    number += 1;
                    let name = item["metadata"]["name"].as_str().unwrap();
                    let path = format!("{}/{name}", collection(kind));
                    let change =
                        json!({"metadata": {"annotations": {"touched": number.to_string()}}});
                    client.patch(&path, &change).unwrap();
                }
            }
            number
        };
        let touchers = [
            scope.spawn(move || touch(&mut one, "Workload")),
            scope.spawn(move || touch(&mut two, "Job")),
        ];
        let objects = &site.objects;
        let drained = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut chance = Rng::new(4);
            for number in 0..20 {
                submit_random_job(objects, number, &mut chance);
            }
            wait_until_drained(objects, 20);
        }));
        is_over.store(true, Ordering::Relaxed);
        let touched = touchers.map(|it| it.join().unwrap());
        if let Err(e) = drained {
            std::panic::resume_unwind(e);
        }
        let log = site.controller.as_ref().unwrap().log();
        (touched, log.matches("outcome=Conflict").count())
    });
    let seen = invariants::check_history(
        &workloads.versions(),
        &jobs.versions(),
        &pods.versions(),
        &LIMITS,
    );
    println!("  touched {touched:?}, {conflicts} conflicts: {seen:?}");
    assert!(conflicts > 0, "no write conflicted");
    site.stop();
}
