//! Macros that the parser does not expand: loops with two variables, and those of optional values.

use super::costs::{self, STEP_COST};
use super::evaluate::Evaluator;
use super::operators;
use super::value::{Failure, Outcome, Value, no_overload};
use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{CallExpr, Expr};
use std::rc::Rc;

impl<'a> Evaluator<'_, 'a> {
    /// The value of a macro; `None` if the call is none.
    pub(super) fn macro_call(&mut self, call: &CallExpr) -> Option<Outcome<'a>> {
        let target = call.target.as_deref()?;
        let name = call.func_name.as_str();
        match (name, call.args.as_slice()) {
            ("optMap" | "optFlatMap", [variable, body]) => {
                let variable = variable_name(variable)?;
                Some(self.optional_map(target, variable, body, name == "optFlatMap"))
            }
            ("all" | "exists" | "existsOne" | "exists_one", [first, second, body]) => {
                let names = (variable_name(first)?, variable_name(second)?);
                Some(self.quantifier(name, target, names, body))
            }
            (
                "transformList" | "transformMap" | "transformMapEntry",
                [first, second, rest @ ..],
            ) => {
                let names = (variable_name(first)?, variable_name(second)?);
                let (filter, body) = match rest {
                    [body] => (None, body),
                    [filter, body] => (Some(filter), body),
                    _ => return None,
                };
                Some(self.transform(name, target, names, filter, body))
            }
            ("sortBy", [variable, body]) => {
                let variable = variable_name(variable)?;
                Some(self.sort_by(target, variable, body))
            }
            _ => None,
        }
    }

    /// Evaluates a body with variables.
    fn with(&mut self, variables: &[(&str, Outcome<'a>)], body: &IdedExpr) -> Outcome<'a> {
        let before = self.scope.count();
        for (name, value) in variables {
            self.scope.set(name, value.clone());
        }
        let value = self.expression(body);
        self.scope.truncate(before);
        value
    }

    fn optional_map(
        &mut self,
        target: &IdedExpr,
        variable: &str,
        body: &IdedExpr,
        is_flat: bool,
    ) -> Outcome<'a> {
        let Value::Optional(inner) = self.expression(target)? else {
            return no_overload();
        };
        let Some(inner) = inner else {
            return Ok(Value::optional(None));
        };
        let value = self.with(&[(variable, Ok(inner.as_ref().clone()))], body)?;
        Ok(if is_flat {
            value
        } else {
            Value::optional(Some(value))
        })
    }

    fn quantifier(
        &mut self,
        name: &str,
        target: &IdedExpr,
        names: (&str, &str),
        body: &IdedExpr,
    ) -> Outcome<'a> {
        let range = self.expression(target)?;
        let mut failure = None;
        let mut count: usize = 0;
        for (first, second) in operators::pairs_of(&range)? {
            self.budget.charge(STEP_COST)?;
            let value = self.with(&[(names.0, first), (names.1, second)], body);
            match (name, value) {
                (_, Err(Failure::CostExceeded)) => return Err(Failure::CostExceeded),
                ("all", Ok(Value::Bool(false))) => return Ok(Value::Bool(false)),
                ("exists", Ok(Value::Bool(true))) => return Ok(Value::Bool(true)),
                (_, Ok(Value::Bool(flag))) => count = count.saturating_add(usize::from(flag)),
                ("all" | "exists", Err(error)) => failure = failure.or(Some(error)),
                (_, Err(error)) => return Err(error),
                _ => return no_overload(),
            }
        }
        match failure {
            Some(failure) => Err(failure),
            None => Ok(Value::Bool(match name {
                "all" => true,
                "exists" => false,
                _ => count == 1,
            })),
        }
    }

    fn transform(
        &mut self,
        name: &str,
        target: &IdedExpr,
        names: (&str, &str),
        filter: Option<&IdedExpr>,
        body: &IdedExpr,
    ) -> Outcome<'a> {
        let range = self.expression(target)?;
        let mut items = Vec::new();
        let mut entries = Vec::new();
        for (first, second) in operators::pairs_of(&range)? {
            self.budget.charge(STEP_COST)?;
            let variables = [(names.0, first.clone()), (names.1, second)];
            if let Some(filter) = filter {
                match self.with(&variables, filter)? {
                    Value::Bool(true) => {}
                    Value::Bool(false) => continue,
                    _ => return no_overload(),
                }
            }
            let value = self.with(&variables, body)?;
            match (name, value) {
                ("transformList", value) => items.push(value),
                ("transformMap", value) => entries.push((first?, value)),
                (_, Value::Map(added)) => entries.extend(added.iter().cloned()),
                _ => return no_overload(),
            }
        }
        Ok(if name == "transformList" {
            Value::list(items)
        } else {
            Value::Map(Rc::new(entries))
        })
    }

    fn sort_by(&mut self, target: &IdedExpr, variable: &str, body: &IdedExpr) -> Outcome<'a> {
        let items = self.expression(target)?.valid_items()?;
        let mut keyed = Vec::with_capacity(items.len());
        for item in items {
            let key = self.with(&[(variable, Ok(item.clone()))], body)?;
            keyed.push((key, item));
        }
        self.budget.charge(costs::sorted(keyed.len()))?;
        super::lists::sort_pairs(keyed)
    }
}

fn variable_name(tree: &IdedExpr) -> Option<&str> {
    match &tree.expr {
        Expr::Ident(name) => Some(name),
        _ => None,
    }
}
