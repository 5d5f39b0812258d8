#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeMap;

use k8s_openapi::ByteString;

use super::contents::{CA_BUNDLE, CA_KEY, CERTIFICATE, Contents, ContentsError, KEY};
use super::plan::{Plan, Since, Situation, Stored};
use super::*;
use crate::bootstrap::DAY_S;

/// In 2027, long before anything of a test ends.
pub(super) const NOW_S: u64 = 1_800_000_000;

const OVERLAP: Duration = Duration::from_mins(10);

pub(super) fn maker(names: &[&str]) -> Maker {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    Maker {
        names: bootstrap::server_names(&names).unwrap(),
        lives: Lives {
            ca_days: 300,
            serving_days: 90,
        },
    }
}

fn found() -> Contents {
    maker(&["a"]).after(Step::Found, None, None, NOW_S).unwrap()
}

fn after(step: Step, stored: &Contents) -> Contents {
    maker(&["a"])
        .after(step, Some(stored), None, NOW_S)
        .unwrap()
}

fn data(parts: &[(&str, &str)]) -> BTreeMap<String, ByteString> {
    let part =
        |(name, text): &(&str, &str)| ((*name).to_owned(), ByteString(text.as_bytes().to_vec()));
    parts.iter().map(part).collect()
}

/// Good data with one part replaced.
fn with(contents: &Contents, part: &'static str, text: &str) -> BTreeMap<String, ByteString> {
    let mut data = contents.data();
    data.insert(part.to_owned(), ByteString(text.as_bytes().to_vec()));
    data
}

#[track_caller]
fn broken(data: &BTreeMap<String, ByteString>, expected: &ContentsError) {
    assert_eq!(Contents::read(data).unwrap_err(), *expected);
}

#[test]
fn what_is_written_reads_back_equal() {
    let one = found();
    let two = after(Step::Announce, &one);
    for contents in [one, two] {
        let read = Contents::read(&contents.data()).unwrap().unwrap();
        assert_eq!(read, contents);
        assert_eq!(read.names(), ["a"]);
    }
}

#[test]
fn nothing_of_ours_is_nothing() {
    assert_eq!(Contents::read(&data(&[])).unwrap(), None);
    assert_eq!(Contents::read(&data(&[("other", "x")])).unwrap(), None);
    let empty = [CA_BUNDLE, CA_KEY, CERTIFICATE, KEY].map(|part| (part, ""));
    assert_eq!(Contents::read(&data(&empty)).unwrap(), None);
}

#[test]
fn garbage_in_each_part_is_told_apart() {
    let (good, other) = (found(), found());
    let [bundle, authority_key, certificate, key] = other.texts().clone();
    for part in [CA_BUNDLE, CA_KEY, CERTIFICATE, KEY] {
        let mut without = good.data();
        without.remove(part);
        broken(&without, &ContentsError::Missing(part));
        broken(&with(&good, part, ""), &ContentsError::Missing(part));
        for garbage in ["garbage", "-----BEGIN CERTIFICATE-----\nAA"] {
            broken(&with(&good, part, garbage), &ContentsError::NotPem(part));
        }
        let mut bytes = good.data();
        bytes.insert(part.to_owned(), ByteString(vec![0xff, 0xfe]));
        broken(&bytes, &ContentsError::NotPem(part));
        // Cut in the middle, as by a copy that was not complete.
        let whole = String::from_utf8(good.data()[part].0.clone()).unwrap();
        let cut = &whole[..whole.len() / 2];
        broken(&with(&good, part, cut), &ContentsError::NotPem(part));
    }
    let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let not = ContentsError::NotCertificate;
    broken(&with(&good, CA_BUNDLE, no_certificate), &not(CA_BUNDLE));
    broken(&with(&good, CERTIFICATE, no_certificate), &not(CERTIFICATE));
    let no_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    broken(&with(&good, CA_KEY, no_key), &ContentsError::BadKey(CA_KEY));
    broken(&with(&good, KEY, no_key), &ContentsError::BadKey(KEY));

    let mismatch = |key, certificate| ContentsError::KeyMismatch { key, certificate };
    broken(
        &with(&good, CA_KEY, &authority_key),
        &mismatch(CA_KEY, CA_BUNDLE),
    );
    broken(
        &with(&good, CA_BUNDLE, &bundle),
        &mismatch(CA_KEY, CA_BUNDLE),
    );
    broken(&with(&good, KEY, &key), &mismatch(KEY, CERTIFICATE));
    broken(
        &with(&good, CERTIFICATE, &certificate),
        &mismatch(KEY, CERTIFICATE),
    );
    let mut stranger = with(&good, CERTIFICATE, &certificate);
    stranger.insert(KEY.to_owned(), ByteString(key.into_bytes()));
    broken(&stranger, &ContentsError::UnknownSigner);
    let [_, _, leaf, _] = good.texts();
    broken(&with(&good, CA_BUNDLE, leaf), &ContentsError::NotAuthority);
}

