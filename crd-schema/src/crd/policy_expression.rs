//! Expressions of admission policies: CEL over objects without a schema, as `k8s.io/apiserver/pkg/admission/plugin/cel`.

use super::cel_program::Program;
use super::cel_tree::parts;
use super::expression::{Budget, Failure, Scope, Value, evaluate};
use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, StructFieldExpr};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// The variables whose fields are found only when they are read.
const SPLIT: [(&str, Option<&str>); 2] = [("variables", None), ("request", Some("userInfo"))];

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct PolicyExpression {
    text: String,
    program: Program,
}

/// The type that a result must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultKind {
    Bool,
    Text,
    Null,
    /// A part of an object to apply.
    Object,
    /// A JSON patch.
    Patches,
}

impl ResultKind {
    /// The name in CEL.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Text => "string",
            Self::Null => "null_type",
            Self::Object => "Object",
            Self::Patches => "list(JSONPatch)",
        }
    }
}

impl PolicyExpression {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// The reason if the text is no expression or is nested too deep.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let mut program = Program::new(text)?;
        program.split_variables(&SPLIT);
        Ok(Self {
            text: text.trim().to_owned(),
            program,
        })
    }

    /// The text without spaces around it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The names of the policy's variables that the expression reads.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        let names = self.program.names();
        names.filter_map(|it| it.strip_prefix("variables."))
    }

    /// The fields of the object that the expression reads, without those that only lead to others. Sorted.
    pub(crate) fn object_fields(&self) -> Vec<Vec<&str>> {
        let mut found = BTreeSet::new();
        collect_fields(self.program.tree(), &mut found);
        let is_above = |it: &Vec<&str>| {
            let mut others = found.iter();
            others.any(|other| other.len() > it.len() && other.starts_with(it))
        };
        found.iter().filter(|it| !is_above(it)).cloned().collect()
    }

    /// The first field whose object is written with the name of another type, such as
    /// `Object.spec{selector: Object.spec.other{}}`: the name and the expected one.
    pub(crate) fn mismatched_type(&self) -> Option<(String, String)> {
        mismatched(self.program.tree())
    }

    pub(super) fn program(&self) -> &Program {
        &self.program
    }
}

/// The fields of the variable `object` that a chain of selections names.
fn chain(tree: &IdedExpr) -> Option<Vec<&str>> {
    match &tree.expr {
        Expr::Ident(name) if name == "object" => Some(Vec::new()),
        Expr::Select(select) => {
            let mut fields = chain(&select.operand)?;
            fields.push(&select.field);
            Some(fields)
        }
        _ => None,
    }
}

/// See [`PolicyExpression::mismatched_type`].
fn mismatched(tree: &IdedExpr) -> Option<(String, String)> {
    if let Expr::Struct(message) = &tree.expr
        && message.type_name != "JSONPatch"
    {
        for field in message.entries.iter().filter_map(field_of) {
            let name = format!("{}.{}", message.type_name, field.field);
            if let Some(found) = constructed(&field.value).filter(|it| **it != name) {
                return Some((found.clone(), name));
            }
        }
    }
    parts(tree).into_iter().find_map(mismatched)
}

fn field_of(entry: &IdedEntryExpr) -> Option<&StructFieldExpr> {
    match &entry.expr {
        EntryExpr::StructField(field) => Some(field),
        EntryExpr::MapEntry(_) => None,
    }
}

/// The name of the type that an expression, or the first item of its list, constructs.
fn constructed(tree: &IdedExpr) -> Option<&String> {
    match &tree.expr {
        Expr::Struct(message) => Some(&message.type_name),
        Expr::List(list) => list.elements.first().and_then(constructed),
        _ => None,
    }
}

