//! Parsing and evaluation are bounded: no page or expression runs without end, exhausts memory or crashes the process.

use super::{
    finding_texts, findings_of_expression, map, page, review_object, rules, rules_with_expression,
};
use crate::engine::{FINDINGS_MAX, ReviewSubject};
use crate::settings::Settings;
use crate::user_rules::{EXPRESSION_MAX_BYTES, Source, UserRule, UserRules, VALIDATIONS_MAX};
use proptest::prelude::*;
use serde_json::json;

#[test]
fn findings_past_the_bound_are_counted() {
    let one = "- {expression: 'false', message: m}\n".repeat(VALIDATIONS_MAX);
    let sources = ["TEAM001", "TEAM002"].map(|id| Source {
        name: id.to_owned(),
        text: page(&format!("validations:\n{one}"))
            .replace("TEAM001", id)
            .replace("bad-map", &id.to_lowercase()),
    });
    let rules = UserRules::parse(&sources, &crate::registry::all()).unwrap();
    let verdict = review_object(
        &rules,
        &ReviewSubject::Create(&map(json!({}))),
        &Settings::default(),
    );
    assert_eq!(verdict.denials.len(), FINDINGS_MAX);
    assert_eq!(verdict.omitted, 2 * VALIDATIONS_MAX - FINDINGS_MAX);
}

/// Expressions without bounds in time or memory fail; `||` does not hide the failure.
#[test]
fn expression_over_cost_limit_is_stopped() {
    let items: Vec<usize> = (0..2_000).collect();
    let long = "x".repeat(100_000);
    let double = |times: usize| {
        let maps = "[0].map(s, s + s)".replacen("[0]", "[object.data.long]", 1);
        (1..times).fold(maps, |text, _| format!("{text}.map(s, s + s)"))
    };
    for expression in [
        "object.data.items.all(a, object.data.items.all(b, object.data.items.all(c, a + b + c >= 0)))".to_owned(),
        "object.data.items.all(a, object.data.items.all(b, a + b >= 0)) || true".to_owned(),
        "object.data.items.map(a, object.data.items.map(b, object.data.items)).size() == 0".to_owned(),
        "lists.range(1000000000000).size() == 0".to_owned(),
        "object.data.long.replace('', object.data.long).size() == 0".to_owned(),
        "sets.contains(object.data.items, object.data.items)".to_owned(),
        "object.data.items.all(a, object.data.long.matches('^(x+x+)+y$') || true)".to_owned(),
        format!("{}.size() == 0", double(12)),
    ] {
        let object = map(json!({"items": items, "long": long}));
        let texts = finding_texts(&rules_with_expression(&expression), &ReviewSubject::Create(&object));
        assert_eq!(texts.len(), 1, "{expression}");
        assert!(texts[0].contains("units of work"), "{expression}: {texts:?}");
    }
}

/// The stack of this test has the size of the server's thread stacks.
#[test]
fn the_deepest_expression_fits_on_the_stack() {
    let nested = |depth: usize, open: &str, inside: &str, close: &str| {
        format!("{}{inside}{}", open.repeat(depth), close.repeat(depth))
    };
    let mut deepest = 0;
    for (open, inside, close) in [
        ("size(string(", "1", "))"),
        ("[1].all(x, ", "true", ")"),
        ("[1].map(x, ", "1", ")"),
        ("!(true && ", "true", ")"),
        ("(1 + ", "1", ")"),
        ("'%s'.format([", "1", "])"),
        ("(true ? ", "true", " : false)"),
        ("{1: ", "1", "}"),
        ("[", "1", "]"),
        ("", "[1]", ".map(x, x)"),
        ("", "'a'", ".lowerAscii()"),
        ("", "object", ".data"),
    ] {
        let depths = 1..100;
        let texts = depths.map(|depth| nested(depth, open, inside, close));
        let pages = texts.map_while(|text| {
            let lines = format!("validations: [{{expression: {}, message: m}}]", json!(text));
            UserRule::parse(&page(&lines), &crate::registry::all()).ok()
        });
        let all: Vec<UserRule> = pages.collect();
        assert!(
            all.len() > 5 && all.len() < 60,
            "{open} {close}: {}",
            all.len()
        );
        deepest = deepest.max(all.len());
        for rule in all {
            let _ = finding_texts(
                &UserRules { all: vec![rule] },
                &ReviewSubject::Create(&map(json!({"a": [1]}))),
            );
        }
    }
    assert!(deepest > 20, "{deepest}");
}