#[test]
fn no_text_of_ours_shows_a_key() {
    let contents = found();
    let [_, authority_key, _, key] = contents.texts();
    let shown = format!("{contents:?}");
    for secret in [authority_key, key] {
        let line = secret.lines().nth(1).unwrap();
        assert!(!shown.contains(line) && !shown.contains("PRIVATE"));
    }
    let error = Contents::read(&with(&contents, KEY, &key.replace('M', "!"))).unwrap_err();
    let told = format!("{error} {error:?}");
    assert!(
        !told.contains(key.lines().nth(1).unwrap().get(8..20).unwrap()),
        "{told}"
    );
}

#[test]
fn a_rotation_keeps_what_must_be_trusted() {
    let one = found();
    assert!(!one.is_announced());
    let announced = after(Step::Announce, &one);
    assert!(announced.is_announced());
    assert_eq!(announced.pair().cert, one.pair().cert);
    assert_eq!(announced.authorities()[1], one.authorities()[0]);
    let issued = after(Step::Issue, &announced);
    assert!(!issued.is_announced());
    assert_ne!(issued.pair().cert, one.pair().cert);
    assert_eq!(issued.authorities(), announced.authorities());
    let retired = after(Step::Retire, &issued);
    assert_eq!(retired.authorities(), &issued.authorities()[..1]);
    assert_eq!(retired.pair().cert, issued.pair().cert);
    // The signer of what is served is never taken out.
    assert_eq!(
        after(Step::Retire, &announced).authorities(),
        announced.authorities()
    );
}

#[test]
fn names_are_added_and_never_lost() {
    let one = found();
    let other = maker(&["b", "127.0.0.1"]);
    let both = other.after(Step::Issue, Some(&one), None, NOW_S).unwrap();
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
    let one = found();
    let late_s = NOW_S + 280 * DAY_S;
    let again = maker(&["a"])
        .after(Step::Issue, Some(&one), None, late_s)
        .unwrap();
    assert_eq!(
        again.validity().ends_s,
        one.authorities()[0].validity.ends_s
    );
}

/// A situation in which nothing is to be done.
fn quiet<'a>(contents: &'a Contents, names: &'a [ServerName<'static>]) -> Situation<'a> {
    Situation {
        now_s: NOW_S,
        stored: Stored::Good(contents),
        held: Some(contents),
        renewal_asked: false,
        names,
        overlap: OVERLAP,
        standing: Some(OVERLAP),
        served: OVERLAP,
    }
}

#[track_caller]
fn check(situation: &Situation<'_>, step: Step, look_again: Duration) {
    assert_eq!(situation.plan(), Plan { step, look_again });
}

const HOUR: Duration = Duration::from_hours(1);
const AT_ONCE: Duration = Duration::ZERO;

#[test]
fn where_there_is_nothing_it_is_made_or_written_back() {
    let contents = found();
    let nobody = Situation {
        held: None,
        ..quiet(&contents, &[])
    };
    let stored = |stored| Situation { stored, ..nobody };
    check(&stored(Stored::Nothing), Step::Found, AT_ONCE);
    check(&stored(Stored::Broken), Step::Rest, HOUR);
    check(&nobody, Step::Rest, HOUR);
    for stored in [Stored::Nothing, Stored::Broken] {
        let holder = Situation {
            stored,
            ..quiet(&contents, &[])
        };
        check(&holder, Step::Restore, AT_ONCE);
    }
}

