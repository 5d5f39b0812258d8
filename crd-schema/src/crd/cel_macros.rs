//! Expands the macros that the parser does not: loops with two variables, optional values and `sortBy`, as cel-go.

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr,
};

/// The name of the accumulator of loops.
const RESULT: &str = "@result";

/// The name of the variable of a loop that has none.
const UNUSED: &str = "#unused";

/// The name of the list that `sortBy` sorts.
const SORTED: &str = "@__sortBy_input__";

/// Adds an entry, or the entries of a map, to a map.
pub(super) const MAP_INSERT: &str = "cel.@mapInsert";

/// Sorts a list by the list of the keys of its items.
pub(super) const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";

/// The most nodes of an expanded expression. Macros of optional values copy their target.
const NODES_MAX: usize = 100_000;

/// A copy of an expression without macros.
///
/// # Errors
///
/// If the copy has too many nodes.
pub(super) fn expand(tree: &IdedExpr) -> Result<IdedExpr, String> {
    Expander {
        remaining: NODES_MAX,
    }
    .expand(tree)
}

struct Expander {
    /// The nodes that may be added.
    remaining: usize,
}

impl Expander {
    fn expand(&mut self, tree: &IdedExpr) -> Result<IdedExpr, String> {
        self.count(1)?;
        let expr = match &tree.expr {
            Expr::Call(call) => {
                let target = call.target.as_deref().map(|it| self.expand(it));
                let call = CallExpr {
                    func_name: call.func_name.clone(),
                    target: target.transpose()?.map(Box::new),
                    args: self.expand_all(&call.args)?,
                };
                self.expand_call(call)?
            }
            Expr::Select(select) => {
                let mut select = select.clone();
                *select.operand = self.expand(&select.operand)?;
                Expr::Select(select)
            }
            Expr::List(list) => Expr::List(ListExpr {
                elements: self.expand_all(&list.elements)?,
                optional_indices: list.optional_indices.clone(),
            }),
            Expr::Map(map) => Expr::Map(self.expand_map(map)?),
            Expr::Comprehension(all) => Expr::Comprehension(Box::new(ComprehensionExpr {
                iter_range: self.expand(&all.iter_range)?,
                accu_init: self.expand(&all.accu_init)?,
                loop_cond: self.expand(&all.loop_cond)?,
                loop_step: self.expand(&all.loop_step)?,
                result: self.expand(&all.result)?,
                iter_var: all.iter_var.clone(),
                iter_var2: all.iter_var2.clone(),
                accu_var: all.accu_var.clone(),
            })),
            other => other.clone(),
        };
        Ok(node(expr))
    }

    fn expand_all(&mut self, trees: &[IdedExpr]) -> Result<Vec<IdedExpr>, String> {
        trees.iter().map(|it| self.expand(it)).collect()
    }

    fn expand_map(&mut self, map: &MapExpr) -> Result<MapExpr, String> {
        let mut map = map.clone();
        for entry in &mut map.entries {
            if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                entry.key = self.expand(&entry.key)?;
                entry.value = self.expand(&entry.value)?;
            }
        }
        Ok(map)
    }

    fn expand_call(&mut self, call: CallExpr) -> Result<Expr, String> {
        let Some(target) = call.target.as_deref() else {
            return Ok(Expr::Call(call));
        };
        if matches!(call.func_name.as_str(), "optMap" | "optFlatMap") {
            self.count(size(target))?;
        }
        let expanded = macro_of(target, &call.func_name, &call.args);
        Ok(expanded.map_or(Expr::Call(call), |it| it.expr))
    }

    fn count(&mut self, nodes: usize) -> Result<(), String> {
        let remaining = self.remaining.checked_sub(nodes);
        self.remaining = remaining.ok_or("the expression is too large")?;
        Ok(())
    }
}

/// The number of nodes.
fn size(tree: &IdedExpr) -> usize {
    let all = |trees: &[IdedExpr]| trees.iter().map(size).fold(0, usize::saturating_add);
    let below = match &tree.expr {
        Expr::Call(call) => {
            let target = call.target.as_deref().map_or(0, size);
            all(&call.args).saturating_add(target)
        }
        Expr::Select(select) => size(&select.operand),
        Expr::List(list) => all(&list.elements),
        Expr::Map(map) => {
            let entries = map.entries.iter().map(|it| match &it.expr {
                EntryExpr::MapEntry(entry) => size(&entry.key).saturating_add(size(&entry.value)),
                EntryExpr::StructField(_) => 0,
            });
            entries.fold(0, usize::saturating_add)
        }
        Expr::Comprehension(all) => [
            &all.iter_range,
            &all.accu_init,
            &all.loop_cond,
            &all.loop_step,
            &all.result,
        ]
        .into_iter()
        .map(size)
        .fold(0, usize::saturating_add),
        _ => 0,
    };
    below.saturating_add(1)
}

