//! Compiling and evaluating one expression with a cost limit.

use super::cost::{
    COST_COUNT, COST_LINEAR, COST_SORTED, COST_SQUARE, COST_STEP, Metered, ROOT_SEPARATOR, meter,
};
use super::nesting_limit;
use super::values::{cel_weight, sorted, squared_weight, to_cel, weight};
use kube_cel::KubeCelExt;
use kube_cel::cel::common::ast::{CallExpr, Expr};
use kube_cel::cel::extractors::Arguments;
use kube_cel::cel::{Context, ExecutionError, IdedExpr, Program, ResolveResult, Value as Cel};
use serde_json::Value;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest expression, in bytes.
pub const EXPRESSION_MAX_BYTES: usize = 4096;

/// The cost limit of one expression. The unit is about one value of the object read, so an evaluation takes at
/// most some tens of milliseconds. Kubernetes has a limit per expression as well.
pub const COST_MAX: u64 = 1_000_000;

/// The cost limit of all expressions together for one object.
pub const COST_TOTAL_MAX: u64 = 4_000_000;

/// The longest part of an error of the CEL interpreter in a message, in characters.
const REASON_LENGTH_MAX: usize = 160;

/// A compiled expression that counts its cost while it runs.
#[derive(Debug)]
pub struct Expression {
    text: String,
    metered: Metered,
}

/// A text that is not an accepted expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Line and column in the text, if known.
    pub place: Option<(isize, isize)>,
    /// The reason, lower-case.
    pub reason: String,
}

impl From<String> for ParseError {
    fn from(reason: String) -> Self {
        Self {
            place: None,
            reason,
        }
    }
}

/// An evaluation without a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvaluationError {
    /// The cost limit is exceeded.
    CostExceeded,
    /// The evaluation failed, for this reason.
    Failed(String),
}

impl std::fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::CostExceeded => write!(f, "it is more than {COST_MAX} units of work"),
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

impl Expression {
    /// Compiles an expression over the variables `object`, `self`, `oldObject`, `oldSelf` and `request`.
    ///
    /// # Errors
    ///
    /// A [`ParseError`] for a text that is too long, nested too deep, no CEL, or names unknown variables or functions.
    pub fn new(text: &str) -> Result<Self, ParseError> {
        if text.trim().is_empty() {
            return Err("it is empty".to_owned().into());
        }
        if text.len() > EXPRESSION_MAX_BYTES {
            return Err(format!("it has more than {EXPRESSION_MAX_BYTES} bytes").into());
        }
        nesting_limit::check(text)?;
        // The generated parser can panic; a user's text must not end the process.
        let compiled = catch_unwind(|| Program::compile(text));
        let Ok(compiled) = compiled else {
            return Err("it is not a CEL expression".to_owned().into());
        };
        let program = compiled.map_err(|errors| {
            let first = errors.errors.first();
            ParseError {
                place: first.map(|it| it.pos),
                reason: first.map_or_else(
                    || "it is not a CEL expression".to_owned(),
                    |it| first_line(&it.msg),
                ),
            }
        })?;
        let priced = meter(program.expression().clone())?;
        let known = Context::default().with_all();
        for name in &priced.functions {
            if !is_registered_function(name, &known) {
                return Err(format!("there is no function {name:?}").into());
            }
        }
        Ok(Self {
            text: text.to_owned(),
            metered: priced,
        })
    }

    /// The source text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the expression reads one of these variables.
    #[must_use]
    pub fn references_any(&self, variables: &[&str]) -> bool {
        variables.iter().any(|it| self.metered.roots.contains(*it))
    }
}

/// Whether a function is registered. The interpreter looks up the name before the arguments, so a call without any
/// is enough.
fn is_registered_function(name: &str, context: &Context<'_>) -> bool {
    let call = IdedExpr {
        id: 0,
        expr: Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: None,
            args: Vec::new(),
        }),
    };
    // A function may panic without arguments; only an undeclared reference means it is unknown.
    let result = catch_unwind(AssertUnwindSafe(|| Cel::resolve(&call, context)));
    !matches!(result, Ok(Err(ExecutionError::UndeclaredReference(_))))
}

/// The variables of an evaluation, and the remaining cost.
pub struct EvaluationInput {
    context: Context<'static>,
    budget: CostBudget,
    weights: Arc<BTreeMap<String, u64>>,
}

/// The remaining cost, shared with the cost functions of the context.
#[derive(Clone, Debug, Default)]
struct CostBudget(Arc<AtomicU64>);

impl CostBudget {
    fn set(&self, cost: u64) {
        self.0.store(cost, Ordering::Relaxed);
    }