fn collect_fields<'a>(tree: &'a IdedExpr, out: &mut BTreeSet<Vec<&'a str>>) {
    if let Some(fields) = chain(tree) {
        out.extend((!fields.is_empty()).then_some(fields));
        return;
    }
    match &tree.expr {
        Expr::Call(call) => {
            let target = call.target.as_deref();
            for part in target.into_iter().chain(&call.args) {
                collect_fields(part, out);
            }
        }
        Expr::Select(select) => collect_fields(&select.operand, out),
        Expr::List(list) => list.elements.iter().for_each(|it| collect_fields(it, out)),
        Expr::Comprehension(all) => {
            for part in [&all.iter_range, &all.loop_step, &all.result] {
                collect_fields(part, out);
            }
        }
        _ => {}
    }
}

/// Why an expression has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PolicyFailure {
    /// The cost limit of the policy is exceeded.
    BudgetExceeded,
    /// The expression reads a value that is not known offline; the reason.
    Unknown(String),
    /// An error of the expression, in the words of cel-go.
    Error(String),
}

impl From<Failure> for PolicyFailure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::BudgetExceeded => Self::BudgetExceeded,
            Failure::CostExceeded => {
                Self::Error("operation cancelled: actual cost limit exceeded".to_owned())
            }
            Failure::Error(reason) => Self::Error(reason),
            Failure::Unknown(reason) => Self::Unknown(reason),
        }
    }
}

/// A value of an expression.
#[derive(Clone, Debug)]
pub(crate) struct PolicyValue<'a>(Value<'a>);

impl PolicyValue<'_> {
    /// Whether the value is `true`.
    pub(crate) fn is_true(&self) -> bool {
        matches!(self.0, Value::Bool(true))
    }

    /// Whether the value is `false`.
    pub(crate) fn is_false(&self) -> bool {
        matches!(self.0, Value::Bool(false))
    }

    /// The text, if the value is one.
    pub(crate) fn as_text(&self) -> Option<&str> {
        self.0.as_text()
    }

    /// The JSON of the value; `None` if it has none.
    pub(crate) fn to_json(&self) -> Option<Json> {
        self.0.to_json()
    }
}

/// The variables of the expressions of a policy, and the remaining cost.
#[derive(Debug)]
pub(crate) struct PolicyScope<'a> {
    scope: Scope<'a>,
    budget: Budget,
}

impl<'a> PolicyScope<'a> {
    /// A scope with a cost limit.
    pub(crate) fn new(cost_max: u64) -> Self {
        Self {
            scope: Scope::new(),
            budget: Budget::with_limit(cost_max),
        }
    }

    /// Sets a variable to JSON, or to null.
    pub(crate) fn set(&mut self, name: &str, value: Option<&'a Json>) {
        let value = value.map_or(Value::Null, Value::from_untyped);
        self.scope.set(name, Ok(value));
    }

    /// Declares a variable whose value is not known.
    pub(crate) fn set_unknown(&mut self, name: &str, reason: &str) {
        self.scope
            .set(name, Err(Failure::Unknown(reason.to_owned())));
    }

    /// Evaluates a variable of the policy, and sets it. An error has an effect where the variable is read.
    ///
    /// # Errors
    ///
    /// Only if the cost limit is exceeded.
    pub(crate) fn evaluate_variable(
        &mut self,
        name: &str,
        expression: &PolicyExpression,
    ) -> Result<(), PolicyFailure> {
        let value = evaluate(&expression.program, &mut self.scope, &mut self.budget);
        let value = match value {
            Err(Failure::BudgetExceeded) => return Err(PolicyFailure::BudgetExceeded),
            Err(Failure::Error(reason)) => Err(Failure::Error(format!(
                "composited variable \"{name}\" fails to evaluate: {reason}"
            ))),
            other => other,
        };
        self.scope.set(&format!("variables.{name}"), value);
        Ok(())
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    ///
    /// If the expression has no result.
    pub(crate) fn evaluate(
        &mut self,
        expression: &PolicyExpression,
    ) -> Result<PolicyValue<'a>, PolicyFailure> {
        let value = evaluate(&expression.program, &mut self.scope, &mut self.budget)?;
        Ok(PolicyValue(value))
    }
}
