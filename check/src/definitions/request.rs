//! The request that creates or updates an object.

use lockkeeper_crd_schema::crd::{Body, FieldValidation, Request};
use serde_json::Value;

/// The namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";

/// The request that creates an object, or updates the old one, as kubectl sends it.
pub(super) fn request<'a>(
    object: &'a Value,
    old: Option<&'a Value>,
    field_validation: FieldValidation,
) -> Request<'a> {
    let namespace = object.pointer("/metadata/namespace");
    let namespace = namespace.and_then(Value::as_str);
    Request {
        body: Body::Object(object),
        old,
        is_status: false,
        field_validation,
        namespace: namespace
            .filter(|it| !it.is_empty())
            .unwrap_or(DEFAULT_NAMESPACE),
    }
}