    fn remaining(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn spend(&self, cost: u64) -> Result<(), ExecutionError> {
        // No compare-and-swap: one thread evaluates at a time, the atomic only makes it `Sync`.
        let remaining = self.remaining().saturating_sub(cost);
        self.set(remaining);
        if remaining == 0 {
            return Err(ExecutionError::function_error("cost", "exceeded"));
        }
        Ok(())
    }
}

impl EvaluationInput {
    /// Binds each value to its variable names.
    #[must_use]
    pub fn new(variables: &[(&[&'static str], &Value)]) -> Self {
        let mut context = Context::default().with_all();
        let mut weights = BTreeMap::new();
        for (names, value) in variables {
            let converted = to_cel(value);
            for name in *names {
                context.add_variable_from_value(*name, converted.clone());
                weights.insert((*name).to_owned(), weight(value));
                for (field, value) in value.as_object().into_iter().flatten() {
                    // A step that reads one field is not charged for the whole object.
                    weights.insert(format!("{name}.{field}"), weight(value));
                }
            }
        }
        let unmetered = Self {
            context,
            budget: CostBudget::default(),
            weights: Arc::new(weights),
        };
        unmetered.with_metering()
    }

    fn with_metering(mut self) -> Self {
        let (budget, weights) = (self.budget.clone(), Arc::clone(&self.weights));
        self.context.add_function(
            COST_STEP,
            move |Arguments(args): Arguments| -> ResolveResult {
                let [Cel::Int(nodes), Cel::String(roots), locals @ ..] = args.as_slice() else {
                    return Err(ExecutionError::NoSuchOverload);
                };
                let roots = roots
                    .split(ROOT_SEPARATOR)
                    .map(|it| root_weight(&weights, it));
                let read = roots.chain(locals.iter().map(cel_weight));
                let read = read.fold(0, u64::saturating_add);
                budget.spend(read.saturating_add(nodes.unsigned_abs()))?;
                Ok(Cel::Bool(true))
            },
        );
        self.add_metered_function(COST_LINEAR, cel_weight, |it| it);
        self.add_metered_function(COST_SORTED, cel_weight, sorted);
        self.add_metered_function(COST_SQUARE, squared_weight, |it| it);
        self.add_metered_function(
            COST_COUNT,
            |value| match value {
                Cel::Int(count) => u64::try_from(*count).unwrap_or_default().saturating_add(1),
                _ => 1,
            },
            |it| it,
        );
        self
    }

    /// Registers a function that spends the cost of its argument and returns a result derived from it.
    fn add_metered_function(&mut self, name: &str, cost: fn(&Cel) -> u64, result: fn(Cel) -> Cel) {
        let budget = self.budget.clone();
        self.context
            .add_function(name, move |argument: Cel| -> ResolveResult {
                budget.spend(cost(&argument))?;
                Ok(result(argument))
            });
    }

    /// Evaluates an expression and subtracts its cost from `total`.
    fn evaluate(&self, expression: &Expression, total: &mut u64) -> Result<Cel, EvaluationError> {
        let limit = COST_MAX.min(*total);
        self.budget.set(limit);
        let cost = &expression.metered.cost;
        let roots = cost.roots.iter().map(|it| root_weight(&self.weights, it));
        // Nodes outside loops run at most once, so their cost is charged before the evaluation.
        let once = roots.fold(cost.nodes.unsigned_abs(), u64::saturating_add);
        let result = match self.budget.spend(once) {
            Ok(()) => catch_unwind(AssertUnwindSafe(|| {
                Cel::resolve(&expression.metered.expression, &self.context)
            })),
            Err(error) => Ok(Err(error)),
        };
        let remaining = self.budget.remaining();
        *total = total.saturating_sub(limit.saturating_sub(remaining));
        // `||` ignores an error of one side, also that of an exceeded cost.
        if remaining == 0 {
            return Err(EvaluationError::CostExceeded);
        }
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(EvaluationError::Failed(error_text(&error))),
            Err(_) => Err(EvaluationError::Failed(
                "the engine cannot do it".to_owned(),
            )),
        }
    }

    /// Evaluates an expression that returns a string; `None` if it returns another type. Its cost is subtracted from
    /// `total`.
    ///
    /// # Errors
    ///
    /// If the evaluation fails or exceeds the cost limit.
    pub fn evaluate_string(
        &self,
        expression: &Expression,
        total: &mut u64,
    ) -> Result<Option<Arc<String>>, EvaluationError> {
        match self.evaluate(expression, total)? {
            Cel::String(text) => Ok(Some(text)),
            _ => Ok(None),
        }
    }

    /// Evaluates an expression that returns true or false. Its cost is subtracted from `total`.
    ///
    /// # Errors
    ///
    /// If the evaluation fails, exceeds the cost limit or returns another type.
    pub fn evaluate_bool(
        &self,
        expression: &Expression,
        total: &mut u64,
    ) -> Result<bool, EvaluationError> {
        match self.evaluate(expression, total)? {
            Cel::Bool(answer) => Ok(answer),
            other => Err(EvaluationError::Failed(format!(
                "it returns a value of type {}, not a boolean",
                other.type_of()
            ))),
        }
    }
}

fn root_weight(weights: &BTreeMap<String, u64>, root: &str) -> u64 {
    weights.get(root).copied().unwrap_or(1)
}

/// The reason of a failure, without the values that the interpreter would print.
fn error_text(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => {
            format!(
                "there is no field or key {:?}; check with has() first",
                truncate(key)
            )
        }
        ExecutionError::IndexOutOfBounds(_) => "the list has no such item".to_owned(),
        ExecutionError::UndeclaredReference(name) => format!("there is no {:?}", truncate(name)),
        ExecutionError::InvalidArgumentCount { expected, actual } => {
            format!("a function takes {expected} arguments, not {actual}")
        }
        ExecutionError::FunctionError { function, message } => {
            format!("{}: {}", truncate(function), truncate(message))
        }
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "it divides by zero".to_owned()
        }
        ExecutionError::Overflow(..) => "a number is too large".to_owned(),
        _ => "a function or an operator does not take values of these types".to_owned(),
    }
}

fn truncate(text: &str) -> String {
    text.chars().take(REASON_LENGTH_MAX).collect()
}

fn first_line(text: &str) -> String {
    truncate(text.lines().next().unwrap_or_default())
}
