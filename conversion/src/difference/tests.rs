#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use super::*;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::json;

const KEYED: &[ListKey] = &[
    ListKey {
        list: "items",
        key: "name",
    },
    ListKey {
        list: "*.items",
        key: "name",
    },
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        (0..3_i64).prop_map(Value::from),
        "[a-c]".prop_map(Value::from),
    ];
    let name = prop_oneof![Just("items".to_owned()), "[a-c]"];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        let item = (("[a-d]"), inner.clone())
            .prop_map(|(name, value)| json!({"name": name, "value": value}));
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec(item, 0..4).prop_map(Value::from),
            btree_map(name.clone(), inner, 0..4).prop_map(|it| json!(it)),
        ]
    })
}

proptest! {
    #[test]
    fn restore_of_difference_yields_other_value(base in any_json(), preserved in any_json()) {
        let entries = difference(&base, &preserved, KEYED);
        let text = serde_json::to_string(&entries).unwrap();
        let entries: Vec<Entry> = serde_json::from_str(&text).unwrap();
        if base.is_object() && preserved.is_object() {
            prop_assert_eq!(restore(base, &entries, KEYED, |_| true), preserved);
        }
    }

    #[test]
    fn restore_skips_entries_that_change_result(base in any_json(), preserved in any_json(), other in any_json()) {
        let entries = difference(&base, &preserved, KEYED);
        let same = restore(other.clone(), &entries, KEYED, |it| *it == other);
        prop_assert_eq!(same, other);
    }
}

#[track_caller]
fn check(base: Value, preserved: &Value, now: Value, expected: &Value) {
    let entries = difference(&base, preserved, KEYED);
    assert_eq!(&restore(base, &entries, KEYED, |_| true), preserved);
    assert_eq!(&restore(now, &entries, KEYED, |_| true), expected);
}

#[test]
fn restore_keeps_later_changes_and_removals() {
    let preserved = json!({"a": {"x": 1, "y": 2}, "b": 3});
    // A sibling of the restored fields was added where nothing was before.
    check(
        json!({"b": 3}),
        &preserved,
        json!({"a": {"z": 4}, "b": 5}),
        &json!({"a": {"x": 1, "y": 2, "z": 4}, "b": 5}),
    );
    check(
        json!({"b": 3}),
        &preserved,
        json!({"a": {"x": 9}}),
        &json!({"a": {"x": 9, "y": 2}}),
    );
    // The parent existed in the base and was removed since.
    check(
        json!({"a": {"x": 1}, "b": 3}),
        &preserved,
        json!({"b": 3}),
        &json!({"b": 3}),
    );
    check(
        json!({"a": {"x": 1}, "b": 4}),
        &preserved,
        json!({"a": [], "b": 4}),
        &json!({"a": [], "b": 3}),
    );
    // An explicit null and an empty object are values, not absent.
    check(
        json!({}),
        &json!({"a": null, "b": {}}),
        json!({"c": 1}),
        &json!({"a": null, "b": {}, "c": 1}),
    );
    check(
        json!({"a": null, "b": {}}),
        &json!({}),
        json!({"a": null, "b": 1}),
        &json!({"b": 1}),
    );
}

#[test]
fn restore_matches_items_by_key() {
    let item = |name: &str, zone: Option<&str>| match zone {
        Some(zone) => json!({"name": name, "zone": zone}),
        None => json!({"name": name}),
    };
    let preserved = json!({"items": [item("c", Some("z")), item("a", None), item("b", Some("y"))]});
    let base = json!({"items": [item("a", None), item("c", None)]});
    // Item a was removed, c changed and d added; b, absent from the base, is restored.
    check(
        base.clone(),
        &preserved,
        json!({"items": [item("d", None), item("c", Some("new"))]}),
        &json!({"items": [item("c", Some("new")), item("b", Some("y")), item("d", None)]}),
    );
    check(
        json!({}),
        &preserved,
        json!({"items": [item("b", None)]}),
        &json!({"items": [item("c", Some("z")), item("a", None), item("b", None)]}),
    );
    // A list with duplicate keys is restored as a whole.
    let duplicates = json!({"items": [item("a", None), item("a", Some("z"))]});
    check(base.clone(), &duplicates, base.clone(), &duplicates);
    check(
        base,
        &duplicates,
        json!({"items": []}),
        &json!({"items": []}),
    );
}

#[test]
fn restore_leaves_out_only_conflicting_entries() {
    let preserved = json!({"a": 1, "b": 2, "c": 3});
    let entries = difference(&json!({}), &preserved, &[]);
    let back = restore(json!({}), &entries, &[], |it| it.get("b").is_none());
    assert_eq!(back, json!({"a": 1, "c": 3}));
    let many: Value = (0..200)
        .map(|it| (format!("{it:03}"), it.into()))
        .collect::<Map<_, _>>()
        .into();
    let entries = difference(&json!({}), &many, &[]);
    let back = restore(json!({}), &entries, &[], |it| it.get("001").is_none());
    assert_eq!(back.as_object().unwrap().len(), RESTORE_ATTEMPTS_MAX - 1);
}

#[test]
fn patterns_match_paths() {
    let field = |name: &str| Step::Field(name.to_owned());
    let item = Step::Item {
        item: "x".to_owned(),
    };
    let at = [field("spec"), field("a.b"), item, field("zone")];
    assert!(
        matches_path("spec.*.*.zone", &at)
            && matches_prefix("spec.*.*", &at)
            && matches_prefix("spec", &at)
    );
    assert!(
        !matches_path("spec.*.*", &at)
            && !matches_prefix("spec.*.x", &at)
            && !matches_prefix("status", &at)
    );
    assert!(!matches_prefix("spec.*.*.zone.more", &at));
    assert_eq!(format_path(&at), "spec.a.b[x].zone");
}
