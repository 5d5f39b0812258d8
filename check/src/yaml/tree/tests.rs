use super::YamlTree;
use proptest::prelude::*;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Whether the tree reads a text exactly; then its values are those of the deserializer.
#[track_caller]
fn check(text: &str) -> bool {
    let Some((tree, values)) = YamlTree::parse(text) else {
        return false;
    };
    let expected: Vec<Value> = serde_saphyr::from_multiple(text).expect(text);
    assert_eq!(values, expected, "{text}");
    assert_eq!(tree.documents.len(), values.len(), "{text}");
    true
}

fn example_texts() -> Vec<String> {
    let mut paths = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    collect_files(&folder, &mut paths);
    let texts = paths.iter().map(|it| fs::read_to_string(it).unwrap());
    texts.collect()
}

fn collect_files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_files(&path, out);
        } else if path
            .extension()
            .is_some_and(|it| it == "yaml" || it == "json")
        {
            out.push(path);
        }
    }
}

#[test]
fn tree_examples_match_deserializer() {
    let texts = example_texts();
    let count = texts.iter().filter(|it| check(it)).count();
    assert!(count * 10 >= texts.len() * 9, "{count} of {}", texts.len());
}

/// Scalars of every form.
#[rustfmt::skip]
const SCALARS: &[&str] = &[
    "", "~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "yes", "No", "on", "OFF", "y", "N", "a",
    "nullable", "truely", "/a", "é", "_", "_1", "-", "- 1", "-1", "+1", "0", "00", "01", "08", "0o7", "0x1F",
    "0b1", "1", "10", "123456789012345678", "1234567890123456789", "18446744073709551616", "1_000", "1.0",
    ".5", "5.", "1e3", "1E3", "1.5Gi", "16Gi", "500m", "1k", "1M", "1E", "1Ei", "1e", "3d", "1f", "2L", "7i",
    "1inf", "1nan", ".inf", "-.INF", ".nan", "inf", "nan", "NaN", "Infinity", "infinity", "2026-01-31",
    "2026-01-31T12:00:00Z", "12:30", "1:2:3", "10.0.0.1", "a: b", "a:b", "a #b", "'a'", "\"a\\n\"", "'1'",
    "\"true\"", "''", "|\n  a\n  b", ">-\n  a\n  b\n\n  c", "[]", "{}", "[1, a, [b]]", "{a: 1, b: {c: d}}",
    "!!str 1", "!a b", "&a b", "*a", "<<", "=", "a\n  b", "? a", "@a", "`a`", "%a", "\t1", "1 2", "1,5", "1a",
    "0a", "0m", "9z", "٣",
];

#[test]
fn tree_scalars_match_deserializer_or_return_none() {
    for scalar in SCALARS {
        check(&format!("a: {scalar}\n"));
        check(&format!("{scalar}: a\n"));
        check(&format!("- {scalar}\n-   {scalar}\n"));
        check(&format!("{scalar}\n---\n{scalar}\n"));
        check(&format!(
            "a: {scalar}\n---\n# one\n---\nb:\n  - {scalar} # two\n...\n"
        ));
    }
}

#[test]
fn tree_common_yaml_is_read() {
    for text in [
        "",
        "\n# nothing\n---\n---\n",
        "a: 1\nb: [c, d]\ne:\n- f: 16Gi\n  g: \"5\"\n",
        "---\na: b\n---\n---\nc:\n",
        "a: 1\nb: [c, \"d\", '5', 6]\ne:\n- f: 16Gi\n  g: \"5\"\n- f: 1\n\n  # more\n  g: x\nh: {}\n",
        "a:\n  - b\n  - http://c.d/e\n  -   k: v\n      l: w\nm:\n",
        "a: some words, and more\n---\n# two\nb:\n    c: []\n    d: ''",
        "{\"a\": [1, true, null, \"b\"]}",
    ] {
        assert!(check(text), "{text}");
    }
}

#[test]
fn tree_unusual_or_invalid_yaml_returns_none() {
    let deep = "[".repeat(100_000);
    let large = format!("a: {}", "b".repeat(2_000_000));
    for text in [
        "a: 1\na: 2\n",
        "a: [1\n",
        "a: &b 1\nc: *b\n",
        "a:\n\t- b\n",
        "\u{feff}a: b",
        "%YAML 1.1\n---\na: b\n",
        "1: a\n",
        "[a]: b\n",
        "a: !!int b\n",
        "<<: {a: b}\n",
        "a: \u{7}\n",
        &deep,
        &large,
    ] {
        assert!(YamlTree::parse(text).is_none(), "{text:.40}");
    }
}

/// Parts of lines. Some combinations are valid.
const PIECES: &[&str] = &[
    "a:", "b:", "c: ", "- ", "-", "  ", " ", "a", "1", "16Gi", "x y", "\"q\"", "'s'", "[", "]",
    ",", "[a, b]", "{}", "[]", "#", " # c", ": ", ":", "---", "...", "true", "~", "\"", "'", "|",
    "&a", "*a", "!t", "=", "@", "(", "0x1", "1e3", "1_0", "-1", ".5", "a.b/c", "<<", "?", "%",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tree_random_text_matches_deserializer(
        lines in prop::collection::vec((0_usize..5, prop::collection::vec(prop::sample::select(PIECES), 0..4)), 0..7),
    ) {
        let lines = lines.iter().map(|(indent, pieces)| format!("{}{}\n", " ".repeat(*indent), pieces.concat()));
        check(&lines.collect::<String>());
    }

    #[test]
    fn tree_random_mappings_match_deserializer(
        lines in prop::collection::vec((0_usize..4, any::<bool>(), "[ab]", prop::sample::select(PIECES)), 0..8),
    ) {
        let lines = lines.iter().map(|(indent, is_item, key, value)| {
            let dash = if *is_item { "- " } else { "" };
            format!("{}{dash}{key}: {value}\n", "  ".repeat(*indent))
        });
        check(&lines.collect::<String>());
    }
}
