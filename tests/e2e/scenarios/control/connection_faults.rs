//! Connections to the API server are silent, rejected or slow: a new Job is admitted within a bound, and a leader leads.

use std::time::{Duration, Instant};

use serde_json::json;

use super::Trial;
use super::fixture::{ControllerFixture, NO_LEADER_ELECTION};
use crate::controller::Controller;
use crate::fixture::{DEFAULTS, Fixture};
use crate::proxy::{Faults, Proxy};
use crate::wait;

pub const TRIALS: [Trial; 4] = [
    ("connections freeze during watches", frozen_watches),
    (
        "a connection freezes between head and answer of a list",
        frozen_list,
    ),
    ("the API server answers 503 for a while", outage),
    ("a leader leads with two seconds of latency", slow_leader),
];

/// The longest time from a freeze to the admission of a new Job.
const FREEZE_MAX: Duration = Duration::from_secs(45);

/// The same from the end of an outage.
const OUTAGE_MAX: Duration = Duration::from_secs(10);

/// The requests that get 503: about 20 seconds of retries of all watches, until their pauses are the longest.
const REFUSALS: usize = 60;

/// A cluster with a queue, and a proxy to it.
#[track_caller]
fn queue_behind_proxy(stage: &mut Fixture) -> (ControllerFixture<'_>, Proxy) {
    stage.without_webhook();
    let mut site = ControllerFixture::without_controller(stage);
    let proxy = site.proxy();
    site.flavor("default");
    site.queue("q", 8, &json!({}));
    (site, proxy)
}

/// Waits until a Job that is created now is running with quota, and checks the time since `since`.
#[track_caller]
fn admitted_within(site: &ControllerFixture<'_>, job: &str, since: Instant, max: Duration) {
    site.job(job, "q", 1, "", &json!({}));
    site.wait_until_running(job);
    let took = since.elapsed();
    println!("  admitted after {:.1} s", took.as_secs_f64());
    assert!(took <= max, "admitted after {took:?}");
}

/// As when a load balancer drops the flows: neither side sees a close.
fn frozen_watches(stage: &mut Fixture) {
    let (mut site, proxy) = queue_behind_proxy(stage);
    site.start_controller_through(&proxy, DEFAULTS);
    site.job("before", "q", 1, "", &json!({}));
    site.wait_until_running("before");
    let frozen_at = Instant::now();
    proxy.freeze();
    admitted_within(&site, "after", frozen_at, FREEZE_MAX);
    site.stop_and_read_log();
}

fn frozen_list(stage: &mut Fixture) {
    let (mut site, proxy) = queue_behind_proxy(stage);
    proxy.set(Faults {
        frozen_list: "/jobs",
        ..Faults::default()
    });
    let frozen_at = Instant::now();
    let folder = site.stage.new_folder();
    let account = proxy.kubeconfig(&folder).unwrap();
    let flags = [NO_LEADER_ELECTION];
    let started = Controller::start_unready(&account, &folder, DEFAULTS, &flags);
    site.controller = Some(started.unwrap_or_else(|e| panic!("{e}")));
    wait::until(
        || Ok((proxy.counts().frozen_lists == 1).then_some(())),
        || "no list of Jobs".to_owned(),
    )
    .unwrap();
    admitted_within(&site, "after", frozen_at, FREEZE_MAX);
    site.stop_and_read_log();
}

fn outage(stage: &mut Fixture) {
    let (mut site, proxy) = queue_behind_proxy(stage);
    site.start_controller_through(&proxy, DEFAULTS);
    proxy.begin_outage();
    wait::until(
        || Ok((proxy.counts().unavailable >= REFUSALS).then_some(())),
        || format!("few requests: {:?}", proxy.counts()),
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let ended_at = Instant::now();
    proxy.set(Faults::default());
    admitted_within(&site, "after", ended_at, OUTAGE_MAX);
    site.stop_and_read_log();
}

/// Each request about the Lease takes two seconds, and so does every other one.
fn slow_leader(stage: &mut Fixture) {
    let (mut site, proxy) = queue_behind_proxy(stage);
    proxy.set(Faults {
        latency_ms: 2_000,
        ..Faults::default()
    });
    site.controller = Some(site.start_another_through(&proxy, DEFAULTS, &[]));
    site.job("one", "q", 1, "", &json!({}));
    site.wait_until_running("one");
    // It keeps the Lease for several renewals.
    for _ in 0..3 {
        let renewed_at = || site.objects.list("Lease")[0]["spec"]["renewTime"].clone();
        let before = renewed_at();
        wait::until(
            || Ok((renewed_at() != before).then_some(())),
            || "the Lease is not renewed".to_owned(),
        )
        .unwrap_or_else(|e| panic!("{e}"));
    }
    assert_eq!(site.controller().metric("leading"), Some(1));
    let log = site.stop_and_read_log();
    assert!(!log.contains("not leading"), "{log}");
    assert!(proxy.counts().late > 10, "{:?}", proxy.counts());
}
