//! The costs of evaluated calls, as `interpreter/runtimecost.go` of cel-go 0.29 and the cost library of
//! `k8s.io/apiserver` 1.37.

use super::value::Value;
use kube_cel::cel::common::ast::operators as op;

/// The cost of a character that is read.
const TEXT_COST: f64 = 0.1;

/// The cost of a character of a pattern.
const REGEX_COST: f64 = 0.25;

/// The longest pattern of a named format, in bytes.
const FORMAT_PATTERN_MAX_BYTES: u64 = 128;

/// The cost of a new list.
pub(super) const LIST_COST: u64 = 10;

/// The cost of a new map.
pub(super) const MAP_COST: u64 = 30;

/// The cost of a new message.
pub(super) const MESSAGE_COST: u64 = 40;

/// The cost of the accumulator in a step of a loop.
pub(super) const STEP_COST: u64 = 3;

/// The cost of a call. `result` is missing if the call fails; the first argument is the target if there is one.
pub(super) fn call(name: &str, args: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
    let read = |factor: f64| scaled(args.first().map_or(1, size), factor);
    match (name, args) {
        ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", [target, ..]) => {
            traversal(target)
        }
        (
            "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR"
            | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" | "bytes" | "strings.quote"
            | "format",
            _,
        )
        | ("string", [Value::Bytes(_)]) => read(TEXT_COST),
        ("replace" | "split" | "ip.isCanonical", _) => read(2.0 * TEXT_COST),
        ("join", _) => scaled(result.map_or(1, size), 2.0 * TEXT_COST),
        ("matches" | "find" | "findAll", [text, pattern, ..]) => search(text, size(pattern)),
        ("validate", [_, text]) => search(text, FORMAT_PATTERN_MAX_BYTES),
        ("startsWith" | "endsWith", [_, part]) => scaled(size(part), TEXT_COST),
        ("contains", [text, part]) => {
            scaled(size(text), TEXT_COST).saturating_mul(scaled(size(part), TEXT_COST))
        }
        (op::IN, [_, list]) if list.is_list() => size(list),
        (op::EQUALS | op::NOT_EQUALS, [left, right])
        | (
            op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS,
            [left @ (Value::Text(_) | Value::Bytes(_)), right],
        ) => compared(left, right),
        (op::ADD, [left @ (Value::Text(_) | Value::Bytes(_)), right]) => {
            scaled(size(left).saturating_add(size(right)), TEXT_COST)
        }
        ("sets.contains" | "sets.intersects", [left, right]) => pairs(left, right),
        ("sets.equivalent", [left, right]) => pairs(left, right).saturating_mul(2),
        ("slice" | "lists.range", _) => new_list(result.map_or(1, size)),
        ("reverse" | "flatten", [list, ..]) if list.is_list() => new_list(size(list)),
        ("distinct" | "sort", [list]) => {
            let count = size(list);
            new_list(scaled(count.saturating_mul(count), 2.0 + TEXT_COST))
        }
        _ => 1,
    }
}

/// The cost of sorting the keys of a list.
pub(super) fn sorted(count: usize) -> u64 {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    new_list(scaled(count.saturating_mul(count), 2.0 + TEXT_COST))
}

fn new_list(count: u64) -> u64 {
    count.saturating_add(1).saturating_add(LIST_COST)
}

fn compared(left: &Value<'_>, right: &Value<'_>) -> u64 {
    scaled(size(left).min(size(right)), TEXT_COST)
}

fn pairs(left: &Value<'_>, right: &Value<'_>) -> u64 {
    size(left).saturating_mul(size(right)).saturating_add(1)
}

fn search(text: &Value<'_>, pattern: u64) -> u64 {
    let text = scaled(size(text).saturating_add(1), TEXT_COST);
    text.saturating_mul(scaled(pattern, REGEX_COST))
}

/// The size of a value; 1 for values without a size.
fn size(value: &Value<'_>) -> u64 {
    match value {
        Value::Optional(Some(inner)) => size(inner),
        value => value
            .size()
            .and_then(|it| u64::try_from(it).ok())
            .unwrap_or(1),
    }
}

/// The cost of reading a value with all parts.
fn traversal(value: &Value<'_>) -> u64 {
    match value {
        Value::Text(_) | Value::Bytes(_) => scaled(size(value), TEXT_COST),
        value => match value.items() {
            Some(items) => items
                .iter()
                .map(|it| it.as_ref().map_or(1, traversal))
                .fold(0, u64::saturating_add),
            None => size(value),
        },
    }
}

/// A size times a factor, rounded up.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cel-go computes with the same loss; a conversion to an integer saturates"
)]
fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}
