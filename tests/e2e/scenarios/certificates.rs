//! Certificates in a Secret: generated once, injected, rotated while objects are written, and repaired.
//! The servers have the rights of `examples/install/server.yaml` and no others.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use serde_json::Value;

mod conversion;
mod invalid;
pub mod server;

use conversion::conversion;
use invalid::invalid_certificates;
use server::CertificateServer;

use super::Scenario;
use crate::fixture::{self, Fixture, MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION};
use crate::https::Endpoint;
use crate::kubectl::Kubectl;
use crate::lockkeeper::{self, Protocol};
use crate::wait;

const NAMESPACE: &str = "lockkeeper-system";
const SECRET: &str = "lockkeeper-system/lockkeeper-tls";

const CONFIGURATIONS: [&str; 2] = [
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
];

pub fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new("servers that start together agree on one CA", one_ca),
        Scenario::new(
            "a webhook configuration without a CA bundle gets it",
            inject_ca_bundle,
        ),
        Scenario::new(
            "the conversion webhook of a CRD gets the CA bundle",
            conversion,
        ),
        Scenario::new("a CA is rotated while objects are written", rotate_ca),
        Scenario::new("an invalid Secret is repaired by the server", repair_secret),
        Scenario::new(
            "a server with invalid stored certificates reports it",
            start_with_invalid_secret,
        ),
        Scenario::new(
            "the installation grants only the required permissions",
            least_privilege,
        ),
        Scenario::new(
            "an invalid certificate request is rejected",
            invalid_certificates,
        ),
    ]
}

/// A cluster without registered webhooks, with an empty Secret.
#[track_caller]
fn start_cluster(stage: &mut Fixture) -> Kubectl {
    let kubectl = stage.without_webhook();
    patch_secret(&kubectl, r#"{"data":null}"#);
    kubectl
}

#[track_caller]
fn patch_secret(kubectl: &Kubectl, patch: &str) {
    let words = [
        "patch",
        "secret",
        "lockkeeper-tls",
        "-n",
        NAMESPACE,
        "--type=merge",
        "-p",
        patch,
    ];
    kubectl.run(&words).expect_accepted();
}

/// The data of the Secret.
#[track_caller]
fn data(kubectl: &Kubectl) -> Value {
    kubectl.get(&["secret", "lockkeeper-tls", "-n", NAMESPACE])["data"].clone()
}

/// Writes one key of the Secret to a file, and returns the number of certificates in it.
#[track_caller]
fn part(kubectl: &Kubectl, name: &str, folder: &Path) -> (PathBuf, usize) {
    let template = format!("go-template={{{{index .data {name:?} | base64decode}}}}");
    let words = [
        "get",
        "secret",
        "lockkeeper-tls",
        "-n",
        NAMESPACE,
        "-o",
        &template,
    ];
    let pem = kubectl.run(&words).expect_accepted().stdout;
    let path = folder.join(name);
    fs::write(&path, &pem).unwrap();
    (path, pem.matches("BEGIN CERTIFICATE").count())
}

/// Registers the first server to validate and the second to mutate, with no CA bundle.
#[track_caller]
fn register(kubectl: &Kubectl, validating: &CertificateServer, mutating: &CertificateServer) {
    for (server, kind) in [(validating, "Validating"), (mutating, "Mutating")] {
        let both = lockkeeper::output(&["crds", "webhooks", "--url", &server.url()]);
        assert!(!both.contains("caBundle"));
        let one = both.split("---\n").find(|one| one.contains(kind)).unwrap();
        kubectl.apply(one, &[]).expect_accepted_without_warning();
    }
}

/// Waits until the API server calls both and trusts them.
#[track_caller]
fn wait_until_webhook_called(kubectl: &Kubectl) {
    let mut last = String::new();
    let result = wait::until(
        || {
            let validated = kubectl.apply(VALIDATING_CONFIGURATION, &["--dry-run=server"]);
            let mutated =
                kubectl.apply(MUTATING_CONFIGURATION, &["--dry-run=server", "-o", "json"]);
            last = format!("{}{}", validated.stderr, mutated.stderr);
            let both = validated.stderr.contains("WL001")
                && mutated.stdout.contains("lockkeeper.dev/resource-in-use");
            Ok(both.then_some(()))
        },
        || "the API server does not get through to the webhook".to_owned(),
    );
    result.unwrap_or_else(|e| panic!("{e}; last:\n{last}"));
}

#[track_caller]
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait::until(|| Ok(condition().then_some(())), || what.to_owned()).unwrap();
}

