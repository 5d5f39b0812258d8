//! Computes the contents of the Secret after a step.

use super::contents::{BundledCa, SecretContents, SecretContentsError};
use super::plan::RotationStep;
use super::subject_alt_names;
use crate::self_signed::{self, SelfSignedError, issue};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::ServerName;
use std::time::UNIX_EPOCH;

/// Characters per line of PEM (RFC 7468).
const PEM_LINE: usize = 64;

/// Validity of new certificates, in days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// A CA.
    pub ca_days: u64,
    /// A serving certificate; it never outlives its CA.
    pub serving_days: u64,
}

/// Why a step cannot be applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    Issue(#[from] SelfSignedError),
    /// The new contents cannot be parsed, so they are not written.
    #[error("the new contents cannot be parsed ({0}); this is a defect, report it")]
    Unreadable(#[from] SecretContentsError),
    #[error("the step needs contents that are missing; this is a defect, report it")]
    Nothing,
}

/// Issues certificates with the configuration of one replica.
#[derive(Clone, Debug)]
pub(super) struct CertIssuer {
    /// The names that the serving certificate must have.
    pub(super) names: Vec<ServerName<'static>>,
    pub(super) lifetimes: Lifetimes,
}

impl CertIssuer {
    /// Returns the contents after a step. `stored` is the content of the Secret, if it is valid;
    /// `held` is the content that this replica serves. Generates up to two keys.
    pub(super) fn apply(
        &self,
        step: RotationStep,
        stored: Option<&SecretContents>,
        held: Option<&SecretContents>,
        now_s: u64,
    ) -> Result<SecretContents, StepError> {
        let texts = match (step, stored, held) {
            (RotationStep::Create, ..) => self.create(now_s)?,
            (RotationStep::Restore, _, Some(held)) => held.pem_texts().clone(),
            (RotationStep::AnnounceCa, Some(stored), _) => self.announce(stored, now_s)?,
            (RotationStep::Acknowledge, Some(stored), _) => stored.pem_texts().clone(),
            (RotationStep::IssueServing, Some(stored), _) => self.issue_serving(stored, now_s)?,
            (RotationStep::RetireOldCas, Some(stored), _) => retain_cas(stored, |_| false),
            (RotationStep::PruneExpiredCas, Some(stored), _) => {
                retain_cas(stored, |authority| !authority.validity.has_expired(now_s))
            }
            _ => return Err(StepError::Nothing),
        };
        // Contents that no replica could load must not be written.
        Ok(SecretContents::parse(texts)?)
    }

    fn create(&self, now_s: u64) -> Result<[String; 4], StepError> {
        check_clock(now_s)?;
        let (key, certificate, ends_s) = issue::issue_ca(now_s, self.lifetimes.ca_days)?;
        let (bundle, authority_key) = (certificate.pem(), key.serialize_pem());
        let issuer = rcgen::Issuer::from_ca_cert_der(certificate.der(), key)
            .map_err(SelfSignedError::Issue)?;
        let days = self.lifetimes.serving_days;
        let (key, certificate) =
            issue::issue_serving_certificate(&issuer, ends_s, &self.names, now_s, days)?;
        Ok([
            bundle,
            authority_key,
            certificate.pem(),
            key.serialize_pem(),
        ])
    }

    fn announce(&self, stored: &SecretContents, now_s: u64) -> Result<[String; 4], StepError> {
        check_clock(now_s)?;
        let (key, certificate, _) = issue::issue_ca(now_s, self.lifetimes.ca_days)?;
        let [bundle, _, serving, serving_key] = stored.pem_texts().clone();
        // The newest CA is the first. The key of the older one is dropped: it issues nothing further.
        let bundle = format!("{}{bundle}", certificate.pem());
        Ok([bundle, key.serialize_pem(), serving, serving_key])
    }

    fn issue_serving(&self, stored: &SecretContents, now_s: u64) -> Result<[String; 4], StepError> {
        check_clock(now_s)?;
        let newest = stored.cas().first().ok_or(StepError::Nothing)?;
        let issuer = stored.issuer().ok_or(StepError::Nothing)?;
        // Names are only added, or two replicas with different names would issue in turns.
        let names = subject_alt_names::union(&self.names, stored.names());
        let (ends_s, days) = (newest.validity.ends_s, self.lifetimes.serving_days);
        let (key, certificate) =
            issue::issue_serving_certificate(&issuer, ends_s, &names, now_s, days)?;
        let [bundle, authority_key, ..] = stored.pem_texts().clone();
        Ok([
            bundle,
            authority_key,
            certificate.pem(),
            key.serialize_pem(),
        ])
    }
}

/// Errors if the clock is out of the range of certificates.
fn check_clock(now_s: u64) -> Result<(), SelfSignedError> {
    self_signed::unix_seconds(UNIX_EPOCH + std::time::Duration::from_secs(now_s)).map(drop)
}

/// Returns the contents without some of the older CAs. The newest stays, and the one that signed the
/// served certificate.
fn retain_cas(stored: &SecretContents, keeps: impl Fn(&BundledCa) -> bool) -> [String; 4] {
    let signer = stored.signer();
    let all = stored.cas().iter().enumerate();
    let kept = all
        .filter(|(place, it)| *place == 0 || Some(*it) == signer || keeps(it))
        .map(|(_, it)| encode_pem(&it.certificate));
    let [_, authority_key, certificate, key] = stored.pem_texts().clone();
    [kept.collect(), authority_key, certificate, key]
}

/// Encodes a certificate as PEM.
fn encode_pem(certificate: &[u8]) -> String {
    let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for (place, letter) in BASE64_STANDARD.encode(certificate).char_indices() {
        if place > 0 && place % PEM_LINE == 0 {
            text.push('\n');
        }
        text.push(letter);
    }
    text.push_str("\n-----END CERTIFICATE-----\n");
    text
}
