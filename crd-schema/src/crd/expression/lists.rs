//! Functions of lists: those of Kubernetes, of cel-go's `ext.Lists` version 3, and of `ext.Sets`.

use super::equality::{compare, contains, equals, order};
use super::operators;
use super::value::{Outcome, Value, error, no_overload};
use crate::crd::cel_sums::{SUM, SUM_DOUBLES, SUM_DURATIONS, SUM_UINTS};
use kube_cel::cel::common::ast::operators::ADD;
use std::cmp::Ordering;

/// The longest list that `lists.range` creates.
const RANGE_MAX: i64 = 100_000;

/// Calls a function; `None` if the name is none, or the first argument is no list.
pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Outcome<'a>> {
    if let ("lists.range", [Value::Int(count)]) = (name, args) {
        return Some(range(*count));
    }
    let list = args.first()?;
    if !list.is_list() {
        return None;
    }
    let items = match list.valid_items() {
        Ok(items) => items,
        Err(failure) => return Some(Err(failure)),
    };
    let rest = args.get(1..).unwrap_or_default();
    Some(match (name, rest) {
        ("isSorted", []) => is_sorted(&items),
        (SUM, []) => sum(&items, Value::Int(0)),
        (SUM_DOUBLES, []) => sum(&items, Value::Double(0.0)),
        (SUM_DURATIONS, []) => sum(&items, Value::Duration(0)),
        (SUM_UINTS, []) => sum(&items, Value::Uint(0)),
        ("min", []) => extreme("min", &items, Ordering::Less),
        ("max", []) => extreme("max", &items, Ordering::Greater),
        ("indexOf", [value]) => position(items.iter().enumerate(), value),
        ("lastIndexOf", [value]) => position(items.iter().enumerate().rev(), value),
        ("slice", [Value::Int(start), Value::Int(end)]) => slice(&items, *start, *end),
        ("distinct", []) => distinct(items),
        ("sort", []) => sort_pairs(items.into_iter().map(|it| (it.clone(), it)).collect()),
        ("reverse", []) => Ok(Value::list(items.into_iter().rev().collect())),
        ("first", []) => Ok(Value::optional(items.into_iter().next())),
        ("last", []) => Ok(Value::optional(items.into_iter().next_back())),
        ("optional.unwrap" | "unwrapOpt", []) => present_items(items),
        ("flatten", []) => flatten(items, 1),
        ("flatten", [Value::Int(depth)]) => flatten(items, *depth),
        ("join", []) => join(&items, ""),
        ("join", [Value::Text(separator)]) => join(&items, separator),
        ("sets.contains", [other]) => is_subset(other, &items),
        ("sets.intersects", [other]) => intersects(&items, other),
        ("sets.equivalent", [other]) => match is_subset(other, &items) {
            Ok(Value::Bool(true)) => match other.valid_items() {
                Ok(others) => is_subset(list, &others),
                Err(failure) => Err(failure),
            },
            result => result,
        },
        _ => return None,
    })
}

fn range<'a>(count: i64) -> Outcome<'a> {
    if count > RANGE_MAX {
        return error("the range is too long");
    }
    Ok(Value::list((0..count).map(Value::Int).collect()))
}

fn is_sorted<'a>(items: &[Value<'a>]) -> Outcome<'a> {
    for pair in items.windows(2) {
        if let [left, right] = pair
            && compare(left, right)? == Some(Ordering::Greater)
        {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(items: &[Value<'a>], zero: Value<'a>) -> Outcome<'a> {
    let Some((first, rest)) = items.split_first() else {
        return Ok(zero);
    };
    let mut total = first.clone();
    for item in rest {
        total = operators::apply(ADD, &[total, item.clone()]).unwrap_or_else(no_overload)?;
    }
    Ok(total)
}

fn extreme<'a>(name: &str, items: &[Value<'a>], wanted: Ordering) -> Outcome<'a> {
    let Some((first, rest)) = items.split_first() else {
        return error(format!("{name} called on empty list"));
    };
    let mut best = first;
    for item in rest {
        if order(item, best)? == wanted {
            best = item;
        }
    }
    Ok(best.clone())
}

