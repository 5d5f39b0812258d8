//! Random `x-kubernetes-validations`.

use lockkeeper_testkit::Rng;
use serde_json::{Value, json};

use super::expressions::{Expressions, Type, Variable};
use super::place::Place;

/// Adds one or two rules to a schema.
pub fn add(schema: &mut Value, place: &Place, rng: &mut Rng, has_mistakes: bool) {
    let count = rng.below(2) + 1;
    let original = schema.clone();
    let mut rules: Vec<Value> = Vec::new();
    for _ in 0..count {
        let rule = rule(&original, place, rng, has_mistakes);
        if !rules.iter().any(|it| it["rule"] == rule["rule"]) {
            rules.push(rule);
        }
    }
    schema["x-kubernetes-validations"] = rules.into();
}

fn rule(schema: &Value, place: &Place, rng: &mut Rng, has_mistakes: bool) -> Value {
    let mut variables = vec![Variable::new("self", schema, place.is_root())];
    let has_old = rng.one_in(4) && (place.is_correlatable() || (has_mistakes && rng.one_in(3)));
    let is_optional = has_old && rng.one_in(3);
    if has_old {
        let name = if is_optional {
            "oldSelf.value()"
        } else {
            "oldSelf"
        };
        variables.push(Variable::new(name, schema, place.is_root()));
    }
    let mut expressions = Expressions::new(rng, variables, has_mistakes);
    let depth = expressions.rng().below(2) + 1;
    let mut text = expressions.guarded_condition(depth);
    if is_optional {
        text = match expressions.rng().below(3) {
            0 => format!("!oldSelf.hasValue() || ({text})"),
            1 => format!("oldSelf.hasValue() ? ({text}) : true"),
            // Whole resources differ in what the API server adds to their metadata.
            _ if place.is_root() => format!("oldSelf.hasValue() && ({text})"),
            _ => format!("oldSelf.optMap(o, o == self).orValue(true) || ({text})"),
        };
    } else if has_old && !text.contains("oldSelf") {
        let operator = *expressions.rng().pick(&["==", "!="]);
        let field = if place.is_root() {
            ".metadata.name"
        } else {
            ""
        };
        let joined = format!("self{field} {operator} oldSelf{field}");
        text = format!("{joined} || ({text})");
    }
    let mut rule = json!({"rule": text});
    if is_optional {
        rule["optionalOldSelf"] = true.into();
    }
    if expressions.rng().one_in(3) {
        rule["message"] = (*expressions
            .rng()
            .pick(&["must hold", "a \"quoted\" message"]))
        .into();
    }
    if expressions.rng().one_in(4) {
        rule["messageExpression"] = expressions.term(&Type::Text, 2).into();
    }
    add_reason_and_field(&mut rule, schema, rng, has_mistakes);
    rule
}

fn add_reason_and_field(rule: &mut Value, schema: &Value, rng: &mut Rng, has_mistakes: bool) {
    if rng.one_in(4) {
        let reasons = [
            "FieldValueInvalid",
            "FieldValueForbidden",
            "FieldValueRequired",
            "FieldValueDuplicate",
            "Other",
        ];
        let end = if has_mistakes { 5 } else { 4 };
        rule["reason"] = reasons[rng.below(end)].into();
    }
    if rng.one_in(4)
        && let Some(path) = field_path(schema, rng, 0)
    {
        rule["fieldPath"] = path.into();
    } else if has_mistakes && rng.one_in(10) {
        rule["fieldPath"] = (*rng.pick(&["spec", ".missing", ".", "['a'", ".a..b"])).into();
    }
}

/// A path to a field.
fn field_path(schema: &Value, rng: &mut Rng, depth: usize) -> Option<String> {
    let names: Vec<&String> = schema["properties"].as_object()?.keys().collect();
    if names.is_empty() {
        return None;
    }
    let name = *rng.pick(&names);
    let is_plain = name
        .bytes()
        .all(|it| it.is_ascii_alphanumeric() || it == b'_');
    let step = if is_plain && !rng.one_in(6) {
        format!(".{name}")
    } else {
        format!("['{name}']")
    };
    let below = (depth < 2 && rng.one_in(2))
        .then(|| field_path(&schema["properties"][name], rng, depth + 1));
    Some(step + &below.flatten().unwrap_or_default())
}
