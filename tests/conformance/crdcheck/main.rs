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

/// The project of the kinds that need no definition.
const BUILT_IN: &str = "builtin";

#[test]
fn custom_resources_match_api_server() {
    let folder = cases::folder();
    let mut scores = Scores::default();
    let projects = cases::projects(&folder);
    for project in projects.iter().filter(|it| *it != BUILT_IN) {
        let mut definitions = Definitions::new(folder.join("crds").join(project));
        for case in cases::read(&folder, project) {
            let answer = compare::answer_resource(&case, &mut definitions);
            scores.add(project, &case, &compare::compare(&case, &answer));
        }
    }
    scores.print();
    scores.assert_floors(&score::RESOURCE_FLOORS);
}

#[test]
fn definitions_match_api_server() {
    let folder = cases::folder();
    let mut scores = Scores::default();
    if cases::projects(&folder).iter().all(|it| it != BUILT_IN) {
        return;
    }
    let cases = cases::read(&folder, BUILT_IN).into_iter();
    for case in cases.filter(|it| it["kind"] == "CustomResourceDefinition") {
        let answer = compare::answer_as_definition(&case);
        scores.add("definitions", &case, &compare::compare(&case, &answer));
    }
    scores.print();
    scores.assert_floors(&score::DEFINITION_FLOORS);
}

#[test]
fn built_in_kinds_match_api_server() {
    let folder = cases::folder();
    let mut scores = Scores::default();
    if cases::projects(&folder).iter().all(|it| it != BUILT_IN) {
        return;
    }
    let cases = cases::read(&folder, BUILT_IN).into_iter();
    for case in cases.filter(|it| it["kind"] != "CustomResourceDefinition") {
        let answer = compare::answer_built_in(&case);
        let kind = case["kind"].as_str().unwrap();
        scores.add(kind, &case, &compare::compare(&case, &answer));
    }
    scores.print();
    scores.assert_floors(&score::BUILT_IN_FLOORS);
}

/// The fields and reasons of causes, for messages.
fn names(set: &BTreeSet<(String, String)>) -> String {
    let names = set
        .iter()
        .map(|(field, reason)| format!("{field} {reason}"));
    names.collect::<Vec<_>>().join(", ")
}