fn one_ca(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = start_cluster(stage);
    let begun = [
        CertificateServer::start_unready(stage, protocol),
        CertificateServer::start_unready(stage, protocol),
    ];
    let mut servers = begun.map(CertificateServer::wait);
    let folder = stage.new_folder();
    fs::create_dir_all(&folder).unwrap();
    for server in &mut servers {
        server.wait_ready();
    }
    let (ca, count) = part(&kubectl, "ca.crt", &folder);
    assert_eq!(count, 1);
    for server in &servers {
        let endpoint = Endpoint {
            port: server.port,
            ca: &ca,
            token: None,
        };
        assert_eq!(endpoint.get("/readyz"), Some((200, "ok\n".to_owned())));
    }
    // One server has created the certificates, and the other uses them.
    let written = servers
        .iter()
        .map(|server| server.log().matches("\"step\":\"Create\"").count());
    assert_eq!(written.sum::<usize>(), 1);
    // Applying the installation again, and another server, change nothing.
    let before = data(&kubectl);
    fixture::install(&kubectl);
    let mut third = CertificateServer::start(stage, protocol);
    third.wait_ready();
    assert_eq!(data(&kubectl), before);
    for server in servers.into_iter().chain([third]) {
        assert!(!server.log().contains("PRIVATE KEY"));
        server.stop();
    }
}

fn inject_ca_bundle(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = start_cluster(stage);
    let mut server = CertificateServer::start(stage, protocol);
    // A missing registration does not make the server unready.
    server.wait_ready();
    register(&kubectl, &server, &server);
    // The wait command of the README.
    let bundle = "--for=jsonpath={.webhooks[0].clientConfig.caBundle}";
    let object = "validatingwebhookconfiguration/lockkeeper";
    kubectl
        .run(&["wait", object, bundle, "--timeout=60s"])
        .expect_accepted_without_warning();
    wait_until_webhook_called(&kubectl);
    // The configuration is recreated without a bundle, and with another one.
    for kind in CONFIGURATIONS {
        kubectl
            .run(&["delete", kind, "lockkeeper"])
            .expect_accepted();
    }
    register(&kubectl, &server, &server);
    wait_until_webhook_called(&kubectl);
    let other =
        r#"[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"Z2FyYmFnZQ=="}]"#;
    let bundle = data(&kubectl)["ca.crt"].clone();
    for kind in CONFIGURATIONS {
        // The API server rejects an invalid bundle itself; the test uses a valid bundle of another CA.
        let patch = ["patch", kind, "lockkeeper", "--type=json", "-p", other];
        kubectl.run(&patch);
        let remove = other.replace("replace", "remove");
        let patch = ["patch", kind, "lockkeeper", "--type=json", "-p", &remove];
        kubectl.run(&patch).expect_accepted();
        wait_until("every entry has the bundle again", || {
            let object = kubectl.get(&[kind, "lockkeeper"]);
            let webhooks = object["webhooks"].as_array().unwrap();
            webhooks
                .iter()
                .all(|webhook| webhook["clientConfig"]["caBundle"] == bundle)
        });
    }
    server.wait_ready();
    cert_manager_annotation_disables_injection(&kubectl);
    server.stop();
}

/// An object with cert-manager's annotation is not touched.
#[track_caller]
fn cert_manager_annotation_disables_injection(kubectl: &Kubectl) {
    let [kind, _] = CONFIGURATIONS;
    let annotation = "cert-manager.io/inject-ca-from=lockkeeper-system/lockkeeper";
    kubectl
        .run(&["annotate", kind, "lockkeeper", annotation])
        .expect_accepted();
    let remove = r#"[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]"#;
    let patch = ["patch", kind, "lockkeeper", "--type=json", "-p", remove];
    kubectl.run(&patch).expect_accepted();
    // The other configuration is repaired, so the change of this one has been observed, too.
    let [_, other] = CONFIGURATIONS;
    let patch = ["patch", other, "lockkeeper", "--type=json", "-p", remove];
    kubectl.run(&patch).expect_accepted();
    wait_until("the other certificate is repaired", || {
        let object = kubectl.get(&[other, "lockkeeper"]);
        object["webhooks"][0]["clientConfig"]["caBundle"].is_string()
    });
    let object = kubectl.get(&[kind, "lockkeeper"]);
    assert!(object["webhooks"][0]["clientConfig"]["caBundle"].is_null());
}

