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
mod random;
mod score;

use cases::Definitions;
use lockkeeper_crd_schema::builtin::BuiltInKind;
use lockkeeper_crd_schema::crd::{Answer, answer_definition};
use score::Scores;
use serde_json::Value;

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
            let answer = answer_resource(&case, &mut definitions);
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
        let answer = answer_as_definition(&case);
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
        let answer = answer_built_in(&case);
        let kind = case["kind"].as_str().unwrap();
        scores.add(kind, &case, &compare::compare(&case, &answer));
    }
    scores.print();
    scores.assert_floors(&score::BUILT_IN_FLOORS);
}

/// Answers a case about a custom resource.
fn answer_resource(case: &Value, definitions: &mut Definitions) -> Answer {
    definitions.schema(case).answer(&compare::request(case))
}

/// Answers a case about a definition.
fn answer_as_definition(case: &Value) -> Answer {
    answer_definition(&compare::request(case))
}

/// Answers a case about an object of a built-in kind.
fn answer_built_in(case: &Value) -> Answer {
    let text = |key: &str| case[key].as_str().unwrap();
    let kind = BuiltInKind::find(text("apiVersion"), text("kind")).unwrap();
    kind.answer(&compare::request(case))
}
