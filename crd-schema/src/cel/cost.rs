//! Rewrites an expression so that it counts its cost while it runs.
//!
//! The CEL interpreter has no cost limit, and a rule must not delay a review. Every loop in CEL is a comprehension, so
//! each step is charged for the values its body reads; functions are charged for their arguments. The names of the
//! inserted cost functions begin with `@`, which no source text can contain.

use super::reserved_words::RESERVED_WORDS;
use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::operators::CONDITIONAL;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr,
};
use regex::RegexBuilder;
use std::collections::BTreeSet;

/// Charges a step of a loop: `@step(nodes, roots, variables…)`.
pub(super) const COST_STEP: &str = "@step";

/// Charges an argument by its size, and returns it.
pub(super) const COST_LINEAR: &str = "@paid";

/// Charges an argument by the square of its size.
pub(super) const COST_SQUARE: &str = "@squared";

/// Charges an argument by its value: the function creates that many items.
pub(super) const COST_COUNT: &str = "@counted";

/// Returns the sorted keys of a map, and any other value unchanged.
pub(super) const COST_SORTED: &str = "@sorted";

/// The variables of an expression.
pub(super) const ROOTS: [&str; 5] = ["object", "self", "oldObject", "oldSelf", "request"];

/// Separates the roots of a step.
pub(super) const ROOT_SEPARATOR: char = ',';

/// The size limit of a compiled pattern, in bytes: a pattern is compiled at every evaluation.
const PATTERN_MAX_BYTES: usize = 256 * 1024;

/// The nesting limit of an expression. The interpreter is recursive with large stack frames: this depth fits on the
/// stack of an ordinary thread (2 MiB), also without optimization.
pub(super) const DEPTH_MAX: usize = 24;

/// Functions with quadratic cost.
const QUADRATIC_FUNCTIONS: [&str; 7] = [
    "replace",
    "distinct",
    "indexOf",
    "lastIndexOf",
    "sets.contains",
    "sets.equivalent",
    "sets.intersects",
];

/// Functions with a regular expression as an argument.
const PATTERN_FUNCTIONS: [&str; 3] = ["matches", "find", "findAll"];

/// The cost of one evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CelCost {
    /// The number of nodes of the expression.
    pub(super) nodes: i64,
    /// The roots that are read, such as `object.spec`, once per read.
    pub(super) roots: Vec<String>,
    /// The loop variables that are read, once per read.
    loop_variables: Vec<String>,
}

impl CelCost {
    /// The roots as an argument of [`COST_STEP`].
    fn root_list(&self) -> String {
        self.roots.join(&ROOT_SEPARATOR.to_string())
    }
}

/// An expression that counts its cost.
#[derive(Debug)]
pub(super) struct Metered {
    pub(super) expression: IdedExpr,
    /// The cost charged before the evaluation.
    pub(super) cost: CelCost,
    /// The names of the functions it calls.
    pub(super) functions: BTreeSet<String>,
    /// The variables it reads.
    pub(super) roots: BTreeSet<String>,
}

/// Inserts cost functions into an expression.
///
/// # Errors
///
/// If the expression is nested too deep, or uses unknown variables or unsupported syntax.
pub(super) fn meter(expression: IdedExpr) -> Result<Metered, String> {
    let mut meter = Meter::default();
    let mut cost = CelCost::default();
    let expression = meter.node(expression, &mut cost)?;
    Ok(Metered {
        expression,
        cost,
        functions: meter.functions,
        roots: meter.roots,
    })
}

#[derive(Default)]
struct Meter {
    /// The current nesting depth.
    depth: usize,
    /// The variables of the enclosing loops.
    scope: Vec<String>,
    functions: BTreeSet<String>,
    roots: BTreeSet<String>,
}

impl Meter {
    fn node(&mut self, node: IdedExpr, cost: &mut CelCost) -> Result<IdedExpr, String> {
        if self.depth >= DEPTH_MAX {
            return Err(format!("it is nested more than {DEPTH_MAX} deep"));
        }
        self.depth = self.depth.saturating_add(1);
        let metered = self.meter_expr(node, cost);
        self.depth = self.depth.saturating_sub(1);
        metered
    }

    fn meter_expr(&mut self, node: IdedExpr, cost: &mut CelCost) -> Result<IdedExpr, String> {
        cost.nodes = cost.nodes.saturating_add(1);
        let expr = match node.expr {
            Expr::Literal(literal) => Expr::Literal(literal),
            Expr::Ident(name) => {
                self.read(&name, None, cost)?;
                Expr::Ident(name)
            }
            Expr::Select(select) => self.select(select, cost)?,
            Expr::Call(call) => self.call(call, cost)?,
            Expr::List(mut list) => {
                list.elements = self.nodes(list.elements, cost)?;
                Expr::List(list)
            }
            Expr::Map(mut map) => {
                for entry in &mut map.entries {
                    if let EntryExpr::MapEntry(pair) = &mut entry.expr {
                        pair.key = self.node(std::mem::take(&mut pair.key), cost)?;
                        pair.value = self.node(std::mem::take(&mut pair.value), cost)?;
                    }
                }
                Expr::Map(map)
            }
            Expr::Comprehension(loops) => self.comprehension(*loops, cost)?,
            Expr::Struct(literal) => {
                return Err(format!(
                    "it makes a {}, which there is not",
                    literal.type_name
                ));
            }
            Expr::Unspecified => return Err("a part of it is empty".to_owned()),
        };
        Ok(IdedExpr { id: node.id, expr })
    }

