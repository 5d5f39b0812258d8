#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::*;
use serde_json::json;

/// Texts that a reader of YAML 1.1 or 1.2 takes for something else when they stand unquoted.
const MISTAKEN: &[&str] = &[
    "",
    "~",
    "null",
    "Null",
    "true",
    "False",
    "y",
    "N",
    "yes",
    "off",
    "1",
    "-1",
    "1.5",
    "1e3",
    "0x1F",
    "0o17",
    "017",
    "1_000",
    ".5",
    ".inf",
    ".NaN",
    "12:30:45",
    "2001-01-01",
    "<<",
    "=",
];

/// Texts whose characters mean something in YAML, or whose spaces would get lost.
const AWKWARD: &[&str] = &[
    "- a",
    "a: b",
    "a #b",
    "#a",
    "{a}",
    "[a]",
    "*a",
    "&a",
    "!a",
    "%a",
    "@a",
    "|",
    "'a'",
    "\"a\"",
    "a\\b",
    " a",
    "a ",
    "a\n",
    "\na",
    "a\n  b\n",
    "a\tb",
    "a\u{7}b",
    "---",
    "é",
    "a  b c  d e  f g  h i  j k  l m  n o  p q  r s  t u  v w  x y  z 0  1 2  3 4  5 6  7 8  9",
    "a line of more than eighty characters that ends in two spaces and is folded somewhere  ",
];

#[test]
fn yaml_strings_round_trip_as_strings() {
    for text in MISTAKEN.iter().chain(AWKWARD) {
        let object = json!({"key": text, *text: "value", "list": [text, [text]]});
        let yaml = document(&object).unwrap();
        let read: Value = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(read, object, "{yaml}");
    }
    for text in MISTAKEN {
        let yaml = document(&json!({ "key": text })).unwrap();
        assert!(
            yaml.starts_with("key: \"") || yaml.starts_with("key: '"),
            "{yaml}"
        );
    }
}

#[test]
fn yaml_sorts_keys_and_prints_integers_without_fraction() {
    let yaml = document(&json!({"b": [1.0, 1.5, -3, 0.0], "a": {"d": {}, "c": []}})).unwrap();
    assert_eq!(yaml, "a:\n  c: []\n  d: {}\nb:\n- 1\n- 1.5\n- -3\n- 0\n");
}
