#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::*;
use lockkeeper_conversion::{check_removal, migration};
use serde_json::{Value, json};

const SAMPLE: &str = include_str!("../../../tests/samples/reservation.yaml");

/// The definition of the sample with this version alone.
fn definition_of_version(version: &str) -> CustomResourceDefinition {
    let all = SAMPLE
        .split("---\n")
        .map(|it| serde_saphyr::from_str::<CustomResourceDefinition>(it).unwrap());
    let mut all = all.collect::<Vec<_>>();
    let place = all
        .iter()
        .position(|it| it.spec.versions[0].name == version);
    let mut found = all.swap_remove(place.unwrap_or(0));
    version.clone_into(&mut found.spec.versions[0].name);
    found
}

fn service() -> Endpoint {
    Endpoint::Service {
        namespace: "lockkeeper-system".to_owned(),
        name: "lockkeeper".to_owned(),
        port: 443,
    }
}

fn webhook(endpoint: &Endpoint) -> Conversion<'_> {
    Conversion::Webhook {
        endpoint,
        authorities: CaSource::Absent,
    }
}

fn json(definition: &CustomResourceDefinition) -> Value {
    serde_json::to_value(definition).unwrap()
}

#[test]
fn combined_definition_has_all_versions() {
    let warning = "samples.example.com/v1alpha1 goes with release 2; use v1beta1";
    let versions = vec![
        Version::served(definition_of_version("v1alpha1"))
            .deprecated(Deprecation::Warning(warning.to_owned())),
        Version::stored(definition_of_version("v1beta1")),
    ];
    let whole = json(&combine(versions, webhook(&service())).unwrap());
    let summary: Vec<Value> = whole["spec"]["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| {
            json!([
                version["name"],
                version["served"],
                version["storage"],
                version["deprecated"],
                version["deprecationWarning"]
            ])
        })
        .collect();
    assert_eq!(
        summary,
        [
            json!(["v1beta1", true, true, null, null]),
            json!(["v1alpha1", true, false, true, warning])
        ]
    );
    let conversion = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"service": {"namespace": "lockkeeper-system", "name": "lockkeeper", "path": "/convert", "port": 443}},
        "conversionReviewVersions": ["v1"],
    }});
    assert_eq!(whole["spec"]["conversion"], conversion);
    assert_eq!(
        whole["metadata"],
        json!({"name": "reservations.samples.example.com"})
    );
    for (version, field) in [(0, "durationSeconds"), (1, "minutes")] {
        let schema = &whole["spec"]["versions"][version]["schema"]["openAPIV3Schema"];
        assert!(
            schema["properties"]["spec"]["properties"][field].is_object(),
            "{field}"
        );
    }
}

#[test]
fn conversion_webhook_uses_service_endpoint() {
    let url = Endpoint::Url("https://lockkeeper.example.com:9443/".to_owned());
    let both = || {
        vec![
            Version::served(definition_of_version("v1alpha1")),
            Version::stored(definition_of_version("v1beta1")),
        ]
    };
    for (authorities, client, annotations) in [
        (
            CaSource::Inline(b"pem"),
            json!({"url": "https://lockkeeper.example.com:9443/convert", "caBundle": "cGVt"}),
            Value::Null,
        ),
        (
            CaSource::CertManager("a/b"),
            json!({"url": "https://lockkeeper.example.com:9443/convert"}),
            json!({"cert-manager.io/inject-ca-from": "a/b"}),
        ),
    ] {
        let conversion = Conversion::Webhook {
            endpoint: &url,
            authorities,
        };
        let whole = json(&combine(both(), conversion).unwrap());
        assert_eq!(
            whole["spec"]["conversion"]["webhook"]["clientConfig"],
            client
        );
        assert_eq!(whole["metadata"]["annotations"], annotations);
    }
}

#[test]
fn versions_are_sorted_by_priority() {
    // The example of Kubernetes' own page on versions, without the names that it cannot order.
    let names = [
        "v11alpha2",
        "v1",
        "v12alpha1",
        "v10beta3",
        "v3beta1",
        "v2",
        "v10",
        "v11beta2",
    ];
    let versions = names.map(|name| match name {
        "v1" => Version::stored(definition_of_version(name)),
        _ => Version::served(definition_of_version(name)),
    });
    let whole = combine(versions.to_vec(), webhook(&service())).unwrap();
    let order: Vec<&str> = whole
        .spec
        .versions
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let expected = [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v10beta3",
        "v3beta1",
        "v12alpha1",
        "v11alpha2",
    ];
    assert_eq!(order, expected);
}

#[test]
fn plain_deprecation_of_unserved_version_has_no_warning() {
    let versions = vec![
        Version::served(definition_of_version("v1alpha1"))
            .deprecated(Deprecation::Plain)
            .unserved(),
        Version::stored(definition_of_version("v1beta1")),
    ];
    let whole = json(&combine(versions, webhook(&service())).unwrap());
    let older = &whole["spec"]["versions"][1];
    assert_eq!(
        (&older["served"], &older["deprecated"]),
        (&json!(false), &json!(true))
    );
    assert!(older.get("deprecationWarning").is_none());
}

#[test]
fn same_schemas_need_no_conversion() {
    let mut second = definition_of_version("v1beta1");
    second.spec.versions[0].name = "v1".to_owned();
    let whole = combine(
        vec![
            Version::served(definition_of_version("v1beta1")),
            Version::stored(second),
        ],
        Conversion::None,
    );
    assert_eq!(whole.unwrap().spec.conversion, None);
    let one = combine(
        vec![Version::stored(definition_of_version("v1beta1"))],
        Conversion::None,
    )
    .unwrap();
    assert_eq!(one.spec.versions.len(), 1);
}

