//! The parts that validating and mutating policies share: matched requests, conditions, variables and parameters.

use super::decision::Missing;
use super::match_resources::MatchResources;
use super::params::ParamKind;
use crate::crd::values::{array_at, metadata_of, text_at};
use crate::crd::{PolicyExpression, PolicyFailure, PolicyScope, PolicyTypes, ResultKind};
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::collections::BTreeMap;

/// The cost limit of the match conditions of a request (`RuntimeCELCostBudgetMatchConditions`).
const CONDITIONS_COST_MAX: u64 = 2_500_000;

/// The unknown values of expressions, besides Namespaces.
const USER: &str = "user@";
const RIGHTS: &str = "rights@";

/// What an unknown value of an expression is.
pub(super) fn missing(unknown: String) -> Missing {
    match unknown.as_str() {
        USER => Missing::User,
        RIGHTS => Missing::Rights,
        // The name of a namespace has no `@`.
        _ => Missing::Namespace(unknown),
    }
}

/// An expression that cannot be used, by its field in the policy.
pub(crate) type Problem = (FieldPath, String);

/// The common parts of a policy.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) name: String,
    pub(super) requests: MatchResources,
    pub(super) param_kind: Option<ParamKind>,
    /// Whether an error rejects the request.
    pub(super) fails_closed: bool,
    conditions: Vec<PolicyExpression>,
    variables: BTreeMap<String, PolicyExpression>,
}

/// The values of the variables of expressions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inputs<'a> {
    pub(super) object: &'a Value,
    pub(super) old: Option<&'a Value>,
    pub(super) request: &'a Value,
    /// `None` if the user is not known.
    pub(super) user: Option<&'a Value>,
    pub(super) params: Option<&'a Value>,
    /// The Namespace of the request.
    pub(super) namespace: NamespaceInput<'a>,
}

