//! What stands in the Secret: a CA bundle, the newest CA's key, and the pair that is served.

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

/// The CA bundle: every CA to trust, the newest first.
pub(super) const CA_BUNDLE: &str = "ca.crt";
/// The key of the newest CA.
pub(super) const CA_KEY: &str = "ca.key";
/// The serving certificate, or a chain that begins with it.
pub(super) const CERTIFICATE: &str = "tls.crt";
/// The serving certificate's key.
pub(super) const KEY: &str = "tls.key";

/// All of them.
const DATA_KEYS: [&str; 4] = [CA_BUNDLE, CA_KEY, CERTIFICATE, KEY];

/// Why the data of a Secret cannot be used. No text quotes what a part holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretContentsError {
    /// When some parts are there and this one is not.
    #[error("{0} is missing beside the others")]
    Missing(&'static str),
    /// When a part has no PEM section of its kind, or one that is cut short.
    #[error("{0} is not PEM of the right kind, or is damaged")]
    NotPem(&'static str),
    /// When a section is not an X.509 certificate.
    #[error("{0} holds what is no X.509 certificate")]
    InvalidCertificate(&'static str),
    /// When the bundle holds a certificate that may not sign others.
    #[error("ca.crt holds a certificate that is not a CA's")]
    NotCa,
    /// When a key is of a kind that is not used for TLS.
    #[error("{0} holds no usable key")]
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

/// A CA of the bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BundledCa {
    /// The certificate.
    pub(super) certificate: CertificateDer<'static>,
    /// When it is valid, in seconds since 1970.
    pub(super) validity: Validity,
}

/// From when to when a certificate is good, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) begins_s: u64,
    /// The last second.
    pub(super) ends_s: u64,
}

/// A Secret's data that are complete and fit together. They need not be in date.
pub(super) struct SecretContents {
    /// The texts of the four parts, as they stand in the Secret.
    pem_texts: [String; 4],
    cas: Vec<BundledCa>,
    certified_key: Arc<CertifiedKey>,
    /// The alternative names of the serving certificate, DNS names and addresses.
    names: Vec<String>,
    validity: Validity,
    signer: usize,
}

impl SecretContents {
    /// Reads the data of a Secret; `None` if none of the four parts is there.
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

    /// The four parts in the order of their names: bundle, its key, certificate, its key.
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

    /// As the Secret holds them.
    pub(super) fn data(&self) -> BTreeMap<String, ByteString> {
        let parts = DATA_KEYS.iter().zip(&self.pem_texts);
        parts
            .map(|(name, text)| ((*name).to_owned(), ByteString(text.clone().into_bytes())))
            .collect()
    }

    /// The four texts, for contents that differ in some of them.
    pub(super) fn pem_texts(&self) -> &[String; 4] {
        &self.pem_texts
    }

    /// The text of `ca.crt`: what a client is given to trust.
    pub(super) fn bundle(&self) -> &str {
        let [bundle, ..] = &self.pem_texts;
        bundle
    }

    /// The CAs of the bundle, the newest first.
    pub(super) fn cas(&self) -> &[BundledCa] {
        &self.cas
    }

    /// The CA that has signed the serving certificate.
    pub(super) fn signer(&self) -> Option<&BundledCa> {
        self.cas.get(self.signer)
    }

    /// Whether the newest CA only stands in the bundle and has signed nothing that is served yet.
    pub(super) fn has_announced_ca(&self) -> bool {
        self.signer != 0
    }

    /// What connections are given.
    pub(super) fn certified_key(&self) -> &Arc<CertifiedKey> {
        &self.certified_key
    }

    /// When the serving certificate is valid.
    pub(super) fn validity(&self) -> Validity {
        self.validity
    }

    /// The names in the serving certificate.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether the serving certificate is good under this name.
    pub(super) fn has_name(&self, name: &ServerName<'_>) -> bool {
        let leaf = self.certified_key.cert.first();
        leaf.and_then(|leaf| ParsedCertificate::try_from(leaf).ok())
            .is_some_and(|leaf| verify_server_name(&leaf, name).is_ok())
    }

    /// The newest CA, ready to sign.
    pub(super) fn issuer(&self) -> Option<Issuer<'static, KeyPair>> {
        let [_, key, ..] = &self.pem_texts;
        let newest = self.cas.first()?;
        let key = KeyPair::from_pem(key).ok()?;
        Issuer::from_ca_cert_der(&newest.certificate, key).ok()
    }
}

impl PartialEq for SecretContents {
    fn eq(&self, other: &Self) -> bool {
        self.pem_texts == other.pem_texts
    }
}

// By hand: the keys are in there.
impl fmt::Debug for SecretContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contents")
            .field("authorities", &self.cas.len())
            .field("signer", &self.signer)
            .field("names", &self.names)
            .field("validity", &self.validity)
            .finish_non_exhaustive()
    }
}
