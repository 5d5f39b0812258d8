//! Kubernetes' validation of names, with its messages. The checks are those of apimachinery
//! (`util/validation` and `api/validation`): one value can have several errors.

use crate::finding::Findings;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lockkeeper_api::field_path::FieldPath;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The errors in a value; each becomes one finding.
pub(crate) type NameErrors = Vec<&'static str>;

/// The most characters of a label's name or value, and of a DNS label.
const LABEL_MAX: usize = 63;

/// The most characters of a DNS subdomain.
const SUBDOMAIN_MAX: usize = 253;

/// The most bytes of all annotations of an object.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// The errors in a DNS-1123 label (`a-z`, `0-9`, `-`).
pub(crate) fn dns_label(value: &str) -> NameErrors {
    let mut faults = Vec::new();
    if value.len() > LABEL_MAX {
        faults.push("must be no more than 63 characters");
    }
    if !is_dns_label(value) {
        faults.push(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
             and must start and end with an alphanumeric character",
        );
    }
    faults
}

/// The errors in a DNS-1123 subdomain: labels separated by dots.
pub(crate) fn dns_subdomain(value: &str) -> NameErrors {
    let mut faults = Vec::new();
    if value.len() > SUBDOMAIN_MAX {
        faults.push("must be no more than 253 characters");
    }
    // As in apimachinery, only the whole name has a length limit, not each label.
    if !is_dns_subdomain(value) {
        faults.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character",
        );
    }
    faults
}

/// The errors in a label key: a name, optionally after a DNS subdomain and a slash.
pub(crate) fn label_key(value: &str) -> NameErrors {
    let (prefix, name) = match value.split_once('/') {
        None => (None, value),
        // As in apimachinery (`IsQualifiedName`), nothing else is checked after a second slash.
        Some((_, name)) if name.contains('/') => {
            return vec!["a label key has at most one slash, after a DNS subdomain"];
        }
        Some((prefix, name)) => (Some(prefix), name),
    };
    let mut faults = match prefix {
        None => Vec::new(),
        Some("") => vec!["prefix part must be non-empty"],
        Some(prefix) => dns_subdomain(prefix),
    };
    if name.is_empty() {
        faults.push("name part must be non-empty");
    } else if name.len() > LABEL_MAX {
        faults.push("name part must be no more than 63 characters");
    }
    if !is_alphanumeric_or(name) {
        faults.push(
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start \
             and end with an alphanumeric character",
        );
    }
    faults
}

/// The errors in a label value.
pub(crate) fn label_value(value: &str) -> NameErrors {
    let mut faults = Vec::new();
    if value.len() > LABEL_MAX {
        faults.push("must be no more than 63 characters");
    }
    if !value.is_empty() && !is_alphanumeric_or(value) {
        faults.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' \
             or '.', and must start and end with an alphanumeric character",
        );
    }
    faults
}

/// The errors in a domain-prefixed path, such as `acme.io/foo`.
pub(crate) fn domain_prefixed_path(value: &str) -> NameErrors {
    let parts = value.split_once('/');
    let Some((host, path)) = parts.filter(|(host, path)| !host.is_empty() && !path.is_empty())
    else {
        return vec!["must be a domain-prefixed path (such as \"acme.io/foo\")"];
    };
    let mut faults = dns_subdomain(host);
    let is_of_path = |it: char| it.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(it);
    if !path.chars().all(is_of_path) {
        faults.push("the path may have letters, digits and any of /-._~%!$&'()*+,;=:");
    }
    faults
}

/// The errors in a path segment of an API URL.
pub(crate) fn path_segment(value: &str) -> NameErrors {
    if [".", ".."].contains(&value) {
        return vec!["must not be \".\" or \"..\""];
    }
    let mut faults = Vec::new();
    if value.contains('/') {
        faults.push("must not contain '/'");
    }
    if value.contains('%') {
        faults.push("must not contain '%'");
    }
    faults
}

/// Whether a text is a valid condition reason: letters, digits, `_`, `,` and `:`, with a letter first and a letter,
/// digit or `_` last.
pub(crate) fn is_condition_reason(value: &str) -> bool {
    let starts = value.starts_with(|c: char| c.is_ascii_alphabetic());
    let ends = value.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let mut rest = value.chars();
    starts && ends && rest.all(|c| c.is_ascii_alphanumeric() || "_,:".contains(c))
}

/// Reports invalid keys and values of labels, all at the path of the map, as Kubernetes does.
pub(crate) fn labels(
    map: &BTreeMap<String, String>,
    field: impl Fn() -> FieldPath,
    out: &mut Findings,
) {
    for (key, value) in map {
        for fault in label_key(key) {
            out.invalid(field(), key, fault);
        }
        for fault in label_value(value) {
            out.invalid(field(), value, fault);
        }
    }
}

