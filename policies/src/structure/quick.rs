//! Simple expressions, answered from the object as it stands.
//!
//! An evaluator of CEL copies what it looks at. Most expressions in schemas only compare fields, count lists and
//! look at each item, which can be seen without a copy. [`Quick::holds`] says yes only where CEL would: whatever is
//! unusual (another function, a missing field, a type that does not fit, a string that stands for something else)
//! is no answer, and then CEL itself is asked.

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, LiteralValue, SelectExpr, operators,
};
use kube_cel::{CompiledSchema, SchemaFormat};
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// A simple expression.
#[derive(Debug)]
pub(super) enum Quick {
    Bool(bool),
    Int(i64),
    Text(String),
    /// The object.
    Whole,
    /// What a loop is at: so many loops outside are left out.
    Item(usize),
    Field(Box<Quick>, String),
    Has(Box<Quick>, String),
    Size(Box<Quick>),
    Not(Box<Quick>),
    Both(Box<[Quick; 2]>),
    Either(Box<[Quick; 2]>),
    Choice(Box<[Quick; 3]>),
    Compared(Comparison, Box<[Quick; 2]>),
    Among(Box<Quick>, Vec<Quick>),
    /// Whether all (or some) items of a list or keys of a map hold.
    Each {
        all: bool,
        range: Box<Quick>,
        body: Box<Quick>,
    },
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// A value as an expression sees it.
#[derive(Clone, Copy)]
enum Seen<'a> {
    Json(&'a Value, Option<&'a CompiledSchema>),
    Bool(bool),
    Int(i64),
    Text(&'a str),
}

impl Quick {
    /// Reads an expression; `None` unless it is simple.
    pub(super) fn of(expression: &IdedExpr) -> Option<Self> {
        read(expression, &mut Vec::new())
    }

    /// Whether it says yes to a value. `false` says nothing.
    pub(super) fn holds(&self, value: &Value, schema: &CompiledSchema) -> bool {
        let whole = Seen::Json(value, Some(schema));
        let mut scope = Scope {
            whole,
            items: Vec::new(),
        };
        matches!(self.seen(&mut scope), Some(Seen::Bool(true)))
    }

    fn seen<'a>(&'a self, scope: &mut Scope<'a>) -> Option<Seen<'a>> {
        Some(match self {
            Self::Bool(it) => Seen::Bool(*it),
            Self::Int(it) => Seen::Int(*it),
            Self::Text(it) => Seen::Text(it),
            Self::Whole => scope.whole,
            Self::Item(at) => *scope.items.get(*at)?,
            Self::Field(of, name) => of.seen(scope)?.field(name)?,
            Self::Has(of, name) => {
                let (fields, _) = of.seen(scope)?.fields()?;
                let field = fields.get(name);
                if field.is_some_and(Value::is_null) {
                    return None;
                }
                Seen::Bool(field.is_some())
            }
            Self::Size(of) => Seen::Int(of.seen(scope)?.size()?),
            Self::Not(it) => Seen::Bool(!it.truth(scope)?),
            Self::Both(both) => {
                let [left, right] = &**both;
                Seen::Bool(left.truth(scope)? && right.truth(scope)?)
            }
            Self::Either(either) => {
                let [left, right] = &**either;
                Seen::Bool(left.truth(scope)? || right.truth(scope)?)
            }
            Self::Choice(choice) => {
                let [is, then, otherwise] = &**choice;
                let taken = if is.truth(scope)? { then } else { otherwise };
                taken.seen(scope)?
            }
            Self::Compared(how, both) => {
                let [left, right] = &**both;
                let left = left.seen(scope)?.scalar()?;
                Seen::Bool(left.is(*how, right.seen(scope)?.scalar()?)?)
            }
            Self::Among(one, others) => {
                let one = one.seen(scope)?.scalar()?;
                let mut is_among = false;
                for other in others {
                    let other = other.seen(scope)?.scalar()?;
                    is_among |= one.is(Comparison::Equal, other)?;
                }
                Seen::Bool(is_among)
            }
            Self::Each { all, range, body } => {
                let range = range.seen(scope)?;
                Seen::Bool(
                    each(range, scope, |scope| {
                        let holds = body.truth(scope)?;
                        Some(holds == *all)
                    })? == *all,
                )
            }
        })
    }

    fn truth<'a>(&'a self, scope: &mut Scope<'a>) -> Option<bool> {
        match self.seen(scope)?.scalar()? {
            Seen::Bool(it) => Some(it),
            _ => None,
        }
    }
}

/// What an expression is about, and what the loops around it are at.
struct Scope<'a> {
    whole: Seen<'a>,
    items: Vec<Seen<'a>>,
}

/// Goes over a list or the keys of a map as long as it is told to. Whether it came to the end.
fn each<'a>(
    range: Seen<'a>,
    scope: &mut Scope<'a>,
    mut goes_on: impl FnMut(&mut Scope<'a>) -> Option<bool>,
) -> Option<bool> {
    let mut at = |item: Seen<'a>| {
        scope.items.push(item);
        let goes_on = goes_on(scope);
        scope.items.pop();
        goes_on
    };
    match range {
        Seen::Json(Value::Array(items), schema) => {
            let schema = schema.and_then(|it| it.items.as_deref());
            for item in items {
                if !at(Seen::Json(item, schema))? {
                    return Some(false);
                }
            }
        }
        Seen::Json(Value::Object(fields), Some(schema)) if schema.is_map => {
            for name in fields.keys() {
                if !at(Seen::Text(name))? {
                    return Some(false);
                }
            }
        }
        _ => return None,
    }
    Some(true)
}

