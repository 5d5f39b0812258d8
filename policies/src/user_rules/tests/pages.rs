//! Invalid pages are rejected with the line and column of the error.

use super::page;
use crate::registry;
use crate::user_rules::{
    PAGE_MAX_BYTES, Problem, RULES_MAX, Source, UserRule, UserRules, UserRulesError, is_user_id,
};

#[track_caller]
fn assert_rejected(lines: &str, place: (u64, u64), part: &str) {
    let error = UserRule::parse(&page(lines), &crate::registry::all()).unwrap_err();
    assert!(error.to_string().contains(part), "{error}");
    assert_eq!((error.line, error.column), place, "{error}");
}

#[test]
fn parse_invalid_rule_reports_line_and_column() {
    assert_rejected(
        "validations: []",
        (5, 14),
        "validations has from 1 to 64 items",
    );
    assert_rejected(
        "matchConditions: []\nvalidations: [{expression: 'true'}]",
        (5, 18),
        "matchConditions has from 1 to 64",
    );
    assert_rejected("validation: []", (5, 1), "unknown field `validation`");
    assert_rejected(
        "operations: [MAKE]\nvalidations: [{expression: 'true'}]",
        (5, 14),
        "MAKE",
    );
    assert_rejected(
        "validations:\n- expression: object.a =",
        (6, 15),
        "the expression of TEAM001, at its 1:",
    );
    assert_rejected(
        "validations:\n- expression: object.a == foo",
        (6, 15),
        "there is no variable \"foo\"",
    );
    assert_rejected(
        "validations:\n- expression: frob(object)",
        (6, 15),
        "there is no function \"frob\"",
    );
    assert_rejected(
        "validations:\n- expression: object.frob()",
        (6, 15),
        "there is no function \"frob\"",
    );
    assert_rejected(
        "validations:\n- expression: sets.frob([1])",
        (6, 15),
        "there is no function \"sets.frob\"",
    );
    assert_rejected("validations:\n- expression: ''", (6, 15), "it is empty");
    assert_rejected(
        "validations:\n- {expression: 'true', message: \"\"}",
        (6, 33),
        "one line",
    );
    assert_rejected(
        "validations:\n- {expression: 'true', message: \"a\\nb\"}",
        (6, 33),
        "one line",
    );
    assert_rejected(
        "validations:\n- {expression: 'true', fieldPath: 'a['}",
        (6, 35),
        "it is no path",
    );
    assert_rejected(
        "validations:\n- {expression: 'true', reason: Because}",
        (6, 32),
        "Because",
    );
    let text = "matchConditions: [{expression: x}]\nvalidations: [{expression: 'true'}]";
    assert_rejected(text, (5, 32), "no variable");
}

#[test]
fn parse_text_without_front_matter_is_rejected() {
    for (text, part) in [
        ("", "begins with the rule as YAML"),
        ("# T\n", "begins with the rule as YAML"),
        ("---\nid: A\n", "begins with the rule as YAML"),
        ("---\n---\n", "unexpected end of input"),
    ] {
        let error = UserRule::parse(text, &crate::registry::all())
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{error}");
    }
    let large = page(&"#".repeat(PAGE_MAX_BYTES));
    assert_eq!(
        UserRule::parse(&large, &crate::registry::all())
            .unwrap_err()
            .problem,
        Problem::TooLarge
    );
}

#[test]
fn user_rule_ids_never_collide_with_built_in_ids() {
    for rule in registry::all() {
        assert!(!is_user_id(rule.id), "{}", rule.id);
    }
    for (id, part) in [
        ("CQ001", "two letters are lockkeeper's own"),
        ("ZZ001", "two letters are lockkeeper's own"),
        ("team001", "capital letters"),
        ("TEAM01", "three digits"),
        ("ABCDEFGHI001", "three to eight"),
        ("", "two letters"),
    ] {
        let page =
            page("validations: [{expression: 'true'}]").replace("TEAM001", &format!("{id:?}"));
        let error = UserRule::parse(&page, &crate::registry::all()).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!((error.line, error.column), (2, 5), "{id}");
    }
    let taken = page("validations: [{expression: 'true'}]")
        .replace("bad-map", "lending-limit-above-nominal");
    let error = UserRule::parse(&taken, &crate::registry::all())
        .unwrap_err()
        .to_string();
    assert!(error.contains("of lockkeeper has it"), "{error}");
}

#[test]
fn rules_with_duplicate_id_are_rejected() {
    let text = page("validations: [{expression: 'true'}]");
    let source = |name: &str| Source {
        name: name.to_owned(),
        text: text.clone(),
    };
    let errors =
        UserRules::parse(&[source("a.md"), source("b.md")], &crate::registry::all()).unwrap_err();
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts[0], "b.md:1:1: a.md has TEAM001 already; take another");
    assert_eq!(texts.len(), 2);
    let many: Vec<Source> = (0..=RULES_MAX).map(|_| source("a.md")).collect();
    assert_eq!(
        UserRules::parse(&many, &crate::registry::all()).unwrap_err(),
        [UserRulesError::TooMany]
    );
}
