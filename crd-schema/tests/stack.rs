//! The deepest schemas, objects and expressions need no more than the default stack of a thread.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use lockkeeper_crd_schema::cel::Expression;
use lockkeeper_crd_schema::crd::{Body, ContentType, FieldValidation, Request, Schema, Verdict};
use serde_json::{Value, json};
use std::thread;

/// The default stack of a thread of the standard library and of tokio.
const STACK_BYTES: usize = 2 * 1024 * 1024;

fn definition(schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.test.example"},
        "spec": {
            "group": "test.example",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
            }],
        },
    })
}

/// Answers the creation of an object with this spec, and an update that changes nothing.
fn answer(schema: &Value, spec: &str) -> Verdict {
    let schema = Schema::from_crd(&definition(schema), "v1").unwrap();
    let text = format!(
        r#"{{"apiVersion":"test.example/v1","kind":"Thing","metadata":{{"name":"a"}},"spec":{spec}}}"#
    );
    let request = Request {
        body: Body::Text(&text, ContentType::Json),
        old: None,
        is_status: false,
        field_validation: FieldValidation::Strict,
        namespace: "default",
    };
    let answer = schema.answer(&request);
    if let Verdict::Accepted(object) = &answer.verdict {
        let update = Request {
            body: Body::Object(object),
            old: Some(object),
            ..request
        };
        let update = schema.answer(&update).verdict;
        assert!(matches!(update, Verdict::Accepted(_)), "{update:?}");
    }
    answer.verdict
}

fn on_default_stack(test: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(test);
    thread.unwrap().join().unwrap();
}

#[test]
fn deepest_object_fits() {
    on_default_stack(|| {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let nested = |depth: usize| format!("{}0{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        assert!(matches!(
            answer(&schema, &nested(240)),
            Verdict::Accepted(_)
        ));
        let too_deep = answer(&schema, &nested(100_000));
        assert!(matches!(too_deep, Verdict::Undecodable { .. }));
    });
}

#[test]
fn deepest_schema_fits() {
    on_default_stack(|| {
        let rule = json!([{"rule": "!has(self.a) || has(self.a)"}]);
        let mut schema = json!({"type": "object"});
        let mut spec = "{}".to_owned();
        for _ in 0..80 {
            schema = json!({
                "type": "object",
                "properties": {"a": schema},
                "x-kubernetes-validations": rule,
            });
            spec = format!(r#"{{"a":{spec}}}"#);
        }
        let verdict = answer(&schema, &spec);
        assert!(matches!(verdict, Verdict::Accepted(_)), "{verdict:?}");
    });
}

#[test]
fn deepest_expression_fits() {
    on_default_stack(|| {
        let brackets =
            |count: usize| format!("{}self.a == 1{}", "(".repeat(count), ")".repeat(count));
        let conditions = |count: usize| vec!["self.a == 1"; count].join(" && ");
        for rule in [brackets(40), conditions(120)] {
            let schema = json!({
                "type": "object",
                "properties": {"a": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": rule}],
            });
            let verdict = answer(&schema, r#"{"a":1}"#);
            assert!(
                matches!(verdict, Verdict::Accepted(_)),
                "{rule}: {verdict:?}"
            );
        }
    });
}

/// Brackets after a string that ends otherwise than a plain one.
#[test]
fn nesting_after_any_string_is_limited() {
    on_default_stack(|| {
        let nested = format!("{}self.a == 1{}", "(".repeat(20_000), ")".repeat(20_000));
        for text in [
            r"r'\'",
            r#"R"\""#,
            r"br'\'",
            r#""""a"b""""#,
            "'''a'b'''",
            r#"r"""\""""#,
            r"b'\''",
            "'a'",
        ] {
            let rule = format!("size({text}) > 0 || {nested}");
            let schema = json!({
                "type": "object",
                "properties": {"a": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": rule}],
            });
            let definition = definition(&schema);
            assert!(Expression::new(&rule).is_err(), "{text}");
            // The rule is rejected, or is not evaluated.
            if let Ok(schema) = Schema::from_crd(&definition, "v1") {
                let object = json!({"spec": {"a": 1}});
                assert!(!schema.validate(&object).is_empty(), "{text}");
            }
        }
    });
}
