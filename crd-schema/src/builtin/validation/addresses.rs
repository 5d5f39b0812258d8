//! IP addresses and networks, as `k8s.io/apimachinery/pkg/util/validation` checks them in fields that once accepted more.

use crate::crd::formats::net::{parse_ip, parse_ip_with_leading_zeros};
use std::net::IpAddr;

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(it) if it.to_ipv4_mapped().is_some())
}

/// Reasons why a text is no IP address.
pub(super) fn ip(text: &str) -> Vec<String> {
    if parse_ip_with_leading_zeros(text).is_none() {
        return vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()];
    }
    match parse_ip(text) {
        None => vec!["must not have leading 0s".to_owned()],
        Some(address) if is_mapped(address) => {
            vec!["must not be an IPv4-mapped IPv6 address".to_owned()]
        }
        Some(_) => Vec::new(),
    }
}

/// An IP address with or without leading zeros.
pub(super) fn sloppy_ip(text: &str) -> Option<IpAddr> {
    parse_ip_with_leading_zeros(text)
}

/// Whether the texts are addresses of both families.
pub(super) fn is_dual_stack(texts: &[&str]) -> bool {
    let addresses: Option<Vec<IpAddr>> = texts.iter().map(|it| sloppy_ip(it)).collect();
    addresses.is_some_and(|it| it.iter().any(IpAddr::is_ipv4) && it.iter().any(IpAddr::is_ipv6))
}

/// A network: the address and the length of the prefix.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network {
    address: IpAddr,
    /// The length of the prefix.
    pub(super) length: u32,
}

fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(it) => (u128::from(u32::from(it)), 32),
        IpAddr::V6(it) => (u128::from(it), 128),
    }
}

/// The bits of an address in a prefix.
fn masked(address: IpAddr, length: u32) -> u128 {
    let (value, width) = bits(address);
    let host = width.saturating_sub(length);
    value.checked_shr(host).unwrap_or(0)
}

impl Network {
    /// Parses a network with or without leading zeros.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let address = parse_ip_with_leading_zeros(address)?;
        let is_number = !length.is_empty() && length.bytes().all(|it| it.is_ascii_digit());
        let length: u32 = length.parse().ok().filter(|_| is_number)?;
        (length <= bits(address).1).then_some(Self { address, length })
    }

    /// Whether a network begins in this one.
    pub(super) fn contains(&self, other: &Self) -> bool {
        self.address.is_ipv4() == other.address.is_ipv4()
            && masked(self.address, self.length) == masked(other.address, self.length)
    }

    fn has_host_bits(&self) -> bool {
        let (value, width) = bits(self.address);
        let host = width.saturating_sub(self.length);
        let prefix = masked(self.address, self.length);
        prefix.checked_shl(host).unwrap_or(0) != value
    }
}

/// Reasons why a text is no network.
pub(super) fn cidr(text: &str) -> Vec<String> {
    let Some(network) = Network::parse(text) else {
        return vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()];
    };
    let (address, length) = text.split_once('/').unwrap_or_default();
    let has_zeros = length.len() > 1 && length.starts_with('0');
    let reason = if has_zeros || parse_ip(address).is_none() {
        "must not have leading 0s in IP or prefix length"
    } else if is_mapped(network.address) {
        "must not have an IPv4-mapped IPv6 address"
    } else if network.has_host_bits() {
        "must not have bits set beyond the prefix length"
    } else {
        return Vec::new();
    };
    vec![reason.to_owned()]
}
