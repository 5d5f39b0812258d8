//! Requests that are not converted, and their error messages.

use lockkeeper_conversion::{Converters, Kind};
use serde_json::{Value, json};

use crate::reservation::{self, GROUP, KIND, Reservation, V1, V1Alpha1, V1Beta1, converters};

fn newest_object(spec: &Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": KIND, "metadata": {"name": "a"}, "spec": spec})
}

fn spec() -> Value {
    json!({"user": "ada", "duration": "90s", "guarantee": "Burst", "cpu": "1"})
}

#[track_caller]
fn check(object: &Value, desired: &str, expected: &str) {
    let error = converters().convert(object.clone(), desired).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn convert_error_names_object_field_and_remedy() {
    let good = newest_object(&spec());
    let of = |version: &str| format!("{GROUP}/{version}");
    let cannot = |to: &str, why: &str| {
        format!("Reservation \"a\" cannot be converted from {GROUP}/v1 to {to}: {why}")
    };
    check(
        &good,
        &of("v2"),
        &cannot(
            &of("v2"),
            "unknown version \"v2\", known are v1alpha1, v1beta1, v1; upgrade this server",
        ),
    );
    let other = "a conversion cannot change the group; request a version of the same group";
    check(&good, "example.com/v1", &cannot("example.com/v1", other));
    let no_group = "\"v1\" is not a group and version, such as example.com/v1";
    check(&good, "v1", &cannot("v1", no_group));
    let mut unknown = good.clone();
    unknown["kind"] = "Thing".into();
    check(
        &unknown,
        &of("v1beta1"),
        &format!(
            "Thing \"a\" cannot be converted from {GROUP}/v1 to {GROUP}/v1beta1: this server has no conversion for the kind; register the kind here, or point spec.conversion of the CustomResourceDefinition at the server that has it"
        ),
    );
    let mut old = good.clone();
    old["apiVersion"] = of("v0").into();
    check(
        &old,
        &of("v1"),
        &format!(
            "Reservation \"a\" cannot be converted from {GROUP}/v0 to {GROUP}/v1: unknown version \"v0\", known are v1alpha1, v1beta1, v1; upgrade this server"
        ),
    );
}

#[test]
fn incompatible_field_is_named() {
    let to = format!("{GROUP}/v1alpha1");
    let cannot =
        |why: &str| format!("Reservation \"a\" cannot be converted from {GROUP}/v1 to {to}: {why}");
    let mut all = spec();
    all["duration"] = "soon".into();
    let why = "spec.duration: must be a number of seconds, such as 90s";
    check(&newest_object(&all), &to, &cannot(why));
    let mut all = spec();
    all["windows"] = json!({"night": {"start": 5}});
    let why = "spec.windows.night.start: invalid type: integer `5`, expected a string";
    check(&newest_object(&all), &to, &cannot(why));
    let mut all = spec();
    all["guarantee"] = "Never".into();
    let why = "spec.guarantee: unknown variant `Never`, expected one of `BestEffort`, `Guaranteed`, `Burst`";
    check(&newest_object(&all), &to, &cannot(why));
    check(
        &newest_object(&json!(5)),
        &to,
        &cannot("spec: invalid type: integer `5`, expected struct V1Spec"),
    );
}

#[test]
fn malformed_object_is_rejected() {
    let to = format!("{GROUP}/v1");
    for (object, expected) in [
        (
            json!([]),
            "object \"\" cannot be converted from no apiVersion to VERSION: <nil>: must be an object",
        ),
        (
            json!({}),
            "object \"\" cannot be converted from no apiVersion to VERSION: apiVersion: must be a string",
        ),
        (
            json!({"apiVersion": 5}),
            "object \"\" cannot be converted from no apiVersion to VERSION: apiVersion: must be a string",
        ),
        (
            json!({"apiVersion": "a/b"}),
            "object \"\" cannot be converted from a/b to VERSION: kind: must be a string",
        ),
        (
            json!({"apiVersion": "a/b", "kind": "K"}),
            "K \"\" cannot be converted from a/b to VERSION: metadata: must be an object",
        ),
        (
            json!({"apiVersion": "a/b", "kind": "K", "metadata": {"name": "n", "namespace": "m", "annotations": 5}}),
            "K \"m/n\" cannot be converted from a/b to VERSION: metadata.annotations: must be an object",
        ),
        (
            json!({"apiVersion": "v1", "kind": "K", "metadata": {}}),
            "K \"\" cannot be converted from v1 to VERSION: \"v1\" is not a group and version, such as example.com/v1",
        ),
    ] {
        check(&object, &to, &expected.replace("VERSION", &to));
    }
}

#[test]
fn object_in_desired_version_is_returned_unchanged() {
    let object = newest_object(&json!({"duration": "soon", "x": null}));
    let converted = converters()
        .convert(object.clone(), &format!("{GROUP}/v1"))
        .unwrap();
    assert_eq!(converted.object, object);
    let elsewhere = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}});
    let converted = Converters::default()
        .convert(elsewhere.clone(), "v1")
        .unwrap();
    assert_eq!(converted.object, elsewhere);
}

#[test]
fn ambiguous_kinds_are_rejected() {
    let kind = || Kind::builder::<Reservation>(GROUP, KIND);
    let twice = kind()
        .version::<V1>()
        .version::<V1Beta1>()
        .version::<V1>()
        .build();
    assert_eq!(
        twice.unwrap_err().to_string(),
        "Reservation.samples.example.com has version v1 twice; remove one"
    );
    let one = kind().version::<V1Alpha1>().build().unwrap_err();
    assert_eq!(
        one.to_string(),
        "Reservation.samples.example.com has fewer than two versions; a kind with one needs no conversion"
    );
    let both = Converters::new([reservation::kind(), reservation::kind()]).unwrap_err();
    assert_eq!(
        both.to_string(),
        "Reservation.samples.example.com is registered twice; give all its versions to one `Kind`"
    );
}
