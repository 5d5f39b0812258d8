//! Rounds of the rotator with an API server in memory.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

mod api;

use super::*;
use crate::cert_rotation::RENEW_ANNOTATION;
use crate::cert_rotation::parse_secret_data;
use crate::cert_rotation::tests::{HOUR, new_contents};
use crate::tls::TlsOptions;
use api::Api;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use lockkeeper_api::config::CertificateSettings;
use serde_json::{Value, json};

const SECRET: &str = "/api/v1/namespaces/team/secrets/tls";
const TARGET: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/lockkeeper";

/// A replica with its readiness.
struct Replica {
    rotator: CertRotator,
    health: Arc<Health>,
    api: Api,
}

impl Replica {
    fn new(api: &Api) -> Self {
        let configured = CertificateSettings {
            secret: Some("team/tls".parse().unwrap()),
            inject: vec![
                "validatingwebhookconfigurations/lockkeeper"
                    .parse()
                    .unwrap(),
            ],
            ..CertificateSettings::default()
        };
        let names = ["localhost".to_owned()];
        let settings = CertRotationSettings::new(&configured, &names);
        let settings = settings.unwrap().unwrap();
        let serving = settings.serving_with_ephemeral_certificate(&TlsOptions::default(), None);
        let health = Arc::new(Health::default());
        let client = api.client();
        let rotator = CertRotator::new(settings, &client, &serving.unwrap(), Arc::clone(&health));
        Self {
            rotator,
            health,
            api: api.clone(),
        }
    }

    /// Delivers the current objects, as the watches do.
    fn watch(&mut self) {
        let secret = serde_json::from_value(self.api.get(SECRET)).unwrap();
        self.rotator.handle_event(RotationEvent::Secret(Ok(secret)));
        let target = serde_json::from_value(self.api.get(TARGET)).unwrap();
        self.rotator
            .handle_event(RotationEvent::Target(0, Ok(target)));
    }

    /// Runs a round; returns its pause and the problems of readiness.
    async fn round(&mut self) -> (Duration, String) {
        let pause = self.rotator.run_round().await;
        (pause, self.health.problems().join("; "))
    }

    #[track_caller]
    fn assert_writes(&self, expected: &[&str]) {
        assert_eq!(self.api.take_writes(), expected);
    }
}

/// An API server with a webhook configuration without a bundle.
fn api() -> Api {
    let api = Api::default();
    let client = json!({"url": "https://a"});
    let hook = json!({"name": "a", "clientConfig": client});
    api.put(
        TARGET,
        json!({"metadata": {"name": "lockkeeper"}, "webhooks": [hook]}),
    );
    api
}

/// A replica that has created the Secret and injected its bundle.
async fn settled(api: &Api) -> Replica {
    let mut replica = Replica::new(api);
    replica.watch();
    assert_eq!(replica.round().await, (HOUR, String::new()));
    replica.assert_writes(&[&format!("POST {SECRET}"), &format!("PATCH {TARGET}")]);
    replica
}

/// Changes the Secret as another client.
fn edit(api: &Api, change: impl FnOnce(&mut Value)) {
    let mut secret = api.get(SECRET);
    change(&mut secret);
    api.put(SECRET, secret);
}

#[tokio::test]
async fn first_round_creates_secret_and_injects_bundle() {
    let api = api();
    let mut replica = settled(&api).await;
    let secret = api.get(SECRET);
    assert_eq!(secret["type"], "kubernetes.io/tls");
    let data = serde_json::from_value(secret["data"].clone()).unwrap();
    assert_eq!(
        parse_secret_data(&data),
        Ok(Some(vec!["localhost".to_owned()]))
    );
    let hook = &api.get(TARGET)["webhooks"][0];
    assert_eq!(hook["clientConfig"]["url"], "https://a");
    assert_eq!(hook["clientConfig"]["caBundle"], secret["data"]["ca.crt"]);
    let bundle = replica.rotator.bundle().borrow().clone().unwrap();
    assert_eq!(bundle.len(), 1);
    replica.watch();
    assert_eq!(replica.round().await, (HOUR, String::new()));
    replica.assert_writes(&[]);
}

#[tokio::test]
async fn replica_is_unready_until_it_has_read_objects() {
    let api = api();
    let mut replica = Replica::new(&api);
    replica.rotator.report_health(None);
    let unread = "certificates: Secret team/tls has not been read yet";
    assert_eq!(replica.health.problems(), [unread]);
    let (pause, problems) = replica.round().await;
    assert_eq!(pause, Duration::from_secs(1));
    assert!(
        problems.ends_with("cannot read Secret team/tls: it has not been read yet"),
        "{problems}"
    );
    replica
        .rotator
        .handle_event(RotationEvent::Secret(Ok(None)));
    let (_, problems) = replica.round().await;
    assert!(
        problems.ends_with("lockkeeper has not been read yet"),
        "{problems}"
    );
    replica.assert_writes(&[&format!("POST {SECRET}")]);
}

#[tokio::test]
async fn second_replica_loads_secret_of_first() {
    let api = api();
    let mut late = Replica::new(&api);
    late.watch();
    let first = settled(&api).await;
    // Its own creation gets 409.
    late.round().await;
    late.assert_writes(&[]);
    let bundle = |it: &Replica| it.rotator.bundle().borrow().clone();
    assert_eq!(bundle(&late), bundle(&first));
    assert_eq!(late.health.problems(), [""; 0]);
}

#[tokio::test]
async fn older_event_does_not_replace_own_write() {
    let api = api();
    let mut replica = settled(&api).await;
    let mut older: Secret = serde_json::from_value(api.get(SECRET)).unwrap();
    older.metadata.resource_version = Some("0".to_owned());
    older.data = None;
    replica
        .rotator
        .handle_event(RotationEvent::Secret(Ok(Some(older))));
    replica.round().await;
    replica.assert_writes(&[]);
}

