//! Equality and order of values.

use super::value::{Failure, JsonMap, Value, error, no_overload};
use crate::crd::node::{ListType, Node};
use std::cmp::Ordering;

/// The order of two numbers of any types.
fn compare_numbers(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    #[allow(
        clippy::cast_precision_loss,
        reason = "integers and floats are compared as floats"
    )]
    let float = |it: &Value<'_>| match it {
        Value::Int(it) => Some(*it as f64),
        Value::Uint(it) => Some(*it as f64),
        Value::Double(it) => Some(*it),
        _ => None,
    };
    let integer = |it: &Value<'_>| match it {
        Value::Int(it) => Some(i128::from(*it)),
        Value::Uint(it) => Some(i128::from(*it)),
        _ => None,
    };
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => float(left)?.partial_cmp(&float(right)?),
    }
}

fn is_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

/// The order of two values; `None` for numbers that are not comparable.
pub(super) fn compare(left: &Value<'_>, right: &Value<'_>) -> Result<Option<Ordering>, Failure> {
    Ok(Some(match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Text(left), Value::Text(right)) => left.cmp(right),
        (Value::Bytes(left), Value::Bytes(right)) => left.cmp(right),
        (Value::Time(left), Value::Time(right)) => left.cmp(right),
        (Value::Duration(left), Value::Duration(right)) => left.cmp(right),
        _ if is_number(left) && is_number(right) => return Ok(compare_numbers(left, right)),
        _ => return no_overload(),
    }))
}

/// The order of two values, or an error for numbers that are not comparable.
pub(super) fn order(left: &Value<'_>, right: &Value<'_>) -> Result<Ordering, Failure> {
    match compare(left, right)? {
        Some(order) => Ok(order),
        None => error("NaN values cannot be ordered"),
    }
}

/// Whether two values are equal.
pub(super) fn equals<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<bool, Failure> {
    Ok(match (left, right) {
        (Value::Null, Value::Null) | (Value::Optional(None), Value::Optional(None)) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Text(left), Value::Text(right)) => left == right,
        (Value::Bytes(left), Value::Bytes(right)) => left == right,
        (Value::Time(left), Value::Time(right)) => left == right,
        (Value::Duration(left), Value::Duration(right)) => left == right,
        (Value::Type(left), Value::Type(right)) | (Value::Format(left), Value::Format(right)) => {
            left == right
        }
        (Value::Optional(Some(left)), Value::Optional(Some(right))) => equals(left, right)?,
        (Value::Url(left), Value::Url(right)) => left == right,
        (Value::Quantity(left), Value::Quantity(right)) => match left.equals(right) {
            Some(is_equal) => is_equal,
            None => return no_overload(),
        },
        (Value::Version(left), Value::Version(right)) => left.compare(right).is_eq(),
        (Value::Foreign(left), Value::Foreign(right)) => left == right,
        (Value::Null, _) | (_, Value::Null) => false,
        // One of two quantities is too large for the type.
        (Value::Quantity(_), Value::Foreign(_)) | (Value::Foreign(_), Value::Quantity(_))
            if left.type_name() == right.type_name() =>
        {
            false
        }
        // Values of the Kubernetes library have an order of their own only.
        (Value::Quantity(_) | Value::Version(_) | Value::Foreign(_) | Value::Url(_), _) => {
            return no_overload();
        }
        (Value::Preserved(left), Value::Preserved(right)) => left == right,
        _ if is_number(left) && is_number(right) => {
            compare_numbers(left, right) == Some(Ordering::Equal)
        }
        _ if left.is_list() && right.is_list() => lists_equal(left, right)?,
        (Value::JsonMap(map), Value::Map(_) | Value::JsonMap(_)) => json_map_equals(map, right)?,
        (Value::Map(entries), Value::Map(_) | Value::JsonMap(_)) => {
            if left.size() != right.size() {
                return Ok(false);
            }
            for (key, value) in entries.iter() {
                match find(right, key)? {
                    Some(other) if equals(value, &other)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        // Lists and maps of the object are compared with their like only.
        (Value::JsonList(..) | Value::JsonMap(_), _) => return no_overload(),
        _ => false,
    })
}

/// The value of a key in a map.
pub(super) fn find<'a>(map: &Value<'a>, key: &Value<'a>) -> Result<Option<Value<'a>>, Failure> {
    match map {
        Value::JsonMap(map) => map.find(key),
        Value::Map(entries) => {
            for (name, value) in entries.iter() {
                if equals(name, key)? {
                    return Ok(Some(value.clone()));
                }
            }
            Ok(None)
        }
        _ => no_overload(),
    }
}

/// The value of a key, as cel-go qualifies a value: a value that has no parts has no keys.
pub(super) fn qualify<'a>(
    operand: &Value<'a>,
    key: &Value<'a>,
) -> Result<Option<Value<'a>>, Failure> {
    match operand {
        Value::JsonMap(_) | Value::Map(_) => find(operand, key),
        operand if operand.is_list() => error(format!(
            "unsupported index type '{}' in list",
            key.type_name()
        )),
        _ => Ok(None),
    }
}