fn position<'i, 'a: 'i>(
    items: impl Iterator<Item = (usize, &'i Value<'a>)>,
    value: &Value<'a>,
) -> Outcome<'a> {
    for (at, item) in items {
        if equals(item, value)? {
            return Ok(Value::Int(i64::try_from(at).unwrap_or(i64::MAX)));
        }
    }
    Ok(Value::Int(-1))
}

fn slice<'a>(items: &[Value<'a>], start: i64, end: i64) -> Outcome<'a> {
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    if start < 0 || end < 0 {
        return error(format!(
            "cannot slice({start}, {end}), negative indexes not supported"
        ));
    }
    if start > end {
        return error(format!(
            "cannot slice({start}, {end}), start index must be less than or equal to end index"
        ));
    }
    if end > length {
        return error(format!(
            "cannot slice({start}, {end}), list is length {length}"
        ));
    }
    let start = usize::try_from(start).unwrap_or_default();
    let end = usize::try_from(end).unwrap_or_default();
    Ok(Value::list(
        items.get(start..end).unwrap_or_default().to_vec(),
    ))
}

fn distinct(items: Vec<Value<'_>>) -> Outcome<'_> {
    let mut out: Vec<Value<'_>> = Vec::new();
    for item in items {
        if !contains(&out, &item)? {
            out.push(item);
        }
    }
    Ok(Value::list(out))
}

/// Sorts items by their keys.
pub(super) fn sort_pairs<'a>(pairs: Vec<(Value<'a>, Value<'a>)>) -> Outcome<'a> {
    let first = pairs.first().map(|it| it.0.clone());
    for (key, _) in &pairs {
        if let Some(first) = &first {
            compare(first, key)?;
        }
    }
    let mut pairs = pairs;
    pairs.sort_by(|left, right| {
        compare(&left.0, &right.0)
            .ok()
            .flatten()
            .unwrap_or(Ordering::Equal)
    });
    Ok(Value::list(pairs.into_iter().map(|it| it.1).collect()))
}

fn flatten(items: Vec<Value<'_>>, depth: i64) -> Outcome<'_> {
    if depth < 0 {
        return error("level must be non-negative");
    }
    let mut out = items;
    for _ in 0..depth.min(16) {
        let mut next = Vec::new();
        for item in out {
            match item.items() {
                Some(items) => {
                    for item in items {
                        next.push(item?);
                    }
                }
                None => next.push(item),
            }
        }
        out = next;
    }
    Ok(Value::list(out))
}

/// The values of optional items that have one.
fn present_items(items: Vec<Value<'_>>) -> Outcome<'_> {
    let mut out = Vec::new();
    for item in items {
        match item {
            Value::Optional(Some(inner)) => out.push(inner.as_ref().clone()),
            Value::Optional(None) => {}
            _ => return error("value is not optional"),
        }
    }
    Ok(Value::list(out))
}

fn join<'a>(items: &[Value<'a>], separator: &str) -> Outcome<'a> {
    let texts: Option<Vec<&str>> = items.iter().map(Value::as_text).collect();
    match texts {
        Some(texts) => Ok(Value::text(texts.join(separator))),
        None => no_overload(),
    }
}

/// Whether all items of `list` are in `items`.
fn is_subset<'a>(list: &Value<'a>, items: &[Value<'a>]) -> Outcome<'a> {
    for item in list.valid_items()? {
        if !contains(items, &item)? {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn intersects<'a>(items: &[Value<'a>], other: &Value<'a>) -> Outcome<'a> {
    for item in other.valid_items()? {
        if contains(items, &item)? {
            return Ok(Value::Bool(true));
        }
    }
    // An empty set intersects with nothing.
    Ok(Value::Bool(false))
}
