//! URIs as Go's `net/url.ParseRequestURI` parses them.

use super::net;
use std::fmt::Write as _;

/// Whether Go parses a text as the URI of a request.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|it| it < b' ' || it == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else {
        return false;
    };
    let rest = rest.split('?').next().unwrap_or_default();
    let scheme_name = scheme.to_ascii_lowercase();
    let is_http = matches!(scheme_name.as_str(), "http" | "https");
    if !rest.starts_with('/') {
        // With a scheme, the rest is opaque.
        return !scheme.is_empty();
    }
    match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            is_authority(authority, is_http) && has_valid_escapes(path)
        }
        None => has_valid_escapes(rest),
    }
}

/// The parts of a reference that validations read, as Go's `net/url.Parse` parses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference<'a> {
    /// The scheme in lower case; empty for a relative reference.
    pub(crate) scheme: String,
    /// Host and port, escaped.
    pub(crate) host: &'a str,
    /// Whether there is a user, which may be empty.
    pub(crate) has_user: bool,
    pub(crate) query: &'a str,
    pub(crate) fragment: &'a str,
}

impl<'a> Reference<'a> {
    /// Parses a URI or a relative reference.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        if text.bytes().any(|it| it < b' ' || it == 0x7f) || !has_valid_escapes(fragment) {
            return None;
        }
        let (scheme, rest) = split_scheme(text)?;
        let scheme = scheme.to_ascii_lowercase();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut reference = Self {
            scheme,
            host: "",
            has_user: false,
            query,
            fragment,
        };
        let is_relative = reference.scheme.is_empty();
        if !rest.starts_with('/') {
            // With a scheme, the rest is opaque.
            let first = rest.split('/').next().unwrap_or_default();
            let is_valid = !is_relative || (!first.contains(':') && has_valid_escapes(rest));
            return is_valid.then_some(reference);
        }
        let path = match rest.strip_prefix("//") {
            Some(after) if !is_relative || !after.starts_with('/') => {
                let end = after.find('/').unwrap_or(after.len());
                let (authority, path) = after.split_at_checked(end)?;
                let is_http = matches!(reference.scheme.as_str(), "http" | "https");
                if !is_authority(authority, is_http) {
                    return None;
                }
                match authority.rsplit_once('@') {
                    Some((_, host)) => {
                        reference.has_user = true;
                        reference.host = host;
                    }
                    None => reference.host = authority,
                }
                path
            }
            _ => rest,
        };
        has_valid_escapes(path).then_some(reference)
    }
}

/// The parts of a URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Uri {
    pub(crate) scheme: String,
    /// Host and port.
    pub(crate) host: String,
    /// The escaped path.
    pub(in super::super) path: String,
    pub(crate) query: String,
}

impl Uri {
    /// Parses a URI that [`is_request_uri`] accepts.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if !is_request_uri(text) {
            return None;
        }
        let text = text.split('#').next().unwrap_or_default();
        let (scheme, rest) = split_scheme(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, path) = match rest
            .strip_prefix("//")
            .filter(|it| !scheme.is_empty() || !it.starts_with('/'))
        {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None if rest.starts_with('/') => ("", rest),
            // The rest is opaque.
            None => ("", ""),
        };
        let host = host.rsplit_once('@').map_or(host, |it| it.1);
        Some(Self {
            scheme: scheme.to_ascii_lowercase(),
            host: unescaped(host, false),
            path: escaped_path(path),
            query: query.to_owned(),
        })
    }

    /// The host without brackets and port, and the port.
    pub(in super::super) fn host_and_port(&self) -> (&str, &str) {
        if let Some(rest) = self.host.strip_prefix('[') {
            let (host, port) = rest.split_once(']').unwrap_or((rest, ""));
            return (host, port.strip_prefix(':').unwrap_or_default());
        }
        let port = self
            .host
            .rsplit_once(':')
            .filter(|it| is_optional_port(&format!(":{}", it.1)));
        port.unwrap_or((&self.host, ""))
    }

    /// The values of the query by their keys, in the order of the keys' first values.
    pub(in super::super) fn query_values(&self) -> Vec<(String, Vec<String>)> {
        let mut out: Vec<(String, Vec<String>)> = Vec::new();
        for pair in self
            .query
            .split('&')
            .filter(|it| !it.is_empty() && !it.contains(';'))
        {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !has_valid_escapes(key) || !has_valid_escapes(value) {
                continue;
            }
            let (key, value) = (unescaped(key, true), unescaped(value, true));
            match out.iter_mut().find(|it| it.0 == key) {
                Some(entry) => entry.1.push(value),
                None => out.push((key, vec![value])),
            }
        }
        out
    }
}