#[tokio::test]
async fn served_certificates_are_restored() {
    let api = api();
    let mut replica = settled(&api).await;
    let before = api.get(SECRET)["data"].clone();
    for broken in [json!({}), json!({"tls.crt": "Z2FyYmFnZQ=="})] {
        edit(&api, |secret| secret["data"] = broken);
        replica.watch();
        assert_eq!(replica.round().await, (HOUR, String::new()));
        replica.assert_writes(&[&format!("PATCH {SECRET}")]);
        assert_eq!(api.get(SECRET)["data"], before);
    }
}

#[tokio::test]
async fn certificates_of_another_client_are_loaded_and_counted() {
    let api = api();
    let mut replica = settled(&api).await;
    assert_eq!(replica.rotator.status.reloads(), 0);
    let other = new_contents();
    edit(&api, |secret| {
        secret["data"] = serde_json::to_value(other.data()).unwrap();
    });
    replica.watch();
    assert_eq!(replica.rotator.status.reloads(), 1);
    let bundle = replica.rotator.bundle().borrow().clone().unwrap();
    assert_eq!(bundle[..], [other.cas()[0].certificate.clone()]);
    // The same contents are not loaded again.
    replica.watch();
    assert_eq!(replica.rotator.status.reloads(), 1);
}

#[tokio::test]
async fn invalid_secret_is_not_replaced_at_start() {
    let api = api();
    let broken = json!({"tls.crt": "Z2FyYmFnZQ=="});
    api.put(SECRET, json!({"metadata": {"name": "tls"}, "data": broken}));
    let mut replica = Replica::new(&api);
    replica.watch();
    let (pause, problems) = replica.round().await;
    assert_eq!(pause, Duration::from_secs(1));
    assert!(
        problems.contains("cannot use Secret team/tls: ca.crt is missing"),
        "{problems}"
    );
    replica.assert_writes(&[]);
}

#[tokio::test]
async fn requested_renewal_announces_ca_and_removes_annotation() {
    let api = api();
    let mut replica = settled(&api).await;
    let leaf = api.get(SECRET)["data"]["tls.crt"].clone();
    edit(&api, |secret| {
        secret["metadata"]["annotations"] = json!({RENEW_ANNOTATION: "ca"});
    });
    replica.watch();
    let (pause, problems) = replica.round().await;
    replica.assert_writes(&[&format!("PATCH {SECRET}"), &format!("PATCH {TARGET}")]);
    assert_eq!(problems, "");
    // The next step is due when the CA has been injected for the overlap.
    assert!(pause <= replica.rotator.settings.overlap && pause > HOUR / 12);
    let secret = api.get(SECRET);
    assert_eq!(secret["metadata"]["annotations"], json!({}));
    assert_eq!(secret["data"]["tls.crt"], leaf);
    let bundle = BASE64_STANDARD.decode(secret["data"]["ca.crt"].as_str().unwrap());
    let bundle = String::from_utf8(bundle.unwrap()).unwrap();
    assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 2);
}

#[tokio::test]
async fn failed_rounds_are_retried_after_longer_pauses() {
    let api = api();
    api.forbid(Some("/api/v1/namespaces"));
    let mut replica = Replica::new(&api);
    replica.watch();
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        let (pause, problems) = replica.round().await;
        assert_eq!(pause, Duration::from_secs(seconds));
        assert!(problems.contains("does not exist: not permitted; apply"));
    }
    api.forbid(None);
    assert_eq!(replica.round().await, (HOUR, String::new()));
    api.forbid(Some("/api/v1/namespaces"));
    edit(&api, |secret| secret["data"] = json!({}));
    replica.watch();
    // A replica with a certificate stays ready.
    assert_eq!(
        replica.round().await,
        (Duration::from_secs(1), String::new())
    );
}

#[tokio::test]
async fn target_without_bundle_makes_replica_unready() {
    let api = api();
    api.forbid(Some("/apis"));
    let mut replica = Replica::new(&api);
    replica.watch();
    let (pause, problems) = replica.round().await;
    assert_eq!(pause, Duration::from_secs(1));
    assert!(
        problems.contains("not permitted; does the account have patch"),
        "{problems}"
    );
    api.forbid(None);
    assert_eq!(replica.round().await, (HOUR, String::new()));
}

#[tokio::test]
async fn changed_target_is_read_again_and_injected() {
    let api = api();
    let mut replica = Replica::new(&api);
    replica.watch();
    let mut target = api.get(TARGET);
    target["webhooks"][0]["name"] = "b".into();
    api.put(TARGET, target);
    assert_eq!(replica.round().await, (HOUR, String::new()));
    let hook = &api.get(TARGET)["webhooks"][0];
    assert_eq!(hook["name"], "b");
    assert!(hook["clientConfig"]["caBundle"].is_string());
}

#[tokio::test]
async fn target_of_cert_manager_is_left_unchanged() {
    let api = api();
    let mut target = api.get(TARGET);
    target["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "a/b"});
    api.put(TARGET, target);
    let mut replica = Replica::new(&api);
    replica.watch();
    assert_eq!(replica.round().await, (HOUR, String::new()));
    replica.assert_writes(&[&format!("POST {SECRET}")]);
}

#[tokio::test(start_paused = true)]
async fn rotator_runs_from_first_event() {
    let api = api();
    let replica = Replica::new(&api);
    let mut bundle = replica.rotator.bundle();
    let task = tokio::spawn(replica.rotator.run());
    let limit = Duration::from_secs(30);
    let changed = tokio::time::timeout(limit, bundle.wait_for(Option::is_some)).await;
    assert!(changed.unwrap().is_ok());
    task.abort();
}
