//! The fields that the texts of the API server name.

use lockkeeper_api::field_path::{FieldPath, unescaped};
use lockkeeper_policies::finding::Finding;
use serde_json::Value;

/// The field that a text such as `spec.items[0].name` names in an object. Names may contain dots and brackets, so the
/// object decides: the longest name that exists wins. The last name need not exist.
pub(super) fn field_of(text: &str, object: &Value) -> FieldPath {
    let mut path = FieldPath::default();
    let mut at = Some(object);
    let mut rest = text;
    while !rest.is_empty() {
        if let Some((position, after)) = index_of(rest) {
            path = path.index(position);
            at = at.and_then(|it| it.get(position));
            rest = after;
            continue;
        }
        let names = rest.strip_prefix('.').unwrap_or(rest);
        let known = at.and_then(Value::as_object).and_then(|fields| {
            let fits = |name: &&String| {
                names
                    .strip_prefix(name.as_str())
                    .is_some_and(|it| it.is_empty() || it.starts_with(['.', '[']))
            };
            fields.keys().filter(fits).max_by_key(|it| it.len())
        });
        let length = match known {
            Some(name) if !name.is_empty() => name.len(),
            _ => names
                .find(['.', '['])
                .filter(|it| *it > 0)
                .unwrap_or(names.len()),
        };
        let (name, after) = names.split_at(length);
        path = named(path, name);
        at = at.and_then(|it| it.get(name));
        rest = after;
    }
    path
}

/// A field below another. A key such as that of a label is in brackets, so that its dots separate no fields.
pub(super) fn named(path: FieldPath, name: &str) -> FieldPath {
    if name.contains(['.', '/']) {
        path.key(name)
    } else {
        path.named(name)
    }
}

/// The field at a JSON pointer in an object.
pub(super) fn field_of_pointer(pointer: &str, object: &Value) -> FieldPath {
    let mut path = FieldPath::default();
    let mut at = Some(object);
    for token in pointer.split('/').skip(1) {
        let name = unescaped(token);
        let position = at
            .filter(|it| it.is_array())
            .and_then(|_| name.parse().ok());
        (path, at) = match position {
            Some(position) => (
                path.index(position),
                at.and_then(|it| it.get::<usize>(position)),
            ),
            None => (named(path, &name), at.and_then(|it| it.get(&name))),
        };
    }
    path
}

/// The finding that an object cannot be decoded. The reason may begin with a field, also one below `metadata`.
pub(super) fn decode_finding(reason: &str, object: &Value) -> Finding {
    let (text, problem) = reason.split_once(": ").unwrap_or(("", reason));
    let is_in = |object: &Value, text: &str| {
        let end = text.find(['.', '[']).unwrap_or(text.len());
        text.get(..end).is_some_and(|it| object.get(it).is_some())
    };
    let metadata = &object["metadata"];
    let (field, problem) = if text.contains(' ') {
        (FieldPath::new("metadata"), reason)
    } else if is_in(object, text) {
        (field_of(text, object), problem)
    } else if is_in(metadata, text) {
        (field_of(&format!("metadata.{text}"), object), problem)
    } else {
        (FieldPath::new("metadata"), reason)
    };
    let value = object.pointer(&field.pointer()).cloned();
    Finding::decode_error(field, value.as_ref(), problem)
}

/// An index at the start of a text, and the text after it.
fn index_of(text: &str) -> Option<(usize, &str)> {
    let (number, after) = text.strip_prefix('[')?.split_once(']')?;
    Some((number.parse().ok()?, after))
}

#[cfg(test)]
mod tests {
    use super::{field_of, field_of_pointer};
    use serde_json::json;

    #[test]
    fn field_of_text_is_resolved_in_the_object() {
        let object = json!({
            "spec": {"a.b": {"c": 1}, "a": {"b": 2}, "list": [{"x[0]": 1}], "m": {"k.v": {"n": 1}}},
        });
        for (text, pointer) in [
            ("spec.a.b.c", "/spec/a.b/c"),
            ("spec.a.z", "/spec/a/z"),
            ("spec.list[0].x[0]", "/spec/list/0/x[0]"),
            ("spec.list[1].y", "/spec/list/1/y"),
            ("spec.m.k.v.n", "/spec/m/k.v/n"),
            ("spec.unknown.deep", "/spec/unknown/deep"),
            ("", ""),
            ("[", "/["),
            ("..", "/."),
        ] {
            assert_eq!(field_of(text, &object).pointer(), pointer, "{text}");
            let field = field_of_pointer(pointer, &object);
            assert_eq!(field.text(), field_of(text, &object).text(), "{text}");
        }
    }
}
