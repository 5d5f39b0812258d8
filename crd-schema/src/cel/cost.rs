//! Gives an expression a price: what it does is paid for while it runs.
//!
//! The engine has no limit of its own, and a rule must never hold up whoever runs it. Every loop of CEL is a
//! comprehension, so each of its steps is made to pay for what its body reads; functions pay for what they
//! are given. The names of the functions that take the pay begin with `@`, which no expression can write.

use super::reserved_words::RESERVED_WORDS;
use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::operators::CONDITIONAL;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr,
};
use regex::RegexBuilder;
use std::collections::BTreeSet;

/// Pays for a step of a loop: `@step(nodes, roots, variables…)`.
pub(super) const COST_STEP: &str = "@step";

/// Pays for what a function is given, and gives it back.
pub(super) const COST_LINEAR: &str = "@paid";

/// The same for a function whose work grows with the square of what it is given.
pub(super) const COST_SQUARE: &str = "@squared";

/// The same for a function that makes as many items as the number that it is given.
pub(super) const COST_COUNT: &str = "@counted";

/// Gives the keys of a map in their order, and anything else as it is.
pub(super) const COST_SORTED: &str = "@sorted";

/// The variables that an expression may name.
pub(super) const ROOTS: [&str; 5] = ["object", "self", "oldObject", "oldSelf", "request"];

/// Parts the roots that a step pays for.
pub(super) const ROOT_SEPARATOR: char = ',';

/// What compiled patterns may take, in bytes: a pattern is compiled each time it is asked.
const PATTERN_MAX_BYTES: usize = 256 * 1024;

/// How deep an expression may be nested. The engine goes down by calling itself, and what is on its stack for
/// each level is large: this fits on that of an ordinary thread (2 MiB), also without optimization.
pub(super) const DEPTH_MAX: usize = 24;

/// Functions that compare everything with everything, or put one text into another many times.
const QUADRATIC_FUNCTIONS: [&str; 7] = [
    "replace",
    "distinct",
    "indexOf",
    "lastIndexOf",
    "sets.contains",
    "sets.equivalent",
    "sets.intersects",
];

/// Functions that take a pattern.
const PATTERN_FUNCTIONS: [&str; 3] = ["matches", "find", "findAll"];

/// What evaluating something once takes and reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CelCost {
    /// The nodes of the expression.
    pub(super) nodes: i64,
    /// The parts of the roots, such as `object.spec`, each as often as it is read.
    pub(super) roots: Vec<String>,
    /// The variables of loops, each as often as it is read.
    loop_variables: Vec<String>,
}

impl CelCost {
    /// The roots as they stand in a step.
    fn root_list(&self) -> String {
        self.roots.join(&ROOT_SEPARATOR.to_string())
    }
}

/// An expression that pays.
#[derive(Debug)]
pub(super) struct Metered {
    pub(super) expression: IdedExpr,
    /// What is paid for it before it begins.
    pub(super) cost: CelCost,
    /// The functions that it calls, as they are registered.
    pub(super) functions: BTreeSet<String>,
    /// The roots that it names.
    pub(super) roots: BTreeSet<String>,
}

/// Prices an expression.
///
/// # Errors
///
/// What the expression says that no rule may say.
pub(super) fn meter(expression: IdedExpr) -> Result<Metered, String> {
    let mut pricer = Meter::default();
    let mut work = CelCost::default();
    let expression = pricer.node(expression, &mut work)?;
    Ok(Metered {
        expression,
        cost: work,
        functions: pricer.functions,
        roots: pricer.roots,
    })
}

#[derive(Default)]
struct Meter {
    /// How many nodes are around.
    depth: usize,
    /// The variables of the loops around.
    scope: Vec<String>,
    functions: BTreeSet<String>,
    roots: BTreeSet<String>,
}

impl Meter {
    fn node(&mut self, node: IdedExpr, work: &mut CelCost) -> Result<IdedExpr, String> {
        if self.depth >= DEPTH_MAX {
            return Err(format!("it is nested more than {DEPTH_MAX} deep"));
        }
        self.depth = self.depth.saturating_add(1);
        let priced = self.meter_expr(node, work);
        self.depth = self.depth.saturating_sub(1);
        priced
    }

