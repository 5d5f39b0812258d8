use super::{Body, FieldValidation, Request, StrictProblem, Verdict};
use crate::crd::{ContentType, Schema};
use serde_json::{Value, json};

fn definition(spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

fn schema(spec: &Value) -> Schema {
    Schema::from_crd(&definition(spec), "v1").unwrap()
}

fn widget(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec})
}

fn request<'a>(body: Body<'a>, old: Option<&'a Value>) -> Request<'a> {
    Request {
        body,
        old,
        is_status: false,
        field_validation: FieldValidation::Strict,
        namespace: "default",
    }
}

#[track_caller]
fn check(schema: &Schema, spec: &Value, old: Option<&Value>, expected: &[&str]) {
    let object = widget(spec);
    let old = old.map(widget);
    let answer = schema.answer(&request(Body::Object(&object), old.as_ref()));
    let found: Vec<String> = match &answer.verdict {
        Verdict::Accepted(_) => Vec::new(),
        Verdict::Undecodable { reason, .. } => vec![reason.clone()],
        Verdict::Invalid(findings) => findings
            .iter()
            .map(|it| format!("{} {}", it.field, it.kind.reason()))
            .collect(),
    };
    assert_eq!(found, expected, "{object}");
}

fn sample() -> Schema {
    schema(&json!({
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1, "default": 2},
            "name": {"type": "string", "maxLength": 5,
                     "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is immutable"}]},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"],
                      "items": {"type": "object", "required": ["port"], "properties": {
                          "port": {"type": "integer"}, "name": {"type": "string", "enum": ["a", "b"]}}}},
        },
        "x-kubernetes-validations": [
            {"rule": "!has(self.name) || self.size < 9", "fieldPath": ".size", "reason": "FieldValueForbidden"}],
    }))
}

#[test]
fn answer_new_object_reports_fields_of_api_server() {
    let schema = sample();
    check(&schema, &json!({}), None, &[]);
    check(
        &schema,
        &json!({"size": 0}),
        None,
        &["spec.size FieldValueInvalid"],
    );
    check(
        &schema,
        &json!({"size": 9, "name": "a"}),
        None,
        &["spec.size FieldValueForbidden"],
    );
    check(
        &schema,
        &json!({"ports": [{"port": 1}, {"port": 1, "name": "c"}]}),
        None,
        &[
            "spec.ports[1].name FieldValueNotSupported",
            "spec.ports[1] FieldValueDuplicate",
            "<nil> FieldValueInvalid",
        ],
    );
    check(
        &schema,
        &json!({"sise": 1}),
        None,
        &["strict decoding error"],
    );
}

#[test]
fn answer_update_ratchets_unchanged_parts() {
    let schema = sample();
    let old = json!({"size": 2, "name": "a", "ports": [{"port": 1, "name": "c"}]});
    check(
        &schema,
        &json!({"size": 3, "name": "a", "ports": [{"port": 2}, {"port": 1, "name": "c"}]}),
        Some(&old),
        &[],
    );
    check(
        &schema,
        &json!({"size": 3, "name": "b"}),
        Some(&old),
        &["spec.name FieldValueInvalid"],
    );
    check(
        &schema,
        &json!({"size": 3, "ports": [{"port": 1, "name": "d"}]}),
        Some(&old),
        &[
            "spec.ports[0].name FieldValueNotSupported",
            "<nil> FieldValueInvalid",
        ],
    );
}

#[test]
fn answer_accepted_object_is_pruned_and_defaulted() {
    let schema = sample();
    let object = widget(&json!({"name": null, "sise": 1}));
    let mut request = request(Body::Object(&object), None);
    request.field_validation = FieldValidation::Warn;
    let answer = schema.answer(&request);
    assert_eq!(answer.warnings, ["unknown field \"spec.sise\""]);
    let Verdict::Accepted(stored) = answer.verdict else {
        panic!("not accepted");
    };
    assert_eq!(stored["spec"], json!({"size": 2}));
    assert_eq!(stored["metadata"]["namespace"], "default");
}