/// Reports invalid keys of annotations, and annotations that are too large together.
pub(crate) fn annotations(
    map: &BTreeMap<String, String>,
    field: impl Fn() -> FieldPath,
    out: &mut Findings,
) {
    for key in map.keys() {
        // As in apimachinery (`ValidateAnnotations`), the case of an annotation key is ignored.
        for fault in label_key(&lower_case(key)) {
            out.invalid(field(), key, fault);
        }
    }
    let lengths = map
        .iter()
        .map(|(key, value)| key.len().saturating_add(value.len()));
    if lengths.fold(0, usize::saturating_add) > ANNOTATIONS_MAX {
        out.too_long(field(), "may not be more than 262144 bytes");
    }
}

/// Reports the errors in a label selector.
pub(crate) fn selector(selector: &LabelSelector, field: &FieldPath, out: &mut Findings) {
    if let Some(map) = &selector.match_labels {
        labels(map, || field.clone().field("matchLabels"), out);
    }
    let requirements = selector.match_expressions.iter().flatten();
    for (at, requirement) in requirements.enumerate() {
        let field = field.clone().field("matchExpressions").index(at);
        let values = requirement.values.as_deref().unwrap_or_default();
        match requirement.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => out.required(
                field.clone().field("values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            ),
            "Exists" | "DoesNotExist" if !values.is_empty() => out.forbidden(
                field.clone().field("values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => out.invalid(
                field.clone().field("operator"),
                other,
                "must be In, NotIn, Exists or DoesNotExist",
            ),
        }
        for fault in label_key(&requirement.key) {
            out.invalid(field.clone().field("key"), &requirement.key, fault);
        }
        for (at, value) in values.iter().enumerate() {
            for fault in label_value(value) {
                out.invalid(field.clone().field("values").index(at), value, fault);
            }
        }
    }
}

/// A text in lower case; a copy only if it is not.
fn lower_case(text: &str) -> Cow<'_, str> {
    let is_lower = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    if text.bytes().all(is_lower) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.to_lowercase())
    }
}

/// Whether a text has DNS labels between its dots.
fn is_dns_subdomain(value: &str) -> bool {
    // One pass over the bytes, as most keys of labels have a domain.
    let mut before = b'.';
    for byte in value.bytes() {
        let fits = match byte {
            b'a'..=b'z' | b'0'..=b'9' => true,
            b'-' => before != b'.',
            b'.' => !matches!(before, b'.' | b'-'),
            _ => false,
        };
        if !fits {
            return false;
        }
        before = byte;
    }
    !matches!(before, b'.' | b'-')
}

fn is_dns_label(value: &str) -> bool {
    let is_inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    value.bytes().all(is_inner) && !value.is_empty() && is_enclosed(value, b"-")
}

/// Whether a text has only letters, digits, `-`, `_` and `.`, with a letter or digit first and last.
fn is_alphanumeric_or(value: &str) -> bool {
    let is_inner = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
    value.bytes().all(is_inner) && !value.is_empty() && is_enclosed(value, b"-_.")
}

fn is_enclosed(value: &str, inner: &[u8]) -> bool {
    let ends = [value.bytes().next(), value.bytes().last()];
    !ends.into_iter().flatten().any(|it| inner.contains(&it))
}

#[cfg(test)]
mod tests {
    use super::{
        dns_label, dns_subdomain, domain_prefixed_path, is_dns_label, is_dns_subdomain, label_key,
        label_value,
    };
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn dns_subdomain_has_dns_labels_between_dots(value in "[a1A.-]{0,8}") {
            prop_assert_eq!(is_dns_subdomain(&value), value.split('.').all(is_dns_label));
        }
    }

    #[test]
    fn names_are_accepted_or_report_errors() {
        let long = "a".repeat(64);
        for (faults, expected) in [
            (dns_label("a-1"), 0),
            (dns_label(""), 1),
            (dns_label("A"), 1),
            (dns_label("a.b"), 1),
            (dns_label("-a"), 1),
            (dns_label(&long), 1),
            (dns_label(&"A".repeat(64)), 2),
            (dns_subdomain("a.b-1.c"), 0),
            (dns_subdomain("a..b"), 1),
            (dns_subdomain(&"a.".repeat(130)), 2),
            (label_key("cpu"), 0),
            (label_key("example.com/gpu_A.1"), 0),
            (label_key(""), 2),
            (label_key("/a"), 1),
            (label_key("a/b/c"), 1),
            (label_key("Example/a"), 1),
            (label_key("@cpu"), 1),
            (label_key(&long), 1),
            (label_value(""), 0),
            (label_value("a_B.1"), 0),
            (label_value("a b"), 1),
            (label_value(&long), 1),
            (domain_prefixed_path("acme.io/foo"), 0),
            (domain_prefixed_path("acme.io"), 1),
            (domain_prefixed_path("Acme.io/foo"), 1),
            (domain_prefixed_path("acme.io/f oo"), 1),
        ] {
            assert_eq!(faults.len(), expected, "{faults:?}");
        }
    }
}
