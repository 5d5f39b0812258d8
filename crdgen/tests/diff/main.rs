//! Comparing CRDs: the report on each change, and a property test of the class compatible.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests fail by panicking"
)]

mod cases;
mod command;
mod crdify;
mod crdify_record;
mod properties;
mod ratcheting;

use lockkeeper_crdgen::diff::{CODES, Change, compare};
use lockkeeper_crdgen::structural::check::check;
use std::collections::BTreeSet;

fn shown(change: &Change) -> String {
    format!("{} {} {}", change.code.id(), change.class, change.place)
}

#[test]
fn cases_report_expected_changes() {
    let mut wrong = Vec::new();
    for case in cases::all().into_iter().chain(cases::former_values()) {
        let (old, new) = (case.before(), case.after());
        assert_eq!(check(&old), Ok(()), "{}", case.name);
        assert_eq!(check(&new), Ok(()), "{}", case.name);
        let found: Vec<String> = compare(&[old], &[new]).iter().map(shown).collect();
        if found != case.expect {
            wrong.push((case.name, found));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn definition_compared_with_itself_has_no_changes() {
    for case in cases::all() {
        for definition in [case.before(), case.after()] {
            let same = [definition];
            assert_eq!(compare(&same, &same), [], "{}", case.name);
        }
    }
}

#[test]
fn change_codes_have_cases_and_unique_ids() {
    let ids: BTreeSet<&str> = CODES.iter().map(|it| it.id).collect();
    let names: BTreeSet<&str> = CODES.iter().map(|it| it.name).collect();
    assert_eq!((ids.len(), names.len()), (CODES.len(), CODES.len()));
    let cases = cases::all();
    assert!(cases.len() > 60);
    let expected = cases.iter().flat_map(|it| &it.expect);
    let covered: BTreeSet<&str> = expected.map(|it| &it[..5]).collect();
    // Whole definitions come and go in the test below.
    let missing: Vec<_> = ids.difference(&covered).collect();
    assert_eq!(missing, [&"CD001", &"CD002"]);
}

#[test]
fn definitions_added_and_removed_are_reported() {
    let case = &cases::all()[0];
    let one = [case.before()];
    let shown = |changes: Vec<Change>| changes.iter().map(shown).collect::<Vec<_>>();
    assert_eq!(
        shown(compare(&[], &one)),
        ["CD001 compatible the definition"]
    );
    assert_eq!(shown(compare(&one, &[])), ["CD002 breaking the definition"]);
}
