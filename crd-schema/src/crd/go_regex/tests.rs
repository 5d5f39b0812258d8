use super::{compile, is_valid};
use std::fmt::Write as _;

/// What `regexp` of Go 1.26 answers: a pattern, and the texts that it matches and does not match; no texts if Go
/// refuses the pattern.
const CASES: &str = include_str!("cases.jsonl");

#[track_caller]
fn check(cases: &str) {
    let mut differences = String::new();
    for line in cases.lines() {
        let case: Vec<serde_json::Value> = serde_json::from_str(line).unwrap();
        let pattern = case[0].as_str().unwrap();
        if is_valid(pattern) != (case.len() == 3) {
            writeln!(differences, "{pattern:?} is valid: {}", is_valid(pattern)).unwrap();
            continue;
        }
        if case.len() == 1 {
            assert!(compile(pattern).is_none(), "{pattern:?}");
            continue;
        }
        let Some(regex) = compile(pattern) else {
            writeln!(differences, "{pattern:?} does not compile").unwrap();
            continue;
        };
        for (texts, expected) in [(&case[1], true), (&case[2], false)] {
            for text in texts.as_array().unwrap() {
                let text = text.as_str().unwrap();
                if regex.is_match(text) != expected {
                    writeln!(differences, "{pattern:?} {text:?} matches: {}", !expected).unwrap();
                }
            }
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

#[test]
fn compile_recorded_patterns_answers_as_go() {
    check(CASES);
}

#[test]
fn compile_pattern_beyond_limit_gives_none() {
    let long = "a".repeat(super::PATTERN_MAX_BYTES + 1);
    assert!(compile(&long).is_none());
    assert!(is_valid(&long));
}

#[test]
fn is_valid_deep_groups_has_the_limit_of_go() {
    for (depth, expected) in [(999, true), (1000, false)] {
        let pattern = format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(is_valid(&pattern), expected, "{depth}");
    }
}

#[test]
fn is_valid_large_repetition_has_the_limit_of_go() {
    for (count, expected) in [(3300, true), (3400, false)] {
        let pattern = format!("(?:{}){{1000}}", "[ab]c".repeat(count / 2));
        assert_eq!(is_valid(&pattern), expected, "{count}");
    }
}
