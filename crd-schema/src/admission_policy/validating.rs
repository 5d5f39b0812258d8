//! `ValidatingAdmissionPolicy`, as `k8s.io/apiserver/pkg/admission/plugin/policy/validating`.

use super::decision::Missing;
use super::frame::{Compiler, Frame, Inputs, Problem, Variables, missing, with_expression};
use crate::crd::values::{array_at, text_at};
use crate::crd::{PolicyExpression, PolicyFailure, ResultKind};
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// The cost limit of all expressions of a policy (`RuntimeCELCostBudget`).
const COST_MAX: u64 = 10_000_000;

/// The longest evaluated message, in bytes (`MaxEvaluatedMessageExpressionSizeBytes`).
const MESSAGE_MAX_BYTES: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// A policy.
#[derive(Debug)]
pub(super) struct ValidatingPolicy {
    pub(super) frame: Frame,
    validations: Vec<Validation>,
    annotations: Vec<PolicyExpression>,
}

#[derive(Debug)]
struct Validation {
    expression: PolicyExpression,
    message: String,
    message_expression: Option<PolicyExpression>,
}

/// A validation that does not hold.
#[derive(Debug, PartialEq)]
pub(super) enum Failed {
    /// The message, and the field of the object that the expression reads, if it is only one.
    Denied(String, Vec<String>),
    /// The result is not known.
    Undecided(Missing),
}

/// The expressions of a policy that cannot be used.
pub(crate) fn compile_validating_policy(object: &Value) -> Vec<Problem> {
    ValidatingPolicy::new(object).1
}

impl ValidatingPolicy {
    /// Compiles a policy. It can be used if there are no problems.
    pub(super) fn new(object: &Value) -> (Self, Vec<Problem>) {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let mut compiler = Compiler::new(spec);
        let frame = Frame::new(object, spec, &mut compiler);
        let path = FieldPath::new("spec");
        let mut validations = Vec::new();
        for (position, validation) in array_at(spec, "validations").iter().enumerate() {
            let path = path.clone().field("validations").index(position);
            let text = |key: &str| text_at(validation, key).unwrap_or_default().trim();
            let field = path.clone().field("expression");
            let expression = compiler.compile(text("expression"), &[ResultKind::Bool], field);
            let message_expression = Some(text("messageExpression")).filter(|it| !it.is_empty());
            let field = path.field("messageExpression");
            let message_expression =
                message_expression.map(|it| compiler.compile(it, &[ResultKind::Text], field));
            validations.extend(expression.map(|expression| Validation {
                expression,
                message: text("message").to_owned(),
                message_expression: message_expression.flatten(),
            }));
        }
        let mut annotations = Vec::new();
        for (position, annotation) in array_at(spec, "auditAnnotations").iter().enumerate() {
            let field = path.clone().field("auditAnnotations").index(position);
            let text = text_at(annotation, "valueExpression").unwrap_or_default();
            let kinds = [ResultKind::Text, ResultKind::Null];
            let field = field.field("valueExpression");
            annotations.extend(compiler.compile(text, &kinds, field));
        }
        let policy = Self {
            frame,
            validations,
            annotations,
        };
        (policy, compiler.problems)
    }

    /// The validations that do not hold for a request that matches.
    pub(super) fn validate(&self, inputs: Inputs<'_>) -> Vec<Failed> {
        match self.frame.conditions_hold(inputs) {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(failure) => return self.failed(failure).into_iter().collect(),
        }
        let mut failed = self
            .failed_validations(inputs)
            .unwrap_or_else(|failure| self.failed(failure).into_iter().collect());
        failed.extend(self.failed_annotations(inputs));
        failed
    }

    /// What an expression without a result means: `None` if the policy ignores errors.
    fn failed(&self, failure: PolicyFailure) -> Option<Failed> {
        let message = match failure {
            PolicyFailure::Unknown(reason) => return Some(Failed::Undecided(missing(reason))),
            PolicyFailure::BudgetExceeded => OUT_OF_BUDGET.to_owned(),
            PolicyFailure::Error(message) => message,
        };
        let is_denied = self.frame.fails_closed;
        is_denied.then_some(Failed::Denied(message, Vec::new()))
    }

    /// Errors only if the cost limit is exceeded: then the other results do not count.
    fn failed_validations(&self, inputs: Inputs<'_>) -> Result<Vec<Failed>, PolicyFailure> {
        let mut variables = Variables::new(inputs, COST_MAX);
        let mut out = Vec::new();
        for validation in &self.validations {
            let expression = &validation.expression;
            self.frame.evaluate_variables(expression, &mut variables)?;
            match variables.scope.evaluate(expression) {
                Ok(value) if value.is_true() => {}
                Ok(_) => {
                    let message = self.message(validation, &mut variables)?;
                    out.push(Failed::Denied(message, single_field(expression)));
                }
                Err(PolicyFailure::BudgetExceeded) => return Err(PolicyFailure::BudgetExceeded),
                Err(failure) => out.extend(self.failed(with_expression(failure, expression))),
            }
        }
        Ok(out)
    }

    /// The message about a validation that does not hold.
    fn message(
        &self,
        validation: &Validation,
        variables: &mut Variables<'_>,
    ) -> Result<String, PolicyFailure> {
        if let Some(expression) = &validation.message_expression {
            self.frame.evaluate_variables(expression, variables)?;
            let value = match variables.scope.evaluate(expression) {
                Err(PolicyFailure::BudgetExceeded) => return Err(PolicyFailure::BudgetExceeded),
                value => value.ok(),
            };
            let text = value.as_ref().and_then(|it| it.as_text()).map(str::trim);
            let is_usable =
                |it: &&str| !it.is_empty() && it.len() <= MESSAGE_MAX_BYTES && !it.contains('\n');
            if let Some(text) = text.filter(is_usable) {
                return Ok(text.to_owned());
            }
        }
        Ok(if validation.message.is_empty() {
            format!("failed expression: {}", validation.expression.text())
        } else {
            validation.message.clone()
        })
    }

    /// Audit annotations deny a request only by an error.
    fn failed_annotations(&self, inputs: Inputs<'_>) -> Vec<Failed> {
        if self.annotations.is_empty() {
            return Vec::new();
        }
        let mut variables = Variables::new(inputs, COST_MAX);
        let mut out = Vec::new();
        for expression in &self.annotations {
            let value = self
                .frame
                .evaluate_variables(expression, &mut variables)
                .and_then(|()| variables.scope.evaluate(expression));
            // The value of an annotation is not reported, so it may be unknown.
            if let Err(PolicyFailure::Error(reason)) = value {
                let failure = with_expression(PolicyFailure::Error(reason), expression);
                out.extend(self.failed(failure));
            }
        }
        out
    }
}

/// The field of the object that an expression reads, if it is only one.
fn single_field(expression: &PolicyExpression) -> Vec<String> {
    match expression.object_fields().as_slice() {
        [field] => field.iter().map(|it| (*it).to_owned()).collect(),
        _ => Vec::new(),
    }
}
