//! The costs of evaluated calls, as `interpreter/runtimecost.go` of cel-go 0.29 and the cost library of
//! `k8s.io/apiserver` 1.37.

use super::library::network_bytes;
use super::value::Value;
use crate::crd::cel_macros::{MAP_INSERT, SORT_BY_KEYS};
use crate::crd::cel_sums::{SUM, SUM_DOUBLES, SUM_DURATIONS, SUM_UINTS};
use kube_cel::cel::common::ast::operators as op;

/// The cost of a character that is read.
const TEXT_COST: f64 = 0.1;

/// The cost of a character of a pattern.
const REGEX_COST: f64 = 0.25;

/// The cost of a new list.
pub(super) const LIST_COST: u64 = 10;

/// The cost of a new map.
pub(super) const MAP_COST: u64 = 30;

/// The cost of a new message.
pub(super) const MESSAGE_COST: u64 = 40;

/// The cost of a call. `result` is missing if the call fails; the first argument is the target if there is one.
pub(super) fn call(name: &str, args: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
    let read = |factor: f64| scaled(args.first().map_or(1, size), factor);
    match (name, args) {
        (
            "isSorted" | SUM | SUM_DOUBLES | SUM_DURATIONS | SUM_UINTS | "max" | "min" | "indexOf"
            | "lastIndexOf",
            [target, ..],
        ) => traversal(target),
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
        ("validate", [Value::Format(format), text]) => search(text, format_pattern_bytes(format)),
        ("containsIP", [network, other]) => {
            let bytes = network_bytes(network);
            scaled(bytes.saturating_mul(2), TEXT_COST).saturating_add(parsed(other))
        }
        ("containsCIDR", [network, other]) => {
            let bytes = network_bytes(network);
            let compared = scaled(bytes.saturating_mul(2), TEXT_COST);
            let masked = scaled(bytes, TEXT_COST).saturating_add(1);
            compared
                .saturating_add(masked)
                .saturating_add(parsed(other))
        }
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
        ("sets.contains" | "sets.intersects", [left, right]) => pairs(left, right, 1),
        ("sets.equivalent", [left, right]) => pairs(left, right, 2),
        ("slice" | "lists.range", _) => new_list(result.map_or(1, size)),
        ("reverse" | "flatten", [list, ..]) if list.is_list() => new_list(size(list)),
        ("distinct" | "sort", [list]) | (SORT_BY_KEYS, [_, list]) => {
            let count = size(list);
            let first = list.items().and_then(|it| it.into_iter().next());
            let is_text = matches!(first, Some(Ok(Value::Text(_) | Value::Bytes(_))));
            let factor = if is_text { 2.0 + TEXT_COST } else { 2.0 };
            new_list(rounded_down(count.saturating_mul(count), factor))
        }
        // The functions of optional values are no calls for cel-go.
        ("or" | "orValue", [Value::Optional(_), _]) => 0,
        _ => 1,
    }
}

/// The items that a call copies besides those that it costs: a loop adds to its result one by one.
pub(super) fn copied(name: &str, args: &[Value<'_>]) -> u64 {
    const ITEMS_PER_STEP: u64 = 8;
    match (name, args) {
        (op::ADD, [list, _]) if list.is_list() => size(list) / ITEMS_PER_STEP,
        (MAP_INSERT, [map, ..]) => size(map),
        _ => 0,
    }
}

/// The cost of parsing an address or a network that is written as a text.
fn parsed(other: &Value<'_>) -> u64 {
    match other {
        Value::Text(_) => scaled(size(other), TEXT_COST),
        _ => 0,
    }
}

fn new_list(count: u64) -> u64 {
    count.saturating_add(1).saturating_add(LIST_COST)
}

fn compared(left: &Value<'_>, right: &Value<'_>) -> u64 {
    scaled(size(left).min(size(right)), TEXT_COST)
}

fn pairs(left: &Value<'_>, right: &Value<'_>, passes: u64) -> u64 {
    let count = size(left).saturating_mul(size(right));
    count.saturating_mul(passes).saturating_add(1)
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
        Value::Text(text) => rounded_down(bytes(text.len()), TEXT_COST),
        Value::Bytes(content) => rounded_down(bytes(content.len()), TEXT_COST),
        value => match value.items() {
            Some(items) => items
                .iter()
                .map(|it| it.as_ref().map_or(1, traversal))
                .fold(0, u64::saturating_add),
            None => 1,
        },
    }
}

fn bytes(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// The bytes of the pattern of a named format, as the library states them.
fn format_pattern_bytes(format: &str) -> u64 {
    match format {
        "dns1123Subdomain" | "dns1123SubdomainPrefix" | "qualifiedName" => 60,
        "labelValue" => 40,
        "uri" => 1103,
        "uuid" => 70,
        "byte" => 84,
        "date" | "datetime" => 71,
        _ => 30,
    }
}

/// A size times a factor, rounded down.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cel-go computes with the same loss; a conversion to an integer saturates"
)]
fn rounded_down(size: u64, factor: f64) -> u64 {
    (size as f64 * factor) as u64
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
