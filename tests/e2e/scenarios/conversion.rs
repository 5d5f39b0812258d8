//! A kind with two versions on a real API server: a client writes one version and reads the other.

mod fixture;
mod migration;
mod server;

use lockkeeper_conversion::PRESERVED_ANNOTATION_PREFIX;
use serde_json::{Value, json};

use self::fixture::{ConversionFixture, assert_same, newer, older, resource};
use super::Scenario;
use crate::fixture::Fixture;
use crate::kubectl::KubectlOutput;
use crate::lockkeeper::Protocol;
use crate::reservation::GROUP;
use crate::snapshot;
use crate::wait;
use crate::watcher::Watch;

pub fn scenarios() -> Vec<Scenario> {
    [
        Scenario::new(
            "converted: one version is written and the other read",
            read_other_version,
        ),
        Scenario::new(
            "converted: an edit in one version keeps the fields of the other",
            edit_keeps_other_version_fields,
        ),
        Scenario::new("converted: both versions are watched", watch_both_versions),
        Scenario::new(
            "converted: both versions support server-side apply",
            server_side_apply_both_versions,
        ),
        Scenario::new(
            "converted: an invalid annotation is ignored",
            invalid_preserved_fields_annotation,
        ),
        Scenario::new(
            "converted: a failed conversion names the field",
            unconvertible_object_rejected,
        )
        // Before, the API server writes another text around the reason.
        .since(37),
        Scenario::new("converted: the server is unavailable", server_unavailable).since(37),
        Scenario::new(
            "converted: stored objects are migrated",
            migration::stored_objects_migrate,
        )
        .since(37),
    ]
    .into_iter()
    .map(|it| it.only(Protocol::Http2))
    .collect()
}

/// The object `older` in the newer version.
fn older_as_newer(name: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1beta1"), "kind": "Reservation", "metadata": {"name": name},
        "spec": {
            "team": "speech", "user": "ada", "durationSeconds": 5400, "guarantee": "BestEffort", "cpu": "16",
            "windows": {"day": {"start": "06:00"}, "night": {"start": "22:00"}},
        },
    })
}

/// The object `newer` in the older version.
fn newer_as_older(name: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Reservation", "metadata": {"name": name},
        "spec": {
            "owner": "vision/bo", "minutes": 6, "mode": "Soft", "amount": "8",
            "windows": [{"name": "night", "start": "22:00"}],
        },
    })
}

fn read_other_version(stage: &mut Fixture, _: Protocol) {
    // With each version as the storage version.
    for stored in ["v1alpha1", "v1beta1"] {
        let site = ConversionFixture::start(stage, stored);
        let reply = site
            .kubectl
            .apply(&older("one").to_string(), &[])
            .expect_accepted();
        assert_eq!(reply.stderr, format!("Warning: {}\n", fixture::WARNING));
        site.kubectl
            .apply(&newer("two").to_string(), &[])
            .expect_accepted_without_warning();
        assert_same(&site.get("v1alpha1", "one"), &older("one"));
        assert_same(&site.get("v1beta1", "one"), &older_as_newer("one"));
        assert_same(&site.get("v1alpha1", "two"), &newer_as_older("two"));
        assert_same(&site.get("v1beta1", "two"), &newer("two"));
        for (version, expected) in [
            ("v1alpha1", [older("one"), newer_as_older("two")]),
            ("v1beta1", [older_as_newer("one"), newer("two")]),
        ] {
            let list = site.list(version);
            assert_eq!(list.len(), 2);
            for (found, expected) in list.iter().zip(&expected) {
                assert_same(found, expected);
            }
        }
        // Only the version that lacks a field has the annotation.
        let kept = |version, name| {
            let object = site.get(version, name);
            let annotations = object["metadata"]["annotations"].as_object();
            let mut names = annotations.into_iter().flat_map(|it| it.keys());
            names.any(|it| it.starts_with(PRESERVED_ANNOTATION_PREFIX))
        };
        let carriers = [
            ("v1alpha1", "one"),
            ("v1beta1", "one"),
            ("v1alpha1", "two"),
            ("v1beta1", "two"),
        ];
        let carriers = carriers.map(|(version, name)| kept(version, name));
        assert_eq!(carriers, [false, true, true, false], "{stored}");
        assert!(site.server.count("converted") > 0);
        assert_eq!(
            [site.server.count("rejected"), site.server.count("error")],
            [0, 0]
        );
        site.end();
    }
}

