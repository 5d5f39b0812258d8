//! What the Secret holds after a step.

use std::time::UNIX_EPOCH;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::ServerName;

use super::contents::{Authority, Contents, ContentsError};
use super::names;
use super::plan::Step;
use crate::bootstrap::{self, BootstrapError, issue};

/// Characters in a line of PEM (RFC 7468).
const PEM_LINE: usize = 64;

/// For how long new certificates are good, in days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lives {
    /// A CA.
    pub ca_days: u64,
    /// A serving certificate; it never outlives its CA.
    pub serving_days: u64,
}

/// Why a step could not be carried out.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    Issue(#[from] BootstrapError),
    /// We would not write what we could not read.
    #[error("what would be written cannot be read ({0}); this is a defect, report it")]
    Unreadable(#[from] ContentsError),
    #[error("there is nothing to do this with; this is a defect, report it")]
    Nothing,
}

/// Makes certificates as one replica wants them.
#[derive(Clone, Debug)]
pub(super) struct Maker {
    /// The names that the serving certificate must have.
    pub(super) names: Vec<ServerName<'static>>,
    pub(super) lives: Lives,
}

impl Maker {
    /// The contents after a step. `stored` is what the Secret holds, if it is good; `held` is what
    /// this replica took over last. Costs the making of up to two keys.
    pub(super) fn after(
        &self,
        step: Step,
        stored: Option<&Contents>,
        held: Option<&Contents>,
        now_s: u64,
    ) -> Result<Contents, StepError> {
        let texts = match (step, stored, held) {
            (Step::Found, ..) => self.found(now_s)?,
            (Step::Restore, _, Some(held)) => held.texts().clone(),
            (Step::Announce, Some(stored), _) => self.announce(stored, now_s)?,
            (Step::Acknowledge, Some(stored), _) => stored.texts().clone(),
            (Step::Issue, Some(stored), _) => self.issue(stored, now_s)?,
            (Step::Retire, Some(stored), _) => with_authorities(stored, |_| false),
            (Step::Prune, Some(stored), _) => {
                with_authorities(stored, |authority| !authority.validity.has_ended(now_s))
            }
            _ => return Err(StepError::Nothing),
        };
        Ok(Contents::parse(texts)?)
    }

    fn found(&self, now_s: u64) -> Result<[String; 4], StepError> {
        check_clock(now_s)?;
        let (key, certificate, ends_s) = issue::authority(now_s, self.lives.ca_days)?;
        let (bundle, authority_key) = (certificate.pem(), key.serialize_pem());
        let issuer = rcgen::Issuer::from_ca_cert_der(certificate.der(), key)
            .map_err(BootstrapError::Issue)?;
        let days = self.lives.serving_days;
        let (key, certificate) = issue::serving(&issuer, ends_s, &self.names, now_s, days)?;
        Ok([
            bundle,
            authority_key,
            certificate.pem(),
            key.serialize_pem(),
        ])
    }

    fn announce(&self, stored: &Contents, now_s: u64) -> Result<[String; 4], StepError> {
        check_clock(now_s)?;
        let (key, certificate, _) = issue::authority(now_s, self.lives.ca_days)?;
        let [bundle, _, serving, serving_key] = stored.texts().clone();
        let bundle = format!("{}{bundle}", certificate.pem());
        Ok([bundle, key.serialize_pem(), serving, serving_key])
    }

    fn issue(&self, stored: &Contents, now_s: u64) -> Result<[String; 4], StepError> {
        check_clock(now_s)?;
        let newest = stored.authorities().first().ok_or(StepError::Nothing)?;
        let issuer = stored.issuer().ok_or(StepError::Nothing)?;
        let names = names::union(&self.names, stored.names());
        let (ends_s, days) = (newest.validity.ends_s, self.lives.serving_days);
        let (key, certificate) = issue::serving(&issuer, ends_s, &names, now_s, days)?;
        let [bundle, authority_key, ..] = stored.texts().clone();
        Ok([
            bundle,
            authority_key,
            certificate.pem(),
            key.serialize_pem(),
        ])
    }
}

/// Refuses a clock that certificates cannot go by.
fn check_clock(now_s: u64) -> Result<(), BootstrapError> {
    bootstrap::seconds(UNIX_EPOCH + std::time::Duration::from_secs(now_s)).map(drop)
}

/// The contents with only some of the older CAs. The newest stays, and the one whose pair is served.
fn with_authorities(stored: &Contents, keeps: impl Fn(&Authority) -> bool) -> [String; 4] {
    let signer = stored.signer();
    let all = stored.authorities().iter().enumerate();
    let kept = all
        .filter(|(place, it)| *place == 0 || Some(*it) == signer || keeps(it))
        .map(|(_, it)| pem(&it.certificate));
    let [_, authority_key, certificate, key] = stored.texts().clone();
    [kept.collect(), authority_key, certificate, key]
}

/// A certificate as text.
fn pem(certificate: &[u8]) -> String {
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
