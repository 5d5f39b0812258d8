//! Preserved fields, and when a conversion restores them.

use lockkeeper_conversion::{PRESERVED_ANNOTATION_PREFIX, PRESERVED_MAX_BYTES};
use serde_json::{Value, json};

use crate::reservation::{GROUP, converters};
use crate::{convert_object, forge_annotation, preserved_values, try_convert};

fn older() -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Reservation",
        "metadata": {"name": "night", "namespace": "team", "labels": {"a": "b"}, "uid": "u"},
        "spec": {
            "owner": "speech/ada", "minutes": 90, "mode": "Auto", "amount": "16", "note": "for the paper",
            "windows": [{"name": "z", "start": "22:00"}, {"name": "a", "start": "06:00"}],
        },
        "status": {"state": "Held"},
    })
}

fn newer() -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1beta1"), "kind": "Reservation",
        "metadata": {"name": "night", "namespace": "team"},
        "spec": {
            "team": "speech", "user": "ada", "durationSeconds": 330, "guarantee": "Burst", "cpu": "16",
            "windows": {"a": {"start": "06:00"}, "z": {"start": "22:00", "zone": "UTC"}}, "tolerant": true,
        },
    })
}

#[test]
fn fields_convert_between_all_versions() {
    let mut converted = convert_object(&older(), "v1beta1");
    let preserved = preserved_values(&converted);
    converted["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("annotations");
    assert_eq!(
        converted,
        json!({
            "apiVersion": format!("{GROUP}/v1beta1"), "kind": "Reservation",
            "metadata": {"name": "night", "namespace": "team", "labels": {"a": "b"}, "uid": "u"},
            "spec": {
                "team": "speech", "user": "ada", "durationSeconds": 5400, "guarantee": "BestEffort", "cpu": "16",
                "windows": {"a": {"start": "06:00"}, "z": {"start": "22:00"}},
            },
            "status": {"phase": "Held"},
        })
    );
    let expected = [
        json!({"at": ["spec", "mode"], "in": 1, "base": "Soft", "kept": "Auto"}),
        json!({"at": ["spec", "note"], "in": 1, "kept": "for the paper"}),
        json!({"at": ["spec", "windows"], "order": ["z", "a"]}),
    ];
    assert_eq!(preserved, expected);
}

/// The names of the annotations are readable, valid in Kubernetes, and stable.
#[test]
fn annotations_are_named_after_field_paths() {
    let mut object = newer();
    let long = "ä/".repeat(100) + &"x".repeat(100);
    object["spec"]["unknown"] = json!({ long: 1, "…": 2 });
    let converted = convert_object(&object, "v1alpha1");
    let names = converted["metadata"]["annotations"]
        .as_object()
        .unwrap()
        .keys();
    let names: Vec<&str> = names
        .map(|it| it.strip_prefix(PRESERVED_ANNOTATION_PREFIX).unwrap())
        .collect();
    let expected = [
        "spec.mode-1e40b7ba7f338b81",
        "spec.seconds-41122a290ab6d14f",
        "spec.tolerant-c248b1e0067ad0b3",
        "spec.unknown.-b7417f9c3aa5ee5e",
        "spec.unknown.xxxxxxxxxxxxxxxxxxxxxxxxxxx-1b351f7bac57104e",
        "spec.windowsz.zone-9cbe860613957d73",
    ];
    assert_eq!(names, expected);
    assert!(names.iter().all(|it| it.len() <= 63));
}

#[test]
fn changes_in_other_version_are_kept() {
    // (the edited field of one version, its new value, the field in the other version, and the remaining annotations)
    let edits: [(&str, Value, &str, Value); 6] = [
        (
            "/spec/minutes",
            json!(7),
            "/spec/durationSeconds",
            json!(420),
        ),
        (
            "/spec/minutes",
            json!(6),
            "/spec/durationSeconds",
            json!(330),
        ),
        (
            "/spec/mode",
            json!("Hard"),
            "/spec/guarantee",
            json!("Guaranteed"),
        ),
        (
            "/spec/mode",
            json!("Soft"),
            "/spec/guarantee",
            json!("Burst"),
        ),
        ("/spec/owner", json!("bo"), "/spec/user", json!("bo")),
        (
            "/spec/windows/1/start",
            json!("21:00"),
            "/spec/windows/z",
            json!({"start": "21:00", "zone": "UTC"}),
        ),
    ];
    for (field, value, pointer, expected) in edits {
        let mut edited = convert_object(&newer(), "v1alpha1");
        *edited.pointer_mut(field).unwrap() = value;
        let back = convert_object(&edited, "v1beta1");
        assert_eq!(back.pointer(pointer), Some(&expected), "{field}");
        assert_eq!(back["spec"]["tolerant"], true, "{field}");
        assert!(preserved_values(&back).is_empty(), "{field}: {back}");
    }
}

#[test]
fn removed_item_drops_its_preserved_fields() {
    let mut edited = convert_object(&newer(), "v1alpha1");
    edited["spec"]["windows"] =
        json!([{"name": "a", "start": "06:00"}, {"name": "y", "start": "01:00"}]);
    let back = convert_object(&edited, "v1beta1");
    let expected = json!({"a": {"start": "06:00"}, "y": {"start": "01:00"}});
    assert_eq!(back["spec"]["windows"], expected);
}

#[test]
fn items_added_in_other_version_are_appended() {
    let mut edited = convert_object(&older(), "v1beta1");
    edited["spec"]["windows"]["m"] = json!({"start": "12:00", "zone": "UTC"});
    let back = convert_object(&edited, "v1alpha1");
    let names: Vec<_> = back["spec"]["windows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].clone())
        .collect();
    assert_eq!(names, ["z", "a", "m"]);
    assert_eq!(convert_object(&back, "v1beta1")["spec"], edited["spec"]);
}

#[test]
fn removed_annotations_lose_only_preserved_fields() {
    let mut edited = convert_object(&older(), "v1beta1");
    edited["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("annotations");
    let back = convert_object(&edited, "v1alpha1");
    let mut expected = older();
    let spec = expected["spec"].as_object_mut().unwrap();
    spec.remove("note");
    spec.insert("mode".to_owned(), json!("Soft"));
    expected["spec"]["windows"]
        .as_array_mut()
        .unwrap()
        .reverse();
    assert_eq!(back, expected);
}

#[test]
fn unreadable_annotation_is_ignored_and_reported() {
    let texts = [
        "",
        "{",
        "[]",
        "null",
        r#"{"at": 5}"#,
        r#"{"at": []}"#,
        r#"{"other": 1}"#,
        "\u{0}",
    ];
    for text in texts {
        let mut object = older();
        forge_annotation(&mut object, "a", text);
        let converted = try_convert(&object, "v1beta1");
        let message = converted.ignored.unwrap();
        assert!(
            message.starts_with("kept-in-conversion.lockkeeper.dev/a: "),
            "{message}"
        );
        assert_eq!(
            converted.object,
            convert_object(&older(), "v1beta1"),
            "{text:?}"
        );
        // It goes, also where there is nothing to keep, and what else was kept is put back.
        let mut object = convert_object(&newer(), "v1alpha1");
        forge_annotation(&mut object, "a", text);
        assert_eq!(try_convert(&object, "v1beta1").object, newer());
    }
    let mut object = older();
    object["metadata"]["annotations"] = json!({ PRESERVED_ANNOTATION_PREFIX: 5 });
    let message = try_convert(&object, "v1beta1").ignored.unwrap();
    assert_eq!(
        message,
        "kept-in-conversion.lockkeeper.dev/: the value is not a string"
    );
    forge_annotation(&mut object, "", &" ".repeat(PRESERVED_MAX_BYTES + 1));
    let message = try_convert(&object, "v1beta1").ignored.unwrap();
    let expected = format!(
        "{PRESERVED_ANNOTATION_PREFIX}: the annotations exceed {PRESERVED_MAX_BYTES} bytes in total"
    );
    assert_eq!(message, expected);
}

#[test]
fn forged_annotation_does_not_override_own_fields() {
    let mut object = older();
    for (name, forged) in [
        (
            "a",
            json!({"at": ["spec", "cpu"], "in": 1, "base": "16", "kept": "1000"}),
        ),
        (
            "b",
            json!({"at": ["spec", "mode"], "in": 1, "base": "Auto", "kept": 5}),
        ),
        (
            "c",
            json!({"at": ["spec", "tolerant"], "in": 1, "kept": true}),
        ),
        (
            "d",
            json!({"of": "v1beta1", "at": ["spec", "cpu"], "in": 1, "base": "16", "kept": "1000"}),
        ),
    ] {
        forge_annotation(&mut object, name, &forged.to_string());
    }
    let converted = convert_object(&object, "v1beta1");
    assert_eq!(converted["spec"]["cpu"], "16");
    // A client with write access may set the fields that v1alpha1 does not have; it could set them in v1beta1 as well.
    assert_eq!(converted["spec"]["tolerant"], true);
    let mut back = convert_object(&converted, "v1alpha1");
    back["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("annotations");
    assert_eq!(back, older());
}

/// An API server finds out what an applier took back by comparing fields: each piece is one.
#[test]
fn removed_annotation_loses_only_its_field() {
    let mut edited = convert_object(&older(), "v1beta1");
    let annotations = edited["metadata"]["annotations"].as_object_mut().unwrap();
    annotations.retain(|key, _| !key.contains("spec.note"));
    let mut expected = older();
    expected["spec"].as_object_mut().unwrap().remove("note");
    assert_eq!(convert_object(&edited, "v1alpha1"), expected);
}

#[test]
fn invalid_fields_are_preserved() {
    let mut object = older();
    let twice = json!([{"name": "a", "start": "1"}, {"name": "b", "start": "2"}, {"name": "a", "start": "3"}]);
    object["spec"]["windows"] = twice;
    object["spec"]["note"] = Value::Null;
    object["spec"]["unknown"] = json!([1.0, {"a": null}]);
    object["extra"] = json!({});
    let converted = convert_object(&object, "v1beta1");
    assert_eq!(converted["spec"]["windows"]["a"]["start"], "3");
    assert!(converted.get("extra").is_none());
    assert_eq!(convert_object(&converted, "v1alpha1"), object);
    assert_eq!(
        convert_object(&convert_object(&converted, "v1"), "v1alpha1"),
        object
    );
}

#[test]
fn preserved_fields_over_limit_are_rejected() {
    let desired = format!("{GROUP}/v1beta1");
    let mut object = older();
    let convert = |object: &Value| converters().convert(object.clone(), &desired);
    object["spec"]["note"] = "".into();
    let converted = convert(&object).unwrap().object;
    let all = converted["metadata"]["annotations"]
        .as_object()
        .unwrap()
        .iter();
    let overhead: usize = all
        .map(|(key, text)| key.len() + text.as_str().unwrap().len())
        .sum();
    object["spec"]["note"] = "x".repeat(PRESERVED_MAX_BYTES - overhead).into();
    assert_eq!(
        convert_object(&convert_object(&object, "v1beta1"), "v1alpha1"),
        object
    );
    object["spec"]["note"] = "x".repeat(PRESERVED_MAX_BYTES - overhead + 1).into();
    let message = convert(&object).unwrap_err().to_string();
    let expected = format!(
        "Reservation \"team/night\" cannot be converted from {GROUP}/v1alpha1 to {desired}: metadata.annotations: \
         fields that the other version lacks need 131073 bytes, more than the maximum of 131072; read the object in the version that has these fields, and make them smaller there"
    );
    assert_eq!(message, expected);
}
