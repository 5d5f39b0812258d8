#![allow(
    clippy::disallowed_methods,
    reason = "tests read the examples, and look at how long rules take"
)]

mod bounds;
mod pages;

use super::*;
use crate::engine::{ReviewSubject, Verdict};
use crate::registry;
use crate::rule::Change;
use crate::settings::Settings;
use lockkeeper_api::config::Config;
use serde_json::{Value, json};
use std::sync::Arc;

/// A page of one rule about `ConfigMap`s, with these lines in its front matter.
fn page(lines: &str) -> String {
    format!(
        "---\nid: TEAM001\nname: bad-map\nkinds: [{{version: v1, kind: ConfigMap}}]\n{lines}\n---\n# T\n"
    )
}

fn rules(lines: &str) -> UserRules {
    let source = Source {
        name: "a.md".to_owned(),
        text: page(lines),
    };
    UserRules::parse(&[source], &crate::registry::all()).unwrap()
}

/// A rule with one validation.
fn rules_with_expression(expression: &str) -> UserRules {
    rules(&format!(
        "validations:\n- expression: {}\n  message: m",
        json!(expression)
    ))
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is made where it is given"
)]
fn map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"a/b": "c"}}, "data": data})
}

fn review_object(
    rules: &UserRules,
    subject: &ReviewSubject<'_, Value>,
    settings: &Settings,
) -> Verdict {
    let mut verdict = Verdict::default();
    let kind = KindName::from_api_version("v1", "ConfigMap");
    review(rules, kind, subject, settings, &mut verdict);
    verdict
}

fn finding_texts(rules: &UserRules, subject: &ReviewSubject<'_, Value>) -> Vec<String> {
    let verdict = review_object(rules, subject, &Settings::default());
    verdict.denials.iter().map(ToString::to_string).collect()
}

fn findings_of_expression(expression: &str, data: Value) -> Vec<String> {
    finding_texts(
        &rules_with_expression(expression),
        &ReviewSubject::Create(&map(data)),
    )
}

#[test]
fn examples_pass_their_own_tests() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/rules");
    let files = std::fs::read_dir(folder).unwrap();
    let sources = files.map(|file| {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.display().to_string();
        Source { name, text }
    });
    let sources: Vec<Source> = sources.collect();
    let rules = UserRules::parse(&sources, &crate::registry::all()).unwrap();
    assert_eq!(rules.iter().count(), 3);
    for tested in test_fixtures(&rules) {
        assert_eq!(
            tested.outcome,
            Outcome::Passed,
            "{}:{}",
            tested.rule,
            tested.line
        );
    }
}

#[test]
fn user_expressions_follow_kubernetes_cel() {
    for good in [
        "object == self",
        "oldObject == null",
        "request.operation == 'CREATE' && request.kind.kind == 'ConfigMap' && request.name == 'a'",
        "object.metadata.labels['a/b'] == 'c'",
        "object.metadata.labels.a__slash__b == 'c'",
        "object.data.n + 1 == 5 && object.data.n < 4.5 && object.data.big > 9223372036854775807u",
        "quantity(object.data.cpu).compareTo(quantity('2')) < 0",
        "quantity(object.data.cpu).isLessThan(quantity('2'))",
        "object.data.list.sum() == 6 && object.data.list.isSorted() && sets.contains(object.data.list, [1])",
        "object.data.list.map(x, x * 2).filter(x, x > 2) == [4, 6]",
        "object.data.list.exists_one(x, x == 2) && object.data.list.exists(x, object.data.list.all(y, y <= 3))",
        "object.data.cpu.matches('^[0-9]+m$') && object.data.cpu.find('[0-9]+') == '1500'",
        "'%s-%d'.format([object.metadata.name, object.data.n]) == 'a-4'",
        "object.metadata.labels.map(k, k) == ['a/b']",
        "has(object.data.n) && !has(object.data.m) && !('m' in object.data)",
        "object.data.?n.orValue(1) == 4 || true",
        "object.data.time < timestamp('2027-01-01T00:00:00Z') || true",
        "isIP('10.0.0.1') && url('https://a.b/c').getHost() == 'a.b'",
        "string(object.data.n) == '4' && size(object.data.cpu) == 5",
    ] {
        // The engine does not support the optional syntax.
        if good.contains(".?") {
            assert!(
                UserRule::parse(
                    &page(&format!("validations:\n- expression: {}", json!(good))),
                    &crate::registry::all()
                )
                .is_err()
            );
            continue;
        }
        let data = json!({"n": 4, "big": u64::MAX, "cpu": "1500m", "list": [1, 2, 3], "time": "t"});
        assert_eq!(
            findings_of_expression(good, data),
            Vec::<String>::new(),
            "{good}"
        );
    }
}

