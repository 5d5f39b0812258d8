use super::parse_documents;
use crate::check::fast_parse::tests::{example_texts, matches_deserializer};
use proptest::prelude::*;

/// Whether a text is read here; what is read is what the deserializer reads.
fn check(text: &str) -> bool {
    matches_deserializer(text, parse_documents(text))
}

#[test]
fn block_parse_most_examples_succeed() {
    let texts = example_texts();
    let count = texts.iter().filter(|it| check(it)).count();
    assert!(count * 2 >= texts.len(), "{count} of {}", texts.len());
}

#[test]
fn block_parse_common_yaml_succeeds() {
    for text in [
        "",
        "\n# nothing\n---\n---\n",
        "a: 1\nb: [c, \"d\", '5', 6]\ne:\n- f: 16Gi\n  g: \"5\"\n- f: 1\n\n  # more\n  g: x\nh: {}\n",
        "a:\n  - b\n  - http://c.d/e\n  -   k: v\n      l: w\nm:\n",
        "a: some words, and more\n---\n# two\nb:\n    c: []\n    d: ''",
        "- a: 1\n  b:\n  - 2\n  - 3\n- c:\n    d: e\n",
    ] {
        assert!(check(text), "{text}");
    }
}

#[test]
fn block_parse_complex_yaml_returns_none() {
    let deep = (0..100).map(|it| " ".repeat(it) + "a:\n");
    let deep: String = deep.collect();
    for text in [
        "a: b\n  c\n",
        "a: b\n  c: d\n",
        "a:\n  b: c\n d: e\n",
        "a: \"b\n  c\"\n",
        "a: \"b\\n\"\n",
        "a: 'it''s'\n",
        "a: 'b' c\n",
        "a: b # c\n",
        "a: |\n  b\n",
        "a: &b c\n",
        "a: *b\n",
        "a: !b c\n",
        "a: b: c\n",
        "a: b:\n",
        "a: [b, [c]]\n",
        "a: [\"b,c\"]\n",
        "a: [b,\n  c]\n",
        "a: {b: c}\n",
        "a: b\na: c\n",
        "a: -1\n",
        "- - a\n",
        "-\n  a: b\n",
        "- a\n  b\n",
        "- a\nb: c\n",
        "a:\n- b\n c: d\n",
        "a\n",
        "{\"a\": 1}\n",
        "a:\tb\n",
        "a: b\r\n",
        "a: \u{e9}\n",
        "true: a\n",
        "1: a\n",
        "? a\n",
        "--- a\n",
        "a: b\n...\n",
        "%YAML 1.2\n---\na: b\n",
        " a: b\n",
        &deep,
    ] {
        assert_eq!(parse_documents(text), None, "{text:.40}");
    }
}

/// Pieces of lines, of which some make sense together.
const PIECES: &[&str] = &[
    "a:", "b:", "c: ", "- ", "-", "  ", " ", "a", "1", "16Gi", "x y", "\"q\"", "'s'", "[", "]",
    ",", "[a, b]", "{}", "[]", "#", " # c", ": ", ":", "---", "...", "true", "~", "\"", "'", "|",
    "&a", "*a", "!t", "=", "@", "(", "0x1", "1e3", "1_0", "-1", ".5", "a.b/c", "<<", "?", "%",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn block_parse_random_text_matches_deserializer(
        lines in prop::collection::vec((0_usize..5, prop::collection::vec(prop::sample::select(PIECES), 0..4)), 0..7),
    ) {
        let lines = lines.iter().map(|(indent, pieces)| format!("{}{}\n", " ".repeat(*indent), pieces.concat()));
        check(&lines.collect::<String>());
    }

    #[test]
    fn block_parse_random_mappings_match_deserializer(
        lines in prop::collection::vec((0_usize..4, any::<bool>(), "[ab]", prop::sample::select(PIECES)), 0..8),
    ) {
        let lines = lines.iter().map(|(indent, is_item, key, value)| {
            let dash = if *is_item { "- " } else { "" };
            format!("{}{dash}{key}: {value}\n", "  ".repeat(*indent))
        });
        check(&lines.collect::<String>());
    }
}
