//! Replicas with different clocks.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use super::contents::SecretContents;
use super::plan::{RotationState, RotationStep};
use super::tests::{
    HOUR, IMMEDIATELY, NOW_S, OVERLAP, cert_issuer, check, new_contents, settled_state,
};
use crate::self_signed::DAY_S;

#[test]
fn certificates_from_a_fast_clock_are_issued_again_by_the_right_clock() {
    let names = cert_issuer(&["a"]).names;
    let issue = |step, stored: Option<&SecretContents>, now_s| {
        cert_issuer(&["a"])
            .apply(step, stored, None, now_s)
            .unwrap()
    };
    let fast_s = NOW_S + 2 * 3_600;
    let at = |contents, now_s| RotationState {
        now_s,
        ca_injected_for: None,
        served_for: IMMEDIATELY,
        ..settled_state(contents, &names)
    };
    // Half an hour is within the time that certificates are backdated.
    let early = issue(RotationStep::Create, None, NOW_S + 1_800);
    check(&at(&early, NOW_S), RotationStep::Wait, HOUR);

    let ahead = issue(RotationStep::Create, None, fast_s);
    check(&at(&ahead, fast_s), RotationStep::Wait, HOUR);
    check(&at(&ahead, NOW_S), RotationStep::AnnounceCa, IMMEDIATELY);
    let announced = issue(RotationStep::AnnounceCa, Some(&ahead), NOW_S);
    check(
        &at(&announced, NOW_S),
        RotationStep::IssueServing,
        IMMEDIATELY,
    );
    let issued = issue(RotationStep::IssueServing, Some(&announced), NOW_S);
    // Valid for both clocks, so the replicas do not replace each other's certificates.
    for now_s in [NOW_S, fast_s] {
        check(&at(&issued, now_s), RotationStep::Wait, OVERLAP);
    }
    // Only the certificate is ahead: its CA stays.
    let valid = issue(RotationStep::Create, None, NOW_S);
    let ahead = issue(RotationStep::IssueServing, Some(&valid), fast_s);
    check(&at(&ahead, NOW_S), RotationStep::IssueServing, IMMEDIATELY);
    // Only the CA that has signed it is ahead.
    let ahead = issue(RotationStep::Create, None, fast_s);
    let signed = issue(RotationStep::IssueServing, Some(&ahead), NOW_S);
    let announced = issue(RotationStep::AnnounceCa, Some(&signed), NOW_S);
    check(
        &at(&announced, NOW_S),
        RotationStep::IssueServing,
        IMMEDIATELY,
    );
}

/// A clock that is ahead by more than two thirds of a life sees valid certificates as expiring, and issues others.
#[test]
fn certificates_of_a_clock_that_is_far_ahead_are_issued_again() {
    let names = cert_issuer(&["a"]).names;
    let at = |contents, now_s| RotationState {
        now_s,
        ca_injected_for: None,
        served_for: IMMEDIATELY,
        ..settled_state(contents, &names)
    };
    let apply = |step, stored, now_s| {
        cert_issuer(&["a"])
            .apply(step, Some(stored), None, now_s)
            .unwrap()
    };
    let valid = new_contents();
    let fast_s = NOW_S + 61 * DAY_S;
    check(&at(&valid, fast_s), RotationStep::IssueServing, IMMEDIATELY);
    let ahead = apply(RotationStep::IssueServing, &valid, fast_s);
    assert!(ahead.validity().begins_s > NOW_S);
    check(&at(&ahead, NOW_S), RotationStep::IssueServing, IMMEDIATELY);
    let mended = apply(RotationStep::IssueServing, &ahead, NOW_S);
    assert!(mended.validity().contains(NOW_S));
    check(&at(&mended, NOW_S), RotationStep::Wait, HOUR);

    // With a CA of the future: the right clock announces another one, and its certificate follows at once, because no client
    // accepts the one that is served.
    let fast_s = NOW_S + 271 * DAY_S;
    let ahead = apply(RotationStep::IssueServing, &valid, fast_s);
    check(&at(&ahead, fast_s), RotationStep::AnnounceCa, IMMEDIATELY);
    let ahead = apply(RotationStep::AnnounceCa, &ahead, fast_s);
    let ahead = apply(RotationStep::IssueServing, &ahead, fast_s);
    check(&at(&ahead, NOW_S), RotationStep::AnnounceCa, IMMEDIATELY);
    let announced = apply(RotationStep::AnnounceCa, &ahead, NOW_S);
    check(
        &at(&announced, NOW_S),
        RotationStep::IssueServing,
        IMMEDIATELY,
    );
    let mended = apply(RotationStep::IssueServing, &announced, NOW_S);
    assert!(mended.validity().contains(NOW_S));
    let signer = mended.signer().unwrap();
    assert!(signer.validity.contains(NOW_S));
    check(&at(&mended, NOW_S), RotationStep::Wait, OVERLAP);
}