#[track_caller]
fn patch(site: &ConversionFixture, version: &str, change: &Value, flags: &[&str]) {
    let (resource, change) = (resource(version), change.to_string());
    let patch = ["patch", &resource, "one", "--type=merge", "-p", &change];
    site.kubectl
        .run(&[&patch[..], flags].concat())
        .expect_accepted();
}

fn edit_keeps_other_version_fields(stage: &mut Fixture, _: Protocol) {
    let site = ConversionFixture::start(stage, "v1alpha1");
    site.kubectl
        .apply(&older("one").to_string(), &[])
        .expect_accepted();
    let windows = json!({"night": {"zone": "UTC"}, "day": null, "noon": {"start": "12:00"}});
    let change = json!({"spec": {"cpu": "32", "tolerant": true, "windows": windows}});
    patch(&site, "v1beta1", &change, &[]);
    let status = json!({"status": {"phase": "Held"}});
    patch(&site, "v1beta1", &status, &["--subresource=status"]);
    let mut expected = older("one");
    expected["spec"]["amount"] = "32".into();
    let windows = json!([{"name": "night", "start": "22:00"}, {"name": "noon", "start": "12:00"}]);
    expected["spec"]["windows"] = windows;
    expected["status"] = json!({"state": "Held"});
    assert_same(&site.get("v1alpha1", "one"), &expected);
    // In the other direction: fields of the newer version are kept.
    let change = json!({"spec": {"minutes": 7, "mode": "Hard"}});
    patch(&site, "v1alpha1", &change, &[]);
    let mut expected = older_as_newer("one");
    expected["spec"] = json!({
        "team": "speech", "user": "ada", "durationSeconds": 420, "guarantee": "Guaranteed", "cpu": "32", "tolerant": true,
        "windows": {"night": {"start": "22:00", "zone": "UTC"}, "noon": {"start": "12:00"}},
    });
    expected["status"] = json!({"phase": "Held"});
    assert_same(&site.get("v1beta1", "one"), &expected);
    assert_eq!(site.get("v1alpha1", "one")["spec"]["note"], "for the paper");
    site.end();
}

fn watch_both_versions(stage: &mut Fixture, _: Protocol) {
    let site = ConversionFixture::start(stage, "v1alpha1");
    let server = stage.cluster().watch_server();
    let watches = ["v1alpha1", "v1beta1"].map(|version| {
        let path = format!("/apis/{GROUP}/{version}/namespaces/default/reservations");
        let list = site.kubectl.get(&[&resource(version)]);
        // The list that kubectl prints has no resource version.
        assert_eq!(list["items"], json!([]));
        Watch::start(server.clone(), path, "0".to_owned())
    });
    site.kubectl
        .apply(&older("one").to_string(), &[])
        .expect_accepted();
    site.kubectl
        .apply(&newer("two").to_string(), &[])
        .expect_accepted();
    let expected = [
        [older("one"), newer_as_older("two")],
        [older_as_newer("one"), newer("two")],
    ];
    for (watch, expected) in watches.iter().zip(&expected) {
        let all = || Ok((watch.versions().len() >= 2).then_some(()));
        wait::until(all, || {
            format!("the watch shows only {:?}", watch.versions())
        })
        .unwrap();
        for (found, expected) in watch.versions().iter().zip(expected) {
            assert_same(found, expected);
        }
    }
    drop(watches);
    site.end();
}

