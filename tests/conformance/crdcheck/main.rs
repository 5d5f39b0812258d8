//! Compares the validation of custom resources with recorded answers of an API server.
//!
//! `LOCKKEEPER_CONFORMANCE_DIR` names the folder with `crdcheck/`; without it `../shared/data`. Without data the test
//! passes. `CRDCHECK_FAILURES` is the number of differences that are printed per measure.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::arithmetic_side_effects,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    clippy::struct_field_names,
    reason = "tests fail by panicking"
)]

mod cases;
mod compare;
mod score;

use cases::Definitions;
use score::Scores;
use std::collections::BTreeSet;

/// The stack of the thread that evaluates the cases: unoptimized code needs more than the default.
const STACK_BYTES: usize = 256 * 1024 * 1024;

#[test]
fn custom_resources_match_api_server() {
    let test = || {
        let Some(folder) = cases::folder() else {
            println!("no data: skipped");
            return;
        };
        let projects = cases::projects(&folder);
        let mut scores = Scores::default();
        for project in projects.iter().filter(|it| *it != "builtin") {
            let mut definitions = Definitions::new(folder.join("crds").join(project));
            for case in cases::read(&folder, project) {
                let comparison = compare::compare(&case, &mut definitions);
                scores.add(project, &case, &comparison);
            }
        }
        scores.print();
        scores.assert_floors();
    };
    let thread = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(test);
    thread.unwrap().join().unwrap();
}

/// The fields and reasons of causes, for messages.
fn names(set: &BTreeSet<(String, String)>) -> String {
    let names = set
        .iter()
        .map(|(field, reason)| format!("{field} {reason}"));
    names.collect::<Vec<_>>().join(", ")
}
