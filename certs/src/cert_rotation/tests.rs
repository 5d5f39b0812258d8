#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::apply_step::{CertIssuer, Lifetimes, StepError};
use super::contents::{CA_BUNDLE, CA_KEY, CERTIFICATE, KEY, SecretContents, SecretContentsError};
use super::plan::{RotationPlan, RotationState, RotationStep, StableSince, StoredState};
use super::settings::CertRotationSettings;
use crate::self_signed::{self, DAY_S};
use crate::tls::TlsOptions;
use k8s_openapi::ByteString;
use lockkeeper_api::config::CertificateSettings;
use rustls::pki_types::ServerName;
use std::collections::BTreeMap;
use std::time::Duration;

/// In 2027, before any certificate of a test expires.
pub(super) const NOW_S: u64 = 1_800_000_000;

pub(super) const OVERLAP: Duration = Duration::from_mins(10);

pub(super) fn cert_issuer(names: &[&str]) -> CertIssuer {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    CertIssuer {
        names: self_signed::server_names(&names).unwrap(),
        lifetimes: Lifetimes {
            ca_days: 300,
            serving_days: 90,
        },
    }
}

pub(super) fn new_contents() -> SecretContents {
    cert_issuer(&["a"])
        .apply(RotationStep::Create, None, None, NOW_S)
        .unwrap()
}

fn contents_after(step: RotationStep, stored: &SecretContents) -> SecretContents {
    cert_issuer(&["a"])
        .apply(step, Some(stored), None, NOW_S)
        .unwrap()
}

fn data(parts: &[(&str, &str)]) -> BTreeMap<String, ByteString> {
    let part =
        |(name, text): &(&str, &str)| ((*name).to_owned(), ByteString(text.as_bytes().to_vec()));
    parts.iter().map(part).collect()
}

/// Valid data with one part replaced.
fn with_part(
    contents: &SecretContents,
    part: &'static str,
    text: &str,
) -> BTreeMap<String, ByteString> {
    let mut data = contents.data();
    data.insert(part.to_owned(), ByteString(text.as_bytes().to_vec()));
    data
}

#[track_caller]
fn assert_invalid(data: &BTreeMap<String, ByteString>, expected: &SecretContentsError) {
    assert_eq!(SecretContents::read(data).unwrap_err(), *expected);
}

#[test]
fn contents_round_trip() {
    let one = new_contents();
    let two = contents_after(RotationStep::AnnounceCa, &one);
    for contents in [one, two] {
        let read = SecretContents::read(&contents.data()).unwrap().unwrap();
        assert_eq!(read, contents);
        assert_eq!(read.names(), ["a"]);
    }
}

#[test]
fn unrelated_secret_data_has_no_contents() {
    assert_eq!(SecretContents::read(&data(&[])).unwrap(), None);
    assert_eq!(
        SecretContents::read(&data(&[("other", "x")])).unwrap(),
        None
    );
    let empty = [CA_BUNDLE, CA_KEY, CERTIFICATE, KEY].map(|part| (part, ""));
    assert_eq!(SecretContents::read(&data(&empty)).unwrap(), None);
}

