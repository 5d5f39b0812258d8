//! Named formats, such as `format.dns1123Label()`.

use super::value::{Outcome, Value, error};
use crate::crd::{formats, names};

/// The names of the formats.
const NAMES: [&str; 13] = [
    "byte",
    "date",
    "datetime",
    "dns1035Label",
    "dns1035LabelPrefix",
    "dns1123Label",
    "dns1123LabelPrefix",
    "dns1123Subdomain",
    "dns1123SubdomainPrefix",
    "labelValue",
    "qualifiedName",
    "uri",
    "uuid",
];

/// Whether a format has this name.
pub(in super::super) fn is_named_format(name: &str) -> bool {
    known(name).is_some()
}

fn known(name: &str) -> Option<&'static str> {
    NAMES.into_iter().find(|it| *it == name)
}

/// Calls a function; `None` if the name is none.
pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Outcome<'a>> {
    Some(match (name, args) {
        ("format.named", [Value::Text(name)]) => {
            Ok(Value::optional(known(name).map(Value::Format)))
        }
        ("validate", [Value::Format(format), Value::Text(text)]) => {
            let reasons = validate(format, text);
            let reasons = (!reasons.is_empty())
                .then(|| Value::list(reasons.into_iter().map(Value::text).collect()));
            Ok(Value::optional(reasons))
        }
        (name, []) => match name.strip_prefix("format.") {
            Some(name) => match known(name) {
                Some(name) => Ok(Value::Format(name)),
                None => error(format!("undeclared reference to 'format.{name}'")),
            },
            None => return None,
        },
        _ => return None,
    })
}

/// Reasons why a text does not have a format.
fn validate(format: &str, text: &str) -> Vec<String> {
    let is_prefix = format.ends_with("Prefix");
    let masked = names::masked(text, is_prefix);
    match format {
        "dns1123Label" | "dns1123LabelPrefix" => names::dns1123_label(&masked),
        "dns1123Subdomain" | "dns1123SubdomainPrefix" => names::dns1123_subdomain(&masked),
        "dns1035Label" | "dns1035LabelPrefix" => names::dns1035_label(&masked),
        "qualifiedName" => names::qualified_name(text),
        "labelValue" => names::label_value(text),
        format if formats::check(format, text) == Some(false) => {
            vec![format!("does not match the {format} format")]
        }
        _ => Vec::new(),
    }
}
