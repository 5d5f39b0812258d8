//! CEL rules in the schemas of lockkeeper's kinds.

use crate::release_features::accepted_since;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, ValidationRule,
};
use lockkeeper_crd_schema::builtin::Release;
use lockkeeper_policies::cel::CelRule;
use lockkeeper_policies::finding::ErrorKind;
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::{Layer, RuleInfo};
use lockkeeper_policies::schema::StructuralSchema;
use lockkeeper_policies::settings::Settings;
use serde_json::json;

/// An expression of a rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "rule {rule}: its expression for {kind} at {at:?} cannot be used; this is a defect of the rule, please report it: {problem}"
)]
pub struct ExpressionError {
    /// The id of the rule.
    pub rule: String,
    /// The kind of objects.
    pub kind: String,
    /// The path of the node that the expression is for.
    pub at: String,
    /// The error, with the line and the column in the expression and a caret below it, if they are known.
    pub problem: String,
}

/// A CEL expression and its rule.
#[derive(Clone, Debug)]
pub struct RuleExpression<'a> {
    /// The rule.
    pub rule: &'a RuleInfo,
    /// The expression.
    pub expression: CelRule,
}

impl RuleExpression<'_> {
    /// The message of its finding. Like every message, it ends in the rule's id.
    #[must_use]
    pub fn message(&self) -> String {
        format!("{} [{}]", self.expression.message, self.rule.id)
    }

    /// The message as a CEL expression, if it includes values of the object.
    #[must_use]
    pub fn message_expression(&self) -> Option<String> {
        let detail = self.expression.message_expression.as_deref()?;
        Some(format!("({detail}) + ' [{}]'", self.rule.id))
    }

    pub(crate) fn error(&self, problem: impl Into<String>) -> ExpressionError {
        ExpressionError {
            rule: self.rule.id.to_owned(),
            kind: self.rule.kind.clone(),
            at: self.expression.path.to_owned(),
            problem: problem.into(),
        }
    }

    /// Checks that the expression and its message expression compile.
    pub(crate) fn compile(&self) -> Result<(), ExpressionError> {
        let all = [
            Some(&*self.expression.expression),
            self.expression.message_expression.as_deref(),
        ];
        for expression in all.into_iter().flatten() {
            let schema =
                json!({"type": "object", "x-kubernetes-validations": [{"rule": expression}]});
            StructuralSchema::new(&schema).map_err(|error| self.error(error.problem))?;
        }
        Ok(())
    }
}

/// The CEL expressions for the schema of a kind of lockkeeper's: those of the rules that are enforced
/// in every namespace.
pub fn schema_expressions<'a>(
    rules: &'a [RuleInfo],
    settings: &'a Settings,
) -> impl Iterator<Item = RuleExpression<'a>> {
    // A schema can only reject: the webhook and admission policies evaluate softened rules.
    let firm = rules
        .iter()
        .filter(|rule| is_always_enforced(rule, settings));
    firm.flat_map(|rule| {
        let in_schema = rule.layers.iter().filter_map(|layer| match layer {
            Layer::Schema(cel_rules) => Some(cel_rules()),
            _ => None,
        });
        let expressions = in_schema.flatten();
        expressions.map(move |expression| RuleExpression { rule, expression })
    })
}

/// Whether a rule for lockkeeper's kinds is enforced in every namespace.
pub(crate) fn is_always_enforced(rule: &RuleInfo, settings: &Settings) -> bool {
    rule.group == lockkeeper_api::GROUP && settings.is_enforced_everywhere(rule.id, rule.action)
}

/// The rules for a kind.
#[must_use]
pub fn rules_for_kind(group: &str, kind: &str) -> Vec<RuleInfo> {
    let mut rules = registry::all();
    rules.retain(|it| it.group == group && it.kind == kind);
    rules
}

/// Adds the CEL expressions of rules to the schema of their kind, except those that the API server of a release rejects.
///
/// # Errors
///
/// When an expression does not compile, or its path is not in the schema.
pub(crate) fn attach(
    schema: &mut JSONSchemaProps,
    kind: &str,
    settings: &Settings,
    release: Release,
) -> Result<(), ExpressionError> {
    let rules = rules_for_kind(lockkeeper_api::GROUP, kind);
    let mut all = schema_expressions(&rules, settings)
        .filter(|it| accepted_since(&it.expression).is_none_or(|since| since <= release));
    all.try_for_each(|ruled| insert_expression(schema, &ruled))
}

/// The schema of a kind of lockkeeper's with the CEL expressions of one rule for created objects, also
/// those that cost too much for a schema in a cluster; `None` if the rule has none.
///
/// # Errors
///
/// When an expression does not compile, or its path is not in the schema.
pub fn schema_with(
    mut schema: JSONSchemaProps,
    rule: &RuleInfo,
) -> Result<Option<JSONSchemaProps>, ExpressionError> {
    let expressions = rule.layers.iter().filter_map(|layer| match layer {
        Layer::Schema(cel_rules) | Layer::Policy(cel_rules) => Some(cel_rules()),
        _ => None,
    });
    // A created object has no `oldSelf`, so its transition rules are not evaluated.
    let of_made = expressions.flatten().filter(|it| !it.is_transition_rule());
    let mut has_expression = false;
    for expression in of_made {
        insert_expression(&mut schema, &RuleExpression { rule, expression })?;
        has_expression = true;
    }
    Ok(has_expression.then_some(schema))
}

fn insert_expression(
    schema: &mut JSONSchemaProps,
    ruled: &RuleExpression<'_>,
) -> Result<(), ExpressionError> {
    ruled.compile()?;
    let node = node(schema, ruled.expression.path)
        .ok_or_else(|| ruled.error("the schema has no such place"))?;
    let expressions = node.x_kubernetes_validations.get_or_insert_default();
    expressions.push(validation(ruled));
    Ok(())
}

/// The node of a schema at a path; the empty path is the root.
fn node<'a>(schema: &'a mut JSONSchemaProps, at: &str) -> Option<&'a mut JSONSchemaProps> {
    let mut node = schema;
    for step in at.split('.').filter(|it| !it.is_empty()) {
        let (name, is_list) = step
            .strip_suffix("[]")
            .map_or((step, false), |it| (it, true));
        node = node.properties.as_mut()?.get_mut(name)?;
        if is_list {
            node = match node.items.as_mut()? {
                JSONSchemaPropsOrArray::Schema(items) => items,
                JSONSchemaPropsOrArray::Schemas(_) => return None,
            };
        }
    }
    Some(node)
}

fn validation(ruled: &RuleExpression<'_>) -> ValidationRule {
    let CelRule {
        expression,
        field_path,
        ..
    } = &ruled.expression;
    ValidationRule {
        field_path: Some(field_path.to_string()).filter(|it| !it.is_empty()),
        message: Some(ruled.message()),
        message_expression: ruled.message_expression(),
        optional_old_self: None,
        reason: Some(reason(ruled.expression.kind).to_owned()),
        rule: expression.to_string(),
    }
}

fn reason(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Required | ErrorKind::Forbidden | ErrorKind::Duplicate => kind.reason(),
        // The API server accepts four reasons only (`structural/check/lists.rs`).
        _ => ErrorKind::Invalid.reason(),
    }
}

#[cfg(test)]
mod costs;
#[cfg(test)]
mod tests;
