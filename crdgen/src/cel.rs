//! The expressions of rules, in the schemas of lockkeeper's kinds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, ValidationRule,
};
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
    /// The place that the expression is about.
    pub at: String,
    /// What is wrong, with the line and the column in the expression, and a caret below it, if that is known.
    pub problem: String,
}

/// An expression with the rule that it is of.
#[derive(Clone, Debug)]
pub struct RuleExpression<'a> {
    /// The rule.
    pub rule: &'a RuleInfo,
    /// What it says.
    pub expression: CelRule,
}

impl RuleExpression<'_> {
    /// What is said if it does not hold. Like each message it ends in the rule's id.
    #[must_use]
    pub fn message(&self) -> String {
        format!("{} [{}]", self.expression.message, self.rule.id)
    }

    /// The same as an expression, if the object has something to add.
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

    /// Whether Kubernetes' CEL reads it.
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

/// The expressions that the schema of a kind of lockkeeper's holds: of the rules that refuse, wherever an object is. A
/// schema cannot be softened, so what the settings soften is left to the webhook and to admission policies.
pub fn schema_expressions<'a>(
    rules: &'a [RuleInfo],
    settings: &'a Settings,
) -> impl Iterator<Item = RuleExpression<'a>> {
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

/// Whether a rule refuses whatever it finds.
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

/// Puts the expressions of rules into the schema of their kind.
///
/// # Errors
///
/// When an expression does not compile, or is about a place that the schema does not know.
pub(crate) fn attach(
    schema: &mut JSONSchemaProps,
    kind: &str,
    settings: &Settings,
) -> Result<(), ExpressionError> {
    let rules = rules_for_kind(lockkeeper_api::GROUP, kind);
    let mut all = schema_expressions(&rules, settings);
    all.try_for_each(|ruled| insert_expression(schema, &ruled))
}

/// The schema of a kind of lockkeeper's with all that one rule says in CEL of objects that are made, also what a schema on a
/// cluster cannot afford; `None` if it says nothing of them.
///
/// # Errors
///
/// As when the expressions are put into the definitions.
pub fn schema_with(
    mut schema: JSONSchemaProps,
    rule: &RuleInfo,
) -> Result<Option<JSONSchemaProps>, ExpressionError> {
    let said = rule.layers.iter().filter_map(|layer| match layer {
        Layer::Schema(cel_rules) | Layer::Policy(cel_rules) => Some(cel_rules()),
        _ => None,
    });
    let of_made = said.flatten().filter(|it| !it.is_transition_rule());
    let mut is_said = false;
    for expression in of_made {
        insert_expression(&mut schema, &RuleExpression { rule, expression })?;
        is_said = true;
    }
    Ok(is_said.then_some(schema))
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

/// The node of a schema at a place; the schema itself if that is the object.
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

/// The reasons that a schema may give are four.
fn reason(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Required | ErrorKind::Forbidden | ErrorKind::Duplicate => kind.reason(),
        _ => ErrorKind::Invalid.reason(),
    }
}

#[cfg(test)]
mod costs;
#[cfg(test)]
mod tests;