fn json_map_equals<'a>(map: &JsonMap<'a>, other: &Value<'a>) -> Result<bool, Failure> {
    if i64::try_from(map.fields.len()).ok() != other.size() {
        return Ok(false);
    }
    for (name, value) in map.fields {
        if map.schema_of(name).is_some() {
            let key = Value::text(name.as_str());
            match (find_raw(map, name)?, find(other, &key)?) {
                (None, None) => {}
                (Some(left), Some(right)) if equals(&left, &right)? => {}
                _ => return Ok(false),
            }
        } else {
            // Fields without a schema are compared as JSON.
            let Value::JsonMap(other) = other else {
                return no_overload();
            };
            if other.fields.get(name).is_some_and(|it| it != value) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn find_raw<'a>(map: &JsonMap<'a>, name: &str) -> Result<Option<Value<'a>>, Failure> {
    map.find(&Value::text(name.to_owned()))
}

/// The schema of a list that compares without order: a set, or a list with map keys.
pub(super) fn unordered<'a>(list: &Value<'a>) -> Option<&'a Node> {
    match list {
        Value::JsonList(_, schema) | Value::Unordered(_, schema) => {
            Some(*schema).filter(|it| it.list != ListType::Atomic)
        }
        _ => None,
    }
}

fn lists_equal<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<bool, Failure> {
    if left.size() != right.size() {
        return Ok(false);
    }
    let (items, others) = (left.valid_items()?, right.valid_items()?);
    let is_json = matches!(left, Value::JsonList(..));
    let Some(schema) = unordered(left) else {
        for (left, right) in items.iter().zip(&others) {
            match equals(left, right) {
                // A constructed list takes values that cannot be compared as equal.
                Err(Failure::Error(_)) if !is_json => {}
                Ok(true) => {}
                other => return other,
            }
        }
        return Ok(true);
    };
    if schema.list == ListType::Set {
        for other in &others {
            if !contains(&items, other)? {
                return Ok(false);
            }
        }
        for item in &items {
            if !contains(&others, item)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    for other in &others {
        let mut is_found = false;
        for item in &items {
            if has_same_key(schema, item, other)? {
                is_found = true;
                if !equals(item, other)? {
                    return Ok(false);
                }
            }
        }
        if !is_found {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a list has an item that equals a value. Items that cannot be compared with it do not.
pub(super) fn contains<'a>(items: &[Value<'a>], value: &Value<'a>) -> Result<bool, Failure> {
    for item in items {
        match equals(item, value) {
            Ok(true) => return Ok(true),
            Ok(false) | Err(Failure::Error(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(false)
}

/// Whether two items of a list with map keys have the same key.
pub(super) fn has_same_key<'a>(
    list: &Node,
    left: &Value<'a>,
    right: &Value<'a>,
) -> Result<bool, Failure> {
    let ListType::Map(keys) = &list.list else {
        return equals(left, right);
    };
    for key in keys {
        let key = Value::text(key.clone());
        match (find(left, &key)?, find(right, &key)?) {
            (None, None) => {}
            (Some(left), Some(right)) if equals(&left, &right)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}
