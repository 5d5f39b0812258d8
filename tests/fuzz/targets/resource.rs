//! Every object gets an answer by every schema in bounded time, with and without an old object. Pruning and defaults
//! are idempotent. The first line of the input is the schema, the second the object, the third the old object.

use lockkeeper_crd_schema::crd::{Body, ContentType, FieldValidation, Request, Schema};
use serde_json::{Value, json};

pub fn run(text: &str) {
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or_default();
    let (schema, object, old) = (next(), next(), next());
    let Ok(schema) = serde_json::from_str::<Value>(schema) else {
        return;
    };
    let definition = json!({"spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"kind": "Thing"},
        "versions": [{
            "name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
        }],
    }});
    let Ok(schema) = Schema::from_crd(&definition, "v1") else {
        return;
    };
    let old: Option<Value> = serde_json::from_str(old).ok();
    for content_type in [ContentType::Json, ContentType::Yaml] {
        for field_validation in [FieldValidation::Strict, FieldValidation::Ignore] {
            for old in [None, old.as_ref()] {
                for is_status in [false, true] {
                    let _ = schema.answer(&Request {
                        body: Body::Text(object, content_type),
                        old,
                        is_status: is_status && old.is_some(),
                        field_validation,
                        namespace: "default",
                    });
                }
            }
        }
    }
    let Ok(mut object) = serde_json::from_str::<Value>(object) else {
        return;
    };
    schema.prune(&mut object);
    schema.default(&mut object);
    let mut again = object.clone();
    assert_eq!(schema.prune(&mut again), Vec::<String>::new(), "{object}");
    schema.default(&mut again);
    assert_eq!(again, object);
}
