//! IP addresses, networks and MAC addresses as Go's `net` parses them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `net.ParseIP`.
pub(crate) fn parse_ip(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    text.parse::<Ipv4Addr>().ok().map(IpAddr::V4)
}

/// `ParseIPSloppy`: numbers of IPv4 may have leading zeros.
pub(crate) fn parse_ip_with_leading_zeros(text: &str) -> Option<IpAddr> {
    let start = text.rfind(':').map_or(0, |it| it.saturating_add(1));
    let (head, tail) = text.split_at_checked(start)?;
    if !tail.contains('.') {
        return parse_ip(text);
    }
    let parts = tail.split('.').map(|part| {
        let digits = part.trim_start_matches('0');
        if digits.is_empty() && !part.is_empty() {
            "0"
        } else {
            digits
        }
    });
    let parts: Vec<&str> = parts.collect();
    parse_ip(&format!("{head}{}", parts.join(".")))
}

/// `ParseCIDRSloppy`.
pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let max = match parse_ip_with_leading_zeros(address) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    let is_number = !length.is_empty() && length.bytes().all(|it| it.is_ascii_digit());
    is_number && length.parse::<u32>().is_ok_and(|it| it <= max)
}

/// `net.ParseMAC`: 6, 8 or 20 bytes.
pub(super) fn is_mac(text: &str) -> bool {
    let (separator, width) = match text.as_bytes().get(2) {
        Some(b':') => (':', 2),
        Some(b'-') => ('-', 2),
        _ => ('.', 4),
    };
    let groups: Vec<&str> = text.split(separator).collect();
    let is_hex = |it: &&str| it.len() == width && it.bytes().all(|it| it.is_ascii_hexdigit());
    let bytes = groups.len().saturating_mul(width / 2);
    groups.iter().all(is_hex) && matches!(bytes, 6 | 8 | 20)
}
