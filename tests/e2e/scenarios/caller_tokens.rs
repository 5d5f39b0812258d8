//! An API server authenticates with a token of KEP-6060.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use super::Scenario;
use crate::balancer::Balancer;
use crate::cluster::{ADMISSION_CONFIG, SERVER_ACCOUNT};
use crate::fixture::{Fixture, VALIDATING_CONFIGURATION};
use crate::kubectl::Kubectl;
use crate::lockkeeper::{Lockkeeper, Protocol};
use crate::wait;
use k8s_openapi::ByteString;
use lockkeeper_testkit::{SecretVolume, TestCa};
use serde_json::{Value, json};

/// The account that an API server requests its token for.
const ACCOUNT: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: webhook-tokens, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: webhook-tokens}
rules:
- apiGroups: [authentication.k8s.io]
  resources: [admissionReviewAPIGroups]
  resourceNames: ['*']
  verbs: [attest]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: webhook-tokens}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: webhook-tokens}
subjects:
- {kind: ServiceAccount, name: webhook-tokens, namespace: kube-system}
";

/// The configuration that the token is bound to.
const WEBHOOK: &str = "lockkeeper-tokens";

/// The binding by which the webhook may read the keys.
const KEY_READERS: &str = "lockkeeper-token-keys";

pub fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "an API server authenticates with a token of KEP-6060",
            api_server_authenticates,
        )
        .since(37),
    ]
}

/// Removes the objects of this trial, also if it fails: the webhook is gone then, and every Workload would be rejected.
struct Registered<'a>(&'a Kubectl);

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        for object in [
            ["validatingwebhookconfiguration", WEBHOOK],
            ["clusterrolebinding", KEY_READERS],
        ] {
            let delete = ["delete", object[0], object[1], "--ignore-not-found"];
            let answer = self.0.run(&delete);
            if !std::thread::panicking() {
                answer.expect_accepted();
            }
        }
    }
}

fn api_server_authenticates(stage: &mut Fixture, protocol: Protocol) {
    // The configuration of an earlier trial would send the Workloads to a server that is gone.
    let kubectl = stage.without_webhook();
    let volume = {
        let authority = TestCa::new("token CA");
        SecretVolume::mount(
            stage.new_folder().join("tls"),
            &authority,
            &authority.server(),
        )
    };
    let balancer = Balancer::start(&volume.ca()).unwrap();
    let address = balancer.url();
    let token_file = stage.cluster().folder().join("webhook-token");
    present_token(stage, &address, &token_file);

    kubectl.apply(ACCOUNT, &[]).expect_accepted();
    let folder = stage.new_folder();
    let config = format!("webhook: {{tokenAudience: '{address}'}}\n");
    let credentials = stage.cluster().server().to_owned();
    let started = Lockkeeper::replica(&credentials, &folder, protocol, &config, &volume);
    let mut server = started.unwrap_or_else(|e| panic!("{e}"));
    balancer.add(server.port());
    grant_keys(&kubectl, &mut server);
    balancer.wait_ready(&[server.port()]);

    let url = format!("{address}/validate");
    let _registered = Registered(&kubectl);
    register(&kubectl, &url, &volume.ca());
    let bound = json!({"kind": "ValidatingWebhookConfiguration", "apiVersion": "admissionregistration.k8s.io/v1",
        "name": WEBHOOK});
    let groups = json!({"admissionReviewAPIGroups": ["*"]});
    let spec = json!({"audiences": [url], "boundObjectRef": bound, "attestations": groups});
    let token = request_token(
        &kubectl,
        "kube-system/serviceaccounts/webhook-tokens",
        &spec,
    );
    fs::write(&token_file, &token).unwrap();
    let mut last = String::new();
    let reviewed = wait::until(
        || {
            let answer = kubectl.apply(VALIDATING_CONFIGURATION, &["--dry-run=server"]);
            last = answer.stderr;
            Ok(last.contains("WL001").then_some(()))
        },
        || "the API server's token was not accepted in time".to_owned(),
    );
    reviewed.unwrap_or_else(|e| panic!("{e}; last:\n{last}\n{}", server.log()));
    assert_eq!(server.metric("rejected_tokens_total"), 0);

    reject_other_callers(&kubectl, &server, &url);
    let accepted = send_review(&server, Some(&token));
    assert!(accepted.starts_with("HTTP/1.1 200"), "{accepted}");
    server.stop().unwrap();

    // With another issuer, the same token is worth nothing.
    let config =
        format!("webhook: {{tokenAudience: '{address}', tokenIssuer: 'https://other.invalid'}}\n");
    let folder = stage.new_folder();
    let started = Lockkeeper::replica(&credentials, &folder, protocol, &config, &volume);
    let mut server = started.unwrap_or_else(|e| panic!("{e}"));
    let ready = server.wait_for(|endpoint| (endpoint.get("/readyz")?.0 == 200).then_some(()));
    ready.unwrap();
    let rejected = send_review(&server, Some(&token));
    assert!(rejected.starts_with("HTTP/1.1 401"), "{rejected}");
    assert!(rejected.contains("https://other.invalid"), "{rejected}");
    server.stop().unwrap();
}

