//! Semantic versions: the functions of `k8s.io/apiserver/pkg/cel/library/semverlib.go`.

use super::value::{Outcome, Value, error};
use super::version::Version;
use std::cmp::Ordering;
use std::rc::Rc;

/// Calls a function; `None` if the name is none, or the arguments have other types.
pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Outcome<'a>> {
    let number = |version: &Version, at: usize| {
        let number = version.numbers.get(at).copied().unwrap_or_default();
        // Go converts without a check.
        Ok(Value::Int(number.cast_signed()))
    };
    Some(match (name, args) {
        ("semver" | "isSemver", [Value::Text(text)]) => parsed(name, Version::parse(text)),
        ("semver" | "isSemver", [Value::Text(text), Value::Bool(is_tolerant)]) => {
            let version = if *is_tolerant {
                Version::parse_tolerant(text)
            } else {
                Version::parse(text)
            };
            parsed(name, version)
        }
        ("major", [Value::Version(version)]) => number(version, 0),
        ("minor", [Value::Version(version)]) => number(version, 1),
        ("patch", [Value::Version(version)]) => number(version, 2),
        ("compareTo", [Value::Version(left), Value::Version(right)]) => {
            Ok(Value::Int(match left.compare(right) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            }))
        }
        ("isLessThan", [Value::Version(left), Value::Version(right)]) => {
            Ok(Value::Bool(left.compare(right).is_lt()))
        }
        ("isGreaterThan", [Value::Version(left), Value::Version(right)]) => {
            Ok(Value::Bool(left.compare(right).is_gt()))
        }
        _ => return None,
    })
}

fn parsed<'a>(name: &str, version: Result<Version, &'static str>) -> Outcome<'a> {
    match version {
        _ if name == "isSemver" => Ok(Value::Bool(version.is_ok())),
        Ok(version) => Ok(Value::Version(Rc::new(version))),
        Err(reason) => error(reason),
    }
}