#[test]
fn deeply_nested_text_is_rejected() {
    for (first, part) in [
        ("", "("),
        ("", "["),
        ("", "{1:"),
        ("", "!"),
        ("", "-"),
        ("object", ".a"),
        ("object", "[0]"),
        ("1", "+1"),
        ("true", "&&true"),
        ("true", "?true:true"),
        ("true", "?true"),
        ("", "size("),
        ("'", "\\"),
        ("[1]", ".map(x,x)"),
        ("", "[1].all(x,"),
    ] {
        let times = (EXPRESSION_MAX_BYTES - first.len()) / part.len();
        for times in [times, times / 4, 100, 40] {
            let text = format!("{first}{}", part.repeat(times));
            // Long logical expressions are balanced, so their depth is logarithmic.
            let is_flat = part == "&&true";
            let lines = format!("validations: [{{expression: {}, message: m}}]", json!(text));
            assert_eq!(
                UserRule::parse(&page(&lines), &crate::registry::all()).is_err(),
                !is_flat,
                "{first}{part} {times}"
            );
        }
    }
    let text = " ".repeat(EXPRESSION_MAX_BYTES + 1);
    let lines = format!(
        "validations: [{{expression: {}, message: m}}]",
        json!(format!("true{text}"))
    );
    let error = UserRule::parse(&page(&lines), &crate::registry::all())
        .unwrap_err()
        .to_string();
    assert!(error.contains("more than 4096 bytes"), "{error}");
}

#[test]
fn all_rules_over_total_cost_limit_are_stopped() {
    let items: Vec<usize> = (0..500).collect();
    let slow = "object.data.items.all(a, object.data.items.all(b, a + b >= 0))";
    let line = format!("- {{expression: '{slow}', message: m}}\n");
    let rules = rules(&format!("validations:\n{}", line.repeat(VALIDATIONS_MAX)));
    let texts = finding_texts(
        &rules,
        &ReviewSubject::Create(&map(json!({"items": items}))),
    );
    assert_eq!(texts.len(), VALIDATIONS_MAX);
    assert!(
        texts.iter().all(|it| it.contains("units of work")),
        "{texts:?}"
    );
}

/// The cost limit is sufficient for a rule that loops over the parts of an ordinary object.
#[test]
fn ordinary_rule_stays_below_cost_limit() {
    let env = vec![json!({"name": "A", "value": "b"}); 40];
    let container = json!({"name": "c", "image": "registry/image:tag", "env": env});
    let pod_sets = vec![json!({"name": "p", "containers": vec![container; 5]}); 8];
    let expression = "object.data.podSets.all(p, p.containers.all(c, c.env.all(e, e.name != '' && size(c.image) > 0 && object.metadata.name != e.value)))";
    assert_eq!(
        findings_of_expression(expression, json!({"podSets": pod_sets})),
        Vec::<String>::new()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn parse_arbitrary_text_never_panics(text in ".{0,400}") {
        let _ = UserRule::parse(&text, &crate::registry::all());
        let _ = UserRule::parse(&page(&text), &crate::registry::all());
    }

    #[test]
    fn parse_arbitrary_expression_never_panics(text in "[a-z0-9.()\\[\\]{}'\"!&|<>=+*/%? ,:-]{0,60}") {
        let lines = format!("validations: [{{expression: {}, message: m}}]", json!(text));
        if let Ok(rule) = UserRule::parse(&page(&lines), &crate::registry::all()) {
            let rules = UserRules { all: vec![rule] };
            let _ = finding_texts(&rules, &ReviewSubject::Create(&map(json!({"a": [1]}))));
        }
    }

    #[test]
    fn parse_expression_of_cel_tokens_never_panics(words in prop::collection::vec(
        prop::sample::select(vec![
            "object", ".data", ".list", ".all(", "x", ",", ")", "(", "==", "1", "'a'", "[", "]", "&&", "||", "!",
            ".map(", ".size()", "+", "?", ":", "has(", "in", "{", "}", "Foo", ".matches(", "-", "9223372036854775807",
        ]), 0..24)) {
        let lines = format!("validations: [{{expression: {}, message: m}}]", json!(words.concat()));
        if let Ok(rule) = UserRule::parse(&page(&lines), &crate::registry::all()) {
            let rules = UserRules { all: vec![rule] };
            let _ = finding_texts(&rules, &ReviewSubject::Create(&map(json!({"list": [1, 2]}))));
        }
    }
}
