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

mod faulty;
mod kept;
mod lossless;
mod random;
mod refused;

use lockkeeper_api::convert::{Converted, KEPT};
use reservation::{GROUP, converters};
use serde_json::Value;

/// The object in another version, which it must have.
#[track_caller]
fn converted(object: &Value, version: &str) -> Value {
    let Converted { object, ignored } = attempt(object, version);
    assert_eq!(ignored, None);
    object
}

#[track_caller]
fn attempt(object: &Value, version: &str) -> Converted {
    let desired = format!("{GROUP}/{version}");
    let converted = converters().convert(object.clone(), &desired);
    converted.unwrap_or_else(|e| panic!("{e}"))
}

/// What is kept in an object, in the order of the places.
fn kept(object: &Value) -> Vec<Value> {
    let annotations = object["metadata"]["annotations"].as_object();
    let all = annotations.into_iter().flatten();
    let all = all.filter(|(key, _)| key.starts_with(KEPT));
    all.map(|(_, text)| serde_json::from_str(text.as_str().unwrap()).unwrap())
        .collect()
}

/// Puts a text where a conversion keeps something.
fn forge(object: &mut Value, name: &str, text: &str) {
    object["metadata"]["annotations"][format!("{KEPT}{name}")] = text.into();
}
