//! The contents of the Secret: a CA bundle, the newest CA's key, and the served certificate with its key.

use k8s_openapi::ByteString;
use rcgen::{Issuer, KeyPair};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

mod parse;

pub(super) use parse::parse_certificates;

/// The CA bundle: every trusted CA, the newest first.
pub(super) const CA_BUNDLE: &str = "ca.crt";
/// The key of the newest CA.
pub(super) const CA_KEY: &str = "ca.key";
/// The serving certificate, or a chain that starts with it.
pub(super) const CERTIFICATE: &str = "tls.crt";
/// The serving certificate's key.
pub(super) const KEY: &str = "tls.key";

/// All parts.
const DATA_KEYS: [&str; 4] = [CA_BUNDLE, CA_KEY, CERTIFICATE, KEY];

/// Why the data of a Secret cannot be used. No text quotes the content of a part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretContentsError {
    /// When some parts exist and this one does not.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// When a part has no PEM section of its kind, or a damaged one.
    #[error("{0} is not PEM of the right kind, or is damaged")]
    NotPem(&'static str),
    /// When a section is not an X.509 certificate.
    #[error("{0} has a section that is no X.509 certificate")]
    InvalidCertificate(&'static str),
    /// When the bundle has a certificate that may not sign others.
    #[error("ca.crt has a certificate that is not a CA's")]
    NotCa,
    /// When a key has a type that TLS does not use.
    #[error("{0} has no usable key")]
    UnsupportedKey(&'static str),
    /// When a key belongs to another certificate.
    #[error("{key} is not the key of the first certificate in {certificate}")]
    KeyMismatch {
        /// The part with the key.
        key: &'static str,
        /// The part with the certificate.
        certificate: &'static str,
    },
    /// When no CA of the bundle has signed the serving certificate, or it is not for servers.
    #[error("tls.crt is not a server's certificate signed by a CA in ca.crt")]
    UnknownSigner,
}

/// Parses the data of a Secret as [`CertRotator`](super::CertRotator) does, and returns the names of its serving
/// certificate; `None` if it has none of the four parts.
///
/// # Errors
///
/// A [`SecretContentsError`] if a part is missing or damaged, or does not match the others.
pub fn parse_secret_data(
    data: &BTreeMap<String, ByteString>,
) -> Result<Option<Vec<String>>, SecretContentsError> {
    let contents = SecretContents::read(data)?;
    Ok(contents.map(|it| it.names))
}

/// A CA of the bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BundledCa {
    /// The certificate.
    pub(super) certificate: CertificateDer<'static>,
    /// The validity, in seconds since 1970.
    pub(super) validity: Validity,
}

/// The validity of a certificate, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) begins_s: u64,
    /// The last second.
    pub(super) ends_s: u64,
}

/// Complete data of a Secret with matching parts. The certificates may have expired.
pub(super) struct SecretContents {
    /// The texts of the four parts, as the Secret has them.
    pem_texts: [String; 4],
    cas: Vec<BundledCa>,
    certified_key: Arc<CertifiedKey>,
    /// The subject alternative names of the serving certificate: DNS names and addresses.
    names: Vec<String>,
    validity: Validity,
    signer: usize,
}

impl SecretContents {
    /// Reads the data of a Secret; `None` if it has none of the four parts.
    pub(super) fn read(
        data: &BTreeMap<String, ByteString>,
    ) -> Result<Option<Self>, SecretContentsError> {
        let part = |name: &str| data.get(name).filter(|part| !part.0.is_empty());
        if DATA_KEYS.iter().all(|name| part(name).is_none()) {
            return Ok(None);
        }
        let text = |name| {
            let bytes = part(name).ok_or(SecretContentsError::Missing(name))?;
            String::from_utf8(bytes.0.clone()).map_err(|_| SecretContentsError::NotPem(name))
        };
        Self::parse([
            text(CA_BUNDLE)?,
            text(CA_KEY)?,
            text(CERTIFICATE)?,
            text(KEY)?,
        ])
        .map(Some)
    }

    /// Parses the four parts in the order of their names: bundle, its key, certificate, its key.
    pub(super) fn parse(texts: [String; 4]) -> Result<Self, SecretContentsError> {
        let [bundle, authority_key, certificate, key] = &texts;
        let authorities = parse::parse_cas(bundle)?;
        let newest = authorities
            .first()
            .ok_or(SecretContentsError::NotPem(CA_BUNDLE))?;
        parse::check_ca_key(newest, authority_key)?;
        let pair = parse::parse_certified_key(certificate, key)?;
        let leaf = pair
            .cert
            .first()
            .ok_or(SecretContentsError::NotPem(CERTIFICATE))?;
        let (names, validity) = parse::read_leaf(leaf)?;
        let signer = parse::find_signer(&authorities, &pair.cert, validity)?;
        Ok(Self {
            certified_key: Arc::new(pair),
            names,
            validity,
            signer,
            cas: authorities,
            pem_texts: texts,
        })
    }

    /// Returns the data of the Secret.
    pub(super) fn data(&self) -> BTreeMap<String, ByteString> {
        let parts = DATA_KEYS.iter().zip(&self.pem_texts);
        parts
            .map(|(name, text)| ((*name).to_owned(), ByteString(text.clone().into_bytes())))
            .collect()
    }

    /// Returns the four texts.
    pub(super) fn pem_texts(&self) -> &[String; 4] {
        &self.pem_texts
    }

    /// Returns the text of `ca.crt`: the CAs for clients to trust.
    pub(super) fn bundle(&self) -> &str {
        let [bundle, ..] = &self.pem_texts;
        bundle
    }

    /// Returns the CAs of the bundle, the newest first.
    pub(super) fn cas(&self) -> &[BundledCa] {
        &self.cas
    }

    /// Returns the CA that signed the serving certificate.
    pub(super) fn signer(&self) -> Option<&BundledCa> {
        self.cas.get(self.signer)
    }

    /// Returns true if the newest CA is only in the bundle and has not signed the served certificate.
    pub(super) fn has_announced_ca(&self) -> bool {
        self.signer != 0
    }

    /// Returns the certificate and key for connections.
    pub(super) fn certified_key(&self) -> &Arc<CertifiedKey> {
        &self.certified_key
    }

    /// Returns the validity of the serving certificate.
    pub(super) fn validity(&self) -> Validity {
        self.validity
    }

    /// Returns the names in the serving certificate.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns true if the serving certificate is valid for this name.
    pub(super) fn has_name(&self, name: &ServerName<'_>) -> bool {
        let leaf = self.certified_key.cert.first();
        leaf.and_then(|leaf| ParsedCertificate::try_from(leaf).ok())
            .is_some_and(|leaf| verify_server_name(&leaf, name).is_ok())
    }

    /// Returns the newest CA with its key, to sign certificates.
    pub(super) fn issuer(&self) -> Option<Issuer<'static, KeyPair>> {
        let [_, key, ..] = &self.pem_texts;
        let newest = self.cas.first()?;
        let key = KeyPair::from_pem(key).ok()?;
        Issuer::from_ca_cert_der(&newest.certificate, key).ok()
    }
}

impl PartialEq for SecretContents {
    fn eq(&self, other: &Self) -> bool {
        // All other fields are parsed from the texts.
        self.pem_texts == other.pem_texts
    }
}

// Not derived: it would print the keys.
impl fmt::Debug for SecretContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretContents")
            .field("cas", &self.cas.len())
            .field("signer", &self.signer)
            .field("names", &self.names)
            .field("validity", &self.validity)
            .finish_non_exhaustive()
    }
}
