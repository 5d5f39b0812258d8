//! Compares the rules with the results of Kueue, Kubernetes and Koordinator on every case of the conformance data.
//!
//! `LOCKKEEPER_CONFORMANCE_DIR` names the folder with `webhook/`; without it `../shared/data` and,
//! failing that, the sample beside the other tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::arithmetic_side_effects,
    clippy::disallowed_methods,
    reason = "tests fail by panicking"
)]

#[allow(dead_code, reason = "a dialect without rules uses little of it")]
mod compare;
#[path = "../data.rs"]
mod data;
mod koordinator;
mod kueue;
mod scheduling;

/// The project that defines the kind of a case.
#[derive(Clone, Copy, PartialEq)]
enum Dialect {
    Kueue,
    Kubernetes,
    Koordinator,
}

impl Dialect {
    /// Determined by the file name, or else by the object's API group.
    fn for_case(case: &data::Case) -> Self {
        let group = case.value["object"]["apiVersion"].as_str();
        let group = group.and_then(|it| it.split_once('/')).map(|it| it.0);
        match (case.file.as_str(), group) {
            (file, _) if file.starts_with("koordinator-") => Self::Koordinator,
            (file, _) if file.starts_with("kueue-") => Self::Kueue,
            (file, _) if file.starts_with("k8s-") => Self::Kubernetes,
            (_, Some("scheduling.sigs.k8s.io")) => Self::Koordinator,
            (_, Some("kueue.x-k8s.io")) => Self::Kueue,
            _ => Self::Kubernetes,
        }
    }
}

/// Runs all cases of a dialect; `check` returns the differences.
fn run(dialect: Dialect, name: &str, check: fn(&serde_json::Value) -> Vec<String>) {
    let mut tally = data::Tally::default();
    let deviations = data::deviations();
    let cases = data::cases("webhook");
    for case in cases
        .iter()
        .filter(|case| Dialect::for_case(case) == dialect)
    {
        if dialect == Dialect::Koordinator && koordinator::has_broken_cache(&case.value) {
            tally.skip(case);
            continue;
        }
        let problems = check(&case.value);
        if deviations.contains(&case.id) {
            assert!(!problems.is_empty(), "{} does not differ any more", case.id);
            tally.skip(case);
        } else {
            tally.count(case, &problems);
        }
    }
    tally.finish(name);
}

#[test]
fn kueue_kinds_match_kueue() {
    run(Dialect::Kueue, "webhook/kueue", kueue::check);
}

#[test]
fn kubernetes_kinds_match_kubernetes() {
    run(Dialect::Kubernetes, "webhook/kubernetes", scheduling::check);
}

#[test]
fn koordinator_kinds_match_koordinator() {
    run(
        Dialect::Koordinator,
        "webhook/koordinator",
        koordinator::check,
    );
}