#[test]
fn invalid_part_gives_specific_error() {
    let (good, other) = (new_contents(), new_contents());
    let [bundle, authority_key, certificate, key] = other.pem_texts().clone();
    for part in [CA_BUNDLE, CA_KEY, CERTIFICATE, KEY] {
        let mut without = good.data();
        without.remove(part);
        assert_invalid(&without, &SecretContentsError::Missing(part));
        assert_invalid(
            &with_part(&good, part, ""),
            &SecretContentsError::Missing(part),
        );
        for garbage in ["garbage", "-----BEGIN CERTIFICATE-----\nAA"] {
            assert_invalid(
                &with_part(&good, part, garbage),
                &SecretContentsError::NotPem(part),
            );
        }
        let mut bytes = good.data();
        bytes.insert(part.to_owned(), ByteString(vec![0xff, 0xfe]));
        assert_invalid(&bytes, &SecretContentsError::NotPem(part));
        // Cut in the middle, as by a copy that was not complete.
        let whole = String::from_utf8(good.data()[part].0.clone()).unwrap();
        let cut = &whole[..whole.len() / 2];
        assert_invalid(
            &with_part(&good, part, cut),
            &SecretContentsError::NotPem(part),
        );
    }
    let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let not = SecretContentsError::InvalidCertificate;
    assert_invalid(
        &with_part(&good, CA_BUNDLE, no_certificate),
        &not(CA_BUNDLE),
    );
    assert_invalid(
        &with_part(&good, CERTIFICATE, no_certificate),
        &not(CERTIFICATE),
    );
    let no_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    assert_invalid(
        &with_part(&good, CA_KEY, no_key),
        &SecretContentsError::UnsupportedKey(CA_KEY),
    );
    assert_invalid(
        &with_part(&good, KEY, no_key),
        &SecretContentsError::UnsupportedKey(KEY),
    );

    let mismatch = |key, certificate| SecretContentsError::KeyMismatch { key, certificate };
    assert_invalid(
        &with_part(&good, CA_KEY, &authority_key),
        &mismatch(CA_KEY, CA_BUNDLE),
    );
    assert_invalid(
        &with_part(&good, CA_BUNDLE, &bundle),
        &mismatch(CA_KEY, CA_BUNDLE),
    );
    assert_invalid(&with_part(&good, KEY, &key), &mismatch(KEY, CERTIFICATE));
    assert_invalid(
        &with_part(&good, CERTIFICATE, &certificate),
        &mismatch(KEY, CERTIFICATE),
    );
    let mut stranger = with_part(&good, CERTIFICATE, &certificate);
    stranger.insert(KEY.to_owned(), ByteString(key.into_bytes()));
    assert_invalid(&stranger, &SecretContentsError::UnknownSigner);
    let [_, _, leaf, _] = good.pem_texts();
    assert_invalid(
        &with_part(&good, CA_BUNDLE, leaf),
        &SecretContentsError::NotCa,
    );
}

#[test]
fn error_and_debug_texts_contain_no_key() {
    let contents = new_contents();
    let [_, authority_key, _, key] = contents.pem_texts();
    let shown = format!("{contents:?}");
    for secret in [authority_key, key] {
        let line = secret.lines().nth(1).unwrap();
        assert!(!shown.contains(line) && !shown.contains("PRIVATE"));
    }
    let error =
        SecretContents::read(&with_part(&contents, KEY, &key.replace('M', "!"))).unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(
        !text.contains(key.lines().nth(1).unwrap().get(8..20).unwrap()),
        "{text}"
    );
}

#[test]
fn rotation_keeps_ca_of_served_certificate() {
    let one = new_contents();
    assert!(!one.has_announced_ca());
    let announced = contents_after(RotationStep::AnnounceCa, &one);
    assert!(announced.has_announced_ca());
    assert_eq!(announced.certified_key().cert, one.certified_key().cert);
    assert_eq!(announced.cas()[1], one.cas()[0]);
    let issued = contents_after(RotationStep::IssueServing, &announced);
    assert!(!issued.has_announced_ca());
    assert_ne!(issued.certified_key().cert, one.certified_key().cert);
    assert_eq!(issued.cas(), announced.cas());
    let retired = contents_after(RotationStep::RetireOldCas, &issued);
    assert_eq!(retired.cas(), &issued.cas()[..1]);
    assert_eq!(retired.certified_key().cert, issued.certified_key().cert);
    // The remaining CA is encoded as before.
    let before = issued.bundle().lines();
    assert!(
        before
            .take(retired.bundle().lines().count())
            .eq(retired.bundle().lines())
    );
    // The signer of the served certificate is never removed.
    assert_eq!(
        contents_after(RotationStep::RetireOldCas, &announced).cas(),
        announced.cas()
    );
}

#[test]
fn restored_contents_are_those_held() {
    let (held, other) = (new_contents(), new_contents());
    let issuer = cert_issuer(&["a"]);
    for stored in [None, Some(&other)] {
        let restored = issuer.apply(RotationStep::Restore, stored, Some(&held), NOW_S);
        assert_eq!(restored.unwrap(), held);
    }
    let nothing = issuer.apply(RotationStep::Restore, Some(&other), None, NOW_S);
    assert!(matches!(nothing, Err(StepError::Nothing)));
}

#[test]
fn clock_out_of_range_issues_nothing() {
    let stored = new_contents();
    for step in [
        RotationStep::Create,
        RotationStep::AnnounceCa,
        RotationStep::IssueServing,
    ] {
        // The first second that no certificate is issued in.
        let issued = cert_issuer(&["a"]).apply(step, Some(&stored), None, 250_000_000_001);
        assert!(matches!(issued, Err(StepError::Issue(_))), "{step:?}");
    }
}