/// A tenant may request a token for any audience.
#[track_caller]
fn reject_other_callers(kubectl: &Kubectl, server: &Lockkeeper, url: &str) {
    let account = ["serviceaccount", "tenant", "--namespace=default"];
    kubectl
        .run(&[&["create"], &account[..]].concat())
        .expect_accepted();
    let spec = json!({"audiences": [url]});
    let own = request_token(kubectl, "default/serviceaccounts/tenant", &spec);
    let forbidden = send_review(server, Some(&own));
    assert!(forbidden.starts_with("HTTP/1.1 403"), "{forbidden}");
    assert!(
        forbidden.contains("not bound to a Validating"),
        "{forbidden}"
    );
    let anonymous = send_review(server, None);
    assert!(anonymous.starts_with("HTTP/1.1 401"), "{anonymous}");
    assert_eq!(server.metric("rejected_tokens_total"), 2);
    kubectl
        .run(&[&["delete"], &account[..]].concat())
        .expect_accepted();
}

/// Starts the API server with a file whose token it presents to the webhook at an address.
#[track_caller]
fn present_token(stage: &mut Fixture, address: &str, token_file: &Path) {
    let folder = stage.cluster().folder().to_owned();
    let users = folder.join("webhook-users.yaml");
    let host = address.trim_start_matches("https://");
    let user = json!({"apiVersion": "v1", "kind": "Config",
        "users": [{"name": host, "user": {"tokenFile": token_file}}]});
    fs::write(&users, user.to_string()).unwrap();
    let plugin = |name: &str| {
        let version = "apiserver.config.k8s.io/v1";
        json!({"name": name, "configuration": {"apiVersion": version, "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": users}})
    };
    let config = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": [plugin("ValidatingAdmissionWebhook"), plugin("MutatingAdmissionWebhook")]});
    let file = folder.join(ADMISSION_CONFIG);
    fs::write(&file, config.to_string()).unwrap();
    let cluster = stage.cluster_mut();
    cluster.stop_api_server().unwrap();
    let started = cluster.start_api_server();
    // The next start of the API server is without it.
    fs::remove_file(&file).unwrap();
    started.unwrap();
}

/// Lets the webhook read the keys of tokens, which it asks for as long as it may not.
#[track_caller]
fn grant_keys(kubectl: &Kubectl, server: &mut Lockkeeper) {
    let role = "system:service-account-issuer-discovery";
    let unready = server.wait_for(|endpoint| {
        let (code, text) = endpoint.get("/readyz")?;
        (code == 503 && text.contains(role)).then_some(())
    });
    unready.unwrap();
    let role = format!("--clusterrole={role}");
    let user = format!("--user={SERVER_ACCOUNT}");
    kubectl
        .run(&["create", "clusterrolebinding", KEY_READERS, &role, &user])
        .expect_accepted();
}

#[track_caller]
fn register(kubectl: &Kubectl, url: &str, ca: &Path) {
    let ca = fs::read(ca).unwrap();
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": WEBHOOK},
        "webhooks": [{
            "name": "tokens.lockkeeper.dev", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail",
            "clientConfig": {"url": url, "caBundle": ByteString(ca)},
            "rules": [{"apiGroups": ["lockkeeper.dev"], "apiVersions": ["*"], "operations": ["CREATE"],
                "resources": ["workloads"]}],
        }],
    });
    kubectl
        .apply(&configuration.to_string(), &[])
        .expect_accepted();
}

/// A token for an account (`NAMESPACE/serviceaccounts/NAME`).
#[track_caller]
fn request_token(kubectl: &Kubectl, account: &str, spec: &Value) -> String {
    let path = format!("/api/v1/namespaces/{account}/token");
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    let words = ["create", "--raw", &path, "-f", "-"];
    let answer = kubectl.with_input(&words, &request.to_string());
    let answer: Value = serde_json::from_str(&answer.expect_accepted().stdout).unwrap();
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// Sends a review to the server itself; the whole response.
#[track_caller]
fn send_review(server: &Lockkeeper, token: Option<&str>) -> String {
    let group = "lockkeeper.dev";
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "DELETE", "name": "w", "namespace": "default",
        "kind": {"group": group, "version": "v1alpha1", "kind": "Workload"},
        "resource": {"group": group, "version": "v1alpha1", "resource": "workloads"}}});
    let review = review.to_string();
    let authorization = token.map(|it| format!("Authorization: Bearer {it}\r\n"));
    let mut stream = server.endpoint().open().unwrap();
    write!(
        stream,
        "POST /validate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\
         Connection: close\r\n\r\n{review}",
        authorization.unwrap_or_default(),
        review.len()
    )
    .unwrap();
    let mut answer = Vec::new();
    // A server may close the connection without closing TLS first.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}
