//! The CA of the directory: `ca.crt`, and `ca.key` to sign certificates.

use super::directory::{
    CA_CERTIFICATE, CA_KEY, CERTIFICATE, CERTIFICATE_MODE, CertificateDirectory, KEY, KEY_MODE,
};
use super::error::SelfSignedError;
use super::issue;
use crate::tls::{self, TlsError};
use rcgen::{Issuer, KeyPair, PublicKeyData};
use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// A CA's certificate and the end of its validity.
pub(super) struct CaCertificate {
    /// The certificate in `ca.crt`.
    pub(super) certificate: CertificateDer<'static>,
    /// The last second of its validity, since 1970.
    pub(super) ends_s: u64,
}

impl CaCertificate {
    /// Reads `ca.crt`; `None` if the directory has none of the files.
    pub(super) fn read(
        directory: &CertificateDirectory,
        now_s: u64,
    ) -> Result<Option<Self>, SelfSignedError> {
        if !directory.has_file(CA_CERTIFICATE)? {
            // Files without their CA may be from another program, and are not overwritten.
            for name in [CA_KEY, CERTIFICATE, KEY] {
                if directory.has_file(name)? {
                    directory.require_file(CA_CERTIFICATE, name)?;
                }
            }
            return Ok(None);
        }
        let path = directory.file(CA_CERTIFICATE);
        let not_authority = || SelfSignedError::NotCa { path: path.clone() };
        let mut certificates = tls::read_certificates(&path)?.into_iter();
        let certificate = certificates.next().ok_or_else(not_authority)?;
        let (_, parsed) = X509Certificate::from_der(&certificate).map_err(|_| not_authority())?;
        if !parsed.is_ca() {
            return Err(not_authority());
        }
        let validity = parsed.validity();
        if !i64::try_from(now_s).is_ok_and(|now| validity.not_before.timestamp() <= now) {
            return Err(SelfSignedError::NotYetValid { path });
        }
        let ends_s = u64::try_from(validity.not_after.timestamp()).unwrap_or(0);
        Ok(Some(Self {
            certificate,
            ends_s,
        }))
    }

    /// Creates a CA and writes it.
    pub(super) fn create(
        directory: &CertificateDirectory,
        now_s: u64,
    ) -> Result<Self, SelfSignedError> {
        let (key, certificate, ends_s) = issue::issue_ca(now_s, issue::CA_VALIDITY_DAYS)?;
        // The key first: a new key beside an expiring `ca.crt` is replaced at the next start, but a
        // new `ca.crt` without its key could never sign.
        directory.write(CA_KEY, KEY_MODE, &key.serialize_pem())?;
        directory.write(CA_CERTIFICATE, CERTIFICATE_MODE, &certificate.pem())?;
        Ok(Self {
            certificate: certificate.der().clone(),
            ends_s,
        })
    }

    /// Returns true if the CA is valid at that second since 1970.
    pub(super) fn is_valid_until(&self, at_s: u64) -> bool {
        at_s <= self.ends_s
    }

    /// Returns the CA with the key of `ca.key`, to sign certificates.
    pub(super) fn issuer(
        &self,
        directory: &CertificateDirectory,
    ) -> Result<Issuer<'static, KeyPair>, SelfSignedError> {
        directory.require_file(CA_KEY, CA_CERTIFICATE)?;
        let path = directory.file(CA_KEY);
        let key = KeyPair::try_from(&tls::read_key(&path)?)
            .map_err(|_| TlsError::InvalidKey { path: path.clone() })?;
        let (_, parsed) = X509Certificate::from_der(&self.certificate)
            .map_err(|_| SelfSignedError::Issue(rcgen::Error::CouldNotParseCertificate))?;
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err(SelfSignedError::CaKeyMismatch {
                certificate: directory.file(CA_CERTIFICATE),
                key: path,
            });
        }
        Issuer::from_ca_cert_der(&self.certificate, key).map_err(SelfSignedError::Issue)
    }
}
