//! Round trips between all versions lose nothing, for random objects and with changes in between.

use lockkeeper_conversion::check_round_trip;
use proptest::prelude::*;
use serde_json::Value;

use crate::reservation::{kind, object};
use crate::strategies::{VERSIONS, any_json, any_object, newer, older};
use crate::{convert_object, forge_annotation, preserved_values, try_convert};

proptest! {
    #[test]
    fn round_trip_through_any_versions_is_lossless(object in any_object()) {
        let checked = check_round_trip(&kind(), &object);
        prop_assert_eq!(checked, Ok(()));
        // No annotation is left if no field was preserved.
        for version in VERSIONS {
            let converted = convert_object(&object, version);
            let from = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
            prop_assert_eq!(&convert_object(&converted, from), &object);
        }
    }

    /// An edit of the newer version is kept, and the older version preserves the fields that it does not have.
    #[test]
    fn edit_in_newer_version_is_kept_without_loss(old in older(), edit in newer()) {
        let before = object("v1alpha1", "a", &old);
        let mut changed = convert_object(&before, "v1beta1");
        changed["spec"] = object("v1beta1", "a", &edit)["spec"].clone();
        let stored = convert_object(&changed, "v1alpha1");
        prop_assert_eq!(&convert_object(&stored, "v1beta1")["spec"], &changed["spec"]);
        prop_assert_eq!(check_round_trip(&kind(), &stored), Ok(()));
        // The fields that the newer version does not have are unchanged.
        prop_assert_eq!(&stored["spec"]["note"], &before["spec"]["note"]);
    }

    #[test]
    fn edit_in_older_version_is_kept_without_loss(new in newer(), edit in older()) {
        let before = object("v1beta1", "a", &new);
        let mut changed = convert_object(&before, "v1alpha1");
        changed["spec"] = object("v1alpha1", "a", &edit)["spec"].clone();
        let stored = convert_object(&changed, "v1beta1");
        prop_assert_eq!(&convert_object(&stored, "v1alpha1")["spec"], &changed["spec"]);
        prop_assert_eq!(check_round_trip(&kind(), &stored), Ok(()));
        prop_assert_eq!(&stored["spec"]["tolerant"], &before["spec"]["tolerant"]);
        // Windows that were there before and were not removed are in their zone.
        let (edit, new) = (edit.spec.unwrap(), new.spec.unwrap());
        let edited: Vec<&str> = edit.windows.iter().map(|it| it.name.as_str()).collect();
        for (name, window) in &new.windows {
            let zone = &stored["spec"]["windows"][name]["zone"];
            let expected = window.zone.as_deref().filter(|_| edited.contains(&name.as_str()));
            prop_assert_eq!(zone.as_str(), expected);
        }
    }

    /// For every content of the annotation, the fields of the object itself are unchanged.
    #[test]
    fn annotations_do_not_change_own_fields(object in any_object(), texts in annotations()) {
        for version in VERSIONS {
            let mut other = object.clone();
            for (place, text) in texts.iter().enumerate() {
                forge_annotation(&mut other, &place.to_string(), text);
            }
            let converted = try_convert(&other, version).object;
            let from = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
            let back = try_convert(&converted, from).object;
            for part in ["spec", "status", "kind", "apiVersion"] {
                prop_assert_eq!(&back[part], &object[part]);
            }
        }
    }

    /// A field that no type knows comes back all the same: a server that is older than the schema loses nothing.
    #[test]
    fn unknown_fields_round_trip(object in any_object(), unknown in any_json()) {
        let mut object = object;
        object["spec"]["unknown"] = unknown.clone();
        object["unknown"] = unknown;
        let from = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        for version in VERSIONS {
            for third in VERSIONS {
                let converted = convert_object(&convert_object(&object, version), third);
                prop_assert_eq!(&convert_object(&converted, &from), &object);
            }
        }
    }
}

/// Texts that are more or less what conversions write.
fn annotations() -> impl Strategy<Value = Vec<String>> {
    let honest = any_object().prop_map(|object| {
        let all = VERSIONS.map(|version| preserved_values(&convert_object(&object, version)));
        all.iter().flatten().map(Value::to_string).collect()
    });
    let version = proptest::option::of(prop::sample::select(&VERSIONS[..]));
    let forged = (entry(), version).prop_map(|(mut entry, version)| {
        if let Some(version) = version {
            entry["of"] = version.into();
        }
        entry.to_string()
    });
    let text = prop_oneof![3 => forged, 1 => ".*"];
    prop_oneof![honest, prop::collection::vec(text, 1..6)]
}

const FIELDS: &[&str] = &[
    "spec", "note", "minutes", "seconds", "owner", "windows", "mode", "a", "cpu",
];

fn entry() -> impl Strategy<Value = Value> {
    let step = prop_oneof![
        prop::sample::select(FIELDS).prop_map(Value::from),
        "[a-d]".prop_map(|it| serde_json::json!({"item": it})),
    ];
    let value = prop_oneof![any_json(), Just("Soft".into()), Just(60.into())];
    let at = prop::collection::vec(step, 0..4);
    (
        at,
        0..5_usize,
        proptest::option::of(value.clone()),
        value,
        any::<bool>(),
    )
        .prop_map(|(at, inside, base, preserved, order)| {
            if order {
                return serde_json::json!({"at": at, "order": ["b", "a"]});
            }
            let mut entry = serde_json::json!({"at": at, "in": inside, "kept": preserved});
            if let Some(base) = base {
                entry["base"] = base;
            }
            entry
        })
}