#[test]
fn failed_evaluation_follows_failure_policy() {
    for (expression, part) in [
        (
            "object.data.m == 1",
            "there is no field or key \"m\"; check with has() first",
        ),
        ("object.data.n / 0 == 1", "divides by zero"),
        (
            "object.data.n + 1",
            "it returns a value of type int, not a boolean",
        ),
        ("object.data.n == 1 || object.data.n > 'a'", "do not"),
        ("object.data.list[7] == 1", "no such item"),
        (
            "object.data.n.startsWith('a')",
            "do not take values of these types",
        ),
    ] {
        let data = json!({"n": 4, "list": [1]});
        let texts = findings_of_expression(expression, data.clone());
        assert_eq!(texts.len(), 1, "{expression}");
        assert!(
            texts[0].contains("the rule cannot be evaluated: "),
            "{texts:?}"
        );
        let text = texts[0].replace("does not", "do not");
        assert!(text.contains(part), "{texts:?}");
        let lines = format!(
            "failurePolicy: Ignore\nvalidations:\n- expression: {}",
            json!(expression)
        );
        assert_eq!(
            finding_texts(&rules(&lines), &ReviewSubject::Create(&map(data))),
            Vec::<String>::new()
        );
    }
}

#[test]
fn match_conditions_select_objects() {
    let lines = |conditions: &str| {
        format!(
            "matchConditions: [{conditions}]\nvalidations: [{{expression: 'false', message: m}}]"
        )
    };
    for (conditions, count) in [
        (
            "{expression: 'true'}, {name: a, expression: object.data.n == 1}",
            1,
        ),
        ("{expression: object.data.n == 2}", 0),
        // A false condition takes precedence over one that fails.
        ("{expression: object.data.m == 1}, {expression: 'false'}", 0),
        ("{expression: object.data.m == 1}", 1),
    ] {
        let rules = rules(&lines(conditions));
        let texts = finding_texts(&rules, &ReviewSubject::Create(&map(json!({"n": 1}))));
        assert_eq!(texts.len(), count, "{conditions}: {texts:?}");
    }
}

#[test]
fn messages_contain_the_evaluated_value() {
    for (lines, expected) in [
        (
            "message: m\n  fieldPath: .data.n",
            "data.n: Invalid value: 4: m [TEAM001]",
        ),
        (
            "message: m\n  fieldPath: .data.x",
            "data.x: Invalid value: m [TEAM001]",
        ),
        (
            "message: m\n  fieldPath: .data.n\n  reason: FieldValueForbidden",
            "data.n: Forbidden: m [TEAM001]",
        ),
        ("message: m", "<nil>: Invalid value: m [TEAM001]"),
        (
            "fieldPath: .data.s",
            "data.s: Invalid value: \"t\": this must hold: object.data.n == 5 [TEAM001]",
        ),
        (
            "messageExpression: \"'n is ' + string(object.data.n)\"",
            "<nil>: Invalid value: n is 4 [TEAM001]",
        ),
        (
            "messageExpression: object.data.x\n  message: m",
            "<nil>: Invalid value: m [TEAM001]",
        ),
        (
            "messageExpression: object.data.n\n  message: m",
            "<nil>: Invalid value: m [TEAM001]",
        ),
        (
            "messageExpression: object.data.lines\n  message: m",
            "<nil>: Invalid value: m [TEAM001]",
        ),
    ] {
        let rules = rules(&format!(
            "validations:\n- expression: object.data.n == 5\n  {lines}"
        ));
        let object = map(json!({"n": 4, "s": "t", "lines": "a\nb"}));
        assert_eq!(
            finding_texts(&rules, &ReviewSubject::Create(&object)),
            [expected],
            "{lines}"
        );
    }
}

#[test]
fn update_with_preexisting_finding_is_allowed() {
    let (small, large) = (map(json!({"n": 4})), map(json!({"n": 9})));
    let mut labelled = large.clone();
    labelled["metadata"]["labels"]["new"] = "x".into();
    let larger = map(json!({"n": 10}));
    for (expression, old, new, count) in [
        ("object.data.n < 5", &small, &large, 1),
        ("object.data.n < 5", &large, &labelled, 0),
        // A different value is a different finding.
        ("object.data.n < 5", &large, &larger, 1),
        // The expression reads the old object itself.
        ("object.data.n <= oldObject.data.n", &large, &larger, 1),
        ("self.data.n <= oldSelf.data.n", &large, &labelled, 0),
        ("self.data.n < oldSelf.data.n", &large, &labelled, 1),
        // The old object could not be evaluated.
        ("object.data.m < 5", &large, &labelled, 0),
    ] {
        let lines =
            format!("validations:\n- expression: {expression}\n  message: m\n  fieldPath: .data.n");
        let texts = finding_texts(&rules(&lines), &ReviewSubject::Update(Change { old, new }));
        assert_eq!(texts.len(), count, "{expression}: {texts:?}");
    }
    // A new object has no stored version.
    assert_eq!(
        finding_texts(
            &rules_with_expression("self.data.n < oldSelf.data.n"),
            &ReviewSubject::Create(&small)
        )
        .len(),
        0
    );
    assert_eq!(
        finding_texts(
            &rules_with_expression("oldObject != null"),
            &ReviewSubject::Create(&small)
        )
        .len(),
        1
    );
}

