//! CEL rules that are rendered only while the configuration does not change the action of their rule.
//!
//! Schemas and policies do not support namespaces and exceptions, which soften a rule: only the webhook,
//! which reads the configuration, evaluates such a rule.

use super::placeholders::{self, RuleDefault};
use crate::release_features::accepted_since_at;
use lockkeeper_api::config::Action;
use lockkeeper_crd_schema::builtin::Release;
use lockkeeper_policies::registry;
use serde_json::Value;
use std::collections::BTreeSet;

/// The keyword of CEL rules in a schema.
const EXPRESSIONS: &str = "x-kubernetes-validations";

/// Makes each CEL rule in the schemas of an object depend on the action of its rule, and on the version of Kubernetes if older
/// ones reject it. `is_in_items` is whether the schema is that of items of a list.
pub(super) fn gate_schemas(value: &mut Value, is_in_items: bool) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if key == EXPRESSIONS {
                    let rules = gated_rules(value, is_in_items);
                    gate_items(value, is_in_items);
                    // Without any item the value of the key would be null, which is no list.
                    if let (Some(rules), Some(items)) = (rules, value.as_array_mut()) {
                        items.extend(placeholders::otherwise_empty(&rules));
                    }
                } else {
                    gate_schemas(value, is_in_items || key == "items");
                }
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|it| gate_schemas(it, is_in_items)),
        _ => {}
    }
}

/// The same for a list of CEL rules whose messages end in the rule's id. Other items stay.
pub(super) fn gate_list(list: &mut Value) {
    // Expressions of policies have no estimate.
    gate_items(list, false);
}

fn gate_items(list: &mut Value, is_in_items: bool) {
    let Some(items) = list.as_array_mut() else {
        return;
    };
    let with_conditions = items.drain(..).flat_map(|item| match rule_default(&item) {
        None => vec![item],
        Some((rule, action)) => {
            let since = since(&item, is_in_items);
            vec![
                placeholders::while_default(rule, action, since),
                item,
                placeholders::end_mark(),
            ]
        }
    });
    *items = with_conditions.collect();
}

/// The first release that accepts a CEL rule, if older ones do not.
fn since(item: &Value, is_in_items: bool) -> Option<Release> {
    let text = |key| item.get(key).and_then(Value::as_str);
    accepted_since_at(is_in_items, [text("rule"), text("messageExpression")])
}

/// The rules of a list and the releases that they need, if each of its items has one.
fn gated_rules(
    list: &Value,
    is_in_items: bool,
) -> Option<BTreeSet<(RuleDefault, Option<Release>)>> {
    let items = list.as_array()?.iter();
    items
        .map(|item| Some((rule_default(item)?, since(item, is_in_items))))
        .collect()
}

/// The rules of a list, if each of its items has one.
pub(super) fn rule_defaults(list: &Value) -> Option<BTreeSet<RuleDefault>> {
    list.as_array()?.iter().map(rule_default).collect()
}

/// The rule whose id is at the end of the message, and its default action.
fn rule_default(item: &Value) -> Option<RuleDefault> {
    let message = item.get("message").and_then(Value::as_str)?;
    let (_, id) = message.strip_suffix(']')?.rsplit_once('[')?;
    let rule = registry::find(id)?;
    Some((rule.id, action_name(rule.action)))
}

fn action_name(action: Action) -> &'static str {
    match action {
        Action::Enforce => "enforce",
        Action::Warn => "warn",
        Action::Audit => "audit",
        Action::Off => "off",
    }
}
