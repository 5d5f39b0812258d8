//! The fast path: evaluates simple expressions on the object without copying it.
//!
//! The CEL interpreter copies the values it reads. Most expressions in schemas only compare fields, count lists and
//! visit items, which needs no copy. [`FastCel::is_satisfied`] is true only if CEL returns true: for anything else
//! (another function, a missing field, a type mismatch, a string with a format) the fast path gives no result, and the
//! caller evaluates with CEL.

use super::reserved_words::RESERVED_WORDS;
use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, LiteralValue, SelectExpr, operators,
};
use kube_cel::{CompiledSchema, SchemaFormat};
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// An expression of the supported subset.
#[derive(Debug)]
pub(crate) enum FastCel {
    Bool(bool),
    Int(i64),
    Text(String),
    /// `self`.
    Root,
    /// The variable of a loop, by its depth from the outermost loop.
    Item(usize),
    Field(Box<FastCel>, String),
    Has(Box<FastCel>, String),
    Size(Box<FastCel>),
    Not(Box<FastCel>),
    And(Box<[FastCel; 2]>),
    Or(Box<[FastCel; 2]>),
    Conditional(Box<[FastCel; 3]>),
    Compare(Comparison, Box<[FastCel; 2]>),
    In(Box<FastCel>, Vec<FastCel>),
    /// Whether all (or some) items of a list or keys of a map hold.
    All {
        all: bool,
        range: Box<FastCel>,
        body: Box<FastCel>,
    },
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// A value of a part of an expression.
#[derive(Clone, Copy)]
enum CelValue<'a> {
    Json(&'a Value, Option<&'a CompiledSchema>),
    Bool(bool),
    Int(i64),
    Text(&'a str),
}

impl FastCel {
    /// Reads an expression; `None` unless it is simple.
    pub(crate) fn from_expr(expression: &IdedExpr) -> Option<Self> {
        parse(expression, &mut Vec::new())
    }

    /// Whether the expression is true for a value. `false` decides nothing.
    pub(crate) fn is_satisfied(&self, value: &Value, schema: &CompiledSchema) -> bool {
        let whole = CelValue::Json(value, Some(schema));
        let mut scope = Scope {
            root: whole,
            items: Vec::new(),
        };
        matches!(self.evaluate(&mut scope), Some(CelValue::Bool(true)))
    }

    fn evaluate<'a>(&'a self, scope: &mut Scope<'a>) -> Option<CelValue<'a>> {
        Some(match self {
            Self::Bool(flag) => CelValue::Bool(*flag),
            Self::Int(number) => CelValue::Int(*number),
            Self::Text(text) => CelValue::Text(text),
            Self::Root => scope.root,
            Self::Item(at) => *scope.items.get(*at)?,
            Self::Field(of, name) => of.evaluate(scope)?.field(name)?,
            Self::Has(of, name) => {
                let (fields, _) = of.evaluate(scope)?.fields()?;
                let field = fields.get(name);
                // The result of `has` for null is left to CEL.
                if field.is_some_and(Value::is_null) {
                    return None;
                }
                CelValue::Bool(field.is_some())
            }
            Self::Size(of) => CelValue::Int(of.evaluate(scope)?.size()?),
            Self::Not(operand) => CelValue::Bool(!operand.evaluate_bool(scope)?),
            Self::And(both) => {
                let [left, right] = &**both;
                CelValue::Bool(left.evaluate_bool(scope)? && right.evaluate_bool(scope)?)
            }
            Self::Or(either) => {
                let [left, right] = &**either;
                CelValue::Bool(left.evaluate_bool(scope)? || right.evaluate_bool(scope)?)
            }
            Self::Conditional(choice) => {
                let [is, then, otherwise] = &**choice;
                let branch = if is.evaluate_bool(scope)? {
                    then
                } else {
                    otherwise
                };
                branch.evaluate(scope)?
            }
            Self::Compare(how, both) => {
                let [left, right] = &**both;
                let left = left.evaluate(scope)?.scalar()?;
                CelValue::Bool(left.compare(*how, right.evaluate(scope)?.scalar()?)?)
            }
            Self::In(one, others) => {
                let one = one.evaluate(scope)?.scalar()?;
                // No early return: a type mismatch in a later element must still give no result.
                let mut is_among = false;
                for other in others {
                    let other = other.evaluate(scope)?.scalar()?;
                    is_among |= one.compare(Comparison::Equal, other)?;
                }
                CelValue::Bool(is_among)
            }
            Self::All { all, range, body } => {
                let range = range.evaluate(scope)?;
                CelValue::Bool(
                    evaluate_each(range, scope, |scope| {
                        let holds = body.evaluate_bool(scope)?;
                        Some(holds == *all)
                    })? == *all,
                )
            }
        })
    }

