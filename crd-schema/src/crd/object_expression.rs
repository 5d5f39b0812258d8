//! CEL expressions over whole objects, outside of schemas and admission policies. Objects are read without a schema, as in
//! admission policies.

use super::cel_program::Program;
use super::expression::{Budget, Failure, Scope, Value, constant_error, evaluate};
use serde_json::Value as Json;

/// A compiled expression.
#[derive(Debug)]
pub struct ObjectExpression {
    text: String,
    program: Program,
}

impl ObjectExpression {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// The reason if the text is no expression, is nested too deep, or has a constant that is not valid.
    pub fn new(text: &str) -> Result<Self, String> {
        let program = Program::new(text)?;
        if let Some(reason) = constant_error(program.tree()) {
            return Err(reason);
        }
        Ok(Self {
            text: text.trim().to_owned(),
            program,
        })
    }

    /// The text without spaces around it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the expression reads a variable.
    #[must_use]
    pub fn reads(&self, variable: &str) -> bool {
        self.program.uses(variable)
    }

    pub(super) fn program(&self) -> &Program {
        &self.program
    }
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpressionFailure {
    /// The cost limit of one evaluation, or of all evaluations for the object, is exceeded.
    CostExceeded,
    /// The reason, in the words of cel-go.
    Failed(String),
}

impl std::fmt::Display for ExpressionFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::CostExceeded => f.write_str("the expression costs too much"),
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for ExpressionFailure {}

impl From<Failure> for ExpressionFailure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::BudgetExceeded | Failure::CostExceeded => Self::CostExceeded,
            Failure::Error(reason) | Failure::Unknown(reason) => Self::Failed(reason),
        }
    }
}

/// The variables of expressions over one object, and the remaining cost: that of the rules of a custom resource.
#[derive(Debug)]
pub struct ObjectScope<'a> {
    scope: Scope<'a>,
    budget: Budget,
}

impl Default for ObjectScope<'_> {
    fn default() -> Self {
        Self {
            scope: Scope::new(),
            budget: Budget::default(),
        }
    }
}

impl<'a> ObjectScope<'a> {
    /// Sets a variable, or replaces its value. The cost is linear in the size of the value.
    pub fn set(&mut self, name: &str, value: &'a Json) {
        self.scope.set(name, Ok(Value::from_untyped(value)));
    }

    /// Evaluates an expression. A value that has no JSON, such as a type, is null.
    ///
    /// # Errors
    ///
    /// An [`ExpressionFailure`] if the expression has no value.
    pub fn evaluate(&mut self, expression: &ObjectExpression) -> Result<Json, ExpressionFailure> {
        let value = evaluate(&expression.program, &mut self.scope, &mut self.budget)?;
        Ok(value.to_json().unwrap_or_default())
    }
}
