//! The formats by their names.

use super::{codes, email, net, time, uri};
use crate::crd::go_regex;
use regex::Regex;
use std::sync::OnceLock;

/// The form of names that formats are compared in: without dashes.
fn normalized(format: &str) -> String {
    format.replace('-', "")
}

/// The formats that the API server supports, without dashes.
const KNOWN: [&str; 26] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Whether the API server validates strings with this format.
#[must_use]
pub fn is_known(format: &str) -> bool {
    !format.is_empty() && KNOWN.contains(&normalized(format).as_str())
}

/// Whether a text has a format; `None` if the format is unknown.
pub(in super::super) fn check(format: &str, text: &str) -> Option<bool> {
    if format.is_empty() {
        return None;
    }
    Some(match normalized(format).as_str() {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|it| it.is_ascii_hexdigit()),
        "byte" => matches(&BASE64, text),
        "cidr" => net::is_cidr(text),
        "creditcard" => codes::is_credit_card(text),
        "date" => time::parse_date(text).is_some(),
        "datetime" => time::is_date_time(text),
        "duration" => time::parse_loose_duration(text).is_some(),
        "email" => email::is_address(text),
        "hexcolor" => matches(&HEX_COLOR, text),
        "hostname" => is_hostname(text),
        "ipv4" => text.contains('.') && net::parse_ip_with_leading_zeros(text).is_some(),
        "ipv6" => text.contains(':') && net::parse_ip(text).is_some(),
        "isbn" => codes::is_isbn10(text) || codes::is_isbn13(text),
        "isbn10" => codes::is_isbn10(text),
        "isbn13" => codes::is_isbn13(text),
        "k8slongname" => text.len() <= 253 && text.split('.').all(is_label),
        "k8sshortname" => text.len() <= 63 && is_label(text),
        "mac" => net::is_mac(text),
        "password" => true,
        "rgbcolor" => matches(&RGB_COLOR, text),
        "ssn" => text.len() == 11 && matches(&SSN, text),
        "uri" => uri::is_request_uri(text),
        "uuid" => matches(&UUID, text),
        "uuid3" => matches(&UUID3, text),
        "uuid4" => matches(&UUID4, text),
        "uuid5" => matches(&UUID5, text),
        _ => return None,
    })
}

/// A pattern of Go that is compiled at its first use.
struct LazyPattern(&'static str, OnceLock<Option<Regex>>);

impl LazyPattern {
    const fn new(pattern: &'static str) -> Self {
        Self(pattern, OnceLock::new())
    }
}

fn matches(pattern: &LazyPattern, text: &str) -> bool {
    let regex = pattern.1.get_or_init(|| go_regex::compile(pattern.0));
    regex.as_ref().is_some_and(|it| it.is_match(text))
}

static BASE64: LazyPattern = LazyPattern::new(
    r"^(?:[A-Za-z0-9+\/]{4})*(?:[A-Za-z0-9+\/]{2}==|[A-Za-z0-9+\/]{3}=|[A-Za-z0-9+\/]{4})$",
);
static HEX_COLOR: LazyPattern = LazyPattern::new("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$");
static RGB_COLOR: LazyPattern = LazyPattern::new(
    r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$",
);
static SSN: LazyPattern = LazyPattern::new(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$");
static UUID: LazyPattern =
    LazyPattern::new("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$");
static UUID3: LazyPattern =
    LazyPattern::new("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$");
static UUID4: LazyPattern = LazyPattern::new(
    "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
);
static UUID5: LazyPattern = LazyPattern::new(
    "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
);
static HOSTNAME: LazyPattern = LazyPattern::new(
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
);

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|it| it.len() <= 63) && matches(&HOSTNAME, text)
}

/// Whether a text has only lower-case letters, digits and inner dashes.
fn is_label(text: &str) -> bool {
    let is_inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    !text.is_empty() && text.bytes().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}
