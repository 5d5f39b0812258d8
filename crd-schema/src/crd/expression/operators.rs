//! Operators: arithmetic, comparison, membership and indexing.

use super::equality::{contains, equals, find, has_same_key, order, qualify, unordered};
use super::value::{self, Failure, Outcome, Value, error, no_overload};
use crate::crd::formats::time::{Instant, NANOS_PER_SECOND};
use crate::crd::node::ListType;
use kube_cel::cel::common::ast::operators as op;
use std::borrow::Cow;
use std::rc::Rc;

/// Applies an operator; `None` if the name is none.
pub(super) fn apply<'a>(name: &str, args: &[Value<'a>]) -> Option<Outcome<'a>> {
    Some(match (name, args) {
        (op::LOGICAL_NOT, [Value::Bool(flag)]) => Ok(Value::Bool(!flag)),
        (op::LOGICAL_NOT, [_]) => no_overload(),
        (op::NEGATE, [value]) => negate(value),
        (op::EQUALS, [left, right]) => equals(left, right).map(Value::Bool),
        (op::NOT_EQUALS, [left, right]) => match equals(left, right) {
            // Values that cannot be compared are not equal.
            Err(Failure::Error(_)) => Ok(Value::Bool(true)),
            equal => equal.map(|it| Value::Bool(!it)),
        },
        (op::LESS, [left, right]) => ordered(left, right, std::cmp::Ordering::is_lt),
        (op::LESS_EQUALS, [left, right]) => ordered(left, right, std::cmp::Ordering::is_le),
        (op::GREATER, [left, right]) => ordered(left, right, std::cmp::Ordering::is_gt),
        (op::GREATER_EQUALS, [left, right]) => ordered(left, right, std::cmp::Ordering::is_ge),
        (op::IN, [value, container]) => is_in(value, container),
        (op::INDEX, [container, key]) => index(container, key),
        (op::ADD, [left, right]) => add(left, right),
        (op::SUBSTRACT, [left, right]) => subtract(left, right),
        (op::MULTIPLY, [left, right]) => multiply(left, right),
        (op::DIVIDE, [left, right]) => divide(left, right),
        (op::MODULO, [left, right]) => modulo(left, right),
        _ => return None,
    })
}

fn ordered<'a>(
    left: &Value<'a>,
    right: &Value<'a>,
    is: fn(std::cmp::Ordering) -> bool,
) -> Outcome<'a> {
    Ok(Value::Bool(is(order(left, right)?)))
}

fn int_result<'a>(value: Option<i64>) -> Outcome<'a> {
    value.map_or_else(|| error("integer overflow"), |it| Ok(Value::Int(it)))
}

fn uint_result<'a>(value: Option<u64>) -> Outcome<'a> {
    value.map_or_else(
        || error("unsigned integer overflow"),
        |it| Ok(Value::Uint(it)),
    )
}

fn duration_result<'a>(value: Option<i64>) -> Outcome<'a> {
    value.map_or_else(|| error("duration overflow"), |it| Ok(Value::Duration(it)))
}

fn negate<'a>(value: &Value<'a>) -> Outcome<'a> {
    match value {
        Value::Int(it) => int_result(it.checked_neg()),
        Value::Double(it) => Ok(Value::Double(-it)),
        Value::Duration(it) => duration_result(it.checked_neg()),
        _ => no_overload(),
    }
}

fn add<'a>(left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int_result(left.checked_add(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint_result(left.checked_add(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left + right)),
        (Value::Text(left), Value::Text(right)) => {
            Ok(Value::Text(Cow::Owned(format!("{left}{right}"))))
        }
        (Value::Bytes(left), Value::Bytes(right)) => Ok(Value::Bytes(Rc::new(
            [left.as_slice(), right.as_slice()].concat(),
        ))),
        (Value::Duration(left), Value::Duration(right)) => {
            duration_result(left.checked_add(*right))
        }
        (Value::Time(time), Value::Duration(duration))
        | (Value::Duration(duration), Value::Time(time)) => shifted(*time, *duration),
        _ => add_lists(left, right),
    }
}

fn shifted<'a>(time: Instant, duration: i64) -> Outcome<'a> {
    let nanos = i128::from(time.seconds) * i128::from(NANOS_PER_SECOND) + i128::from(time.nanos);
    let total = nanos.saturating_add(i128::from(duration));
    let seconds = total.div_euclid(i128::from(NANOS_PER_SECOND));
    let nanos = total.rem_euclid(i128::from(NANOS_PER_SECOND));
    match (i64::try_from(seconds), i64::try_from(nanos)) {
        (Ok(seconds), Ok(nanos)) => value::time(Instant { seconds, nanos }),
        _ => error("timestamp overflow"),
    }
}

fn add_lists<'a>(left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
    // cel-go returns the other list, with its own equality.
    if matches!(left, Value::List(_)) && right.is_list() {
        if left.size() == Some(0) {
            return Ok(right.clone());
        }
        if right.size() == Some(0) {
            return Ok(left.clone());
        }
    }
    let (mut items, added) = (left.valid_items()?, right.valid_items()?);
    let schema = unordered(left);
    match schema.map(|it| &it.list) {
        Some(ListType::Set) => {
            for item in added {
                if !contains(&items, &item)? {
                    items.push(item);
                }
            }
        }
        Some(ListType::Map(_)) => {
            for item in added {
                let mut is_replaced = false;
                for stored in &mut items {
                    if let Some(schema) = schema
                        && has_same_key(schema, stored, &item)?
                    {
                        *stored = item.clone();
                        is_replaced = true;
                    }
                }
                if !is_replaced {
                    items.push(item);
                }
            }
        }
        _ => items.extend(added),
    }
    Ok(match schema {
        Some(schema) => Value::Unordered(Rc::new(items), schema),
        None => Value::list(items),
    })
}

