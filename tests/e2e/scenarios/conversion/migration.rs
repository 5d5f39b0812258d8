//! Stored objects are migrated to another version, and back.

use lockkeeper_conversion::{check_removal, migration};
use lockkeeper_crdgen::versions::{Conversion, Version, combine};
use serde_json::{Value, json};

use super::fixture::{CRD, ConversionFixture, assert_same, definitions, newer, older, resource};
use crate::fixture::Fixture;
use crate::lockkeeper::Protocol;
use crate::reservation::GROUP;
use crate::wait;

/// All objects in both versions, without the metadata that the API server writes.
#[track_caller]
fn all(site: &ConversionFixture) -> Vec<Value> {
    let versions = ["v1alpha1", "v1beta1"].map(|version| site.list(version));
    let objects = versions.into_iter().flatten().map(|mut object| {
        let metadata = object["metadata"].as_object_mut().unwrap();
        for key in ["resourceVersion", "managedFields"] {
            metadata.remove(key);
        }
        object
    });
    objects.collect()
}

#[track_caller]
fn removal_is_blocked(site: &ConversionFixture, version: &str, expected: &str) {
    let error = check_removal(&site.definition(), version)
        .unwrap_err()
        .to_string();
    assert!(error.contains(expected), "{error}");
}

/// Checks that the objects in etcd have this version: without the server nothing is converted.
#[track_caller]
fn change_storage_version(site: ConversionFixture, version: &str) -> ConversionFixture {
    let ConversionFixture { kubectl, server } = site;
    let stopped = server.stop();
    for name in ["older", "newer"] {
        let get = ["get", &resource(version), name, "-o", "json"];
        kubectl.run(&get).expect_accepted();
    }
    let server = stopped.start();
    ConversionFixture { kubectl, server }
}

/// The API server's own migration converts them to the newer version; then the older version is removed. Before that,
/// they are converted back once by hand, as for a downgrade.
pub fn stored_objects_migrate(stage: &mut Fixture, _: Protocol) {
    let site = ConversionFixture::start(stage, "v1alpha1");
    for object in [older("older"), newer("newer")] {
        site.kubectl
            .apply(&object.to_string(), &[])
            .expect_accepted();
    }
    let before = all(&site);
    assert_eq!(before.len(), 4);
    assert_eq!(site.stored_versions(), ["v1alpha1"]);
    let site = change_storage_version(site, "v1alpha1");

    // To the newer version, and back by hand.
    site.define(&site.both("v1beta1"));
    assert_eq!(site.stored_versions(), ["v1alpha1", "v1beta1"]);
    removal_is_blocked(&site, "v1alpha1", "objects may still be stored in it");
    dropping_version_is_rejected(&site);
    assert_eq!(all(&site), before);
    migrate_by_hand(&site, "v1beta1");
    assert_eq!(all(&site), before);
    let site = change_storage_version(site, "v1beta1");
    site.define(&site.both("v1alpha1"));
    migrate_by_hand(&site, "v1alpha1");
    assert_eq!(all(&site), before);
    let site = change_storage_version(site, "v1alpha1");

    // To the newer version finally.
    site.define(&site.both("v1beta1"));
    let started = stage.cluster_mut().start_workers();
    started.unwrap_or_else(|e| panic!("no workers: {e}"));
    let object = migration(&site.definition());
    let text = serde_json::to_string(&object).unwrap();
    site.kubectl
        .apply(&text, &[])
        .expect_accepted_without_warning();
    let name = object.metadata.name.unwrap();
    let done = || {
        let found = site
            .kubectl
            .get(&["storageversionmigrations.v1.storagemigration.k8s.io", &name]);
        let conditions = found["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let is = |kind: &str| {
            conditions
                .iter()
                .any(|it| it["type"] == kind && it["status"] == "True")
        };
        assert!(!is("Failed"), "{found}");
        // The migration updates `storedVersions` at its end.
        Ok((is("Succeeded") && site.stored_versions() == ["v1beta1"]).then_some(()))
    };
    wait::until(done, || "the migration does not end".to_owned()).unwrap();
    assert_eq!(all(&site), before);
    let site = change_storage_version(site, "v1beta1");
    stage.cluster_mut().stop_workers();
    site.kubectl
        .run(&["delete", "storageversionmigration", &name])
        .expect_accepted();

    removal_is_blocked(&site, "v1alpha1", "still serves v1alpha1");
    let [first, second] = definitions();
    let unserved = vec![
        Version::served(first).unserved(),
        Version::stored(second.clone()),
    ];
    site.define(&site.combined(unserved));
    check_removal(&site.definition(), "v1alpha1").unwrap();
    site.define(&combine(vec![Version::stored(second)], Conversion::None).unwrap());
    let left = site.list("v1beta1");
    assert_eq!(left.len(), 2);
    for (found, was) in left.iter().zip(&before[2..]) {
        assert_same(found, was);
    }
    site.end();
}

/// The API server rejects the removal of a version that objects may be stored in.
#[track_caller]
fn dropping_version_is_rejected(site: &ConversionFixture) {
    let [_, newer] = definitions();
    let alone = combine(vec![Version::stored(newer)], Conversion::None).unwrap();
    let alone = serde_json::to_string(&alone).unwrap();
    let reply = site
        .kubectl
        .apply(&alone, &["--server-side", "--force-conflicts"])
        .expect_rejected();
    let expected = "v1alpha1 was previously a storage version";
    assert!(reply.stderr.contains(expected), "{}", reply.stderr);
}

/// Migration by hand: every object is rewritten, and then `storedVersions` is set.
#[track_caller]
fn migrate_by_hand(site: &ConversionFixture, version: &str) {
    let kind = resource(version);
    let all = ["get", &kind, "-o", "name"];
    for name in site.kubectl.run(&all).expect_accepted().stdout.lines() {
        let patch = ["patch", name, "--type=merge", "-p", "{}"];
        site.kubectl.run(&patch).expect_accepted();
    }
    let status = json!({"status": {"storedVersions": [version]}}).to_string();
    let patch = [
        "patch",
        "crd",
        CRD,
        "--subresource=status",
        "--type=merge",
        "-p",
        &status,
    ];
    site.kubectl.run(&patch).expect_accepted();
    assert_eq!(site.stored_versions(), [version], "{GROUP}");
}
