//! Every object of a built-in kind gets an answer in bounded time, with and without an old object, and what is stored can
//! be decoded again. The first line of the input is the API version and the kind, the second the object, the third the
//! old object.

use lockkeeper_crd_schema::builtin::BuiltInKind;
use lockkeeper_crd_schema::crd::{Body, ContentType, FieldValidation, Request, Verdict};
use serde_json::Value;

pub fn run(text: &str) {
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or_default();
    let (kind, object, old) = (next(), next(), next());
    let Some((api_version, kind)) = kind.split_once(' ') else {
        return;
    };
    let Some(kind) = BuiltInKind::find(api_version, kind) else {
        return;
    };
    let old: Option<Value> = serde_json::from_str(old).ok();
    let answer = |body, old, field_validation| {
        kind.answer(&Request {
            body,
            old,
            is_status: false,
            field_validation,
            namespace: "default",
        })
    };
    for content_type in [ContentType::Json, ContentType::Yaml] {
        for field_validation in [FieldValidation::Strict, FieldValidation::Ignore] {
            for old in [None, old.as_ref()] {
                let body = Body::Text(object, content_type);
                if let Verdict::Accepted(stored) = answer(body, old, field_validation).verdict {
                    let problems = kind.problems(&stored);
                    assert!(problems.is_empty(), "{stored}: {problems:?}");
                }
            }
        }
    }
    if let Ok(object) = serde_json::from_str::<Value>(object) {
        let _ = kind.problems(&object);
    }
}
