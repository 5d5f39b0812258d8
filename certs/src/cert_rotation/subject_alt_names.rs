//! The subject alternative names of a serving certificate.

use rustls::pki_types::ServerName;
use std::net::IpAddr;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::GeneralName;

/// Returns the DNS names and addresses in a certificate.
pub(super) fn from_certificate(certificate: &X509Certificate<'_>) -> Vec<String> {
    let extension = certificate.subject_alternative_name().ok().flatten();
    let names = extension.map(|extension| &extension.value.general_names);
    let text = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => parse_ip(bytes).map(|address| address.to_string()),
        _ => None,
    };
    names.into_iter().flatten().filter_map(text).collect()
}

fn parse_ip(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::from(bytes));
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}

/// Returns the wanted names and the other names that the serving certificate has.
pub(super) fn union(wanted: &[ServerName<'static>], has: &[String]) -> Vec<ServerName<'static>> {
    let mut all = wanted.to_vec();
    for name in has {
        // Fails for a wildcard, which lockkeeper does not issue.
        match ServerName::try_from(name.clone()) {
            Ok(name) if !all.contains(&name) => all.push(name),
            _ => {}
        }
    }
    all
}