/// The variable `namespaceObject`.
#[derive(Clone, Copy, Debug)]
pub(super) enum NamespaceInput<'a> {
    /// The request is not in a namespace.
    None,
    Known(&'a Value),
    Unknown(&'a str),
}

/// Collects the expressions of a policy that compile, and the problems of the others.
pub(super) struct Compiler {
    pub(super) types: PolicyTypes,
    pub(super) problems: Vec<Problem>,
}

impl Compiler {
    pub(super) fn new(spec: &Value) -> Self {
        let mut names = vec![
            "object",
            "oldObject",
            "request",
            "namespaceObject",
            "authorizer",
        ];
        if spec.get("paramKind").is_some_and(|it| !it.is_null()) {
            names.push("params");
        }
        Self {
            types: PolicyTypes::new(&names),
            problems: Vec::new(),
        }
    }

    /// Compiles an expression with a result of one of these types.
    pub(super) fn compile(
        &mut self,
        text: &str,
        accepted: &[ResultKind],
        field: FieldPath,
    ) -> Option<PolicyExpression> {
        let compiled =
            PolicyExpression::new(text).and_then(|it| self.types.check(&it, accepted).map(|()| it));
        compiled
            .map_err(|reason| self.problems.push((field, compilation_failed(&reason))))
            .ok()
    }
}

/// The text of the API server about an expression that does not compile.
fn compilation_failed(reason: &str) -> String {
    let is_compiled = ["must evaluate to", "program instantiation failed"];
    if is_compiled.iter().any(|it| reason.starts_with(it)) {
        reason.to_owned()
    } else {
        format!("compilation failed: {reason}")
    }
}

impl Frame {
    /// Reads a policy. Expressions that cannot be used are problems of the compiler.
    pub(super) fn new(object: &Value, spec: &Value, compiler: &mut Compiler) -> Self {
        let path = FieldPath::new("spec");
        // Conditions cannot read the variables of the policy.
        let mut conditions = Vec::new();
        for (position, condition) in array_at(spec, "matchConditions").iter().enumerate() {
            let field = path.clone().field("matchConditions").index(position);
            let text = text_at(condition, "expression").unwrap_or_default();
            let field = field.field("expression");
            conditions.extend(compiler.compile(text, &[ResultKind::Bool], field));
        }
        let mut variables = BTreeMap::new();
        for (position, variable) in array_at(spec, "variables").iter().enumerate() {
            let field = path.clone().field("variables").index(position);
            let name = text_at(variable, "name").unwrap_or_default();
            let text = text_at(variable, "expression").unwrap_or_default();
            let parsed = PolicyExpression::new(text);
            match parsed.and_then(|it| compiler.types.declare(name, &it).map(|()| it)) {
                Ok(expression) => drop(variables.insert(name.to_owned(), expression)),
                Err(reason) => {
                    let field = field.field("expression");
                    compiler.problems.push((field, compilation_failed(&reason)));
                }
            }
        }
        let name = metadata_of(object).get("name").and_then(Value::as_str);
        Self {
            name: name.unwrap_or_default().to_owned(),
            requests: MatchResources::new(spec.get("matchConstraints")),
            param_kind: ParamKind::new(spec.get("paramKind")),
            fails_closed: text_at(spec, "failurePolicy") != Some("Ignore"),
            conditions,
            variables,
        }
    }

    /// Whether the conditions of the policy hold.
    ///
    /// # Errors
    ///
    /// If that is not known: a condition has an error, reads a value that is not known, or exceeds the cost limit.
    pub(super) fn conditions_hold(&self, inputs: Inputs<'_>) -> Result<bool, PolicyFailure> {
        if self.conditions.is_empty() {
            return Ok(true);
        }
        let mut scope = inputs.scope(CONDITIONS_COST_MAX);
        let mut failure = None;
        for condition in &self.conditions {
            match scope.evaluate(condition) {
                Ok(value) if value.is_false() => return Ok(false),
                Ok(_) => {}
                Err(PolicyFailure::BudgetExceeded) => return Err(PolicyFailure::BudgetExceeded),
                Err(found) => failure = failure.or(Some(with_expression(found, condition))),
            }
        }
        failure.map_or(Ok(true), Err)
    }

    /// Evaluates the variables that an expression reads, and those that these read.
    pub(super) fn evaluate_variables(
        &self,
        expression: &PolicyExpression,
        scope: &mut Variables<'_>,
    ) -> Result<(), PolicyFailure> {
        for name in expression.variables() {
            if scope.evaluated.iter().any(|it| it == name) {
                continue;
            }
            // A variable reads only those before it, so this ends.
            scope.evaluated.push(name.to_owned());
            if let Some(variable) = self.variables.get(name) {
                self.evaluate_variables(variable, scope)?;
                scope.scope.evaluate_variable(name, variable)?;
            }
        }
        Ok(())
    }
}

/// A scope, and the variables of the policy that it has.
#[derive(Debug)]
pub(super) struct Variables<'a> {
    pub(super) scope: PolicyScope<'a>,
    evaluated: Vec<String>,
}

impl<'a> Variables<'a> {
    pub(super) fn new(inputs: Inputs<'a>, cost_max: u64) -> Self {
        Self {
            scope: inputs.scope(cost_max),
            evaluated: Vec::new(),
        }
    }
}

impl<'a> Inputs<'a> {
    fn scope(self, cost_max: u64) -> PolicyScope<'a> {
        let mut scope = PolicyScope::new(cost_max);
        scope.set("object", Some(self.object));
        scope.set("oldObject", self.old);
        scope.set("params", self.params);
        scope.set("request", Some(self.request));
        match self.user {
            Some(user) => scope.set("request.userInfo", Some(user)),
            None => scope.set_unknown("request.userInfo", USER),
        }
        scope.set_unknown("authorizer", RIGHTS);
        match self.namespace {
            NamespaceInput::None => scope.set("namespaceObject", None),
            NamespaceInput::Known(namespace) => scope.set("namespaceObject", Some(namespace)),
            NamespaceInput::Unknown(name) => {
                scope.set_unknown("namespaceObject", name);
            }
        }
        scope
    }
}

/// An error with the expression that has it, in the words of the API server.
pub(super) fn with_expression(
    failure: PolicyFailure,
    expression: &PolicyExpression,
) -> PolicyFailure {
    match failure {
        PolicyFailure::Error(reason) => PolicyFailure::Error(format!(
            "expression '{}' resulted in error: {reason}",
            expression.text()
        )),
        other => other,
    }
}