#[test]
fn rule_runs_only_for_its_operations_and_kinds() {
    let object = map(json!({}));
    let lines = |on: &str| {
        format!(
            "operations: [{on}]\nvalidations: [{{expression: object.metadata.name == 'b', message: m}}]"
        )
    };
    assert_eq!(
        finding_texts(&rules(&lines("UPDATE")), &ReviewSubject::Create(&object)).len(),
        0
    );
    assert_eq!(
        finding_texts(&rules(&lines("DELETE")), &ReviewSubject::Delete(&object)).len(),
        1
    );
    assert_eq!(
        finding_texts(
            &rules(&lines("CREATE, UPDATE")),
            &ReviewSubject::Delete(&object)
        )
        .len(),
        0
    );
    let rules = rules(&lines("CREATE"));
    let mut verdict = Verdict::default();
    for (version, kind) in [
        ("v2", "ConfigMap"),
        ("v1", "Secret"),
        ("apps/v1", "ConfigMap"),
    ] {
        let kind = KindName::from_api_version(version, kind);
        review(
            &rules,
            kind,
            &ReviewSubject::Create(&object),
            &Settings::default(),
            &mut verdict,
        );
        assert!(verdict.allowed());
    }
}

#[test]
fn configured_actions_and_exceptions_apply_to_user_rules() {
    let rules = Arc::new(rules_with_expression("object.data.n < 5"));
    let settings = |yaml: &str| {
        let config: Config = serde_saphyr::from_str(yaml).unwrap();
        registry::settings_with(&config, Arc::clone(&rules))
    };
    let mut object = map(json!({"n": 9}));
    object["metadata"]["namespace"] = "lab".into();
    let counts = |yaml: &str| {
        let verdict = review_object(
            &rules,
            &ReviewSubject::Create(&object),
            &settings(yaml).unwrap().with_time(1_000),
        );
        [&verdict.denials, &verdict.warnings, &verdict.audits]
            .map(Vec::len)
            .to_vec()
            .into_iter()
            .chain([verdict.exempted.len()])
            .collect::<Vec<_>>()
    };
    let exception = |selector: &str, expires: &str| {
        format!(
            "rules: {{exceptions: [{{rules: [TEAM001], selector: {selector}, reason: r, expires: {expires}}}]}}"
        )
    };
    assert_eq!(counts("{}"), [1, 0, 0, 0]);
    assert_eq!(counts("rules: {actions: {TEAM001: warn}}"), [0, 1, 0, 0]);
    assert_eq!(counts("rules: {actions: {TEAM001: audit}}"), [0, 0, 1, 0]);
    assert_eq!(counts("rules: {actions: {TEAM001: off}}"), [0, 0, 0, 0]);
    assert_eq!(
        counts("rules: {namespaces: {lab: {actions: {TEAM001: off}}}}"),
        [0, 0, 0, 0]
    );
    assert_eq!(
        counts(&exception("{names: [a*]}", "2026-12-31")),
        [0, 0, 0, 1]
    );
    assert_eq!(
        counts(&exception("{names: [b*]}", "2026-12-31")),
        [1, 0, 0, 0]
    );
    assert_eq!(
        counts(&exception("{matchLabels: {a/b: c}}", "2026-12-31")),
        [0, 0, 0, 1]
    );
    assert_eq!(
        counts(&exception("{namespaces: [lab]}", "1970-01-01T00:16:40Z")),
        [1, 0, 0, 0]
    );
    for (yaml, part) in [
        (
            "rules: {actions: {TEAM002: off}}",
            "rules.actions: there is no rule \"TEAM002\"; load its page",
        ),
        (
            "rules: {exceptions: [{rules: [CQ999], selector: {names: [a]}, reason: r, expires: 2026-12-31}]}",
            "rules.exceptions[0].rules: there is no rule \"CQ999\"",
        ),
    ] {
        let error = settings(yaml).unwrap_err().to_string();
        assert!(error.starts_with(part), "{error}");
    }
}
