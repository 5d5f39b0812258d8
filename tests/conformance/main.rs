//! Compares the core with the decisions of Kueue and kube-scheduler on every case of the conformance data.
//!
//! `LOCKKEEPER_CONFORMANCE_DIR` names the folder with `preemption/`, `cycle/`, `requeue/`, `gang/` and `job/`; without it
//! `../shared/data` and, failing that, the sample beside this file.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

mod compare;
mod cycles;
mod data;
mod flavors;
mod gang;
mod job;
mod loops;
mod ordering;
mod preemption;
mod requeue;

use data::Tally;
use lockkeeper_scenario::gang::is_gang_scenario;
use lockkeeper_scenario::job::Case;

#[test]
fn preemption_cases_match_kueue() {
    let mut tally = Tally::default();
    for case in data::cases("preemption") {
        preemption::check(&case, &mut tally);
    }
    tally.finish("preemption");
}

#[test]
fn cycle_cases_match_kueue() {
    let mut tally = Tally::default();
    for case in data::cases("cycle") {
        match case.value["schema"].as_str() {
            Some("kueue-flavor-case/1") => flavors::check(&case, &mut tally),
            _ => cycles::check(&case, &mut tally),
        }
    }
    tally.finish("cycle");
}

#[test]
fn requeue_cases_match_kueue() {
    let mut tally = Tally::default();
    let deviations = data::deviations();
    for mut case in data::cases("requeue") {
        requeue::check(&mut case, &deviations, &mut tally);
    }
    tally.finish("requeue");
}

#[test]
fn gang_cases_match_kube_scheduler() {
    let mut tally = Tally::default();
    for case in data::cases("gang") {
        let is_taken_as_one = is_gang_scenario(&case.value) && !Case::is_job_case(&case.value);
        assert!(
            is_taken_as_one,
            "{} is not read as a gang scenario",
            case.id
        );
        gang::check(&case, &mut tally);
    }
    tally.finish("gang");
}

#[test]
fn job_cases_match_koordinator_proposal() {
    let mut tally = Tally::default();
    for mut case in data::cases("job") {
        assert!(
            Case::is_job_case(&case.value),
            "{} is not read as a job scenario",
            case.id
        );
        let kind = case.value["kind"].as_str().unwrap_or_default();
        case.file = format!("{}/{kind}", case.file);
        let problems = job::check(&case.value);
        tally.count(&case, &problems);
    }
    tally.finish("job");
}