#[track_caller]
fn check_rejected(versions: Vec<Version>, expected: &str) {
    let endpoint = service();
    let error = combine(versions, webhook(&endpoint)).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn invalid_version_sets_are_rejected() {
    let (older, newer) = (
        || definition_of_version("v1alpha1"),
        || definition_of_version("v1beta1"),
    );
    let name = "reservations.samples.example.com";
    check_rejected(vec![], "there are no versions; give at least one");
    check_rejected(
        vec![Version::served(older()), Version::served(newer())],
        &format!("{name}: no version is stored; mark one of them"),
    );
    check_rejected(
        vec![
            Version::stored(older()),
            Version::stored(newer()),
            Version::stored(definition_of_version("v1")),
        ],
        &format!(
            "{name}: v1alpha1 and v1beta1 and v1 are stored, and an API server stores one; mark one of them"
        ),
    );
    check_rejected(
        vec![
            Version::served(older()),
            Version::stored(newer()).unserved(),
        ],
        &format!(
            "{name}: version v1beta1 is stored and not served; serve it, or store another one"
        ),
    );
    check_rejected(
        vec![
            Version::stored(older()),
            Version::served(newer()),
            Version::served(newer()),
        ],
        &format!("{name}: version v1beta1 is there twice; remove one"),
    );
    for wrong in [
        "1", "V1", "v1beta", "v1alpha", "v1gamma1", "beta1", "v", "v1.2", "",
    ] {
        check_rejected(
            vec![Version::stored(definition_of_version(wrong))],
            &format!(
                "{name}: {wrong:?} is no name of a version; take one such as v1alpha1, v1beta2 or v1"
            ),
        );
    }
    let mut none = older();
    none.spec.versions.clear();
    check_rejected(
        vec![Version::stored(none)],
        &format!("the definition {name} has 0 versions; give one definition for each version"),
    );
    let mut other = newer();
    other.spec.scope = "Cluster".to_owned();
    check_rejected(
        vec![Version::stored(older()), Version::served(other)],
        &format!(
            "{name}: mismatching scope property from given CRDs; all versions must be of one kind"
        ),
    );
}

#[test]
fn deprecation_warning_invalid_is_rejected() {
    let with = |text: &str| {
        let older = Version::served(definition_of_version("v1alpha1"));
        let older = older.deprecated(Deprecation::Warning(text.to_owned()));
        combine(
            vec![older, Version::stored(definition_of_version("v1beta1"))],
            webhook(&service()),
        )
    };
    let expected = "reservations.samples.example.com: the warning of version v1alpha1 must have 1 to 256 bytes, and no line \
                    break or other control character";
    for wrong in ["", "a\nb", "\u{7}", &"x".repeat(257)] {
        assert_eq!(with(wrong).unwrap_err().to_string(), expected);
    }
    for good in ["a", &"x".repeat(256), "naïve ✓"] {
        assert!(with(good).is_ok(), "{good}");
    }
}

#[test]
fn differing_schemas_without_conversion_are_rejected() {
    let versions = vec![
        Version::served(definition_of_version("v1alpha1")),
        Version::stored(definition_of_version("v1beta1")),
    ];
    let error = combine(versions, Conversion::None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "reservations.samples.example.com: versions v1beta1 and v1alpha1 have different schemas and no conversion, so \
         that an API server would drop what the other does not have; give a conversion"
    );
}

#[test]
fn migration_names_storage_version() {
    let versions = vec![
        Version::served(definition_of_version("v1alpha1")),
        Version::stored(definition_of_version("v1beta1")),
    ];
    let whole = combine(versions, webhook(&service())).unwrap();
    let expected = json!({
        "apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
        "metadata": {"name": "reservations.samples.example.com-to-v1beta1"},
        "spec": {"resource": {"group": "samples.example.com", "resource": "reservations"}},
    });
    assert_eq!(serde_json::to_value(migration(&whole)).unwrap(), expected);
}

#[test]
fn removal_of_unserved_unstored_version_is_allowed() {
    let name = "reservations.samples.example.com";
    // (whether v1alpha1 is served, the stored versions, the version to remove, the reason against it)
    for (served, stored, version, why) in [
        (
            true,
            Some(vec!["v1beta1"]),
            "v2",
            format!("{name} has no version v2, only v1beta1, v1alpha1; give one of these"),
        ),
        (
            false,
            Some(vec!["v1beta1"]),
            "v1beta1",
            format!(
                "{name} stores v1beta1; make another version the storage version and migrate the stored objects first"
            ),
        ),
        (
            false,
            None,
            "v1alpha1",
            format!(
                "{name} has no status.storedVersions; get the definition from the cluster (kubectl get crd NAME -o yaml)"
            ),
        ),
        (
            false,
            Some(vec!["v1alpha1", "v1beta1"]),
            "v1alpha1",
            format!(
                "{name} lists v1alpha1 in status.storedVersions: objects may still be stored in it; migrate them, and wait until the list no longer has it"
            ),
        ),
        (
            true,
            Some(vec!["v1beta1"]),
            "v1alpha1",
            format!(
                "{name} still serves v1alpha1; stop serving it first, so that remaining clients show up while it can be restored"
            ),
        ),
        (false, Some(vec!["v1beta1"]), "v1alpha1", String::new()),
    ] {
        let mut older = Version::served(definition_of_version("v1alpha1"));
        older.served = served;
        let versions = vec![older, Version::stored(definition_of_version("v1beta1"))];
        let mut whole = combine(versions, webhook(&service())).unwrap();
        if let Some(stored) = stored {
            let status = whole.status.get_or_insert_default();
            status.stored_versions = Some(stored.into_iter().map(str::to_owned).collect());
        }
        let found = check_removal(&whole, version).map_err(|it| it.to_string());
        assert_eq!(found.err().unwrap_or_default(), why);
    }
}