    fn evaluate_bool<'a>(&'a self, scope: &mut Scope<'a>) -> Option<bool> {
        match self.evaluate(scope)?.scalar()? {
            CelValue::Bool(value) => Some(value),
            _ => None,
        }
    }
}

/// The values of `self` and of the loop variables.
struct Scope<'a> {
    root: CelValue<'a>,
    items: Vec<CelValue<'a>>,
}

/// Visits the items of a list or the keys of a map while `goes_on`. Returns whether it reached the end.
fn evaluate_each<'a>(
    range: CelValue<'a>,
    scope: &mut Scope<'a>,
    mut goes_on: impl FnMut(&mut Scope<'a>) -> Option<bool>,
) -> Option<bool> {
    let mut at = |item: CelValue<'a>| {
        scope.items.push(item);
        let goes_on = goes_on(scope);
        scope.items.pop();
        goes_on
    };
    match range {
        CelValue::Json(Value::Array(items), schema) => {
            let schema = schema.and_then(|it| it.items.as_deref());
            for item in items {
                if !at(CelValue::Json(item, schema))? {
                    return Some(false);
                }
            }
        }
        CelValue::Json(Value::Object(fields), Some(schema)) if schema.is_map => {
            for name in fields.keys() {
                if !at(CelValue::Text(name))? {
                    return Some(false);
                }
            }
        }
        _ => return None,
    }
    Some(true)
}

impl<'a> CelValue<'a> {
    /// The fields of an object and its schema; `None` for other values and embedded resources.
    fn fields(self) -> Option<(&'a Map<String, Value>, Option<&'a CompiledSchema>)> {
        let Self::Json(Value::Object(fields), schema) = self else {
            return None;
        };
        if schema.is_some_and(|it| it.embedded_resource) {
            return None;
        }
        Some((fields, schema))
    }

    /// A field, if there is one.
    fn field(self, name: &str) -> Option<Self> {
        let (fields, schema) = self.fields()?;
        let below = schema.and_then(|schema| {
            let other = schema.additional_properties.as_deref();
            schema.properties.get(name).or(other)
        });
        Some(Self::Json(fields.get(name)?, below))
    }

    fn size(self) -> Option<i64> {
        let size = match self {
            Self::Json(Value::Array(items), _) => items.len(),
            Self::Json(Value::Object(fields), Some(schema)) if schema.is_map => fields.len(),
            other => match other.scalar()? {
                // CEL counts code points; only for ASCII is that the number of bytes.
                Self::Text(text) if text.is_ascii() => text.len(),
                _ => return None,
            },
        };
        i64::try_from(size).ok()
    }

    fn scalar(self) -> Option<Self> {
        let Self::Json(value, schema) = self else {
            return Some(self);
        };
        match value {
            Value::Bool(flag) => Some(Self::Bool(*flag)),
            // Floating-point numbers and large unsigned ones are left to CEL.
            Value::Number(number) => number.as_i64().map(Self::Int),
            Value::String(text) => match schema.map(|it| &it.format) {
                None | Some(SchemaFormat::None | SchemaFormat::IntOrString) => {
                    Some(Self::Text(text))
                }
                // CEL converts a string with a format, such as date-time, to another type.
                Some(_) => None,
            },
            _ => None,
        }
    }

    /// Compares scalars of one type.
    fn compare(self, how: Comparison, other: Self) -> Option<bool> {
        let order = match (self, other) {
            (Self::Bool(left), Self::Bool(right)) => left.cmp(&right),
            (Self::Int(left), Self::Int(right)) => left.cmp(&right),
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            _ => return None,
        };
        Some(match how {
            Comparison::Equal => order == Ordering::Equal,
            Comparison::Unequal => order != Ordering::Equal,
            // Order of strings and booleans is left to CEL.
            _ if !matches!(self, Self::Int(_)) => return None,
            Comparison::Less => order == Ordering::Less,
            Comparison::AtMost => order != Ordering::Greater,
            Comparison::Greater => order == Ordering::Greater,
            Comparison::AtLeast => order != Ordering::Less,
        })
    }
}