#[test]
fn a_rotation_goes_step_by_step() {
    let one = found();
    let names = maker(&["a"]).names;
    let quiet_one = quiet(&one, &names);
    check(&quiet_one, Step::Rest, HOUR);
    let asked = Situation {
        renewal_asked: true,
        ..quiet_one
    };
    check(&asked, Step::Announce, AT_ONCE);

    let announced = after(Step::Announce, &one);
    let now = quiet(&announced, &names);
    check(&now, Step::Issue, AT_ONCE);
    let part = OVERLAP.saturating_sub(Duration::from_secs(1));
    let standing = |standing| Situation { standing, ..now };
    check(&standing(Some(part)), Step::Rest, Duration::from_secs(1));
    check(&standing(Some(AT_ONCE)), Step::Rest, OVERLAP);
    check(&standing(None), Step::Rest, HOUR);
    // One rotation at a time, so the bundle has an end.
    check(
        &Situation {
            renewal_asked: true,
            ..now
        },
        Step::Acknowledge,
        AT_ONCE,
    );
    // Its key is not there: a missing name has to wait.
    let more = maker(&["a", "b"]).names;
    check(
        &Situation {
            names: &more,
            ..standing(None)
        },
        Step::Rest,
        HOUR,
    );

    let issued = after(Step::Issue, &announced);
    let now = quiet(&issued, &names);
    check(&now, Step::Retire, AT_ONCE);
    check(
        &Situation {
            served: part,
            ..now
        },
        Step::Rest,
        Duration::from_secs(1),
    );
    check(
        &Situation {
            standing: None,
            ..now
        },
        Step::Retire,
        AT_ONCE,
    );
    check(
        &quiet(&after(Step::Retire, &issued), &names),
        Step::Rest,
        HOUR,
    );
}

#[test]
fn certificates_are_renewed_before_they_end() {
    let one = found();
    let names = maker(&["a"]).names;
    let at = |contents, days: u64| Situation {
        now_s: NOW_S + days * DAY_S,
        standing: None,
        ..quiet(contents, &names)
    };
    // The pair lives for 90 days and the CA for 300: the last third, and the last 30 days.
    check(&at(&one, 59), Step::Rest, HOUR);
    check(&at(&one, 61), Step::Issue, AT_ONCE);
    check(&at(&one, 269), Step::Issue, AT_ONCE);
    let again = |days: u64| {
        let now_s = NOW_S + days * DAY_S;
        maker(&["a"])
            .after(Step::Issue, Some(&one), None, now_s)
            .unwrap()
    };
    let late = again(265);
    check(&at(&late, 269), Step::Rest, HOUR);
    check(&at(&late, 271), Step::Announce, AT_ONCE);
    // The CA is out of date: a new one, and with it a new pair at once.
    check(&at(&late, 301), Step::Announce, AT_ONCE);
    let now_s = NOW_S + 301 * DAY_S;
    let announced = maker(&["a"])
        .after(Step::Announce, Some(&late), None, now_s)
        .unwrap();
    check(&at(&announced, 301), Step::Issue, AT_ONCE);
    let issued = maker(&["a"])
        .after(Step::Issue, Some(&announced), None, now_s)
        .unwrap();
    let fresh = Situation {
        served: AT_ONCE,
        ..at(&issued, 301)
    };
    check(&fresh, Step::Prune, AT_ONCE);
    let pruned = maker(&["a"])
        .after(Step::Prune, Some(&issued), None, now_s)
        .unwrap();
    assert_eq!(pruned.authorities().len(), 1);
    let more = maker(&["a", "b"]).names;
    check(
        &Situation {
            names: &more,
            ..quiet(&one, &[])
        },
        Step::Issue,
        AT_ONCE,
    );
}

#[test]
fn what_is_seen_without_a_break_has_an_age() {
    let second = Duration::from_secs;
    let mut since = Since::default();
    assert_eq!(since.observe(second(1), None), None);
    assert_eq!(since.observe(second(2), Some('a')), Some(AT_ONCE));
    assert_eq!(since.observe(second(5), Some('a')), Some(second(3)));
    assert_eq!(since.observe(second(6), Some('b')), Some(AT_ONCE));
    assert_eq!(since.observe(second(7), None), None);
    assert_eq!(since.observe(second(8), Some('b')), Some(AT_ONCE));
}

#[test]
fn a_server_answers_before_the_secret_is_read() {
    let configured = CertificateSettings {
        secret: Some("a/b".parse().unwrap()),
        ..CertificateSettings::default()
    };
    let names = ["localhost".to_owned()];
    let settings = Settings::new(&configured, &names).unwrap().unwrap();
    let serving = settings.serving(&TlsOptions::default(), None).unwrap();
    let (slot, status) = (serving.slot().unwrap(), serving.status());
    let contents = found();
    assert!(slot.put(contents.pair(), 7));
    assert!(!slot.put(contents.pair(), 8));
    assert_eq!(status.not_after(), 7);
    let bad = ["*.example.com".to_owned()];
    assert!(Settings::new(&configured, &bad).is_err());
    let none = CertificateSettings::default();
    assert!(Settings::new(&none, &bad).unwrap().is_none());
}
