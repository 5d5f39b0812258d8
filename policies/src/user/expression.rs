//! One expression of a rule, and how it is asked.

use super::price::{COUNTED, PAID, Priced, ROOT_SEPARATOR, SORTED, SQUARED, STEP, price};
use super::scan;
use super::values::{cel, cel_weight, sorted, square, weight};
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

/// The work that one expression may be, as Kubernetes has it for its own. It is about one for each value of
/// the object that is read: at most some tens of milliseconds.
pub const WORK_MAX: u64 = 1_000_000;

/// The work that all rules of users together may be for one object.
pub const WORK_TOTAL_MAX: u64 = 4_000_000;

/// The longest text of the engine that a message repeats, in characters.
const REASON_LENGTH_MAX: usize = 160;

/// An expression, ready to be asked.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) text: String,
    priced: Priced,
}

/// Why there is no expression, and where in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) place: Option<(isize, isize)>,
    pub(super) reason: String,
}

impl From<String> for Unreadable {
    fn from(reason: String) -> Self {
        Self {
            place: None,
            reason,
        }
    }
}

/// Why an expression has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is too much work.
    Work,
    /// It went wrong.
    Failed(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Work => write!(f, "it is more than {WORK_MAX} units of work"),
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

impl Expression {
    pub(super) fn new(text: &str) -> Result<Self, Unreadable> {
        if text.trim().is_empty() {
            return Err("it is empty".to_owned().into());
        }
        if text.len() > EXPRESSION_MAX_BYTES {
            return Err(format!("it has more than {EXPRESSION_MAX_BYTES} bytes").into());
        }
        scan::check(text)?;
        // Whatever the parser is made of, a text must not end the process.
        let compiled = catch_unwind(|| Program::compile(text));
        let Ok(compiled) = compiled else {
            return Err("it is no CEL".to_owned().into());
        };
        let program = compiled.map_err(|errors| {
            let first = errors.errors.first();
            Unreadable {
                place: first.map(|it| it.pos),
                reason: first.map_or_else(|| "it is no CEL".to_owned(), |it| first_line(&it.msg)),
            }
        })?;
        let priced = price(program.expression().clone())?;
        let known = Context::default().with_all();
        for name in &priced.functions {
            if !is_known(name, &known) {
                return Err(format!("there is no function {name:?}").into());
            }
        }
        Ok(Self {
            text: text.to_owned(),
            priced,
        })
    }

    /// Whether it names one of these variables.
    pub(super) fn names(&self, variables: &[&str]) -> bool {
        variables.iter().any(|it| self.priced.roots.contains(*it))
    }
}

/// Whether a function is registered: the engine says so before it looks at what it is given.
fn is_known(name: &str, context: &Context<'_>) -> bool {
    let call = IdedExpr {
        id: 0,
        expr: Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: None,
            args: Vec::new(),
        }),
    };
    let asked = catch_unwind(AssertUnwindSafe(|| Cel::resolve(&call, context)));
    !matches!(asked, Ok(Err(ExecutionError::UndeclaredReference(_))))
}

/// An object as expressions see it, and what work is left.
pub(super) struct Seen {
    context: Context<'static>,
    purse: Purse,
    weights: Arc<BTreeMap<String, u64>>,
}

/// What is left to pay with.
#[derive(Clone, Debug, Default)]
struct Purse(Arc<AtomicU64>);

impl Purse {
    fn fill(&self, work: u64) {
        self.0.store(work, Ordering::Relaxed);
    }

    fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn pay(&self, work: u64) -> Result<(), ExecutionError> {
        let left = self.left().saturating_sub(work);
        self.fill(left);
        if left == 0 {
            return Err(ExecutionError::function_error("work", "too much"));
        }
        Ok(())
    }
}

