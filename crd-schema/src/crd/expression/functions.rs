//! The functions of the environment, by their names.

use super::value::{Outcome, Value, no_overload, unwrap_optional};
use super::{conversions, format, library, lists, maps, named_formats, strings, times, urls};

/// Calls a function; the first argument is the target if there is one.
pub(super) fn call<'a>(name: &str, has_target: bool, args: &[Value<'a>]) -> Outcome<'a> {
    if let Some(value) = optional(name, args) {
        return value;
    }
    let value = maps::call(name, args)
        .or_else(|| conversions::call(name, args))
        .or_else(|| format::call(name, args))
        .or_else(|| strings::call(name, args))
        .or_else(|| lists::call(name, args))
        .or_else(|| times::call(name, args))
        .or_else(|| urls::call(name, args))
        .or_else(|| named_formats::call(name, args));
    value.unwrap_or_else(|| library::call(name, has_target, args))
}

fn optional<'a>(name: &str, args: &[Value<'a>]) -> Option<Outcome<'a>> {
    Some(match (name, args) {
        ("optional.none", []) => Ok(Value::optional(None)),
        ("optional.of", [value]) => Ok(Value::optional(Some(value.clone()))),
        ("optional.ofNonZeroValue", [value]) => {
            let is_zero = matches!(
                value,
                Value::Null
                    | Value::Bool(false)
                    | Value::Int(0)
                    | Value::Uint(0)
                    | Value::Duration(0)
            ) || value.size() == Some(0)
                || matches!(value, Value::Double(it) if *it == 0.0);
            Ok(Value::optional((!is_zero).then(|| value.clone())))
        }
        ("hasValue", [Value::Optional(inner)]) => Ok(Value::Bool(inner.is_some())),
        ("value", [value @ Value::Optional(_)]) => unwrap_optional(value),
        ("hasValue", _) => no_overload(),
        _ => return None,
    })
}