    fn nodes(&mut self, nodes: Vec<IdedExpr>, cost: &mut CelCost) -> Result<Vec<IdedExpr>, String> {
        let nodes = nodes.into_iter();
        nodes.map(|node| self.node(node, cost)).collect()
    }

    /// Counts a read of a variable or of one of its fields.
    fn read(&mut self, name: &str, field: Option<&str>, cost: &mut CelCost) -> Result<(), String> {
        if self.scope.iter().any(|it| it == name) {
            cost.loop_variables.push(name.to_owned());
        } else if ROOTS.contains(&name) {
            self.roots.insert(name.to_owned());
            cost.roots.push(match field {
                Some(field) => format!("{name}.{field}"),
                None => name.to_owned(),
            });
        } else {
            return Err(format!(
                "there is no variable {name:?}; there are {}",
                ROOTS.join(", ")
            ));
        }
        Ok(())
    }

    fn select(&mut self, mut select: SelectExpr, cost: &mut CelCost) -> Result<Expr, String> {
        select.field = unescape_field(&select.field);
        if let Expr::Ident(name) = &select.operand.expr {
            // Only the field is charged, not the whole object: most rules read a small part.
            self.read(name, Some(&select.field), cost)?;
        } else {
            *select.operand = self.node(*select.operand, cost)?;
        }
        Ok(Expr::Select(select))
    }

    fn call(&mut self, mut call: CallExpr, cost: &mut CelCost) -> Result<Expr, String> {
        let is_operator = !call
            .func_name
            .starts_with(|first: char| first.is_ascii_alphabetic());
        if is_operator {
            call.args = self.nodes(call.args, cost)?;
            // A sum of strings or lists is a copy that can grow at each step of a loop.
            let is_sum = call.func_name == "_+_";
            let call = Expr::Call(call);
            return Ok(if is_sum {
                call_with(COST_LINEAR, call)
            } else {
                call
            });
        }
        let namespace = call
            .target
            .as_deref()
            .and_then(|target| self.namespace(target));
        let name = match &namespace {
            Some(namespace) => format!("{namespace}.{}", call.func_name),
            None => call.func_name.clone(),
        };
        if PATTERN_FUNCTIONS.contains(&name.as_str()) {
            check_pattern(&call)?;
            // A pattern is compiled at each call, which is far slower than any other operation.
            cost.nodes = cost.nodes.saturating_add(PATTERN_NODES);
        }
        let charge = match name.as_str() {
            "lists.range" => COST_COUNT,
            name if QUADRATIC_FUNCTIONS.contains(&name) => COST_SQUARE,
            _ => COST_LINEAR,
        };
        self.functions.insert(name);
        if namespace.is_none()
            && let Some(target) = call.target.take()
        {
            let target = self.node(*target, cost)?;
            call.target = Some(Box::new(wrapped(charge, target)));
        }
        let args = self.nodes(call.args, cost)?;
        call.args = args.into_iter().map(|it| wrapped(charge, it)).collect();
        // The result is charged as well: the next function copies it.
        Ok(call_with(COST_LINEAR, Expr::Call(call)))
    }

    /// The namespace of a function, such as `sets` in `sets.contains`, if it is not a variable.
    fn namespace(&self, target: &IdedExpr) -> Option<String> {
        match &target.expr {
            Expr::Ident(name) => {
                let is_variable = self.scope.contains(name) || ROOTS.contains(&name.as_str());
                (!is_variable).then(|| name.clone())
            }
            _ => None,
        }
    }

    fn comprehension(
        &mut self,
        mut comprehension: ComprehensionExpr,
        cost: &mut CelCost,
    ) -> Result<Expr, String> {
        if comprehension.iter_var2.is_some() {
            return Err("loops over two variables are not supported".to_owned());
        }
        let range = self.node(comprehension.iter_range, cost)?;
        // A fixed order makes cost and result independent of the order of the hash map.
        comprehension.iter_range = wrapped(COST_SORTED, range);
        comprehension.accu_init = self.node(comprehension.accu_init, cost)?;
        let depth = self.scope.len();
        self.scope.extend([
            comprehension.iter_var.clone(),
            comprehension.accu_var.clone(),
        ]);
        // The body is charged per step at run time, so it does not add to `cost`.
        let mut step = CelCost::default();
        comprehension.loop_cond = self.node(comprehension.loop_cond, &mut step)?;
        comprehension.loop_step = self.node(comprehension.loop_step, &mut step)?;
        comprehension.result = self.node(comprehension.result, &mut CelCost::default())?;
        self.scope.truncate(depth);
        // `@step ? body : false`: the charge is evaluated before the body, and fails at the limit.
        let charge = metered_step(&step);
        let charged = [
            charge,
            std::mem::take(&mut comprehension.loop_step),
            boolean(false),
        ];
        comprehension.loop_step = node(Expr::Call(CallExpr {
            func_name: CONDITIONAL.to_owned(),
            target: None,
            args: charged.into(),
        }));
        Ok(Expr::Comprehension(Box::new(comprehension)))
    }
}

