//! Formats of texts, as `k8s.io/apimachinery/pkg/util/validation` checks them. Each function returns the reasons why a
//! text does not have the format.

use crate::crd::names;

fn when(is_wrong: bool, reason: &str) -> Vec<String> {
    if is_wrong {
        vec![reason.to_owned()]
    } else {
        Vec::new()
    }
}

/// The name of a port.
pub(super) fn port_name(text: &str) -> Vec<String> {
    let is_allowed = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    let mut out = when(text.len() > 15, "must be no more than 15 bytes");
    out.extend(when(
        text.is_empty() || !text.bytes().all(is_allowed),
        "must contain only alphanumeric characters (a-z, 0-9), and hyphens (-)",
    ));
    out.extend(when(
        !text.bytes().any(|it| it.is_ascii_lowercase()),
        "must contain at least one letter (a-z)",
    ));
    out.extend(when(
        text.contains("--"),
        "must not contain consecutive hyphens",
    ));
    out.extend(when(
        text.starts_with('-') || text.ends_with('-'),
        "must not begin or end with a hyphen",
    ));
    out
}

fn parent_folder(text: &str) -> Vec<String> {
    match text {
        "." => vec!["must not be '.'".to_owned()],
        ".." => vec!["must not be '..'".to_owned()],
        _ => when(text.starts_with(".."), "must not start with '..'"),
    }
}

/// The key of a `ConfigMap` or Secret.
pub(super) fn config_key(text: &str) -> Vec<String> {
    let is_allowed = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.');
    let mut out = when(text.len() > 253, "must be no more than 253 bytes");
    out.extend(when(
        text.is_empty() || !text.bytes().all(is_allowed),
        "must consist of alphanumeric characters, '-', '_' or '.'",
    ));
    out.extend(parent_folder(text));
    out
}

/// The name of an environment variable: printable ASCII without `=`.
pub(super) fn environment_variable(text: &str) -> Vec<String> {
    let mut out = when(text.is_empty(), "must be non-empty");
    out.extend(when(
        !text
            .bytes()
            .all(|it| matches!(it, b' '..=b'~') && it != b'='),
        "must consist of printable ASCII characters other than '='",
    ));
    out
}

/// A percentage.
pub(super) fn is_percent(text: &str) -> bool {
    let digits = text.strip_suffix('%').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit())
}

/// The name of an HTTP header.
pub(super) fn header_name(text: &str) -> Vec<String> {
    let is_allowed = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
    when(
        text.is_empty() || !text.bytes().all(is_allowed),
        "must consist of alphanumeric characters or '-'",
    )
}

/// A subdomain whose labels may contain underscores.
pub(super) fn subdomain_with_underscore(text: &str) -> Vec<String> {
    let is_edge = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label).as_bytes();
        let edges = [label.first(), label.last()];
        edges.iter().all(|it| it.is_some_and(|it| is_edge(*it)))
            && label
                .iter()
                .all(|it| is_edge(*it) || matches!(it, b'-' | b'_'))
    };
    let mut out = when(text.len() > 253, "must be no more than 253 bytes");
    out.extend(when(
        !text.split('.').all(is_label),
        "must be lower-case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
    ));
    out
}

/// A subdomain whose first label is `*`.
pub(super) fn wildcard_subdomain(text: &str) -> Vec<String> {
    let mut out = when(text.len() > 253, "must be no more than 253 bytes");
    let is_wrong = text
        .strip_prefix("*.")
        .is_none_or(|it| it.len() <= 253 && !names::dns1123_subdomain(it).is_empty());
    out.extend(when(
        is_wrong,
        "must start with '*.', followed by a DNS subdomain",
    ));
    out
}

/// A file mode is at most this.
pub(super) const FILE_MODE_MAX: i64 = 0o777;