fn rotate_ca(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = start_cluster(stage);
    let mut servers = [
        CertificateServer::start(stage, protocol),
        CertificateServer::start(stage, protocol),
    ];
    for server in &mut servers {
        server.wait_ready();
    }
    register(&kubectl, &servers[0], &servers[1]);
    wait_until_webhook_called(&kubectl);
    let folder = stage.new_folder();
    fs::create_dir_all(&folder).unwrap();
    let (first, _) = part(&kubectl, "ca.crt", &folder);
    let first = fs::read_to_string(first).unwrap();

    let (is_done, writes) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                write(&kubectl);
                writes.fetch_add(1, Ordering::Relaxed);
            }
        });
        let renew = [
            "annotate",
            "secret",
            "lockkeeper-tls",
            "-n",
            NAMESPACE,
            "lockkeeper.dev/renew=ca",
        ];
        kubectl.run(&renew).expect_accepted();
        let mut both = false;
        let rotated = wait::until(
            || {
                if writing.is_finished() {
                    return Err("a write failed".to_owned());
                }
                let (path, count) = part(&kubectl, "ca.crt", &folder);
                both |= count == 2;
                let now = fs::read_to_string(path).unwrap();
                Ok((count == 1 && now != first).then_some(()))
            },
            || "the CA is never rotated".to_owned(),
        );
        is_done.store(true, Ordering::Relaxed);
        // The message of a failed write has the cause.
        if let Err(panic) = writing.join() {
            std::panic::resume_unwind(panic);
        }
        rotated.unwrap();
        assert!(both, "the bundle has both CAs");
    });
    assert!(writes.load(Ordering::Relaxed) > 2);
    for server in &mut servers {
        server.wait_ready();
    }
    let secret = kubectl.get(&["secret", "lockkeeper-tls", "-n", NAMESPACE]);
    assert!(secret["metadata"]["annotations"]["lockkeeper.dev/renew"].is_null());
    wait_until_webhook_called(&kubectl);
    let logs = servers.each_ref().map(CertificateServer::log).concat();
    for step in ["AnnounceCa", "IssueServing", "RetireOldCas"] {
        assert_eq!(
            logs.matches(&format!("\"step\":\"{step}\"")).count(),
            1,
            "{step}\n{logs}"
        );
    }
    servers.into_iter().for_each(CertificateServer::stop);
}

/// Writes one object that must be rejected and one that must be defaulted, and checks the reasons.
#[track_caller]
fn write(kubectl: &Kubectl) {
    let output = kubectl.apply(VALIDATING_CONFIGURATION, &[]);
    assert!(output.stderr.contains("WL001"), "{}", output.stderr);
    let filled = kubectl.apply(MUTATING_CONFIGURATION, &["--dry-run=server", "-o", "json"]);
    let is_filled = filled.stdout.contains("lockkeeper.dev/resource-in-use");
    assert!(is_filled, "{}", filled.stderr);
}

fn repair_secret(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = start_cluster(stage);
    let mut server = CertificateServer::start(stage, protocol);
    server.wait_ready();
    let good = data(&kubectl);
    for patch in [
        r#"{"data":{"tls.key":"Z2FyYmFnZQ=="}}"#,
        r#"{"data":{"ca.crt":null}}"#,
        r#"{"data":null}"#,
    ] {
        patch_secret(&kubectl, patch);
        wait_until("the served certificate is written back", || {
            data(&kubectl) == good
        });
        assert_eq!(server.readyz(), "ok\n");
    }
    let rejected = server.metric("certificate_reloads_total{result=\"rejected\"}");
    assert!(rejected >= 3, "{rejected}");
    assert!(
        server.log().contains("tls.key is not PEM"),
        "{}",
        server.log()
    );

    // The server has no right to create the Secret: it continues to serve, reports the remedy, and fills the new
    // Secret.
    kubectl
        .run(&["delete", "secret", "lockkeeper-tls", "-n", NAMESPACE])
        .expect_accepted();
    wait_until("it says what to do", || {
        server.log().contains("apply the installation again")
    });
    assert_eq!(server.readyz(), "ok\n");
    fixture::install(&kubectl);
    wait_until("the served certificate is written back", || {
        data(&kubectl) == good
    });

    // A valid pair of another CA is accepted.
    server.wait_ready();
    let other = stage.new_folder();
    let path = other.to_str().unwrap();
    let names = ["--name", "127.0.0.1", "--name", "localhost"];
    lockkeeper::output(&[&["certificate", "--output-dir", path][..], &names].concat());
    let file = |name: &str| fs::read_to_string(other.join(name)).unwrap();
    let parts = ["ca.crt", "ca.key", "tls.crt", "tls.key"].map(|name| (name, file(name)));
    let strings: serde_json::Map<String, Value> = parts
        .map(|(name, text)| (name.to_owned(), text.into()))
        .into_iter()
        .collect();
    patch_secret(
        &kubectl,
        &serde_json::json!({"stringData": strings}).to_string(),
    );
    let endpoint = Endpoint {
        port: server.port,
        ca: &other.join("ca.crt"),
        token: None,
    };
    wait_until("another pair is taken over", || {
        endpoint.get("/readyz").is_some()
    });
    server.wait_ready();
    server.stop();
}

