//! Kubernetes' own kinds (`k8s-scheduling-validation`).
//!
//! A row tests one function of Kubernetes, so only the rules that correspond to that function are on: those of an
//! admission plugin, those of the hand-written validation, or all except the plugins'. A strategy drops fields before
//! it validates.

use crate::compare::{difference, evaluate, expected_lines, finding_lines, settings_with};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::foreign::scheduling::{PodGroup, Workload};
use lockkeeper_policies::defaulting::DefaultedField;
use lockkeeper_policies::engine::{ReviewSubject, Verdict, review};
use lockkeeper_policies::facts;
use lockkeeper_policies::index::{Facts, Index, IndexedKind};
use lockkeeper_policies::rule::{Change, Context, RuleInfo};
use lockkeeper_policies::scheduling::strategy::{
    prepare_pod_group, prepare_pod_group_status, prepare_workload,
};
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The fields that the plugin Priority sets.
const PRIORITY_FIELDS: [&str; 3] = [
    "spec.priority",
    "spec.priorityClassName",
    "spec.preemptionPolicy",
];

/// The rows of the plugins.
const PLUGIN_ROWS: [&str; 3] = [
    "prio-",
    "pc-global-default-unique",
    "pg-template-ref-exists",
];

/// The rows of the hand-written validation; the other rows are declarative validation.
const HAND_WRITTEN_ROWS: [&str; 4] = [
    "pc-",
    "kwl-metadata-",
    "pg-status-conditions",
    "pg-status-claim-known",
];

/// The differences of a case.
pub fn check(case: &Value) -> Vec<String> {
    match case["kind"].as_str().unwrap() {
        "PriorityClass" => check_kind::<PriorityClass>(case),
        "Pod" => check_kind::<Pod>(case),
        "Workload" if case["expectedObjectAfterPrepare"].is_object() => workload_strategy(case),
        "PodGroup" if case["expectedObjectAfterPrepare"].is_object() => pod_group_strategy(case),
        "Workload" => check_kind::<Workload>(case),
        "PodGroup" => check_kind::<PodGroup>(case),
        other => panic!("unknown kind {other}"),
    }
}

/// Runs a plugin, a validation, or (as a pipeline) the plugin Priority and all validations.
fn check_kind<T: ValidatedKind>(case: &Value) -> Vec<String> {
    let (settings, index) = (settings(case), index(case));
    let mut case = case.clone();
    if case["oldObject"].is_null() && case["operation"] == "UPDATE" {
        // The stored object is unknown: the engine validates the new object by itself.
        case["operation"] = "CREATE".into();
        if case["kind"] != "PriorityClass" {
            return expect_unchanged(&case);
        }
    }
    let is_of_plugin = case["admissionPlugin"].is_string();
    if is_of_plugin && case["subresource"].is_string() {
        return expect_unchanged(&case);
    }
    let is_filled = case["expectedObjectAfterDefaulting"].is_object();
    if !is_of_plugin && is_filled {
        case["object"] = defaulted::<T>(&case, &settings, &index);
    }
    let verdict = match evaluate::<T>(&case, &settings, &index) {
        Ok(verdict) => verdict,
        Err(error) => return vec![error.to_string()],
    };
    if !is_of_plugin {
        let mut problems = compare(&verdict, &case);
        if is_filled && case["object"] != case["expectedObjectAfterDefaulting"] {
            problems.push(format!("filled {}", case["object"]));
        }
        return problems;
    }
    let is_denied = case["expectedAdmissionError"].is_string();
    if verdict.allowed() == is_denied {
        return vec![format!(
            "denied: {is_denied}; found {:?}",
            finding_lines(&verdict.denials)
        )];
    }
    if is_filled && !is_denied {
        case["object"] = defaulted::<T>(&case, &settings, &index);
        return expect_unchanged(&case);
    }
    Vec::new()
}

/// The only permitted expectation is that the object does not change.
fn expect_unchanged(case: &Value) -> Vec<String> {
    let expected = &case["expectedObjectAfterDefaulting"];
    let mut problems = Vec::new();
    if case["expectedAdmissionError"].is_string() {
        problems.push("is denied".to_owned());
    }
    if expected.is_object() && *expected != case["object"] {
        problems.push(format!("found {}", case["object"]));
        problems.push(format!("expected {expected}"));
    }
    problems
}

