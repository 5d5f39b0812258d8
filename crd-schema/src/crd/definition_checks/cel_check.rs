//! Checks the types of a CEL expression.

use super::cel_functions;
use super::cel_types::Type;
use crate::crd::expression::qualified_name;
use crate::crd::formats::time;
use crate::crd::go_regex;
use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue};

/// Names of types that are values.
const TYPES: [&str; 10] = [
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
];

/// Prefixes of functions.
const NAMESPACES: [&str; 6] = ["format", "ip", "lists", "optional", "sets", "strings"];

/// The variables of an expression, the innermost last.
pub(super) struct Checker<'a> {
    pub(super) variables: Vec<(String, Type<'a>)>,
}

type Checked<'a> = Result<Type<'a>, String>;

fn no_overload<'a>(name: &str) -> Checked<'a> {
    Err(format!("found no matching overload for '{name}'"))
}

impl<'a> Checker<'a> {
    /// The type of an expression.
    ///
    /// # Errors
    ///
    /// The reason if the expression has no type.
    pub(super) fn check(&mut self, tree: &IdedExpr) -> Checked<'a> {
        match &tree.expr {
            Expr::Literal(literal) => self::literal(literal),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => {
                let path = qualified_name(tree);
                if matches!(
                    path.as_deref(),
                    Some("google.protobuf.Timestamp" | "google.protobuf.Duration")
                ) {
                    return Ok(Type::Kind);
                }
                let field = self.check(&select.operand)?.field(&select.field)?;
                Ok(if select.test { Type::Bool } else { field })
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(all) => self.comprehension(all),
            Expr::List(list) => {
                let mut item = Type::Dynamic;
                for (position, element) in list.elements.iter().enumerate() {
                    let mut kind = self.check(element)?;
                    if list.optional_indices.contains(&position) {
                        let Type::Optional(inner) = kind else {
                            return Err("expected an optional item".to_owned());
                        };
                        kind = *inner;
                    }
                    item = item
                        .join(&kind)
                        .ok_or("the items of the list have different types")?;
                }
                Ok(Type::list(item))
            }
            Expr::Map(map) => {
                let (mut key, mut value) = (Type::Dynamic, Type::Dynamic);
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return Err("unsupported entry".to_owned());
                    };
                    let mut kind = self.check(&entry.value)?;
                    if let (true, Type::Optional(inner)) = (entry.optional, &kind) {
                        kind = inner.as_ref().clone();
                    }
                    let keys = key.join(&self.check(&entry.key)?);
                    key = keys.ok_or("the keys of the map have different types")?;
                    value = value
                        .join(&kind)
                        .ok_or("the values of the map have different types")?;
                }
                Ok(Type::map(key, value))
            }
            Expr::Struct(_) | Expr::Unspecified => Err("unsupported expression".to_owned()),
        }
    }

    fn name(&self, name: &str) -> Checked<'a> {
        let variable = self.variables.iter().rev().find(|it| it.0 == name);
        match variable {
            Some((_, kind)) => Ok(kind.clone()),
            None if TYPES.contains(&name) => Ok(Type::Kind),
            None => Err(format!("undeclared reference to '{name}'")),
        }
    }

    fn call(&mut self, call: &CallExpr) -> Checked<'a> {
        if let Some(result) = self.macro_call(call) {
            return result;
        }
        if let (op::OPT_SELECT, [operand, field]) = (call.func_name.as_str(), call.args.as_slice())
            && let Expr::Literal(LiteralValue::String(field)) = &field.expr
        {
            let inner = match self.check(operand)? {
                Type::Optional(inner) => *inner,
                other => other,
            };
            return Ok(Type::optional(inner.field(field.inner())?));
        }
        let mut name = call.func_name.clone();
        let mut args = Vec::new();
        let mut is_method = false;
        if let Some(target) = call.target.as_deref() {
            let namespace = match &target.expr {
                Expr::Ident(name)
                    if NAMESPACES.contains(&name.as_str()) && self.name(name).is_err() =>
                {
                    Some(name)
                }
                _ => None,
            };
            if let Some(namespace) = namespace {
                name = format!("{namespace}.{name}");
            } else {
                args.push(self.check(target)?);
                is_method = true;
            }
        }
        for arg in &call.args {
            args.push(self.check(arg)?);
        }
        check_literal(&name, call)?;
        if let Some(result) = operator(&name, &args) {
            return result;
        }
        cel_functions::result(&name, is_method, &args).map_or_else(|| no_overload(&name), Ok)
    }

    /// Loops with two variables and macros of optional values; `None` if the call is none.
    fn macro_call(&mut self, call: &CallExpr) -> Option<Checked<'a>> {
        let target = call.target.as_deref()?;
        let name = |tree: &IdedExpr| match &tree.expr {
            Expr::Ident(name) => Some(name.clone()),
            _ => None,
        };
        let args = call.args.as_slice();
        let function = call.func_name.as_str();
        Some(match (function, args) {
            ("optMap" | "optFlatMap", [variable, body]) => {
                let variable = name(variable)?;
                self.optional_map(target, variable, body, function == "optFlatMap")
            }
            ("sortBy", [variable, body]) => {
                let variable = name(variable)?;
                self.sort_by(target, variable, body)
            }
            ("all" | "exists" | "existsOne" | "exists_one", [first, second, body]) => {
                let names = [name(first)?, name(second)?];
                self.two_variables(target, names, &[body], |it| {
                    Type::Bool.accepts(&it).then_some(Type::Bool)
                })
            }
            ("transformList", [first, second, rest @ ..]) => {
                let names = [name(first)?, name(second)?];
                let bodies: Vec<&IdedExpr> = rest.iter().collect();
                self.two_variables(target, names, &bodies, |it| Some(Type::list(it)))
            }
            ("transformMap" | "transformMapEntry", [first, second, rest @ ..]) => {
                let names = [name(first)?, name(second)?];
                let bodies: Vec<&IdedExpr> = rest.iter().collect();
                let key = match self.check(target) {
                    Ok(Type::Map(key, _)) => *key,
                    Ok(Type::List(_)) => Type::Int,
                    Ok(_) => Type::Dynamic,
                    Err(reason) => return Some(Err(reason)),
                };
                let is_entry = function == "transformMapEntry";
                self.two_variables(target, names, &bodies, |it| {
                    Some(if is_entry { it } else { Type::map(key, it) })
                })
            }
            _ => return None,
        })
    }

    fn with(&mut self, variables: Vec<(String, Type<'a>)>, body: &IdedExpr) -> Checked<'a> {
        let count = self.variables.len();
        self.variables.extend(variables);
        let result = self.check(body);
        self.variables.truncate(count);
        result
    }

    fn optional_map(
        &mut self,
        target: &IdedExpr,
        variable: String,
        body: &IdedExpr,
        is_flat: bool,
    ) -> Checked<'a> {
        let inner = match self.check(target)? {
            Type::Optional(inner) => *inner,
            Type::Dynamic => Type::Dynamic,
            _ => return no_overload("hasValue"),
        };
        let result = self.with(vec![(variable, inner)], body)?;
        Ok(if is_flat {
            result
        } else {
            Type::optional(result)
        })
    }

    fn sort_by(&mut self, target: &IdedExpr, variable: String, body: &IdedExpr) -> Checked<'a> {
        let Type::List(item) = self.check(target)? else {
            return no_overload("sortBy");
        };
        self.with(vec![(variable, item.as_ref().clone())], body)?;
        Ok(Type::List(item))
    }

    fn two_variables(
        &mut self,
        target: &IdedExpr,
        names: [String; 2],
        bodies: &[&IdedExpr],
        result: impl FnOnce(Type<'a>) -> Option<Type<'a>>,
    ) -> Checked<'a> {
        let (first, second) = match self.check(target)? {
            Type::List(item) => (Type::Int, *item),
            Type::Map(key, value) => (*key, *value),
            Type::Dynamic => (Type::Dynamic, Type::Dynamic),
            _ => return Err(not_a_range()),
        };
        let [first_name, second_name] = names;
        let variables = vec![(first_name, first), (second_name, second)];
        let (filter, body) = match bodies {
            [body] => (None, body),
            [filter, body] => (Some(filter), body),
            _ => return Err("wrong number of arguments".to_owned()),
        };
        if let Some(filter) = filter
            && !Type::Bool.accepts(&self.with(variables.clone(), filter)?)
        {
            return Err("expected type 'bool'".to_owned());
        }
        let kind = self.with(variables, body)?;
        result(kind).ok_or_else(|| "expected type 'bool'".to_owned())
    }

    fn comprehension(&mut self, all: &ComprehensionExpr) -> Checked<'a> {
        let item = match self.check(&all.iter_range)? {
            Type::List(item) => *item,
            Type::Map(key, _) => *key,
            Type::Dynamic => Type::Dynamic,
            _ => return Err(not_a_range()),
        };
        let initial = self.check(&all.accu_init)?;
        let count = self.variables.len();
        self.variables.push((all.accu_var.clone(), initial.clone()));
        self.variables.push((all.iter_var.clone(), item));
        let step = self
            .check(&all.loop_cond)
            .and_then(|_| self.check(&all.loop_step));
        self.variables.truncate(count);
        let total = initial.join(&step?).ok_or("the loop has no type")?;
        self.with(vec![(all.accu_var.clone(), total)], &all.result)
    }
}

