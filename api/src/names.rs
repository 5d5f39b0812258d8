//! Names of Kubernetes objects.

/// The maximum length of an object's name, in characters (RFC 1123 subdomain).
const SUBDOMAIN_LENGTH_MAX: usize = 253;

/// Whether `text` is an RFC 1123 subdomain, as most object names must be. Such a name needs no quoting in a URL or a
/// shell.
#[must_use]
pub fn is_dns_subdomain(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = |label: &str| {
        label.chars().all(is_allowed) && !label.is_empty() && label.trim_matches('-') == label
    };
    text.len() <= SUBDOMAIN_LENGTH_MAX && text.split('.').all(is_label)
}
