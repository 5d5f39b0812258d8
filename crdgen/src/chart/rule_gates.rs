//! What is there only while the configuration leaves a rule as it is declared.
//!
//! Schemas and policies know no namespaces and no exceptions by which a rule is softened: then they leave the rule to the
//! webhook, which reads the configuration.

use super::placeholders::{self, RuleDefault};
use lockkeeper_api::config::Action;
use lockkeeper_policies::registry;
use serde_json::Value;
use std::collections::BTreeSet;

/// Where a schema has its expressions.
const EXPRESSIONS: &str = "x-kubernetes-validations";

/// Makes each expression in the schemas of an object one that is there while its rule is as declared.
pub(super) fn gate_schemas(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if key == EXPRESSIONS {
                    let rules = rule_defaults(value);
                    gate_list(value);
                    // A key with nothing behind it would be null, which is no list.
                    if let (Some(rules), Some(items)) = (rules, value.as_array_mut()) {
                        items.extend(placeholders::otherwise_empty(&rules));
                    }
                } else {
                    gate_schemas(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(gate_schemas),
        _ => {}
    }
}

/// The same for a list of expressions, each of which has a message that ends in the rule's id. Any other stays.
pub(super) fn gate_list(list: &mut Value) {
    let Some(items) = list.as_array_mut() else {
        return;
    };
    let with_conditions = items.drain(..).flat_map(|item| match rule_default(&item) {
        None => vec![item],
        Some((rule, action)) => {
            vec![
                placeholders::while_default(rule, action),
                item,
                placeholders::end_mark(),
            ]
        }
    });
    *items = with_conditions.collect();
}

/// The rules of a list, if each of its items is of one.
pub(super) fn rule_defaults(list: &Value) -> Option<BTreeSet<RuleDefault>> {
    list.as_array()?.iter().map(rule_default).collect()
}

/// The rule that a message ends in, and the action that it is declared with.
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