fn not_a_range() -> String {
    "the expression cannot be the range of a comprehension (must be list, map, or dynamic)"
        .to_owned()
}

fn literal<'a>(literal: &LiteralValue) -> Checked<'a> {
    Ok(match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(number) if !number.inner().is_finite() => {
            return Err("invalid double literal".to_owned());
        }
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::Text,
        LiteralValue::UInt(_) => Type::Uint,
    })
}

/// Checks literals of durations, times and patterns.
fn check_literal(name: &str, call: &CallExpr) -> Result<(), String> {
    let Some(Expr::Literal(LiteralValue::String(text))) = call.args.last().map(|it| &it.expr)
    else {
        return Ok(());
    };
    let text: &str = text.inner();
    let is_valid = match name {
        "duration" => time::parse_duration(text).is_some(),
        "timestamp" => time::parse_rfc3339(text).is_some(),
        "matches" => go_regex::is_valid(text),
        _ => true,
    };
    if is_valid {
        Ok(())
    } else {
        Err(format!("invalid {name} argument"))
    }
}

/// The type of an operator; `None` if the name is none.
fn operator<'a>(name: &str, args: &[Type<'a>]) -> Option<Checked<'a>> {
    use Type::{Bool, Bytes, Double, Duration, Dynamic, Int, Text, Time, Uint};
    let result = match (name, args) {
        (op::LOGICAL_AND | op::LOGICAL_OR, [left, right]) => {
            (Bool.accepts(left) && Bool.accepts(right)).then_some(Bool)
        }
        (op::LOGICAL_NOT | op::NOT_STRICTLY_FALSE, [it]) => Bool.accepts(it).then_some(Bool),
        (op::CONDITIONAL, [condition, yes, no]) => {
            Bool.accepts(condition).then(|| yes.join(no)).flatten()
        }
        (op::EQUALS | op::NOT_EQUALS, [left, right]) => left.join(right).map(|_| Bool),
        (op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS, [left, right]) => {
            let is_ordered = |it: &Type<'a>| {
                it.is_number() || matches!(it, Bool | Text | Bytes | Time | Duration | Dynamic)
            };
            let are_numbers = left.is_number() && right.is_number();
            let fits =
                is_ordered(left) && is_ordered(right) && (are_numbers || left.accepts(right));
            fits.then_some(Bool)
        }
        (op::IN, [value, Type::List(item)]) => item.accepts(value).then_some(Bool),
        (op::IN, [value, Type::Map(key, _)]) => key.accepts(value).then_some(Bool),
        (op::IN, [_, Dynamic]) => Some(Bool),
        (op::INDEX, [container, key]) => index(container, key),
        (op::OPT_INDEX | op::OPT_SELECT, [container, key]) => {
            let inner = match container {
                Type::Optional(inner) => inner.as_ref(),
                other => other,
            };
            index(inner, key).map(Type::optional)
        }
        (op::NEGATE, [it]) => matches!(it, Int | Double | Dynamic).then(|| it.clone()),
        (op::ADD, [Time, Duration] | [Duration, Time]) | (op::SUBSTRACT, [Time, Duration]) => {
            Some(Time)
        }
        (op::ADD, [left, right]) => {
            let has_sum = |it: &Type<'a>| {
                it.is_number() || matches!(it, Text | Bytes | Duration | Type::List(_) | Dynamic)
            };
            left.join(right).filter(has_sum)
        }
        (op::SUBSTRACT, [Time, Time]) => Some(Duration),
        (op::SUBSTRACT, [left, right]) => left
            .join(right)
            .filter(|it| it.is_number() || matches!(it, Duration | Dynamic)),
        (op::MULTIPLY | op::DIVIDE, [left, right]) => left
            .join(right)
            .filter(|it| it.is_number() || matches!(it, Dynamic)),
        (op::MODULO, [left, right]) => left
            .join(right)
            .filter(|it| matches!(it, Int | Uint | Dynamic)),
        _ => return None,
    };
    Some(result.map_or_else(|| no_overload(name), Ok))
}

fn index<'a>(container: &Type<'a>, key: &Type<'a>) -> Option<Type<'a>> {
    match container {
        Type::List(item) => Type::Int.accepts(key).then(|| item.as_ref().clone()),
        Type::Map(expected, value) => expected.accepts(key).then(|| value.as_ref().clone()),
        Type::Optional(inner) => index(inner, key).map(Type::optional),
        Type::Dynamic => Some(Type::Dynamic),
        _ => None,
    }
}