fn parse(expression: &IdedExpr, names: &mut Vec<String>) -> Option<FastCel> {
    match &expression.expr {
        Expr::Literal(LiteralValue::Boolean(literal)) => Some(FastCel::Bool(*literal.inner())),
        Expr::Literal(LiteralValue::Int(literal)) => Some(FastCel::Int(*literal.inner())),
        Expr::Literal(LiteralValue::String(literal)) => {
            Some(FastCel::Text(literal.inner().to_owned()))
        }
        Expr::Ident(name) => match names.iter().rposition(|it| it == name) {
            // A loop variable hides one of the same name outside, and also `self`.
            Some(at) => Some(FastCel::Item(at)),
            None => (name == "self").then_some(FastCel::Root),
        },
        Expr::Select(SelectExpr {
            operand,
            field,
            test,
        }) => {
            // A name with an underscore may be escaped.
            if field.contains('_') || RESERVED_WORDS.contains(&field.as_str()) {
                return None;
            }
            let of = Box::new(parse(operand, names)?);
            let make = if *test { FastCel::Has } else { FastCel::Field };
            Some(make(of, field.clone()))
        }
        Expr::Call(call) => parse_call(call, names),
        Expr::Comprehension(comprehension) => parse_comprehension(comprehension, names),
        _ => None,
    }
}

fn parse_call(call: &CallExpr, names: &mut Vec<String>) -> Option<FastCel> {
    let arguments = call.target.as_deref().into_iter().chain(&call.args);
    let arguments: Vec<&IdedExpr> = arguments.collect();
    let mut boxed = |it: &IdedExpr| parse(it, names).map(Box::new);
    match (call.func_name.as_str(), &arguments[..]) {
        ("size", [of]) => Some(FastCel::Size(boxed(of)?)),
        (operators::LOGICAL_NOT, [operand]) => Some(FastCel::Not(boxed(operand)?)),
        (operators::LOGICAL_AND, [left, right]) => Some(FastCel::And(Box::new([
            parse(left, names)?,
            parse(right, names)?,
        ]))),
        (operators::LOGICAL_OR, [left, right]) => Some(FastCel::Or(Box::new([
            parse(left, names)?,
            parse(right, names)?,
        ]))),
        (operators::CONDITIONAL, [is, then, otherwise]) => Some(FastCel::Conditional(Box::new([
            parse(is, names)?,
            parse(then, names)?,
            parse(otherwise, names)?,
        ]))),
        (operators::IN, [one, others]) => {
            let Expr::List(list) = &others.expr else {
                return None;
            };
            let one = boxed(one)?;
            let others = list.elements.iter().map(|it| parse(it, names));
            Some(FastCel::In(one, others.collect::<Option<_>>()?))
        }
        (name, [left, right]) => {
            let how = match name {
                operators::EQUALS => Comparison::Equal,
                operators::NOT_EQUALS => Comparison::Unequal,
                operators::LESS => Comparison::Less,
                operators::LESS_EQUALS => Comparison::AtMost,
                operators::GREATER => Comparison::Greater,
                operators::GREATER_EQUALS => Comparison::AtLeast,
                _ => return None,
            };
            let both = [parse(left, names)?, parse(right, names)?];
            Some(FastCel::Compare(how, Box::new(both)))
        }
        _ => None,
    }
}

/// Parses the comprehensions of the macros `all` and `exists`.
fn parse_comprehension(
    comprehension: &ComprehensionExpr,
    names: &mut Vec<String>,
) -> Option<FastCel> {
    let is_result = |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if *name == comprehension.accu_var);
    // `map`, `filter` and `exists_one` start with a list or a number.
    let Expr::Literal(LiteralValue::Boolean(all)) = &comprehension.accu_init.expr else {
        return None;
    };
    let all = *all.inner();
    let Expr::Call(step) = &comprehension.loop_step.expr else {
        return None;
    };
    let joined = if all {
        operators::LOGICAL_AND
    } else {
        operators::LOGICAL_OR
    };
    let [result, body] = &step.args[..] else {
        return None;
    };
    let is_plain =
        comprehension.iter_var2.is_none() && is_result(&comprehension.result) && is_result(result);
    if !is_plain || step.func_name != joined {
        return None;
    }
    let range = Box::new(parse(&comprehension.iter_range, names)?);
    names.push(comprehension.iter_var.clone());
    let body = parse(body, names).map(Box::new);
    names.pop();
    Some(FastCel::All {
        all,
        range,
        body: body?,
    })
}

#[cfg(test)]
mod tests;
