//! CEL rules of a definition: their texts, paths, syntax, types and costs.

use super::cel_check;
use super::cel_types::Type;
use super::collector::{Collector, is_set, text};
use super::cost::{Costs, Declared, DeclaredSizes, estimate};
use super::policy_types::PolicyTypes;
use super::structural::has_unsupported_keywords;
use super::versions::field_at;
use crate::crd::cel_program::Program;
use crate::crd::cel_rule::Rule;
use crate::crd::expression::constant_error;
use crate::crd::node::Node;
use crate::crd::policy_expression::{PolicyExpression, ResultKind};
use crate::crd::values::flag_at;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

fn has_line_break(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// Compiles a match condition of a webhook.
///
/// # Errors
///
/// The reason if the text is not an expression with a flag as its result.
pub(crate) fn compile_condition(text: &str) -> Result<(), String> {
    let types = PolicyTypes::new(&["object", "oldObject", "request"]);
    types.check(&PolicyExpression::new(text)?, &[ResultKind::Bool])
}

/// Validates the texts of a rule and its path.
pub(super) fn validate_texts(rule: &Value, schema: &Value, path: &FieldPath, out: &mut Collector) {
    let expression = text(rule, "rule").trim();
    let message = text(rule, "message");
    let message_path = path.clone().field("message");
    if expression.is_empty() {
        out.required(path.clone().field("rule"), "rule is not specified");
    } else if !message.is_empty() && message.trim().is_empty() {
        out.invalid(message_path, "must be non-empty if specified");
    } else if has_line_break(message.trim()) {
        out.invalid(message_path, "must not contain line breaks");
    } else if has_line_break(expression) && message.trim().is_empty() {
        out.required(
            message_path,
            "message must be specified if rule contains line breaks",
        );
    }
    let message_expression = text(rule, "messageExpression");
    if !message_expression.is_empty() && message_expression.trim().is_empty() {
        let field = path.clone().field("messageExpression");
        out.required(field, "messageExpression must be non-empty if specified");
    }
    if is_set(rule, "reason") && !REASONS.contains(&text(rule, "reason")) {
        out.not_supported(path.clone().field("reason"), text(rule, "reason"), &REASONS);
    }
    let field_path = text(rule, "fieldPath");
    let field = path.clone().field("fieldPath");
    if field_path.is_empty() {
        return;
    }
    if field_path.trim().is_empty() {
        out.invalid(field.clone(), "must be non-empty if specified");
    }
    if has_line_break(field_path) {
        out.invalid(field.clone(), "must not contain line breaks");
    }
    if !has_unsupported_keywords(schema) && field_at(field_path, schema, true).is_err() {
        out.invalid(field, "must be a valid path");
    }
}

/// An expression without errors of its syntax and types.
struct Compiled {
    /// Whether the expression reads `oldSelf`.
    reads_old: bool,
    /// The estimated cost, or the reason for which cel-go cannot plan the evaluation.
    cost: Result<u64, String>,
}

/// The place of a rule.
pub(super) struct Place<'a> {
    pub(super) node: &'a Node,
    /// Whether the place is the root of a resource.
    pub(super) is_resource: bool,
    /// Whether stored values of the place cannot be found.
    pub(super) is_uncorrelatable: bool,
    /// The largest number of values of the place in an object, if the schema limits it.
    pub(super) cardinality: Option<u64>,
}

impl<'a> Place<'a> {
    fn declared(&self) -> Declared<'a> {
        Declared::Schema(self.node, self.is_resource)
    }

    /// Compiles an expression with a result of a type, and estimates its cost.
    fn compile(
        &self,
        text: &str,
        expected: &Type<'_>,
        variables: Vec<(String, Type<'a>)>,
        sizes: &DeclaredSizes,
    ) -> Result<Compiled, String> {
        let program = Program::new(text)?;
        let checked = cel_check::check_rule(program.tree(), variables)?;
        if std::mem::discriminant(&checked.result) != std::mem::discriminant(expected) {
            return Err("the expression has the wrong type".to_owned());
        }
        let cost = match constant_error(program.tree()) {
            Some(reason) => Err(format!("program instantiation failed: {reason}")),
            None => Ok(estimate(program.tree(), &checked, self.declared(), sizes)),
        };
        Ok(Compiled {
            reads_old: program.uses("oldSelf"),
            cost,
        })
    }
}

/// Replaces the programs of rules with wrong types by the reasons: defaults are validated with the rules first.
pub(super) fn record_compile_errors(node: &mut Node, is_resource: bool) {
    if !node.has_rules_below {
        return;
    }
    if node.default.is_none() && Type::of_schema(node, is_resource).is_none() {
        // The API server omits the rules of such a field, unless it has the default itself.
        node.rules.clear();
    }
    let reasons: Vec<Option<String>> = node
        .rules
        .iter()
        .map(|rule| compile_error(rule, node, is_resource))
        .collect();
    for (rule, reason) in node.rules.iter_mut().zip(reasons) {
        if let Some(reason) = reason {
            rule.program = Err(reason);
        }
    }
    for node in node.below_mut() {
        let is_resource = node.is_embedded;
        record_compile_errors(node, is_resource);
    }
}