#[test]
fn answer_duplicate_field_is_a_strict_problem() {
    let schema = sample();
    let text = r#"{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"},
        "spec": {"size": 1, "size": 2}}"#;
    let answer = schema.answer(&request(Body::Text(text, ContentType::Json), None));
    let Verdict::Undecodable { strict, .. } = answer.verdict else {
        panic!("decoded");
    };
    assert_eq!(strict, [StrictProblem::Duplicate("spec.size".to_owned())]);
    let text = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec:\n  size: 1\n  size: 2\n";
    let answer = schema.answer(&request(Body::Text(text, ContentType::Yaml), None));
    assert!(matches!(answer.verdict, Verdict::Undecodable { .. }));
}

#[test]
fn answer_hostile_text_is_rejected() {
    let schema = sample();
    let bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n\
                c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n\
                e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]\n";
    let deep = "[".repeat(100_000);
    for (text, content_type) in [
        (bomb, ContentType::Yaml),
        (&deep, ContentType::Yaml),
        (&deep, ContentType::Json),
        ("", ContentType::Json),
        ("nul", ContentType::Json),
        ("a: b: c", ContentType::Yaml),
    ] {
        let answer = schema.answer(&request(Body::Text(text, content_type), None));
        assert!(
            matches!(answer.verdict, Verdict::Undecodable { .. }),
            "{text:.20}"
        );
    }
}

#[test]
fn from_crd_unusable_definition_is_an_error() {
    let deep = (0..200).fold(
        json!({"type": "string"}),
        |below, _| json!({"type": "object", "properties": {"a": below}}),
    );
    assert!(Schema::from_crd(&definition(&deep), "v1").is_err());
    assert!(Schema::from_crd(&definition(&json!({"type": "text"})), "v1").is_err());
    assert!(Schema::from_crd(&definition(&json!({"$ref": "#/a"})), "v1").is_err());
    assert!(Schema::from_crd(&definition(&json!({"type": "string"})), "v2").is_err());
    assert!(Schema::from_crd(&Value::Null, "v1").is_err());
}

#[test]
fn validate_rule_beyond_cost_limit_stops() {
    let loops =
        "self.all(a, self.all(b, self.all(c, self.all(d, self.all(e, a + b + c + d + e >= 0)))))";
    let schema = schema(&json!({"type": "array", "items": {"type": "integer"},
        "x-kubernetes-validations": [{"rule": loops}]}));
    let object = widget(&json!((0..100).collect::<Vec<_>>()));
    let findings = schema.validate(&object);
    assert_eq!(findings.len(), 1);
    assert!(
        findings[0].detail.contains("cost"),
        "{}",
        findings[0].detail
    );
}

#[test]
fn expensive_rules_end_with_the_answer_of_the_api_server() {
    let loops = "self.all(a, self.all(b, self.all(c, a + b + c != 7)))";
    let list = |rules: Value| {
        schema(&json!({
            "type": "array",
            "items": {"type": "integer"},
            "x-kubernetes-validations": rules,
        }))
    };
    let numbers: Value = (100..200).collect::<Vec<i32>>().into();
    // One evaluation costs too much: the next rule is not evaluated.
    let rules = json!([{"rule": loops}, {"rule": "false"}]);
    let answer = details(&list(rules), &numbers);
    let [only] = answer.as_slice() else {
        panic!("{answer:?}");
    };
    assert!(only.contains("call cost exceeds limit for rule"), "{only}");
    // Each evaluation is cheap enough, all together are not.
    let pairs = "self.all(a, self.all(b, self.all(c, c > 100 || a + b + c > 0)))";
    let numbers: Value = (100..145).collect::<Vec<i32>>().into();
    let rules: Vec<Value> = (0..25).map(|_| json!({"rule": pairs})).collect();
    let answer = details(&list(rules.into()), &numbers);
    assert_eq!(
        answer,
        [
            "validation failed due to running out of cost budget, no further validation rules will be run"
        ]
    );
    // A message that costs too much replaces the violation.
    let rules = json!([
        {"rule": "false", "reason": "FieldValueForbidden", "messageExpression": format!("string({loops})")},
        {"rule": "false"},
    ]);
    let numbers: Value = (100..200).collect::<Vec<i32>>().into();
    let answer = details(&list(rules), &numbers);
    let [only] = answer.as_slice() else {
        panic!("{answer:?}");
    };
    assert!(
        only.contains("call cost exceeds limit for messageExpression"),
        "{only}"
    );
}