/// The cost of a call with a pattern, in nodes.
const PATTERN_NODES: i64 = 500;

/// Checks the pattern of a call. Patterns must be literals, so that they can be checked at compile time.
fn check_pattern(call: &CallExpr) -> Result<(), String> {
    let name = &call.func_name;
    // `text.matches(p)` has the pattern first, `matches(text, p)` second.
    let place = usize::from(call.target.is_none());
    let Some(Expr::Literal(LiteralValue::String(pattern))) =
        call.args.get(place).map(|it| &it.expr)
    else {
        return Err(format!(
            "{name} takes a pattern that is written there in quotes"
        ));
    };
    let built = RegexBuilder::new(pattern.inner())
        .size_limit(PATTERN_MAX_BYTES)
        .build();
    built.map(|_| ()).map_err(|error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default();
        format!("{name}: {}", last.trim_start_matches("error: "))
    })
}

fn metered_step(step: &CelCost) -> IdedExpr {
    let literals = [
        Expr::Literal(LiteralValue::Int(step.nodes.into())),
        Expr::Literal(LiteralValue::String(step.root_list().into())),
    ];
    let locals = step.loop_variables.iter().map(|it| Expr::Ident(it.clone()));
    node(Expr::Call(CallExpr {
        func_name: COST_STEP.to_owned(),
        target: None,
        args: literals.into_iter().chain(locals).map(node).collect(),
    }))
}

fn node(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn boolean(value: bool) -> IdedExpr {
    node(Expr::Literal(LiteralValue::Boolean(value.into())))
}

fn call_with(function: &str, expr: Expr) -> Expr {
    Expr::Call(CallExpr {
        func_name: function.to_owned(),
        target: None,
        args: vec![node(expr)],
    })
}

fn wrapped(function: &str, inner: IdedExpr) -> IdedExpr {
    node(call_with(function, inner.expr))
}

/// The name of a field in the object. Kubernetes escapes names that are no CEL identifiers.
fn unescape_field(name: &str) -> String {
    const SIGNS: [(&str, &str); 4] = [
        ("__dot__", "."),
        ("__dash__", "-"),
        ("__slash__", "/"),
        ("__underscores__", "__"),
    ];
    let word = name.strip_prefix("__").and_then(|it| it.strip_suffix("__"));
    if let Some(word) = word.filter(|it| RESERVED_WORDS.contains(it)) {
        return word.to_owned();
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    'all: while let Some(first) = rest.chars().next() {
        for (escaped, sign) in SIGNS {
            if let Some(after) = rest.strip_prefix(escaped) {
                out.push_str(sign);
                rest = after;
                continue 'all;
            }
        }
        out.push(first);
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_cel::cel::Program;

    fn priced(text: &str) -> Result<Metered, String> {
        meter(Program::compile(text).unwrap().expression().clone())
    }

    #[test]
    fn meter_escaped_field_is_unescaped() {
        for (escaped, field) in [
            ("name", "name"),
            ("__namespace__", "namespace"),
            ("a__dash__b__dot__c__slash__d", "a-b.c/d"),
            ("a__underscores__b", "a__b"),
            ("__other__", "__other__"),
        ] {
            assert_eq!(unescape_field(escaped), field);
        }
    }

    #[test]
    fn meter_unsupported_expression_is_rejected() {
        for (text, part) in [
            (
                "namespaceObject.metadata.name == 'a'",
                "there is no variable \"namespaceObject\"",
            ),
            ("[1].all(x, x > y)", "there is no variable \"y\""),
            ("object.a.matches(object.b)", "written there in quotes"),
            ("object.a.matches('(')", "matches: unclosed group"),
            ("object.a.find('(a{1000}){1000}')", "find: "),
            ("Foo{a: 1} == object", "it makes a Foo"),
        ] {
            let error = priced(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn meter_loop_step_pays_for_its_reads() {
        let priced =
            priced("object.a.all(x, object.b.exists(y, y == x && y != object.c))").unwrap();
        // The outer range and its surroundings run once.
        assert_eq!(priced.cost.roots, ["object.a"]);
        let text = format!("{:?}", priced.expression);
        assert_eq!(text.matches(COST_STEP).count(), 2, "{text}");
        assert!(
            text.contains("object.b") && text.contains("object.c"),
            "{text}"
        );
    }
}