/// The object with the fields that the plugin Priority sets.
fn defaulted<T: ValidatedKind>(case: &Value, settings: &Settings, index: &Index) -> Value {
    let context = Context {
        cluster: index,
        settings,
    };
    let new: T = parse(&case["object"]);
    let old = case["oldObject"]
        .is_object()
        .then(|| parse(&case["oldObject"]));
    let defaults = T::defaults(&new, old.as_ref(), &context);
    let is_asked =
        |filled: &&DefaultedField| PRIORITY_FIELDS.contains(&filled.field.text().as_str());
    let add = |filled: &DefaultedField| json!({"op": "add", "path": filled.pointer, "value": filled.value});
    let operations = defaults.items().iter().filter(is_asked).map(add).collect();
    let patch: json_patch::Patch = serde_json::from_value(operations).unwrap();
    let mut object = case["object"].clone();
    json_patch::patch(&mut object, &patch).unwrap();
    object
}

fn workload_strategy(case: &Value) -> Vec<String> {
    let settings = settings(case);
    let mut new: Workload = parse(&case["object"]);
    let old: Option<Workload> = parse_optional(&case["oldObject"]);
    prepare_workload(&mut new, old.as_ref(), &settings);
    check_after_strategy(case, &settings, &new, old.as_ref())
}

fn pod_group_strategy(case: &Value) -> Vec<String> {
    let settings = settings(case);
    let mut new: PodGroup = parse(&case["object"]);
    let old: Option<PodGroup> = parse_optional(&case["oldObject"]);
    if case["subresource"] == "status" {
        prepare_pod_group_status(&mut new, old.as_ref().unwrap(), &settings);
    } else {
        prepare_pod_group(&mut new, old.as_ref(), &settings);
    }
    check_after_strategy(case, &settings, &new, old.as_ref())
}

fn check_after_strategy<T: ValidatedKind + PartialEq + std::fmt::Debug>(
    case: &Value,
    settings: &Settings,
    new: &T,
    old: Option<&T>,
) -> Vec<String> {
    let context = Context {
        cluster: &Index::default(),
        settings,
    };
    let verdict = match old {
        None => review(&ReviewSubject::Create(new), &context),
        Some(old) => review(&ReviewSubject::Update(Change { old, new }), &context),
    };
    let mut problems = compare(&verdict, case);
    let prepared: T = parse(&case["expectedObjectAfterPrepare"]);
    if *new != prepared {
        problems.push(format!("prepared {new:?}"));
        problems.push(format!("expected {prepared:?}"));
    }
    problems
}

fn compare(verdict: &Verdict, case: &Value) -> Vec<String> {
    difference(
        &finding_lines(&verdict.denials),
        &expected_lines(&case["expectedErrors"]),
    )
}

/// The rules of the function that a case tests, and its feature gates.
fn settings(case: &Value) -> Settings {
    settings_with(case, |rule| is_selected(case, rule))
}

fn is_selected(case: &Value, rule: &RuleInfo) -> bool {
    let is_in = |rows: &[&str], row: &str| rows.iter().any(|start| row.starts_with(start));
    // The plugin does not check the classes of templates.
    let is_of_plugin =
        rule.kind != "Workload" && rule.covers.iter().any(|row| is_in(&PLUGIN_ROWS, row));
    if rule.covers.is_empty() {
        return false;
    }
    if let Some(plugin) = case["admissionPlugin"].as_str() {
        let is_about_templates = rule.covers.contains(&"pg-template-ref-exists");
        return is_of_plugin && is_about_templates == (plugin == "PodGroupWorkloadExists");
    }
    let source = case["source"].as_str().unwrap();
    let is_hand_written = source.ends_with("/validation/validation_test.go");
    let mut rows = rule.covers.iter();
    !is_of_plugin && (!is_hand_written || rows.all(|row| is_in(&HAND_WRITTEN_ROWS, row)))
}

/// The other objects of a case. The case has all of them.
fn index(case: &Value) -> Index {
    let mut index = Index::default();
    index.mark_complete(IndexedKind::PriorityClass);
    index.mark_complete(IndexedKind::Templates);
    let existing = |key: &str| case[key].as_array().cloned().unwrap_or_default();
    for class in existing("existingPriorityClasses") {
        let class: PriorityClass = parse(&class);
        let facts = Facts::PriorityClass(facts::priority_class_facts(&class));
        index.apply(facts::object_name(&class.metadata), facts);
    }
    for workload in existing("existingWorkloads") {
        let workload: Workload = parse(&workload);
        let facts = Facts::Templates(facts::template_facts(&workload));
        index.apply(facts::object_name(&workload.metadata), facts);
    }
    index
}

fn parse_optional<T: DeserializeOwned>(object: &Value) -> Option<T> {
    object.is_object().then(|| parse(object))
}

fn parse<T: DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap()
}
