//! End-to-end tests: a real API server, the real binary, and kubectl as the user.
//!
//! `cargo test -p lockkeeper --test e2e` runs them all; words after `--` choose
//! trials by name. The control plane starts with the first trial that needs it
//! and ends with the run. Snapshots are kept with insta: `INSTA_UPDATE=always`
//! accepts what is printed now.
//!
//! Environment: `LOCKKEEPER_MINICLUSTER` names a built control plane,
//! `KUBEBUILDER_ASSETS` a folder with `etcd`, `kube-apiserver` and `kubectl`, and for the trials that
//! need pods to run `kube-controller-manager`, `kube-scheduler`, `kwok` and `jobset.yaml`; with
//! neither, `tests/minicluster/build.sh` builds one. `LOCKKEEPER_DRILL_REQUESTS` is how many
//! requests each step of a drill sends; see `scenarios/drills.rs`. `LOCKKEEPER_DRILL_SECONDS` is how long
//! a controller is killed under load; see `scenarios/control/faults.rs`. `LOCKKEEPER_FLOOD_WORKLOADS` is how
//! many workloads a flood has; see `scenarios/control/proxied.rs`. `LOCKKEEPER_CONFORMANCE_DIR` names the folder
//! with the CRDs of other projects, `crds/`, and published objects; see `scenarios/foreign.rs` and
//! `scenarios/agreement.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking and prints"
)]

mod balancer;
mod certificates;
mod client;
mod cluster;
mod controller;
mod fixture;
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

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Trial};

use crate::fixture::Fixture;
use crate::lockkeeper::Protocol;
use crate::scenarios::Scenario;
use crate::scenarios::without_cluster::StandaloneTrial;

/// The root of the repository. kubectl runs there, so that the paths in its
/// messages are the same everywhere.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // The trials share one API server, and each begins by emptying it.
    arguments.test_threads = Some(1);

    let stage = Arc::new(Mutex::new(Fixture::default()));
    let mut all = trials_without_cluster();
    all.extend(trials(&stage));
    let conclusion = libtest_mimic::run(&arguments, all);
    // A failed trial panics with the lock held; what it leaves is still ours to end.
    stage
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .stop_all();
    conclusion.exit_code()
}

/// What needs no cluster.
fn trials_without_cluster() -> Vec<Trial> {
    let scenarios = scenarios::without_cluster::scenarios().into_iter();
    let scenarios = scenarios.chain(scenarios::chart::trials_without_cluster());
    let trial = |scenario: StandaloneTrial| {
        Trial::test(scenario.name, move || {
            scenarios::without_cluster::run(&scenario);
            Ok(())
        })
    };
    scenarios.map(trial).collect()
}

/// Every scenario over HTTP/2, then every one over HTTP/1.1: the fewest changes
/// of server.
fn trials(stage: &Arc<Mutex<Fixture>>) -> Vec<Trial> {
    [Protocol::Http2, Protocol::Http1]
        .into_iter()
        .flat_map(|protocol| {
            scenarios::all(Path::new(ROOT))
                .into_iter()
                .filter(move |scenario| scenario.only.is_none_or(|only| only == protocol))
                .map(move |scenario| trial(stage, protocol, scenario))
        })
        .collect()
}

fn trial(stage: &Arc<Mutex<Fixture>>, protocol: Protocol, scenario: Scenario) -> Trial {
    let stage = Arc::clone(stage);
    Trial::test(format!("{} ({protocol})", scenario.name), move || {
        let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
        (scenario.run)(&mut stage, protocol);
        Ok(())
    })
}