fn node(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn name(name: &str) -> IdedExpr {
    node(Expr::Ident(name.to_owned()))
}

fn boolean(flag: bool) -> IdedExpr {
    node(Expr::Literal(LiteralValue::Boolean(flag.into())))
}

fn integer(number: i64) -> IdedExpr {
    node(Expr::Literal(LiteralValue::Int(number.into())))
}

fn list(elements: Vec<IdedExpr>) -> IdedExpr {
    node(Expr::List(ListExpr::new(elements)))
}

fn call<const N: usize>(function: &str, args: [IdedExpr; N]) -> IdedExpr {
    node(Expr::Call(CallExpr {
        func_name: function.to_owned(),
        target: None,
        args: args.into(),
    }))
}

fn method(function: &str, target: IdedExpr, args: Vec<IdedExpr>) -> IdedExpr {
    node(Expr::Call(CallExpr {
        func_name: function.to_owned(),
        target: Some(Box::new(target)),
        args,
    }))
}

fn variable(tree: &IdedExpr) -> Option<String> {
    match &tree.expr {
        Expr::Ident(name) => Some(name.clone()),
        _ => None,
    }
}

/// The expansion of a macro; `None` if the call is none.
fn macro_of(target: &IdedExpr, function: &str, args: &[IdedExpr]) -> Option<IdedExpr> {
    match (function, args) {
        ("optMap" | "optFlatMap", [bound, body]) => {
            let value = method("value", target.clone(), Vec::new());
            let mut result = binding(variable(bound)?, value, body.clone());
            if function == "optMap" {
                result = method("of", name("optional"), vec![result]);
            }
            let has_value = method("hasValue", target.clone(), Vec::new());
            let none = method("none", name("optional"), Vec::new());
            Some(self::call(op::CONDITIONAL, [has_value, result, none]))
        }
        ("sortBy", [bound, body]) => {
            let keys = Loop {
                range: name(SORTED),
                variables: (variable(bound)?, None),
                initial: list(Vec::new()),
                condition: boolean(true),
                step: self::call(op::ADD, [name(RESULT), list(vec![body.clone()])]),
            };
            let sorted = method(SORT_BY_KEYS, name(SORTED), vec![keys.build()]);
            Some(binding(SORTED.to_owned(), target.clone(), sorted))
        }
        ("all" | "exists" | "existsOne" | "exists_one", [first, second, body]) => {
            let variables = (variable(first)?, Some(variable(second)?));
            Some(quantifier(
                function,
                target.clone(),
                variables,
                body.clone(),
            ))
        }
        ("transformList" | "transformMap" | "transformMapEntry", [first, second, rest @ ..]) => {
            let variables = (variable(first)?, Some(variable(second)?));
            let (filter, body) = match rest {
                [body] => (None, body),
                [filter, body] => (Some(filter), body),
                _ => return None,
            };
            let is_list = function == "transformList";
            let mut step = match function {
                "transformList" => self::call(op::ADD, [name(RESULT), list(vec![body.clone()])]),
                "transformMap" => {
                    let key = first.clone();
                    self::call(MAP_INSERT, [name(RESULT), key, body.clone()])
                }
                _ => self::call(MAP_INSERT, [name(RESULT), body.clone()]),
            };
            if let Some(filter) = filter {
                step = self::call(op::CONDITIONAL, [filter.clone(), step, name(RESULT)]);
            }
            let initial = if is_list {
                list(Vec::new())
            } else {
                node(Expr::Map(MapExpr::default()))
            };
            let built = Loop {
                range: target.clone(),
                variables,
                initial,
                condition: boolean(true),
                step,
            };
            Some(built.build())
        }
        _ => None,
    }
}

fn quantifier(
    function: &str,
    range: IdedExpr,
    variables: (String, Option<String>),
    body: IdedExpr,
) -> IdedExpr {
    let is_decided = |accumulator| call(op::NOT_STRICTLY_FALSE, [accumulator]);
    let (initial, condition, step) = match function {
        "all" => (
            boolean(true),
            is_decided(name(RESULT)),
            call(op::LOGICAL_AND, [name(RESULT), body]),
        ),
        "exists" => (
            boolean(false),
            is_decided(call(op::LOGICAL_NOT, [name(RESULT)])),
            call(op::LOGICAL_OR, [name(RESULT), body]),
        ),
        _ => {
            let more = call(op::ADD, [name(RESULT), integer(1)]);
            (
                integer(0),
                boolean(true),
                call(op::CONDITIONAL, [body, more, name(RESULT)]),
            )
        }
    };
    let built = Loop {
        range,
        variables,
        initial,
        condition,
        step,
    };
    let mut all = built.comprehension();
    if !matches!(function, "all" | "exists") {
        all.result = call(op::EQUALS, [name(RESULT), integer(1)]);
    }
    node(Expr::Comprehension(Box::new(all)))
}

/// A value that is used under a name.
fn binding(variable: String, value: IdedExpr, body: IdedExpr) -> IdedExpr {
    node(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: list(Vec::new()),
        iter_var: UNUSED.to_owned(),
        iter_var2: None,
        loop_step: name(&variable),
        accu_var: variable,
        accu_init: value,
        loop_cond: boolean(false),
        result: body,
    })))
}

/// A loop with the accumulator as its result.
struct Loop {
    range: IdedExpr,
    variables: (String, Option<String>),
    initial: IdedExpr,
    condition: IdedExpr,
    step: IdedExpr,
}

impl Loop {
    fn comprehension(self) -> ComprehensionExpr {
        ComprehensionExpr {
            iter_range: self.range,
            iter_var: self.variables.0,
            iter_var2: self.variables.1,
            accu_var: RESULT.to_owned(),
            accu_init: self.initial,
            loop_cond: self.condition,
            loop_step: self.step,
            result: name(RESULT),
        }
    }

    fn build(self) -> IdedExpr {
        node(Expr::Comprehension(Box::new(self.comprehension())))
    }
}