fn start_with_invalid_secret(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = start_cluster(stage);
    patch_secret(&kubectl, r#"{"data":{"ca.crt":"Z2FyYmFnZQ=="}}"#);
    let before = data(&kubectl);
    let mut server = CertificateServer::start(stage, protocol);
    let line = server.wait_for_log("ca.key is missing; correct it");
    assert!(
        line.contains(
            "not ready: certificates: cannot use Secret lockkeeper-system/lockkeeper-tls"
        ),
        "{line}"
    );
    assert_eq!(data(&kubectl), before);
    // The message has a remedy, and the remedy works.
    let (_, remedy) = line.split_once("a new CA is made: kubectl ").unwrap();
    let (words, rest) = remedy.split_once(" -p '").unwrap();
    let (patch, _) = rest.split_once('\'').unwrap();
    let mut words: Vec<&str> = words.split(' ').collect();
    words.extend(["-p", patch]);
    kubectl.run(&words).expect_accepted();
    server.wait_ready();
    assert_eq!(data(&kubectl).as_object().unwrap().len(), 4);
    server.stop();
}

fn least_privilege(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = start_cluster(stage);
    let may = |verb: &str, what: &str| {
        let account = "--as=system:serviceaccount:lockkeeper-system:lockkeeper";
        let reply = kubectl.run(&["auth", "can-i", verb, what, "-n", NAMESPACE, account]);
        reply.stdout.trim() == "yes"
    };
    for verb in ["get", "list", "watch", "patch"] {
        assert!(may(verb, "secrets/lockkeeper-tls"), "{verb}");
        assert!(
            !may(verb, "secrets/other") && !may(verb, "secrets"),
            "{verb}"
        );
        for kind in CONFIGURATIONS {
            assert!(may(verb, &format!("{kind}/lockkeeper")), "{verb} {kind}");
            assert!(!may(verb, &format!("{kind}/other")), "{verb} {kind}");
        }
    }
    for verb in ["create", "delete", "update"] {
        assert!(!may(verb, "secrets/lockkeeper-tls"), "{verb}");
        for kind in CONFIGURATIONS {
            assert!(!may(verb, &format!("{kind}/lockkeeper")), "{verb} {kind}");
        }
    }

    // Without a required right the server is not ready, and its message names the right.
    let mut server = CertificateServer::start(stage, protocol);
    server.wait_ready();
    let role = kubectl.get(&["clusterrole", "lockkeeper"]);
    let rules = role["rules"].as_array().unwrap();
    let place = rules
        .iter()
        .position(|rule| rule["apiGroups"][0] == "admissionregistration.k8s.io");
    let patch = format!(
        r#"[{{"op":"replace","path":"/rules/{}/verbs","value":["get","list","watch"]}}]"#,
        place.unwrap()
    );
    kubectl
        .run(&[
            "patch",
            "clusterrole",
            "lockkeeper",
            "--type=json",
            "-p",
            &patch,
        ])
        .expect_accepted();
    wait_until("the right is gone", || {
        !may("patch", "mutatingwebhookconfigurations/lockkeeper")
    });
    register(&kubectl, &server, &server);
    let line = server.wait_for_log("does the account have patch on mutatingwebhookconfigurations?");
    assert!(
        line.contains("cannot change validatingwebhookconfigurations/lockkeeper"),
        "{line}"
    );
    fixture::install(&kubectl);
    server.wait_ready();
    wait_until_webhook_called(&kubectl);
    server.stop();
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
