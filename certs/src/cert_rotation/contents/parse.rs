//! Parses certificates and keys, and checks that they match.

use super::super::subject_alt_names;
use super::{BundledCa, CA_BUNDLE, CA_KEY, CERTIFICATE, KEY, SecretContentsError, Validity};
use crate::tls;
use rcgen::{KeyPair, PublicKeyData};
use rustls::RootCertStore;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use std::time::Duration;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// Parses the certificates of a CA bundle; `None` if it is damaged or empty.
pub(in super::super) fn parse_certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    all.ok().filter(|all| !all.is_empty())
}

pub(super) fn parse_cas(bundle: &str) -> Result<Vec<BundledCa>, SecretContentsError> {
    let all =
        parse_certificates(bundle.as_bytes()).ok_or(SecretContentsError::NotPem(CA_BUNDLE))?;
    all.into_iter()
        .map(|certificate| {
            let (_, parsed) = X509Certificate::from_der(&certificate)
                .map_err(|_| SecretContentsError::InvalidCertificate(CA_BUNDLE))?;
            let mut roots = RootCertStore::empty();
            // rustls accepts any certificate as a root, also one that may not sign.
            if !parsed.is_ca() || roots.add(certificate.clone()).is_err() {
                return Err(SecretContentsError::NotCa);
            }
            let validity = certificate_validity(&parsed);
            Ok(BundledCa {
                certificate,
                validity,
            })
        })
        .collect()
}

pub(super) fn check_ca_key(newest: &BundledCa, key: &str) -> Result<(), SecretContentsError> {
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|_| SecretContentsError::NotPem(CA_KEY))?;
    let key = KeyPair::try_from(&key).map_err(|_| SecretContentsError::UnsupportedKey(CA_KEY))?;
    let (_, parsed) = X509Certificate::from_der(&newest.certificate)
        .map_err(|_| SecretContentsError::InvalidCertificate(CA_BUNDLE))?;
    if parsed.public_key().raw == key.subject_public_key_info() {
        return Ok(());
    }
    Err(SecretContentsError::KeyMismatch {
        key: CA_KEY,
        certificate: CA_BUNDLE,
    })
}

pub(super) fn parse_certified_key(
    certificate: &str,
    key: &str,
) -> Result<CertifiedKey, SecretContentsError> {
    let chain = parse_certificates(certificate.as_bytes())
        .ok_or(SecretContentsError::NotPem(CERTIFICATE))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|_| SecretContentsError::NotPem(KEY))?;
    let signer = tls::provider()
        .key_provider
        .load_private_key(key)
        .map_err(|_| SecretContentsError::UnsupportedKey(KEY))?;
    let pair = CertifiedKey::new(chain, signer);
    match pair.keys_match() {
        Ok(()) => Ok(pair),
        Err(rustls::Error::InconsistentKeys(_)) => Err(SecretContentsError::KeyMismatch {
            key: KEY,
            certificate: CERTIFICATE,
        }),
        Err(_) => Err(SecretContentsError::InvalidCertificate(CERTIFICATE)),
    }
}

/// Returns the names in the serving certificate and its validity.
pub(super) fn read_leaf(
    leaf: &CertificateDer<'_>,
) -> Result<(Vec<String>, Validity), SecretContentsError> {
    let (_, parsed) = X509Certificate::from_der(leaf)
        .map_err(|_| SecretContentsError::InvalidCertificate(CERTIFICATE))?;
    Ok((
        subject_alt_names::from_certificate(&parsed),
        certificate_validity(&parsed),
    ))
}

fn certificate_validity(certificate: &X509Certificate<'_>) -> Validity {
    let seconds = |at: i64| u64::try_from(at).unwrap_or(0);
    Validity {
        begins_s: seconds(certificate.validity().not_before.timestamp()),
        ends_s: seconds(certificate.validity().not_after.timestamp()),
    }
}

/// Returns the index of the CA in the bundle that signed this chain.
pub(super) fn find_signer(
    authorities: &[BundledCa],
    chain: &[CertificateDer<'_>],
    validity: Validity,
) -> Result<usize, SecretContentsError> {
    let (leaf, intermediates) = chain
        .split_first()
        .ok_or(SecretContentsError::UnknownSigner)?;
    let leaf = ParsedCertificate::try_from(leaf).map_err(|_| SecretContentsError::UnknownSigner)?;
    let algorithms = tls::provider().signature_verification_algorithms.all;
    let signs = |authority: &BundledCa| {
        let mut roots = RootCertStore::empty();
        // Expired contents are accepted, so this verifies at a time at which both were valid.
        let both_s = authority.validity.begins_s.max(validity.begins_s);
        let at = UnixTime::since_unix_epoch(Duration::from_secs(both_s));
        roots.add(authority.certificate.clone()).is_ok()
            && verify_server_cert_signed_by_trust_anchor(
                &leaf,
                &roots,
                intermediates,
                at,
                algorithms,
            )
            .is_ok()
    };
    let found = authorities.iter().position(signs);
    found.ok_or(SecretContentsError::UnknownSigner)
}
