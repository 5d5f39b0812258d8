//! Converts findings to the form of the data.

use lockkeeper_api::config::{Action, Config};
use lockkeeper_policies::cluster_view::ClusterView;
use lockkeeper_policies::engine::{ReviewSubject, Verdict, review};
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::{Change, Context, RuleInfo};
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::Value;

/// Settings for a case: all rules of these API groups that correspond to a rule of one of the projects are on, all
/// others are off; with the feature gates of the case.
pub fn settings(case: &Value, groups: &[&str]) -> Settings {
    settings_with(case, |rule| {
        groups.contains(&rule.group.as_str()) && !rule.covers.is_empty()
    })
}

/// Settings with the selected rules on and all others off, and the feature gates of the case.
pub fn settings_with(case: &Value, is_asked: impl Fn(&RuleInfo) -> bool) -> Settings {
    let mut config = Config::default();
    for rule in registry::all() {
        let action = if is_asked(&rule) {
            Action::Enforce
        } else {
            Action::Off
        };
        config.rules.actions.insert(rule.id.to_owned(), action);
    }
    for (gate, is_on) in case["featureGates"].as_object().into_iter().flatten() {
        let is_on = is_on.as_bool().unwrap();
        config.rules.feature_gates.insert(gate.clone(), is_on);
    }
    registry::settings(&config).unwrap()
}

/// The findings of the rules on the object of a case; an error if it cannot be decoded.
pub fn evaluate<T: ValidatedKind>(
    case: &Value,
    settings: &Settings,
    cluster: &dyn ClusterView,
) -> Result<Verdict, serde_json::Error> {
    let context = Context { cluster, settings };
    let new: T = serde_json::from_value(case["object"].clone())?;
    Ok(match case["operation"].as_str().unwrap() {
        "CREATE" => review(&ReviewSubject::Create(&new), &context),
        "UPDATE" => {
            let old: T = serde_json::from_value(case["oldObject"].clone())?;
            let change = Change {
                old: &old,
                new: &new,
            };
            review(&ReviewSubject::Update(change), &context)
        }
        "DELETE" => review(&ReviewSubject::Delete(&new), &context),
        other => panic!("unknown operation {other}"),
    })
}

/// Field and type of each finding, sorted.
pub fn finding_lines<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<String> {
    let findings = findings.into_iter();
    let mut out: Vec<String> = findings
        .map(|it| format!("{} {}", it.field, it.kind.reason()))
        .collect();
    out.sort();
    out
}

/// The same for the expected errors.
pub fn expected_lines(errors: &Value) -> Vec<String> {
    let errors = errors.as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut out: Vec<String> = errors
        .map(|it| format!("{} {}", text(&it["field"]), text(&it["type"])))
        .collect();
    out.sort();
    out
}

/// The differences between found and expected lines.
pub fn difference(found: &[String], expected: &[String]) -> Vec<String> {
    if found == expected {
        return Vec::new();
    }
    vec![format!("found {found:?}"), format!("expected {expected:?}")]
}