impl<'a> Seen<'a> {
    /// Who has fields, and of which schema; `None` where they cannot be asked for.
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
        let below = schema.and_then(|it| {
            let other = it.additional_properties.as_deref();
            it.properties.get(name).or(other)
        });
        Some(Self::Json(fields.get(name)?, below))
    }

    fn size(self) -> Option<i64> {
        let size = match self {
            Self::Json(Value::Array(items), _) => items.len(),
            Self::Json(Value::Object(fields), Some(schema)) if schema.is_map => fields.len(),
            it => match it.scalar()? {
                // Others count otherwise.
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
            Value::Bool(it) => Some(Self::Bool(*it)),
            Value::Number(it) => it.as_i64().map(Self::Int),
            Value::String(it) => match schema.map(|it| &it.format) {
                None | Some(SchemaFormat::None | SchemaFormat::IntOrString) => Some(Self::Text(it)),
                Some(_) => None,
            },
            _ => None,
        }
    }

    /// Compares scalars of one type.
    fn is(self, how: Comparison, other: Self) -> Option<bool> {
        let order = match (self, other) {
            (Self::Bool(left), Self::Bool(right)) => left.cmp(&right),
            (Self::Int(left), Self::Int(right)) => left.cmp(&right),
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            _ => return None,
        };
        Some(match how {
            Comparison::Equal => order == Ordering::Equal,
            Comparison::Unequal => order != Ordering::Equal,
            // Only numbers: who asks which text or flag is more is asked himself.
            _ if !matches!(self, Self::Int(_)) => return None,
            Comparison::Less => order == Ordering::Less,
            Comparison::AtMost => order != Ordering::Greater,
            Comparison::Greater => order == Ordering::Greater,
            Comparison::AtLeast => order != Ordering::Less,
        })
    }
}

fn read(expression: &IdedExpr, names: &mut Vec<String>) -> Option<Quick> {
    match &expression.expr {
        Expr::Literal(LiteralValue::Boolean(it)) => Some(Quick::Bool(*it.inner())),
        Expr::Literal(LiteralValue::Int(it)) => Some(Quick::Int(*it.inner())),
        Expr::Literal(LiteralValue::String(it)) => Some(Quick::Text(it.inner().to_owned())),
        Expr::Ident(name) => match names.iter().rposition(|it| it == name) {
            Some(at) => Some(Quick::Item(at)),
            None => (name == "self").then_some(Quick::Whole),
        },
        Expr::Select(SelectExpr {
            operand,
            field,
            test,
        }) => {
            // Such a name may stand for another.
            if field.contains('_') || super::RESERVED.contains(&field.as_str()) {
                return None;
            }
            let of = Box::new(read(operand, names)?);
            let make = if *test { Quick::Has } else { Quick::Field };
            Some(make(of, field.clone()))
        }
        Expr::Call(call) => read_call(call, names),
        Expr::Comprehension(it) => read_loop(it, names),
        _ => None,
    }
}

fn read_call(call: &CallExpr, names: &mut Vec<String>) -> Option<Quick> {
    let arguments = call.target.as_deref().into_iter().chain(&call.args);
    let arguments: Vec<&IdedExpr> = arguments.collect();
    let mut boxed = |it: &IdedExpr| read(it, names).map(Box::new);
    match (call.func_name.as_str(), &arguments[..]) {
        ("size", [of]) => Some(Quick::Size(boxed(of)?)),
        (operators::LOGICAL_NOT, [it]) => Some(Quick::Not(boxed(it)?)),
        (operators::LOGICAL_AND, [left, right]) => Some(Quick::Both(Box::new([
            read(left, names)?,
            read(right, names)?,
        ]))),
        (operators::LOGICAL_OR, [left, right]) => Some(Quick::Either(Box::new([
            read(left, names)?,
            read(right, names)?,
        ]))),
        (operators::CONDITIONAL, [is, then, otherwise]) => Some(Quick::Choice(Box::new([
            read(is, names)?,
            read(then, names)?,
            read(otherwise, names)?,
        ]))),
        (operators::IN, [one, others]) => {
            let Expr::List(list) = &others.expr else {
                return None;
            };
            let one = boxed(one)?;
            let others = list.elements.iter().map(|it| read(it, names));
            Some(Quick::Among(one, others.collect::<Option<_>>()?))
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
            let both = [read(left, names)?, read(right, names)?];
            Some(Quick::Compared(how, Box::new(both)))
        }
        _ => None,
    }
}

/// Reads what the macros `all` and `exists` stand for.
fn read_loop(it: &ComprehensionExpr, names: &mut Vec<String>) -> Option<Quick> {
    let is_result =
        |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if *name == it.accu_var);
    let Expr::Literal(LiteralValue::Boolean(all)) = &it.accu_init.expr else {
        return None;
    };
    let all = *all.inner();
    let Expr::Call(step) = &it.loop_step.expr else {
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
    let is_plain = it.iter_var2.is_none() && is_result(&it.result) && is_result(result);
    if !is_plain || step.func_name != joined {
        return None;
    }
    let range = Box::new(read(&it.iter_range, names)?);
    names.push(it.iter_var.clone());
    let body = read(body, names).map(Box::new);
    names.pop();
    Some(Quick::Each {
        all,
        range,
        body: body?,
    })
}

#[cfg(test)]
mod tests;
