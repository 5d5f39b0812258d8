//! Names of Kubernetes objects.

/// The maximum length of an object's name, in characters (RFC 1123 subdomain).
const SUBDOMAIN_LENGTH_MAX: usize = 253;

/// The maximum length of an RFC 1123 label, in characters.
const LABEL_LENGTH_MAX: usize = 63;

/// Whether `text` is an RFC 1123 label, as the names of namespaces, Services and pod sets are.
#[must_use]
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= LABEL_LENGTH_MAX && is_subdomain_part(text)
}

/// Whether `text` is an RFC 1123 subdomain, as most object names must be. Such a name needs no quoting in a URL or a
/// shell.
#[must_use]
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_LENGTH_MAX && text.split('.').all(is_subdomain_part)
}

/// Whether a part of a subdomain is a label of any length: Kubernetes limits only the whole subdomain.
fn is_subdomain_part(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.chars().all(is_allowed) && !text.is_empty() && text.trim_matches('-') == text
}
