//! Runs the rules of users.

use lockkeeper_policies::engine::{ReviewSubject, Verdict};
use lockkeeper_policies::rule::Change;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::user_rules::{self, KindName};
use serde_json::Value;

/// The findings of user rules.
pub fn apply_user_rules(object: &Value, old: Option<&Value>, settings: &Settings) -> Verdict {
    let mut verdict = Verdict::default();
    let (kind, rules) = (kind_name(object), &settings.user_rules);
    let subject = match old {
        Some(old) => ReviewSubject::Update(Change { old, new: object }),
        None => ReviewSubject::Create(object),
    };
    user_rules::review(rules, kind, &subject, settings, &mut verdict);
    verdict
}

/// The group and name of the kind of an object.
pub fn kind_name(object: &Value) -> KindName<'_> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    KindName::from_api_version(text("apiVersion"), text("kind"))
}
