//! Objects of a kind with several versions, from one to the other and back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    missing_docs,
    reason = "tests fail by panicking"
)]

#[path = "../../../tests/samples/reservation.rs"]
mod reservation;

mod faulty_conversions;
mod preserved_fields;
mod rejected;
mod round_trip;
mod strategies;

use lockkeeper_conversion::{ConversionResult, PRESERVED_ANNOTATION_PREFIX};
use reservation::{GROUP, converters};
use serde_json::Value;

/// The object in another version, which it must have.
#[track_caller]
fn convert_object(object: &Value, version: &str) -> Value {
    let ConversionResult { object, ignored } = try_convert(object, version);
    assert_eq!(ignored, None);
    object
}

#[track_caller]
fn try_convert(object: &Value, version: &str) -> ConversionResult {
    let desired = format!("{GROUP}/{version}");
    let converted = converters().convert(object.clone(), &desired);
    converted.unwrap_or_else(|e| panic!("{e}"))
}

/// The preserved fields of an object, ordered by path.
fn preserved_values(object: &Value) -> Vec<Value> {
    let annotations = object["metadata"]["annotations"].as_object();
    let all = annotations.into_iter().flatten();
    let all = all.filter(|(key, _)| key.starts_with(PRESERVED_ANNOTATION_PREFIX));
    all.map(|(_, text)| serde_json::from_str(text.as_str().unwrap()).unwrap())
        .collect()
}

/// Puts a text where a conversion keeps something.
fn forge_annotation(object: &mut Value, name: &str, text: &str) {
    object["metadata"]["annotations"][format!("{PRESERVED_ANNOTATION_PREFIX}{name}")] = text.into();
}
