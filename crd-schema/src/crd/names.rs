//! Names, labels and group versions as `k8s.io/apimachinery/pkg/util/validation`.

use std::borrow::Cow;

/// The longest label of DNS, in bytes.
const LABEL_MAX_BYTES: usize = 63;

/// The longest subdomain of DNS, in bytes.
const SUBDOMAIN_MAX_BYTES: usize = 253;

fn is_lower_or_digit(sign: u8) -> bool {
    sign.is_ascii_lowercase() || sign.is_ascii_digit()
}

/// Whether a text begins and ends with letters or digits and has only `inner` signs between them.
fn is_enclosed(text: &str, is_edge: fn(u8) -> bool, is_inner: fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let edges = [bytes.first(), bytes.last()];
    edges.iter().all(|it| it.is_some_and(|it| is_edge(*it))) && bytes.iter().all(|it| is_inner(*it))
}

fn is_label(text: &str) -> bool {
    is_enclosed(text, is_lower_or_digit, |it| {
        is_lower_or_digit(it) || it == b'-'
    })
}

fn is_qualified_part(text: &str) -> bool {
    is_enclosed(
        text,
        |it| it.is_ascii_alphanumeric(),
        |it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.'),
    )
}

fn too_long(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

/// Reasons why a text is no label of DNS (RFC 1123).
pub(crate) fn dns1123_label(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    if text.len() > LABEL_MAX_BYTES {
        out.push(too_long(LABEL_MAX_BYTES));
    }
    if !is_label(text) {
        out.push("must be lower-case alphanumeric characters or '-', and must start and end with an alphanumeric character".to_owned());
    }
    out
}

/// Reasons why a text is no label of DNS (RFC 1035).
pub(crate) fn dns1035_label(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    if text.len() > LABEL_MAX_BYTES {
        out.push(too_long(LABEL_MAX_BYTES));
    }
    if !is_label(text) || !text.starts_with(|it: char| it.is_ascii_lowercase()) {
        out.push("must be lower-case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character".to_owned());
    }
    out
}

/// Reasons why a text is no subdomain of DNS (RFC 1123).
pub(crate) fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    if text.len() > SUBDOMAIN_MAX_BYTES {
        out.push(too_long(SUBDOMAIN_MAX_BYTES));
    }
    if !text.split('.').all(is_label) {
        out.push("must be lower-case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character".to_owned());
    }
    out
}

/// The name check of custom resources.
pub(crate) fn resource_name(name: &str, is_prefix: bool) -> Vec<String> {
    dns1123_subdomain(&masked(name, is_prefix))
}

/// The name that is checked in place of a prefix: a dash at its end is not at the end of the generated name. Like the
/// API server this drops the character before the dash as well.
pub(crate) fn masked(name: &str, is_prefix: bool) -> Cow<'_, str> {
    let stem = name
        .strip_suffix('-')
        .filter(|it| is_prefix && !it.is_empty());
    match stem.and_then(|it| it.char_indices().next_back()) {
        Some((end, _)) => Cow::Owned(format!("{}a", name.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(name),
    }
}

/// The name check of embedded resources: a segment of a path.
pub(crate) fn path_segment(name: &str, is_prefix: bool) -> Vec<String> {
    let mut out = Vec::new();
    if !is_prefix && (name == "." || name == "..") {
        out.push(format!("may not be '{name}'"));
    }
    for sign in ['/', '%'] {
        if name.contains(sign) {
            out.push(format!("may not contain '{sign}'"));
        }
    }
    out
}

/// Reasons why a text is no qualified name, such as the key of a label.
pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let name = match text.split_once('/') {
        Some((_, name)) if name.contains('/') => {
            return vec![
                "must be alphanumeric characters, '-', '_' or '.', with an optional prefix and '/'"
                    .to_owned(),
            ];
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                out.push("prefix part must be non-empty".to_owned());
            } else {
                out.extend(
                    dns1123_subdomain(prefix)
                        .into_iter()
                        .map(|it| format!("prefix part {it}")),
                );
            }
            name
        }
        None => text,
    };
    if name.is_empty() {
        out.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX_BYTES {
        out.push(format!("name part {}", too_long(LABEL_MAX_BYTES)));
    }
    if !is_qualified_part(name) {
        out.push("name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character".to_owned());
    }
    out
}

/// Reasons why a text is no value of a label.
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    if text.len() > LABEL_MAX_BYTES {
        out.push(too_long(LABEL_MAX_BYTES));
    }
    if !text.is_empty() && !is_qualified_part(text) {
        out.push("must be empty or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character".to_owned());
    }
    out
}

/// The group and version of an `apiVersion`; `None` if it has two slashes.
pub(crate) fn parse_group_version(text: &str) -> Option<(&str, &str)> {
    match text.split_once('/') {
        Some((_, version)) if version.contains('/') => None,
        Some((group, version)) => Some((group, version)),
        None => Some(("", if text == "/" { "" } else { text })),
    }
}
