//! Plain scalars (without quotes), as far as all YAML versions agree on their type.

use serde_json::Value;
use std::borrow::Cow;

/// The longest number that surely fits into 64 bits, in digits.
const DIGITS_MAX: usize = 18;

/// Words that some version of YAML reads as a boolean or null, in lower case.
const AMBIGUOUS_WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// Whether a plain scalar is a string in every version of YAML.
pub(crate) fn is_plain_string(text: &str) -> bool {
    plain_scalar(Cow::Borrowed(text)).is_some_and(|it| it.is_string())
}

/// The value of a plain scalar; `None` if versions of YAML differ or the scalar is unusual.
pub(super) fn plain_scalar(text: Cow<'_, str>) -> Option<Value> {
    match &*text {
        "" | "~" | "null" => return Some(Value::Null),
        "true" => return Some(Value::Bool(true)),
        "false" => return Some(Value::Bool(false)),
        _ => {}
    }
    let first = text.bytes().next()?;
    let is_text = match first {
        b'a'..=b'z' | b'A'..=b'Z' => !AMBIGUOUS_WORDS
            .iter()
            .any(|it| it.eq_ignore_ascii_case(&text)),
        b'/' | 0x80.. => true,
        b'0'..=b'9' => {
            let unit = text.trim_start_matches(|it: char| it.is_ascii_digit());
            if unit.is_empty() {
                // A leading zero is octal in YAML 1.1.
                let is_decimal = text.len() <= DIGITS_MAX && (first != b'0' || text.len() == 1);
                return is_decimal.then(|| text.parse::<u64>().ok().map(Value::from))?;
            }
            // 16Gi or 500m, but neither 0x10 nor 1e3.
            let unit = unit.bytes().next()?;
            unit.is_ascii_alphabetic() && !b"eExXoObB".contains(&unit)
        }
        _ => false,
    };
    is_text.then(|| Value::String(text.into_owned()))
}