#[test]
fn serving_certificate_names_are_merged() {
    let one = new_contents();
    let other = cert_issuer(&["b", "127.0.0.1"]);
    let both = other
        .apply(RotationStep::IssueServing, Some(&one), None, NOW_S)
        .unwrap();
    assert_eq!(both.names(), ["b", "127.0.0.1", "a"]);
    for name in ["a", "b", "127.0.0.1"] {
        assert!(
            both.has_name(&ServerName::try_from(name).unwrap()),
            "{name}"
        );
    }
    assert!(!both.has_name(&ServerName::try_from("c").unwrap()));
}

#[test]
fn a_serving_certificate_does_not_outlive_its_ca() {
    let one = new_contents();
    let late_s = NOW_S + 280 * DAY_S;
    let again = cert_issuer(&["a"])
        .apply(RotationStep::IssueServing, Some(&one), None, late_s)
        .unwrap();
    assert_eq!(again.validity().ends_s, one.cas()[0].validity.ends_s);
}

/// A state in which no step is planned.
pub(super) fn settled_state<'a>(
    contents: &'a SecretContents,
    names: &'a [ServerName<'static>],
) -> RotationState<'a> {
    RotationState {
        now_s: NOW_S,
        stored: StoredState::Valid(contents),
        active: Some(contents),
        renewal_requested: false,
        names,
        overlap: OVERLAP,
        ca_injected_for: Some(OVERLAP),
        served_for: OVERLAP,
    }
}

#[track_caller]
pub(super) fn check(situation: &RotationState<'_>, step: RotationStep, recheck_after: Duration) {
    assert_eq!(
        situation.plan(),
        RotationPlan {
            step,
            recheck_after
        }
    );
}

pub(super) const HOUR: Duration = Duration::from_hours(1);
pub(super) const IMMEDIATELY: Duration = Duration::ZERO;

#[test]
fn empty_secret_is_created_or_restored() {
    let contents = new_contents();
    let empty = RotationState {
        active: None,
        ..settled_state(&contents, &[])
    };
    let stored = |stored| RotationState { stored, ..empty };
    check(
        &stored(StoredState::Empty),
        RotationStep::Create,
        IMMEDIATELY,
    );
    check(&stored(StoredState::Invalid), RotationStep::Wait, HOUR);
    check(&empty, RotationStep::Wait, HOUR);
    for stored in [StoredState::Empty, StoredState::Invalid] {
        let holder = RotationState {
            stored,
            ..settled_state(&contents, &[])
        };
        check(&holder, RotationStep::Restore, IMMEDIATELY);
    }
}

#[test]
fn rotation_announces_issues_and_retires_in_order() {
    let one = new_contents();
    let names = cert_issuer(&["a"]).names;
    let quiet_one = settled_state(&one, &names);
    check(&quiet_one, RotationStep::Wait, HOUR);
    let requested = RotationState {
        renewal_requested: true,
        ..quiet_one
    };
    check(&requested, RotationStep::AnnounceCa, IMMEDIATELY);

    let announced = contents_after(RotationStep::AnnounceCa, &one);
    let now = settled_state(&announced, &names);
    check(&now, RotationStep::IssueServing, IMMEDIATELY);
    let part = OVERLAP.saturating_sub(Duration::from_secs(1));
    let standing = |standing| RotationState {
        ca_injected_for: standing,
        ..now
    };
    check(
        &standing(Some(part)),
        RotationStep::Wait,
        Duration::from_secs(1),
    );
    check(&standing(Some(IMMEDIATELY)), RotationStep::Wait, OVERLAP);
    check(&standing(None), RotationStep::Wait, HOUR);
    // One rotation at a time, so the bundle stays small.
    check(
        &RotationState {
            renewal_requested: true,
            ..now
        },
        RotationStep::Acknowledge,
        IMMEDIATELY,
    );
    // The key of the older CA is not stored, so a missing name has to wait.
    let more = cert_issuer(&["a", "b"]).names;
    check(
        &RotationState {
            names: &more,
            ..standing(None)
        },
        RotationStep::Wait,
        HOUR,
    );

    let issued = contents_after(RotationStep::IssueServing, &announced);
    let now = settled_state(&issued, &names);
    check(&now, RotationStep::RetireOldCas, IMMEDIATELY);
    check(
        &RotationState {
            served_for: part,
            ..now
        },
        RotationStep::Wait,
        Duration::from_secs(1),
    );
    check(
        &RotationState {
            ca_injected_for: None,
            ..now
        },
        RotationStep::RetireOldCas,
        IMMEDIATELY,
    );
    check(
        &settled_state(&contents_after(RotationStep::RetireOldCas, &issued), &names),
        RotationStep::Wait,
        HOUR,
    );
}

