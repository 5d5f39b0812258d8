//! The fields of issued certificates. Does no I/O.

use super::error::SelfSignedError;
use super::names::DAY_S;
use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};
use rustls::pki_types::ServerName;
use std::time::Duration;

/// Default validity of a CA.
pub(crate) const CA_VALIDITY_DAYS: u64 = 3_650;

/// Default validity of a serving certificate.
pub(crate) const SERVING_VALIDITY_DAYS: u64 = 365;

/// Time from the start of the validity to the issuance, for clients with a slow clock and replicas with a fast one.
const BACKDATE_S: u64 = 60 * 60;

/// Returns a new CA that may sign server certificates but no further CAs; its key, and its last second
/// since 1970.
pub(crate) fn issue_ca(
    now_s: u64,
    life_days: u64,
) -> Result<(KeyPair, Certificate, u64), SelfSignedError> {
    let ends_s = now_s + life_days * DAY_S;
    let mut params = certificate_params("lockkeeper bootstrap CA", now_s, ends_s)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = new_key()?;
    let certificate = params.self_signed(&key).map_err(SelfSignedError::Issue)?;
    Ok((key, certificate, ends_s))
}

/// Returns a new serving certificate for `names` and its key. It never outlives its CA, which expires at
/// `authority_ends_s`.
pub(crate) fn issue_serving_certificate(
    issuer: &Issuer<'_, KeyPair>,
    authority_ends_s: u64,
    names: &[ServerName<'_>],
    now_s: u64,
    life_days: u64,
) -> Result<(KeyPair, Certificate), SelfSignedError> {
    let ends_s = authority_ends_s.min(now_s + life_days * DAY_S);
    let mut params = certificate_params("lockkeeper webhook", now_s, ends_s)?;
    // Sets CA:FALSE and adds the subject key identifier.
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // Verifiers distinguish CAs with the same name by it, such as those before and after a renewal.
    params.use_authority_key_identifier_extension = true;
    params.subject_alt_names = names
        .iter()
        .map(alternative_name)
        .collect::<Result<_, _>>()?;
    let key = new_key()?;
    let certificate = params
        .signed_by(&key, issuer)
        .map_err(SelfSignedError::Issue)?;
    Ok((key, certificate))
}

/// Returns the common fields of all certificates: subject and validity.
fn certificate_params(
    subject: &str,
    now_s: u64,
    ends_s: u64,
) -> Result<CertificateParams, SelfSignedError> {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let date = |at_s: u64| {
        let since = Duration::from_secs(at_s).try_into().ok()?;
        epoch.checked_add(since)
    };
    let mut params = CertificateParams::default();
    params.not_before =
        date(now_s.saturating_sub(BACKDATE_S)).ok_or(SelfSignedError::ClockOutOfRange)?;
    params.not_after = date(ends_s).ok_or(SelfSignedError::ClockOutOfRange)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, subject);
    Ok(params)
}

fn new_key() -> Result<KeyPair, SelfSignedError> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(SelfSignedError::Issue)
}

fn alternative_name(name: &ServerName<'_>) -> Result<SanType, SelfSignedError> {
    match name {
        ServerName::IpAddress(address) => Ok(SanType::IpAddress((*address).into())),
        _ => Ia5String::try_from(name.to_str().as_ref())
            .map(SanType::DnsName)
            .map_err(SelfSignedError::Issue),
    }
}
