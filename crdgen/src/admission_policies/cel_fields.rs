//! Fields and values of objects in CEL expressions.

use serde_json::Value;

/// Words that are no names of fields in CEL.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// The CEL condition that each field of a path is present: `has` fails below a missing one.
pub(super) fn has_field(of: &str, fields: &[&str]) -> String {
    let steps = (1..=fields.len()).map(|count| {
        let (way, name) = fields.split_at(count.saturating_sub(1));
        let name = name.first().copied().unwrap_or_default();
        let way = select(of, way);
        if is_identifier(name) {
            format!("has({way}.{name})")
        } else {
            format!("{} in {way}", text(name))
        }
    });
    format!("({})", steps.collect::<Vec<_>>().join(" && "))
}

/// The CEL value of a field.
pub(super) fn select(of: &str, fields: &[&str]) -> String {
    fields.iter().fold(of.to_owned(), |of, name| {
        if is_identifier(name) {
            format!("{of}.{name}")
        } else {
            format!("{of}[{}]", text(name))
        }
    })
}

fn is_identifier(name: &str) -> bool {
    let is_letter = |it: char| it.is_ascii_alphabetic() || it == '_';
    name.starts_with(is_letter)
        && name.chars().all(|it| is_letter(it) || it.is_ascii_digit())
        && !RESERVED.contains(&name)
}

/// A value as CEL.
pub(super) fn literal(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), text)
}

/// A text as CEL, which has the escapes of JSON.
pub(super) fn text(value: &str) -> String {
    Value::from(value).to_string()
}