/// The reason for which a parsed rule does not compile.
fn compile_error(rule: &Rule, node: &Node, is_resource: bool) -> Option<String> {
    let program = rule.program.as_ref().ok()?;
    let Some(kind) = Type::of_schema(node, is_resource) else {
        return Some("expressions cannot access values of the schema".to_owned());
    };
    let old_kind = if rule.has_optional_old_self {
        Type::optional(kind.clone())
    } else {
        kind.clone()
    };
    let variables = vec![("self".to_owned(), kind), ("oldSelf".to_owned(), old_kind)];
    match cel_check::check_rule(program.tree(), variables) {
        Err(reason) => Some(reason),
        Ok(checked) if !matches!(checked.result, Type::Bool) => {
            Some("must evaluate to bool".to_owned())
        }
        Ok(_) => constant_error(program.tree()),
    }
}

/// Validates the expressions of a rule.
pub(super) fn validate_expressions(
    rule: &Value,
    place: &Place<'_>,
    path: &FieldPath,
    costs: &mut Costs,
    out: &mut Collector,
) {
    let Some(kind) = Type::of_schema(place.node, place.is_resource) else {
        return;
    };
    let old_kind = if flag_at(rule, "optionalOldSelf") {
        Type::optional(kind.clone())
    } else {
        kind.clone()
    };
    let variables = vec![("self".to_owned(), kind), ("oldSelf".to_owned(), old_kind)];
    let rule_path = path.clone().field("rule");
    let compiled = place.compile(
        text(rule, "rule"),
        &Type::Bool,
        variables.clone(),
        &costs.sizes,
    );
    let uses_old = compiled.as_ref().is_ok_and(|it| it.reads_old);
    match compiled.and_then(|it| it.cost) {
        Ok(cost) => {
            let count = place.cardinality;
            let count = count.unwrap_or_else(|| costs.sizes.max_cardinality(place.declared()));
            costs.add(&rule_path, "rule", cost.saturating_mul(count), out);
            validate_message(rule, place, path, variables, costs, out);
        }
        Err(reason) => {
            out.invalid(rule_path.clone(), format!("compilation failed: {reason}"));
        }
    }
    if uses_old && place.is_uncorrelatable {
        out.invalid(
            rule_path,
            "oldSelf cannot be used on the uncorrelatable portion of the schema",
        );
    } else if !uses_old && is_set(rule, "optionalOldSelf") {
        let field = path.clone().field("optionalOldSelf");
        out.invalid(field, "may not be set if oldSelf is not used in rule");
    }
}

/// Validates the message of a rule that compiles.
fn validate_message<'a>(
    rule: &Value,
    place: &Place<'a>,
    path: &FieldPath,
    variables: Vec<(String, Type<'a>)>,
    costs: &mut Costs,
    out: &mut Collector,
) {
    let message = text(rule, "messageExpression");
    if message.is_empty() {
        return;
    }
    let path = path.clone().field("messageExpression");
    let compiled = place.compile(message, &Type::Text, variables, &costs.sizes);
    match compiled.and_then(|it| it.cost) {
        // A message is evaluated for one value.
        Ok(cost) => costs.add(&path, "messageExpression", cost, out),
        Err(reason) => {
            out.invalid(
                path,
                format!("messageExpression compilation failed: {reason}"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The costs are those of `cel.Compile` of `k8s.io/apiextensions-apiserver` 0.37.1 for the expressions and the schema.
    const ESTIMATES: &str = include_str!("cost/estimates.txt");
    const SCHEMA: &str = include_str!("cost/estimates_schema.json");

    #[test]
    fn estimate_is_that_of_the_api_server() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let node = Node::from_schema(&schema).unwrap();
        let place = Place {
            node: &node,
            is_resource: false,
            is_uncorrelatable: false,
            cardinality: None,
        };
        let sizes = DeclaredSizes::default();
        let mut differences = Vec::new();
        for line in ESTIMATES.lines() {
            let (expected, expression) = line.split_once(' ').unwrap();
            let kind = || Type::of_schema(&node, false).unwrap();
            let variables = vec![("self".to_owned(), kind()), ("oldSelf".to_owned(), kind())];
            let compiled = place.compile(expression, &Type::Bool, variables, &sizes);
            let actual = match compiled.and_then(|it| it.cost) {
                Ok(cost) => cost.to_string(),
                Err(_) if expected == "invalid" => continue,
                Err(reason) => reason,
            };
            if actual != expected {
                differences.push(format!("{expression}: {actual}, not {expected}"));
            }
        }
        assert_eq!(differences, Vec::<String>::new());
    }
}