/// The details of the findings.
fn details(schema: &Schema, spec: &Value) -> Vec<String> {
    let object = widget(spec);
    match schema.answer(&request(Body::Object(&object), None)).verdict {
        Verdict::Invalid(findings) => findings.iter().map(|it| it.detail.to_string()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rules_with_rare_syntax_are_evaluated() {
    for (rule, is_accepted) in [
        ("!!true", true),
        ("!!!true", false),
        ("--5 == 5 && 7--2 == 9", true),
        ("sign(quantity('1k')) == 1", true),
        (
            "sign(quantity('-1')) == -1 && sign(quantity('0')) == 0",
            true,
        ),
        (
            "google.protobuf.Timestamp{seconds: 1} == timestamp('1970-01-01T00:00:01Z')",
            true,
        ),
        (
            "google.protobuf.Duration{seconds: 1, nanos: 5} > duration('1s')",
            true,
        ),
    ] {
        let schema = schema(&json!({
            "type": "object",
            "properties": {"size": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": rule}],
        }));
        let expected: &[&str] = if is_accepted {
            &[]
        } else {
            &["spec FieldValueInvalid"]
        };
        check(&schema, &json!({"size": 1}), None, expected);
    }
}

/// The sum of no items has the type that the checker of cel-go finds.
#[test]
fn sum_of_no_items_has_the_type_of_the_items() {
    for (rule, is_accepted) in [
        ("[].sum() == 0", true),
        ("type(self.sizes.sum()) == int", true),
        ("type(self.shares.sum()) == double", true),
        (
            "self.names.map(it, duration(it)).sum() == duration('0s')",
            true,
        ),
        (
            "self.names.map(it, duration(it)).sum() == duration('1s')",
            false,
        ),
        ("type(self.names.map(it, double(it)).sum()) == double", true),
        (
            "type(self.sizes.filter(it, it > 9).map(it, uint(it)).sum()) == uint",
            true,
        ),
        ("type(dyn(self.names).sum()) == int", true),
        (
            "{'a': self.shares.sum()}.all(it, type(self.shares.sum()) == double)",
            true,
        ),
    ] {
        let schema = schema(&json!({
            "type": "object",
            "properties": {
                "names": {"type": "array", "items": {"type": "string"}},
                "shares": {"type": "array", "items": {"type": "number"}},
                "sizes": {"type": "array", "items": {"type": "integer"}},
            },
            "x-kubernetes-validations": [{"rule": rule}],
        }));
        let expected: &[&str] = if is_accepted {
            &[]
        } else {
            &["spec FieldValueInvalid"]
        };
        let spec = json!({"names": [], "shares": [], "sizes": []});
        check(&schema, &spec, None, expected);
    }
}

/// Go encodes `1.0` as `1`, so that a stored default is an integer. The validation of an integer converts `multipleOf` to
/// an integer, and that of `enum` converts the value to the type of the listed value.
#[test]
fn defaults_and_enum_values_are_those_of_the_stored_definition() {
    let size = json!({"type": "number", "multipleOf": 0.5, "default": 2.0});
    let sized = schema(&json!({"type": "object", "properties": {"size": size}}));
    check(&sized, &json!({}), None, &["spec.size FieldValueInvalid"]);
    check(&sized, &json!({"size": 2.0}), None, &[]);

    let size = json!({"type": "number", "enum": [0.0]});
    let listed = schema(&json!({"type": "object", "properties": {"size": size}}));
    check(&listed, &json!({"size": 0.25}), None, &[]);
    let finding = ["spec.size FieldValueNotSupported"];
    check(&listed, &json!({"size": 1.25}), None, &finding);
}

/// The recorder of warnings of `k8s.io/apiserver/pkg/endpoints/filters` sends each text once.
#[test]
fn repeated_warnings_are_returned_once() {
    let rule = json!({"rule": "size(self) > 3", "message": "too short"});
    let second = json!({"rule": "self != 'a'", "message": "too short"});
    let name = json!({"type": "string", "x-kubernetes-validations": [rule, second]});
    let schema = schema(&json!({
        "type": "object", "properties": {"name": name, "size": {"type": "integer"}},
    }));
    let old = widget(&json!({"name": "a", "size": 1}));
    let object = widget(&json!({"name": "a", "size": 2}));
    let answer = schema.answer(&request(Body::Object(&object), Some(&old)));
    assert!(matches!(answer.verdict, Verdict::Accepted(_)), "{answer:?}");
    assert_eq!(answer.warnings.len(), 1, "{:?}", answer.warnings);
}