#[test]
fn expiring_certificates_are_renewed() {
    let one = new_contents();
    let names = cert_issuer(&["a"]).names;
    let at = |contents, days: u64| RotationState {
        now_s: NOW_S + days * DAY_S,
        ca_injected_for: None,
        ..settled_state(contents, &names)
    };
    // The certificate is valid for 90 days, the CA for 300: the last third, and the last 30 days.
    check(&at(&one, 59), RotationStep::Wait, HOUR);
    check(&at(&one, 61), RotationStep::IssueServing, IMMEDIATELY);
    check(&at(&one, 269), RotationStep::IssueServing, IMMEDIATELY);
    let again = |days: u64| {
        let now_s = NOW_S + days * DAY_S;
        cert_issuer(&["a"])
            .apply(RotationStep::IssueServing, Some(&one), None, now_s)
            .unwrap()
    };
    let late = again(265);
    check(&at(&late, 269), RotationStep::Wait, HOUR);
    check(&at(&late, 271), RotationStep::AnnounceCa, IMMEDIATELY);
    // The CA has expired: a new one, and immediately a new certificate.
    check(&at(&late, 301), RotationStep::AnnounceCa, IMMEDIATELY);
    let now_s = NOW_S + 301 * DAY_S;
    let announced = cert_issuer(&["a"])
        .apply(RotationStep::AnnounceCa, Some(&late), None, now_s)
        .unwrap();
    check(
        &at(&announced, 301),
        RotationStep::IssueServing,
        IMMEDIATELY,
    );
    let issued = cert_issuer(&["a"])
        .apply(RotationStep::IssueServing, Some(&announced), None, now_s)
        .unwrap();
    let fresh = RotationState {
        served_for: IMMEDIATELY,
        ..at(&issued, 301)
    };
    check(&fresh, RotationStep::PruneExpiredCas, IMMEDIATELY);
    let pruned = cert_issuer(&["a"])
        .apply(RotationStep::PruneExpiredCas, Some(&issued), None, now_s)
        .unwrap();
    assert_eq!(pruned.cas().len(), 1);
    let more = cert_issuer(&["a", "b"]).names;
    check(
        &RotationState {
            names: &more,
            ..settled_state(&one, &[])
        },
        RotationStep::IssueServing,
        IMMEDIATELY,
    );
}

#[test]
fn stable_since_measures_unchanged_value() {
    let second = Duration::from_secs;
    let mut since = StableSince::default();
    assert_eq!(since.observe(second(1), None), None);
    assert_eq!(since.observe(second(2), Some('a')), Some(IMMEDIATELY));
    assert_eq!(since.observe(second(5), Some('a')), Some(second(3)));
    assert_eq!(since.observe(second(6), Some('b')), Some(IMMEDIATELY));
    assert_eq!(since.observe(second(7), None), None);
    assert_eq!(since.observe(second(8), Some('b')), Some(IMMEDIATELY));
}

#[test]
fn server_serves_ephemeral_certificate_before_first_read() {
    let configured = CertificateSettings {
        secret: Some("a/b".parse().unwrap()),
        ..CertificateSettings::default()
    };
    let names = ["localhost".to_owned()];
    let settings = CertRotationSettings::new(&configured, &names)
        .unwrap()
        .unwrap();
    let serving = settings
        .serving_with_ephemeral_certificate(&TlsOptions::default(), None)
        .unwrap();
    let (slot, status) = (serving.cert_slot().unwrap(), serving.status());
    let contents = new_contents();
    assert!(slot.replace(contents.certified_key(), 7));
    assert!(!slot.replace(contents.certified_key(), 8));
    assert_eq!(status.not_after(), 7);
    let bad = ["*.example.com".to_owned()];
    assert!(CertRotationSettings::new(&configured, &bad).is_err());
    let none = CertificateSettings::default();
    assert!(CertRotationSettings::new(&none, &bad).unwrap().is_none());
}