fn subtract<'a>(left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int_result(left.checked_sub(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint_result(left.checked_sub(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left - right)),
        (Value::Duration(left), Value::Duration(right)) => {
            duration_result(left.checked_sub(*right))
        }
        (Value::Time(time), Value::Duration(duration)) => match duration.checked_neg() {
            Some(duration) => shifted(*time, duration),
            None => error("duration overflow"),
        },
        (Value::Time(left), Value::Time(right)) => {
            let seconds = left.seconds.checked_sub(right.seconds);
            let nanos = seconds.and_then(|it| it.checked_mul(NANOS_PER_SECOND));
            duration_result(
                nanos.and_then(|it| it.checked_add(left.nanos.checked_sub(right.nanos)?)),
            )
        }
        _ => no_overload(),
    }
}

fn multiply<'a>(left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int_result(left.checked_mul(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint_result(left.checked_mul(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left * right)),
        _ => no_overload(),
    }
}

fn divide<'a>(left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
    match (left, right) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => {
            error("division by zero")
        }
        (Value::Int(left), Value::Int(right)) => int_result(left.checked_div(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint_result(left.checked_div(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left / right)),
        _ => no_overload(),
    }
}

fn modulo<'a>(left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
    match (left, right) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => {
            error("modulus by zero")
        }
        (Value::Int(left), Value::Int(right)) => int_result(left.checked_rem(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint_result(left.checked_rem(*right)),
        _ => no_overload(),
    }
}

fn is_in<'a>(value: &Value<'a>, container: &Value<'a>) -> Outcome<'a> {
    if let Some(items) = container.items() {
        let mut failure = None;
        for item in items {
            match item.and_then(|it| equals(&it, value)) {
                Ok(true) => return Ok(Value::Bool(true)),
                Ok(false) => {}
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        return failure.map_or(Ok(Value::Bool(false)), Err);
    }
    find(container, value).map(|it| Value::Bool(it.is_some()))
}

/// The position that an index names.
fn position(key: &Value<'_>) -> Option<i64> {
    match key {
        Value::Int(it) => Some(*it),
        Value::Uint(it) => i64::try_from(*it).ok(),
        #[allow(
            clippy::cast_possible_truncation,
            reason = "only floats without a fraction are indices"
        )]
        Value::Double(it) if it.fract() == 0.0 => Some(*it as i64),
        _ => None,
    }
}

fn item<'a>(container: &Value<'a>, key: &Value<'a>) -> Result<Option<Value<'a>>, Failure> {
    let Some(at) = position(key) else {
        return error(match key {
            Value::Double(_) | Value::Uint(_) => "unsupported index value in list".to_owned(),
            _ => format!("unsupported index type '{}' in list", key.type_name()),
        });
    };
    let Ok(at) = usize::try_from(at) else {
        return Ok(None);
    };
    match container {
        Value::List(items) | Value::Unordered(items, _) => Ok(items.get(at).cloned()),
        Value::JsonList(items, schema) => {
            let item = items.get(at);
            item.map(|it| Value::item_from_json(it, schema.items.as_deref()))
                .transpose()
        }
        _ => no_overload(),
    }
}

fn index<'a>(container: &Value<'a>, key: &Value<'a>) -> Outcome<'a> {
    if let Value::Optional(inner) = container {
        return match inner {
            Some(inner) => optional_index(inner, key),
            None => Ok(Value::optional(None)),
        };
    }
    let is_list = container.is_list();
    let found = if is_list {
        item(container, key)?
    } else {
        qualify(container, key)?
    };
    if let Some(value) = found {
        Ok(value)
    } else {
        let problem = if is_list {
            "index out of bounds"
        } else {
            "no such key"
        };
        let text = key.as_text().map(str::to_owned);
        let text = text.or_else(|| position(key).map(|it| it.to_string()));
        error(format!("{problem}: {}", text.unwrap_or_default()))
    }
}

/// `container[?key]` and `container.?key`.
pub(super) fn optional_index<'a>(container: &Value<'a>, key: &Value<'a>) -> Outcome<'a> {
    let container = match container {
        Value::Optional(None) => return Ok(Value::optional(None)),
        Value::Optional(Some(inner)) => inner.as_ref(),
        other => other,
    };
    let is_list = container.is_list();
    let found = if is_list {
        item(container, key)?
    } else {
        qualify(container, key)?
    };
    Ok(Value::optional(found))
}

/// The items of a list or the keys of a map.
pub(super) fn range_of<'a>(range: &Value<'a>) -> Result<Vec<Outcome<'a>>, Failure> {
    if let Some(items) = range.items() {
        return Ok(items);
    }
    match range {
        Value::JsonMap(map) => Ok(map.keys().into_iter().map(Ok).collect()),
        Value::Map(entries) => Ok(entries.iter().map(|it| Ok(it.0.clone())).collect()),
        _ => no_overload(),
    }
}

/// The positions and items of a list, or the keys and values of a map.
pub(super) fn pairs_of<'a>(range: &Value<'a>) -> Result<Vec<(Outcome<'a>, Outcome<'a>)>, Failure> {
    if let Some(items) = range.items() {
        let positions = (0_i64..).map(|it| Ok(Value::Int(it)));
        return Ok(positions.zip(items).collect());
    }
    let keys = range_of(range)?;
    let pairs = keys.into_iter().map(|key| {
        let value = key.clone().and_then(|key| index(range, &key));
        (key, value)
    });
    Ok(pairs.collect())
}