impl Seen {
    /// An object, with the variables by their names.
    pub(super) fn new(variables: &[(&[&'static str], &Value)]) -> Self {
        let mut context = Context::default().with_all();
        let mut weights = BTreeMap::new();
        for (names, value) in variables {
            let converted = cel(value);
            for name in *names {
                context.add_variable_from_value(*name, converted.clone());
                weights.insert((*name).to_owned(), weight(value));
                for (field, value) in value.as_object().into_iter().flatten() {
                    weights.insert(format!("{name}.{field}"), weight(value));
                }
            }
        }
        let seen = Self {
            context,
            purse: Purse::default(),
            weights: Arc::new(weights),
        };
        seen.with_pay()
    }

    fn with_pay(mut self) -> Self {
        let (purse, weights) = (self.purse.clone(), Arc::clone(&self.weights));
        self.context
            .add_function(STEP, move |Arguments(args): Arguments| -> ResolveResult {
                let [Cel::Int(nodes), Cel::String(roots), locals @ ..] = args.as_slice() else {
                    return Err(ExecutionError::NoSuchOverload);
                };
                let roots = roots.split(ROOT_SEPARATOR).map(|it| of_root(&weights, it));
                let read = roots.chain(locals.iter().map(cel_weight));
                let read = read.fold(0, u64::saturating_add);
                purse.pay(read.saturating_add(nodes.unsigned_abs()))?;
                Ok(Cel::Bool(true))
            });
        self.pays(PAID, cel_weight, |it| it);
        self.pays(SORTED, cel_weight, sorted);
        self.pays(SQUARED, square, |it| it);
        self.pays(
            COUNTED,
            |it| match it {
                Cel::Int(count) => u64::try_from(*count).unwrap_or_default().saturating_add(1),
                _ => 1,
            },
            |it| it,
        );
        self
    }

    /// Registers a function that pays for what it is given, and gives something back for it.
    fn pays(&mut self, name: &str, price: fn(&Cel) -> u64, give: fn(Cel) -> Cel) {
        let purse = self.purse.clone();
        self.context
            .add_function(name, move |it: Cel| -> ResolveResult {
                purse.pay(price(&it))?;
                Ok(give(it))
            });
    }

    /// The answer of an expression. What it takes is taken from `total`.
    pub(super) fn ask(&self, expression: &Expression, total: &mut u64) -> Result<Cel, Fault> {
        let given = WORK_MAX.min(*total);
        self.purse.fill(given);
        let work = &expression.priced.work;
        let roots = work.roots.iter().map(|it| of_root(&self.weights, it));
        let once = roots.fold(work.nodes.unsigned_abs(), u64::saturating_add);
        let answer = match self.purse.pay(once) {
            Ok(()) => catch_unwind(AssertUnwindSafe(|| {
                Cel::resolve(&expression.priced.expression, &self.context)
            })),
            Err(error) => Ok(Err(error)),
        };
        let left = self.purse.left();
        *total = total.saturating_sub(given.saturating_sub(left));
        // An `||` may have passed over it.
        if left == 0 {
            return Err(Fault::Work);
        }
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(Fault::Failed(in_words(&error))),
            Err(_) => Err(Fault::Failed("the engine cannot do it".to_owned())),
        }
    }

    /// Whether an expression says yes.
    pub(super) fn holds(&self, expression: &Expression, total: &mut u64) -> Result<bool, Fault> {
        match self.ask(expression, total)? {
            Cel::Bool(answer) => Ok(answer),
            other => Err(Fault::Failed(format!(
                "it gives a {}, not true or false",
                other.type_of()
            ))),
        }
    }
}

fn of_root(weights: &BTreeMap<String, u64>, root: &str) -> u64 {
    weights.get(root).copied().unwrap_or(1)
}

/// What went wrong, without the values that the engine would print.
fn in_words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => {
            format!("there is no field or key {:?}; ask has() first", cut(key))
        }
        ExecutionError::IndexOutOfBounds(_) => "the list has no such item".to_owned(),
        ExecutionError::UndeclaredReference(name) => format!("there is no {:?}", cut(name)),
        ExecutionError::InvalidArgumentCount { expected, actual } => {
            format!("a function takes {expected} arguments, not {actual}")
        }
        ExecutionError::FunctionError { function, message } => {
            format!("{}: {}", cut(function), cut(message))
        }
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "it divides by zero".to_owned()
        }
        ExecutionError::Overflow(..) => "a number is too large".to_owned(),
        _ => "a function or an operator does not take values of these types".to_owned(),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(REASON_LENGTH_MAX).collect()
}

fn first_line(text: &str) -> String {
    cut(text.lines().next().unwrap_or_default())
}