fn server_side_apply_both_versions(stage: &mut Fixture, _: Protocol) {
    let site = ConversionFixture::start(stage, "v1alpha1");
    let apply = |manager: &str, object: &Value| -> KubectlOutput {
        let manager = format!("--field-manager={manager}");
        site.kubectl
            .apply(&object.to_string(), &["--server-side", &manager])
    };
    let mut first = older("one");
    apply("first", &first).expect_accepted();
    // The second manager applies only its own fields, in the newer version.
    let second = |spec: Value| {
        let mut object = older_as_newer("one");
        object["metadata"]["namespace"] = "default".into();
        object["spec"] = spec;
        object
    };
    let zone = json!({"noon": {"start": "12:00", "zone": "UTC"}});
    apply(
        "second",
        &second(json!({"tolerant": true, "windows": zone})),
    )
    .expect_accepted();
    let found = site.get("v1beta1", "one");
    assert_eq!(
        (&found["spec"]["tolerant"], &found["spec"]["cpu"]),
        (&json!(true), &json!("16"))
    );
    assert_eq!(found["spec"]["windows"]["noon"], zone["noon"]);
    // The first manager changes its own fields, and removes one.
    first["spec"]["amount"] = "20".into();
    first["spec"].as_object_mut().unwrap().remove("note");
    apply("first", &first).expect_accepted();
    let found = site.get("v1beta1", "one");
    assert_eq!(
        (&found["spec"]["tolerant"], &found["spec"]["cpu"]),
        (&json!(true), &json!("20"))
    );
    let older = site.get("v1alpha1", "one");
    assert_eq!(older["spec"]["note"], Value::Null);
    let names = older["spec"]["windows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["night", "day", "noon"]);
    // A field of the other manager causes a conflict.
    let conflict = apply("second", &second(json!({"cpu": "1"}))).expect_rejected();
    snapshot::check("converting--conflict", &conflict.stderr);
    // A field that the second manager no longer applies is removed.
    apply("second", &second(json!({"windows": zone}))).expect_accepted();
    assert_eq!(site.get("v1beta1", "one")["spec"]["tolerant"], Value::Null);
    site.end();
}

fn invalid_preserved_fields_annotation(stage: &mut Fixture, _: Protocol) {
    let site = ConversionFixture::start(stage, "v1alpha1");
    for (name, text) in [
        ("one", "garbage"),
        (
            "two",
            r#"{"at":["spec","cpu"],"in":1,"base":"16","kept":"1000"}"#,
        ),
        ("three", &"x".repeat(200_000)),
    ] {
        let mut object = older(name);
        object["metadata"]["annotations"] =
            json!({format!("{PRESERVED_ANNOTATION_PREFIX}a"): text, "other": "stays"});
        site.kubectl
            .with_input(&["create", "-f", "-"], &object.to_string())
            .expect_accepted();
        let found = site.get("v1beta1", name);
        assert_same(&found, &older_as_newer(name));
        assert_eq!(found["metadata"]["annotations"]["other"], "stays");
        assert_same(&site.get("v1alpha1", name), &older(name));
    }
    assert_eq!(site.list("v1beta1").len(), 3);
    site.end();
}

/// An object whose annotation would be too large is readable in the version that it was written in.
fn unconvertible_object_rejected(stage: &mut Fixture, _: Protocol) {
    let site = ConversionFixture::start(stage, "v1alpha1");
    let mut large = older("large");
    large["spec"]["note"] = "x".repeat(200_000).into();
    let create = |object: &Value| {
        site.kubectl
            .with_input(&["create", "-f", "-"], &object.to_string())
    };
    let reply = create(&large);
    let output = match reply.code {
        Some(0) => {
            assert_same(&site.get("v1alpha1", "large"), &large);
            site.try_get("v1beta1", "large").expect_rejected()
        }
        _ => reply,
    };
    snapshot::check("converting--too-much", &output.stderr);
    assert!(site.server.count("rejected") > 0);
    site.end();
}

fn server_unavailable(stage: &mut Fixture, _: Protocol) {
    let site = ConversionFixture::start(stage, "v1alpha1");
    site.kubectl
        .apply(&older("one").to_string(), &[])
        .expect_accepted();
    let ConversionFixture { kubectl, server } = site;
    let stopped = server.stop();
    let get = |version: &str| kubectl.run(&["get", &resource(version), "one", "-o", "json"]);
    // The stored version is read without conversion.
    let found = get("v1alpha1").expect_accepted();
    assert_same(&serde_json::from_str(&found.stdout).unwrap(), &older("one"));
    let output = get("v1beta1").expect_rejected();
    snapshot::check("converting--away", &output.stderr);
    let mut changed = older("one");
    changed["spec"]["minutes"] = 30.into();
    kubectl.apply(&changed.to_string(), &[]).expect_accepted();
    let create = ["create", "-f", "-"];
    let output = kubectl
        .with_input(&create, &newer("two").to_string())
        .expect_rejected();
    assert!(
        output
            .stderr
            .contains("conversion webhook for samples.example.com/v1beta1"),
        "{}",
        output.stderr
    );
    // Everything works again when the server is back.
    let site = ConversionFixture {
        kubectl,
        server: stopped.start(),
    };
    let found = site.get("v1beta1", "one");
    assert_eq!(found["spec"]["durationSeconds"], 1800);
    site.kubectl
        .apply(&newer("two").to_string(), &[])
        .expect_accepted();
    site.end();
}
