//! Functions of strings: those of CEL, of cel-go's `ext.Strings` version 2, and of the Kubernetes regex library.

use super::value::{Outcome, Value, error, no_overload};
use crate::crd::go_regex;

/// Calls a function; `None` if the name is none, or the arguments are no strings.
pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Outcome<'a>> {
    let Value::Text(target) = args.first()? else {
        return None;
    };
    let target: &str = target;
    let rest = args.get(1..).unwrap_or_default();
    Some(match (name, rest) {
        ("startsWith", [Value::Text(other)]) => Ok(Value::Bool(target.starts_with(other.as_ref()))),
        ("endsWith", [Value::Text(other)]) => Ok(Value::Bool(target.ends_with(other.as_ref()))),
        ("contains", [Value::Text(other)]) => Ok(Value::Bool(target.contains(other.as_ref()))),
        ("matches", [Value::Text(pattern)]) => match go_regex::compile(pattern) {
            Some(regex) => Ok(Value::Bool(regex.is_match(target))),
            None => error(format!("error parsing regexp: {pattern}")),
        },
        ("find", [Value::Text(pattern)]) => match go_regex::compile(pattern) {
            Some(regex) => {
                let found = regex.find(target).map_or("", |it| it.as_str());
                Ok(Value::text(found.to_owned()))
            }
            None => error(format!("illegal regex: {pattern}")),
        },
        ("findAll", [Value::Text(pattern)]) => find_all(target, pattern, -1),
        ("findAll", [Value::Text(pattern), Value::Int(limit)]) => find_all(target, pattern, *limit),
        ("charAt", [Value::Int(at)]) => char_at(target, *at),
        ("indexOf", [Value::Text(other)]) => index_of(target, other, 0),
        ("indexOf", [Value::Text(other), Value::Int(from)]) => index_of(target, other, *from),
        ("lastIndexOf", [Value::Text(other)]) => last_index_of(target, other, None),
        ("lastIndexOf", [Value::Text(other), Value::Int(from)]) => {
            last_index_of(target, other, Some(*from))
        }
        ("lowerAscii", []) => Ok(Value::text(target.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Value::text(target.to_ascii_uppercase())),
        ("trim", []) => Ok(Value::text(target.trim().to_owned())),
        ("replace", [Value::Text(old), Value::Text(new)]) => {
            Ok(Value::text(target.replace(old.as_ref(), new)))
        }
        ("replace", [Value::Text(old), Value::Text(new), Value::Int(count)]) => {
            Ok(Value::text(match usize::try_from(*count) {
                Ok(count) => target.replacen(old.as_ref(), new, count),
                Err(_) => target.replace(old.as_ref(), new),
            }))
        }
        ("split", [Value::Text(separator)]) => Ok(split(target, separator, -1)),
        ("split", [Value::Text(separator), Value::Int(count)]) => {
            Ok(split(target, separator, *count))
        }
        ("substring", [Value::Int(start)]) => substring(target, *start, None),
        ("substring", [Value::Int(start), Value::Int(end)]) => {
            substring(target, *start, Some(*end))
        }
        ("reverse", []) => no_overload(),
        _ => return None,
    })
}

fn find_all<'a>(target: &str, pattern: &str, limit: i64) -> Outcome<'a> {
    let Some(regex) = go_regex::compile(pattern) else {
        return error(format!("illegal regex: {pattern}"));
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = regex.find_iter(target).take(limit);
    Ok(Value::list(
        found
            .map(|it| Value::text(it.as_str().to_owned()))
            .collect(),
    ))
}

fn out_of_range<'a>(index: i64) -> Outcome<'a> {
    error(format!("index out of range: {index}"))
}

fn length(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

/// The characters from `start` to `end`, which are in range.
fn characters(text: &str, start: i64, end: i64) -> String {
    let start = usize::try_from(start).unwrap_or_default();
    let end = usize::try_from(end).unwrap_or_default();
    text.chars()
        .skip(start)
        .take(end.saturating_sub(start))
        .collect()
}

fn char_at<'a>(text: &str, at: i64) -> Outcome<'a> {
    if at < 0 || at > length(text) {
        return out_of_range(at);
    }
    Ok(Value::text(characters(text, at, at.saturating_add(1))))
}

fn substring<'a>(text: &str, start: i64, end: Option<i64>) -> Outcome<'a> {
    let length = length(text);
    let to = end.unwrap_or(length);
    if end.is_some() && start > to {
        return error(format!(
            "invalid substring range. start: {start}, end: {to}"
        ));
    }
    if start < 0 || start > length {
        return out_of_range(start);
    }
    if to < 0 || to > length {
        return out_of_range(to);
    }
    Ok(Value::text(characters(text, start, to)))
}

/// The character position of a byte position.
fn position<'a>(text: &str, at: Option<usize>) -> Value<'a> {
    let at = at.and_then(|it| text.get(..it));
    Value::Int(at.map_or(-1, length))
}

fn index_of<'a>(text: &str, other: &str, from: i64) -> Outcome<'a> {
    if other.is_empty() {
        return Ok(Value::Int(from));
    }
    let Ok(from) = usize::try_from(from) else {
        return out_of_range(from);
    };
    let Some((start, _)) = text.char_indices().nth(from) else {
        return Ok(Value::Int(-1));
    };
    let found = text.get(start..).and_then(|it| it.find(other));
    Ok(position(text, found.map(|it| it.saturating_add(start))))
}

fn last_index_of<'a>(text: &str, other: &str, from: Option<i64>) -> Outcome<'a> {
    if other.is_empty() {
        return Ok(Value::Int(from.unwrap_or_else(|| length(text))));
    }
    let Some(from) = from else {
        return Ok(position(text, text.rfind(other)));
    };
    let Ok(count) = usize::try_from(from) else {
        return out_of_range(from);
    };
    let Some((start, _)) = text.char_indices().nth(count) else {
        return Ok(Value::Int(-1));
    };
    let mut found = text.match_indices(other).map(|it| it.0).collect::<Vec<_>>();
    // Overlapping matches are found by searching from each position.
    if let Some(best) = (0..=start)
        .rev()
        .find(|it| text.get(*it..).is_some_and(|it| it.starts_with(other)))
    {
        found = vec![best];
    } else {
        found.clear();
    }
    Ok(position(text, found.first().copied()))
}

fn split<'a>(text: &str, separator: &str, count: i64) -> Value<'a> {
    let parts: Vec<String> = match usize::try_from(count) {
        Ok(0) => Vec::new(),
        Ok(count) if separator.is_empty() => {
            let mut rest = text.chars();
            let mut parts: Vec<String> = rest
                .by_ref()
                .take(count.saturating_sub(1))
                .map(String::from)
                .collect();
            if !rest.as_str().is_empty() {
                parts.push(rest.as_str().to_owned());
            }
            parts
        }
        Ok(count) => text.splitn(count, separator).map(str::to_owned).collect(),
        Err(_) if separator.is_empty() => text.chars().map(String::from).collect(),
        Err(_) => text.split(separator).map(str::to_owned).collect(),
    };
    Value::list(parts.into_iter().map(Value::text).collect())
}