/// A text with the escapes replaced, which are valid.
fn unescaped(text: &str, is_query: bool) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || {
            let digit = rest.next().map(char::from).and_then(|it| it.to_digit(16));
            digit
                .and_then(|it| u8::try_from(it).ok())
                .unwrap_or_default()
        };
        out.push(match byte {
            b'%' => digit().wrapping_mul(16).wrapping_add(digit()),
            b'+' if is_query => b' ',
            other => other,
        });
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A path with the bytes escaped that must be.
fn escaped_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        let sign = char::from(byte);
        if byte.is_ascii_alphanumeric()
            || (byte.is_ascii() && "-_.~!$&'()*+,;=:@[]%/".contains(sign))
        {
            out.push(sign);
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The scheme, which may be empty, and the rest. `None` if the text begins with a colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (position, sign) in text.bytes().enumerate() {
        match sign {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if position > 0 => {}
            b':' if position == 0 => return None,
            b':' => {
                let (scheme, rest) = text.split_at_checked(position)?;
                return Some((scheme, rest.strip_prefix(':')?));
            }
            _ => return Some(("", text)),
        }
    }
    Some(("", text))
}

fn has_valid_escapes(text: &str) -> bool {
    let mut parts = text.split('%');
    parts.next();
    parts.all(|part| {
        let mut digits = part.bytes();
        let mut is_hex = || digits.next().is_some_and(|it| it.is_ascii_hexdigit());
        is_hex() && is_hex()
    })
}

fn is_authority(text: &str, is_http: bool) -> bool {
    let Some((user, host)) = text.rsplit_once('@') else {
        return is_host(text, is_http);
    };
    let is_allowed = |it: char| it.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(it);
    is_host(host, is_http) && user.chars().all(is_allowed) && has_valid_escapes(user)
}

fn is_optional_port(text: &str) -> bool {
    let digits = text.strip_prefix(':');
    text.is_empty() || digits.is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()))
}

fn is_host(text: &str, is_http: bool) -> bool {
    if let Some(rest) = text.strip_prefix('[') {
        let Some((address, port)) = rest.rsplit_once(']') else {
            return false;
        };
        let (address, zone) = address.split_once("%25").unwrap_or((address, "zone"));
        if zone.is_empty() {
            return false;
        }
        return is_optional_port(port) && address.contains(':') && net::parse_ip(address).is_some();
    }
    // Addresses with colons must be in brackets. Only databases have lists of hosts.
    if text.contains('[') || (is_http && text.matches(':').count() > 1) {
        return false;
    }
    let port = text
        .rfind(':')
        .and_then(|at| text.get(at..))
        .unwrap_or_default();
    is_optional_port(port)
        && has_valid_escapes(text)
        && text.char_indices().all(|(at, sign)| match sign {
            // Only `%25` and bytes outside ASCII may be escaped.
            '%' => text.get(at..).is_some_and(|it| {
                let high = it.as_bytes().get(1).copied().unwrap_or_default();
                it.starts_with("%25") || !(b'0'..b'8').contains(&high)
            }),
            sign if sign.is_ascii() => {
                sign.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"".contains(sign)
            }
            _ => true,
        })
}

#[cfg(test)]
mod tests {
    use super::{Uri, is_request_uri};

    #[test]
    fn is_request_uri_differs_from_url_standard_as_go_does() {
        for text in [
            "/a?b",
            "*",
            "https://",
            "a:b",
            "http://h:/",
            "http://[::1%25a]/",
            "mongodb://a:1,b:2/",
        ] {
            assert!(is_request_uri(text), "{text}");
        }
        for text in [
            "",
            "a",
            "http://::1",
            "http://[::1",
            "http://[a]/",
            "http://[::1%25]/",
            "/%zz",
            "//\n",
            ":a",
        ] {
            assert!(!is_request_uri(text), "{text}");
        }
        let uri = Uri::parse("HTTP://u@[::1]:80/a b?k=1&k=%32#f").unwrap();
        assert_eq!((uri.scheme.as_str(), uri.path.as_str()), ("http", "/a%20b"));
        assert_eq!(uri.host_and_port(), ("::1", "80"));
        let values = vec!["1".to_owned(), "2".to_owned()];
        assert_eq!(uri.query_values(), [("k".to_owned(), values)]);
    }
}
