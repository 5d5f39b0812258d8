//! How long a stored object passes: compares the report on each change with the API server's validation.

use lockkeeper_crdgen::diff::{ChangeClass, StoredObjectsEffect, compare_schemas};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    at: String,
    loose: Value,
    tight: Value,
    old: Value,
    new: Value,
}

/// The prefix of the pointer `at` with as many steps as `place`.
fn pointer<'a>(place: &str, at: &'a str) -> &'a str {
    let steps = place
        .replace("[]", ".[]")
        .replace("[*]", ".[*]")
        .split('.')
        .count();
    let mut ends = at.match_indices('/').map(|(end, _)| end).skip(1);
    let end = ends.nth(steps - 1).unwrap_or(at.len());
    &at[..end]
}

#[test]
fn stored_object_ratcheting_matches_api_server() {
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("ratcheting.yaml")).unwrap();
    let lines = include_str!("ratcheting.txt").lines();
    let theirs: BTreeMap<&str, bool> = lines
        .map(|line| line.rsplit_once(": ").unwrap())
        .map(|(name, verdict)| (name, verdict == "rejected"))
        .collect();
    assert_eq!(cases.len(), theirs.len());
    for case in &cases {
        let read = |schema: &Value| serde_json::from_value(schema.clone()).unwrap();
        let changes = compare_schemas(
            "things.example.com",
            "v1",
            &read(&case.loose),
            &read(&case.tight),
        );
        let [change] = changes.as_slice() else {
            panic!("{}: {changes:?}", case.name);
        };
        let StoredObjectsEffect::Until(place) = &change.stored else {
            panic!("{}: {}", case.name, change.stored);
        };
        assert_eq!(change.class, ChangeClass::Breaking, "{}", case.name);
        let pointer = pointer(&place.to_string(), &case.at);
        let is_rejected = case.old.pointer(pointer) != case.new.pointer(pointer);
        assert_eq!(
            is_rejected,
            theirs[case.name.as_str()],
            "{}: {}",
            case.name,
            change.stored
        );
    }
}
