//! End-to-end tests: a real API server, the real binary, and kubectl as the user's client.
//!
//! `cargo test -p lockkeeper --test e2e` runs all trials; arguments after `--` select trials by name. One trial more than
//! there are cores runs at a time, at most four, since many wait most of the time; `--test-threads` changes that. Each
//! thread has its own control plane, which starts with the first trial that needs it and stops at the end of the run.
//! Snapshots use insta: `INSTA_UPDATE=always` accepts the current output.
//!
//! Environment: `LOCKKEEPER_MINICLUSTER` is the path of a built control plane. `KUBEBUILDER_ASSETS` is a folder with
//! `etcd`, `kube-apiserver` and `kubectl`, and, for trials that run pods, `kube-controller-manager`,
//! `kube-scheduler`, `kwok` and `jobset.yaml`. With neither, `tests/minicluster/build.sh` builds a control plane.
//! `LOCKKEEPER_CONTROL_PLANE` is a control plane of an older Kubernetes (`tests/minicluster/build.sh 1.33`), which takes the place
//! of the newest one; trials that need a newer one are ignored.
//! `LOCKKEEPER_DRILL_REQUESTS` is the number of requests in each step of a drill; see `scenarios/failure_drills.rs`.
//! `LOCKKEEPER_DRILL_SECONDS` is how long a controller is killed under load; see `scenarios/control/faults.rs`.
//! `LOCKKEEPER_FLOOD_WORKLOADS` is the number of workloads in the flood; see `scenarios/control/proxy_faults.rs`.
//! `LOCKKEEPER_RANDOM_SEED` and `LOCKKEEPER_RANDOM_DEFINITIONS` are the first seed and the number of random definitions, and
//! `LOCKKEEPER_RANDOM_CASES` is a file for cases that differ; see `scenarios/random_definitions.rs`.
//! `LOCKKEEPER_CONFORMANCE_DIR` is the folder with the CRDs of other projects, `crds/`, and published objects; see
//! `scenarios/kueue_objects.rs` and `scenarios/agreement.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests panic on failure and print"
)]

mod balancer;
mod client;
mod cluster;
mod controller;
mod durations;
mod fixture;
mod fixture_pool;
mod handshake_client;
mod helm;
mod https;
mod kubectl;
mod load;
mod lockkeeper;
mod manifests;
mod nodes;
mod objects;
mod process;
mod programs;
mod proxy;
#[path = "../samples/reservation.rs"]
mod reservation;
mod scenarios;
mod snapshot;
mod wait;
mod watcher;
mod workers;

use std::num::NonZero;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use libtest_mimic::{Arguments, Trial};

use crate::durations::Durations;
use crate::fixture_pool::FixturePool;
use crate::lockkeeper::Protocol;
use crate::programs::OLDER_MINOR;
use crate::scenarios::Scenario;
use crate::scenarios::without_cluster::StandaloneTrial;

/// The root of the repository. kubectl runs there, so that the paths in its messages are the same on every machine.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A control plane needs about a gigabyte of memory.
const CONTROL_PLANES_MAX: usize = 4;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    arguments
        .test_threads
        .get_or_insert(threads.saturating_add(1).min(CONTROL_PLANES_MAX));

    let fixtures = Arc::new(FixturePool::default());
    let durations = Arc::new(Durations::default());
    let mut all = trials_without_cluster();
    all.extend(trials(&fixtures, &durations));
    let conclusion = libtest_mimic::run(&arguments, all);
    fixtures.stop_all();
    if !arguments.list {
        durations.print();
    }
    conclusion.exit_code()
}

/// Trials that need no cluster.
fn trials_without_cluster() -> Vec<Trial> {
    let scenarios = scenarios::without_cluster::scenarios().into_iter();
    let scenarios = scenarios.chain(scenarios::chart::trials_without_cluster());
    let scenarios = scenarios.chain(scenarios::proxy::trials_without_cluster());
    let trial = |scenario: StandaloneTrial| {
        Trial::test(scenario.name, move || {
            scenarios::without_cluster::run(&scenario);
            Ok(())
        })
    };
    scenarios.map(trial).collect()
}

/// Every scenario over HTTP/2, then every scenario over HTTP/1.1: this order restarts the server least often.
fn trials(fixtures: &Arc<FixturePool>, durations: &Arc<Durations>) -> Vec<Trial> {
    [Protocol::Http2, Protocol::Http1]
        .into_iter()
        .flat_map(|protocol| {
            scenarios::all(Path::new(ROOT))
                .into_iter()
                .filter(move |scenario| scenario.only.is_none_or(|only| only == protocol))
                .map(move |scenario| trial(fixtures, durations, protocol, scenario))
        })
        .collect()
}

fn trial(
    fixtures: &Arc<FixturePool>,
    durations: &Arc<Durations>,
    protocol: Protocol,
    scenario: Scenario,
) -> Trial {
    let (fixtures, durations) = (Arc::clone(fixtures), Arc::clone(durations));
    let name = format!("{} ({protocol})", scenario.name);
    let lacks = (*OLDER_MINOR)
        .zip(scenario.since)
        .is_some_and(|(minor, since)| minor < since);
    Trial::test(name.clone(), move || {
        let mut fixture = fixtures.take();
        durations.measure(&name, || (scenario.run)(&mut fixture, protocol));
        Ok(())
    })
    .with_ignored_flag(lacks)
}
