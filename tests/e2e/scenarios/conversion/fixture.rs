//! A cluster with the sample kind and the server that converts it.

use std::fs;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lockkeeper_crdgen::versions::{Conversion, Deprecation, Version, combine};
use lockkeeper_crdgen::webhooks::{CaSource, Endpoint};
use serde_json::Value;

use super::server::ConversionServer;
use crate::ROOT;
use crate::fixture::Fixture;
use crate::kubectl::{Kubectl, KubectlOutput};
use crate::reservation::{self, GROUP};
use crate::wait;

pub const CRD: &str = "reservations.samples.example.com";

/// The deprecation warning for requests of the older version.
pub const WARNING: &str =
    "samples.example.com/v1alpha1 Reservation goes with the next release; use v1beta1";

pub struct ConversionFixture {
    pub kubectl: Kubectl,
    pub server: ConversionServer,
}

impl ConversionFixture {
    /// A cluster that stores this version of the sample kind and has no object of it.
    #[track_caller]
    pub fn start(stage: &mut Fixture, stored: &str) -> Self {
        let kubectl = stage.without_webhook();
        kubectl
            .run(&[
                "delete",
                "customresourcedefinition",
                CRD,
                "--ignore-not-found",
            ])
            .expect_accepted();
        let server = ConversionServer::start(stage.new_folder());
        let site = Self { kubectl, server };
        site.define(&site.both(stored));
        site
    }

    /// A CRD with both versions: the older one deprecated, `stored` as the storage version.
    pub fn both(&self, stored: &str) -> CustomResourceDefinition {
        let [older, newer] = definitions().map(|definition| {
            let is_stored = definition.spec.versions[0].name == stored;
            let version = Version::served(definition);
            Version {
                stored: is_stored,
                ..version
            }
        });
        let older = older.deprecated(Deprecation::Warning(WARNING.to_owned()));
        self.combined(vec![older, newer])
    }

    /// A CRD with the conversion webhook of this fixture.
    #[track_caller]
    pub fn combined(&self, versions: Vec<Version>) -> CustomResourceDefinition {
        let endpoint = Endpoint::Url(self.server.url());
        let pem = fs::read(&self.server.ca).unwrap();
        let conversion = Conversion::Webhook {
            endpoint: &endpoint,
            authorities: CaSource::Inline(&pem),
        };
        combine(versions, conversion).unwrap()
    }

    /// Installs a CRD and waits until its versions are served as defined.
    #[track_caller]
    pub fn define(&self, definition: &CustomResourceDefinition) {
        let text = serde_json::to_string(definition).unwrap();
        self.kubectl
            .apply(&text, &["--server-side", "--force-conflicts"])
            .expect_accepted();
        let wait = [
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            "crd",
            CRD,
        ];
        self.kubectl.run(&wait).expect_accepted();
        for version in &definition.spec.versions {
            let path = format!("/apis/{GROUP}/{}/reservations", version.name);
            let served = || self.kubectl.run(&["get", "--raw", &path]).code == Some(0);
            let late = || format!("{path} is not served as it should be");
            wait::until(|| Ok((served() == version.served).then_some(())), late).unwrap();
        }
    }

    /// The CRD as stored.
    #[track_caller]
    pub fn definition(&self) -> CustomResourceDefinition {
        let definition = self.kubectl.get(&["customresourcedefinition", CRD]);
        serde_json::from_value(definition).unwrap()
    }

    /// The versions in `status.storedVersions`.
    #[track_caller]
    pub fn stored_versions(&self) -> Vec<String> {
        let status = self.definition().status.unwrap();
        status.stored_versions.unwrap()
    }

    /// Gets an object in a version.
    #[track_caller]
    pub fn try_get(&self, version: &str, name: &str) -> KubectlOutput {
        self.kubectl
            .run(&["get", &resource(version), name, "-o", "json"])
    }

    /// Gets an object in a version; it must exist.
    #[track_caller]
    pub fn get(&self, version: &str, name: &str) -> Value {
        let reply = self.try_get(version, name).expect_accepted();
        serde_json::from_str(&reply.stdout).unwrap()
    }

    /// All objects in a version.
    #[track_caller]
    pub fn list(&self, version: &str) -> Vec<Value> {
        let mut list = self.kubectl.get(&[&resource(version)]);
        serde_json::from_value(list["items"].take()).unwrap()
    }

    /// Deletes all objects and the CRD.
    #[track_caller]
    pub fn end(self) {
        self.kubectl
            .run(&["delete", "customresourcedefinition", CRD])
            .expect_accepted();
        self.server.stop();
    }
}

/// The resource name for kubectl, with the version.
pub fn resource(version: &str) -> String {
    format!("reservations.{version}.{GROUP}")
}

/// The definitions of the older and of the newer version.
#[track_caller]
pub fn definitions() -> [CustomResourceDefinition; 2] {
    let text = fs::read_to_string(format!("{ROOT}/tests/samples/reservation.yaml")).unwrap();
    let (older, newer) = text.split_once("---\n").unwrap();
    [older, newer].map(|it| serde_saphyr::from_str(it).unwrap())
}

/// An object of the older version with every field set.
pub fn older(name: &str) -> Value {
    use reservation::{V1Alpha1, V1Alpha1Mode, V1Alpha1Spec, V1Alpha1Window};
    let window = |name: &str, start: &str| V1Alpha1Window {
        name: name.to_owned(),
        start: Some(start.to_owned()),
    };
    let payload = V1Alpha1 {
        spec: Some(V1Alpha1Spec {
            owner: Some("speech/ada".to_owned()),
            minutes: Some(90),
            mode: Some(V1Alpha1Mode::Auto),
            amount: Some("16".to_owned()),
            windows: vec![window("night", "22:00"), window("day", "06:00")],
            note: Some("for the paper".to_owned()),
        }),
        status: None,
    };
    reservation::object("v1alpha1", name, &payload)
}

/// An object of the newer version with every field set.
pub fn newer(name: &str) -> Value {
    use reservation::{Guarantee, NewWindow, V1Beta1, V1Beta1Spec};
    let window = NewWindow {
        start: Some("22:00".to_owned()),
        zone: Some("UTC".to_owned()),
    };
    let payload = V1Beta1 {
        spec: Some(V1Beta1Spec {
            team: Some("vision".to_owned()),
            user: Some("bo".to_owned()),
            duration_seconds: Some(330),
            guarantee: Some(Guarantee::Burst),
            cpu: Some("8".to_owned()),
            windows: [("night".to_owned(), window)].into(),
            tolerant: Some(true),
        }),
        status: None,
    };
    reservation::object("v1beta1", name, &payload)
}

/// Compares two objects without the metadata that the API server writes.
#[track_caller]
pub fn assert_same(found: &Value, expected: &Value) {
    for part in ["apiVersion", "kind", "spec", "status"] {
        assert_eq!(found[part], expected[part], "{part} of {found}");
    }
    assert_eq!(found["metadata"]["name"], expected["metadata"]["name"]);
}