    fn meter_expr(&mut self, node: IdedExpr, work: &mut CelCost) -> Result<IdedExpr, String> {
        work.nodes = work.nodes.saturating_add(1);
        let expr = match node.expr {
            Expr::Literal(literal) => Expr::Literal(literal),
            Expr::Ident(name) => {
                self.read(&name, None, work)?;
                Expr::Ident(name)
            }
            Expr::Select(select) => self.select(select, work)?,
            Expr::Call(call) => self.call(call, work)?,
            Expr::List(mut list) => {
                list.elements = self.nodes(list.elements, work)?;
                Expr::List(list)
            }
            Expr::Map(mut map) => {
                for entry in &mut map.entries {
                    if let EntryExpr::MapEntry(it) = &mut entry.expr {
                        it.key = self.node(std::mem::take(&mut it.key), work)?;
                        it.value = self.node(std::mem::take(&mut it.value), work)?;
                    }
                }
                Expr::Map(map)
            }
            Expr::Comprehension(loops) => self.comprehension(*loops, work)?,
            Expr::Struct(it) => {
                return Err(format!("it makes a {}, which there is not", it.type_name));
            }
            Expr::Unspecified => return Err("a part of it is empty".to_owned()),
        };
        Ok(IdedExpr { id: node.id, expr })
    }

    fn nodes(&mut self, nodes: Vec<IdedExpr>, work: &mut CelCost) -> Result<Vec<IdedExpr>, String> {
        let nodes = nodes.into_iter();
        nodes.map(|node| self.node(node, work)).collect()
    }

    /// A variable is read, or one field of it.
    fn read(&mut self, name: &str, field: Option<&str>, work: &mut CelCost) -> Result<(), String> {
        if self.scope.iter().any(|it| it == name) {
            work.loop_variables.push(name.to_owned());
        } else if ROOTS.contains(&name) {
            self.roots.insert(name.to_owned());
            work.roots.push(match field {
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

    fn select(&mut self, mut select: SelectExpr, work: &mut CelCost) -> Result<Expr, String> {
        select.field = unescape_field(&select.field);
        if let Expr::Ident(name) = &select.operand.expr {
            self.read(name, Some(&select.field), work)?;
        } else {
            *select.operand = self.node(*select.operand, work)?;
        }
        Ok(Expr::Select(select))
    }

    fn call(&mut self, mut call: CallExpr, work: &mut CelCost) -> Result<Expr, String> {
        let is_operator = !call
            .func_name
            .starts_with(|first: char| first.is_ascii_alphabetic());
        if is_operator {
            call.args = self.nodes(call.args, work)?;
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
            // A pattern is compiled at each call, which takes far longer than anything else here.
            work.nodes = work.nodes.saturating_add(PATTERN_NODES);
        }
        let pay = match name.as_str() {
            "lists.range" => COST_COUNT,
            name if QUADRATIC_FUNCTIONS.contains(&name) => COST_SQUARE,
            _ => COST_LINEAR,
        };
        self.functions.insert(name);
        if namespace.is_none()
            && let Some(target) = call.target.take()
        {
            let target = self.node(*target, work)?;
            call.target = Some(Box::new(wrapped(pay, target)));
        }
        let args = self.nodes(call.args, work)?;
        call.args = args.into_iter().map(|it| wrapped(pay, it)).collect();
        // What a function makes is paid for as well: the next one copies it.
        Ok(call_with(COST_LINEAR, Expr::Call(call)))
    }

    /// The name before a function, such as `sets` in `sets.contains`, if it is no variable.
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
        mut it: ComprehensionExpr,
        work: &mut CelCost,
    ) -> Result<Expr, String> {
        if it.iter_var2.is_some() {
            return Err("loops over two variables are not supported".to_owned());
        }
        let range = self.node(it.iter_range, work)?;
        it.iter_range = wrapped(COST_SORTED, range);
        it.accu_init = self.node(it.accu_init, work)?;
        let depth = self.scope.len();
        self.scope
            .extend([it.iter_var.clone(), it.accu_var.clone()]);
        let mut step = CelCost::default();
        it.loop_cond = self.node(it.loop_cond, &mut step)?;
        it.loop_step = self.node(it.loop_step, &mut step)?;
        it.result = self.node(it.result, &mut CelCost::default())?;
        self.scope.truncate(depth);
        let pay = metered_step(&step);
        let paid = [pay, std::mem::take(&mut it.loop_step), boolean(false)];
        it.loop_step = node(Expr::Call(CallExpr {
            func_name: CONDITIONAL.to_owned(),
            target: None,
            args: paid.into(),
        }));
        Ok(Expr::Comprehension(Box::new(it)))
    }
}

/// What calling a function with a pattern counts for, in nodes.
const PATTERN_NODES: i64 = 500;

/// Patterns stand in the rule, so that they can be looked at when it is read.
fn check_pattern(call: &CallExpr) -> Result<(), String> {
    let name = &call.func_name;
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

/// A field's name as it stands in the object. Kubernetes writes those that CEL cannot in an escaped form.
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
        // What runs once: the outer range, and what is around it.
        assert_eq!(priced.cost.roots, ["object.a"]);
        let text = format!("{:?}", priced.expression);
        assert_eq!(text.matches(COST_STEP).count(), 2, "{text}");
        assert!(
            text.contains("object.b") && text.contains("object.c"),
            "{text}"
        );
    }
}
