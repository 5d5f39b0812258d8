//! The life of a release: installed over an older one, upgraded, rolled back and uninstalled.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::agreement::deployment;
use crate::ROOT;
use crate::cluster::Cluster;
use crate::fixture::{self, MUTATING_CONFIGURATION};
use crate::helm::{self, CHART, Helm, NAMESPACE, RELEASE};
use crate::kubectl::Kubectl;
use crate::lockkeeper;
use crate::programs::has_mutating_policies;
use crate::scenarios::certificates::server::CertificateServer;
use crate::wait;

const CONFIGURATIONS: [&str; 2] = [
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
];

/// A cluster, and helm for it.
struct ReleaseFixture {
    cluster: Cluster,
    kubectl: Kubectl,
    helm: Helm,
}

impl ReleaseFixture {
    #[track_caller]
    fn new() -> Self {
        let cluster = Cluster::start().unwrap_or_else(|e| panic!("no cluster: {e}"));
        let kubectl = cluster.kubectl().clone();
        kubectl
            .apply(fixture::NAMESPACE, &[])
            .expect_accepted_without_warning();
        let helm = Helm::on_cluster(&cluster.folder().join("helm"), kubectl.kubeconfig());
        Self {
            cluster,
            kubectl,
            helm,
        }
    }

    /// Runs helm on the release. The API server must not return a warning.
    #[track_caller]
    fn helm(&self, verb: &str, more: &[&str]) -> String {
        let flags = [&[verb, RELEASE, "--namespace", NAMESPACE], more].concat();
        self.helm.run(&flags).assert_silent().stdout
    }

    /// The entries of both webhook configurations.
    #[track_caller]
    fn entries(&self) -> Vec<Value> {
        let one = |kind: &&str| {
            let configuration = self.kubectl.get(&[*kind, "lockkeeper"]);
            configuration["webhooks"].as_array().unwrap().clone()
        };
        CONFIGURATIONS.iter().flat_map(one).collect()
    }

    /// The objects of the current release.
    #[track_caller]
    fn manifest(&self) -> Vec<Value> {
        let flags = ["get", "manifest", RELEASE, "--namespace", NAMESPACE];
        helm::objects(&self.helm.run(&flags).assert_silent().stdout)
    }
}

pub fn release_lifecycle() {
    let place = ReleaseFixture::new();
    let older = older_chart(&place.cluster.folder().join("older"));
    place.helm("install", &[older.to_str().unwrap()]);
    // The CRDs, the policies, and the objects that the processes need.
    let mutating = if has_mutating_policies() { 12 } else { 0 };
    assert_eq!(place.manifest().len(), 53 + mutating);
    restricted(&place);

    let server = start_release_webhook(&place);
    let before = state_written_by_processes(&place);
    let notes = place.helm("upgrade", &[CHART, "--set", "webhook.replicas=3"]);
    assert!(notes.contains("Until the webhook is ready"), "{notes}");
    upgraded(&place, &before);
    server.stop();
    // Later helm commands keep what the processes wrote; the server is stopped and cannot repair it.
    let before = state_written_by_processes(&place);
    place.helm("upgrade", &[CHART, "--set", "foreignKinds={koordinator}"]);
    assert_eq!(
        without_new_bundles(&before, &state_written_by_processes(&place)),
        before
    );
    let names: Vec<Value> = place
        .entries()
        .iter()
        .map(|it| it["name"].clone())
        .collect();
    let quota = "elasticquotas.scheduling.sigs.k8s.io.validate.lockkeeper.dev";
    assert!(names.contains(&json!(quota)), "{names:?}");
    place.helm("rollback", &[]);
    assert_eq!(state_written_by_processes(&place), before);

    assert_fail_closed_without_webhook(&place.kubectl);
    uninstall(&place);
    reinstall(&place);
    take_over_ownership(&place);
}

/// An earlier release of the chart: another version, a short name that has changed since, and
/// a webhook configuration under another name.
fn older_chart(folder: &Path) -> PathBuf {
    let chart = Path::new(ROOT).join(CHART);
    copy(&chart, folder);
    let change = |file: &str, from: &str, to: &str| {
        let path = folder.join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file}: {from}");
        fs::write(&path, text.replace(from, to)).unwrap();
    };
    change("Chart.yaml", "ersion: 0.1.0", "ersion: 0.0.1");
    change(
        "templates/generated/crd-workloads.yaml",
        "- lkwl\n",
        "- lkold\n",
    );
    change(
        "templates/generated/webhooks.yaml",
        "name: cohorts.validate.",
        "name: older.validate.",
    );
    folder.to_owned()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// The namespace enforces the level `restricted`: it accepts the pods of both Deployments, and rejects another one.
fn restricted(place: &ReleaseFixture) {
    let manifest = place.manifest();
    for name in ["lockkeeper", "lockkeeper-controller"] {
        let mut pod = deployment(&manifest, name)["spec"]["template"].clone();
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = json!("probe");
        pod["metadata"]["namespace"] = json!(NAMESPACE);
        let create = ["create", "--dry-run=server", "-f", "-"];
        let kubectl = &place.kubectl;
        kubectl
            .with_input(&create, &pod.to_string())
            .expect_accepted_without_warning();
        pod["spec"]["securityContext"]["runAsNonRoot"] = json!(false);
        let rejected = kubectl
            .with_input(&create, &pod.to_string())
            .expect_rejected();
        assert!(
            rejected.stderr.contains("restricted"),
            "{}",
            rejected.stderr
        );
    }
}

/// A replica of the webhook beside the cluster, with the rights of the release. It fills the Secret and
/// injects its CA bundle.
fn start_release_webhook(place: &ReleaseFixture) -> CertificateServer {
    let folder = place.cluster.folder().join("keeper");
    let begun = CertificateServer::start_unready_as(place.cluster.server(), folder, "", &[]);
    let mut server = CertificateServer::wait(begun);
    server.wait_ready();
    let lease = r#"{"spec":{"holderIdentity":"one","leaseDurationSeconds":15}}"#;
    let patch = [
        "patch",
        "lease",
        "lockkeeper-controller",
        "-n",
        NAMESPACE,
        "--type=merge",
        "-p",
    ];
    place
        .kubectl
        .run(&[&patch[..], &[lease]].concat())
        .expect_accepted();
    server
}

/// The data that processes have written into objects of the release.
#[track_caller]
fn state_written_by_processes(place: &ReleaseFixture) -> Value {
    let kubectl = &place.kubectl;
    let secret = kubectl.get(&["secret", "lockkeeper-tls", "-n", NAMESPACE]);
    let lease = kubectl.get(&["lease", "lockkeeper-controller", "-n", NAMESPACE]);
    let bundles = place.entries().into_iter().map(|entry| {
        let name = entry["name"].as_str().unwrap().to_owned();
        (name, entry["clientConfig"]["caBundle"].clone())
    });
    let bundles: serde_json::Map<String, Value> = bundles.collect();
    assert!(secret["data"]["ca.crt"].is_string(), "{secret:#}");
    json!({"secret": secret["data"], "lease": lease["spec"], "bundles": bundles})
}

/// The current data for the keys of the former data.
fn without_new_bundles(before: &Value, now: &Value) -> Value {
    let mut now = now.clone();
    let bundles = now["bundles"].as_object_mut().unwrap();
    bundles.retain(|name, _| !before["bundles"][name].is_null());
    now
}

/// The CRDs are new, data of processes is kept, and the new entry gets its bundle.
fn upgraded(place: &ReleaseFixture, before: &Value) {
    let kubectl = &place.kubectl;
    let definition = kubectl.get(&["crd", "workloads.lockkeeper.dev"]);
    assert_eq!(definition["spec"]["names"]["shortNames"], json!(["lkwl"]));
    let webhook = kubectl.get(&["deployment", "lockkeeper", "-n", NAMESPACE]);
    assert_eq!(webhook["spec"]["replicas"], 3);
    let mut expected = before.clone();
    let bundles = expected["bundles"].as_object_mut().unwrap();
    let bundle = bundles.remove("older.validate.lockkeeper.dev").unwrap();
    bundles.insert("cohorts.validate.lockkeeper.dev".to_owned(), bundle);
    let mut now = Value::Null;
    let whole = wait::until(
        || {
            now = state_written_by_processes(place);
            Ok((now == expected).then_some(()))
        },
        || "the new entry has no bundle".to_owned(),
    );
    whole.unwrap_or_else(|e| panic!("{e}: {now:#}\nexpected {expected:#}"));
}

/// Without the webhook, objects of lockkeeper's kinds are rejected, and all others are accepted.
fn assert_fail_closed_without_webhook(kubectl: &Kubectl) {
    let rejected = kubectl.apply(MUTATING_CONFIGURATION, &[]).expect_rejected();
    assert!(
        rejected.stderr.contains("failed calling webhook"),
        "{}",
        rejected.stderr
    );
    kubectl.apply(CLASS, &[]).expect_accepted_without_warning();
}

const CLASS: &str = r"
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
";

/// Only the CRDs and their objects are left, and the API server admits other objects.
fn uninstall(place: &ReleaseFixture) {
    let objects = place.manifest();
    let kubectl = &place.kubectl;
    let printed = place.helm("uninstall", &[]);
    assert!(
        printed.contains("kept due to the resource policy"),
        "{printed}"
    );
    for object in &objects {
        let text = object.to_string();
        let reply = kubectl.with_input(
            &["get", "--ignore-not-found", "-o", "name", "-f", "-"],
            &text,
        );
        let is_there = !reply.expect_accepted().stdout.is_empty();
        let is_definition = object["kind"] == "CustomResourceDefinition";
        assert_eq!(
            is_there, is_definition,
            "{}: {}",
            object["kind"], object["metadata"]["name"]
        );
    }
    kubectl
        .apply(MUTATING_CONFIGURATION, &[])
        .expect_accepted_without_warning();
}

/// The next release adopts the CRDs and their objects; with `crds.keep=false` an uninstallation deletes all of them.
fn reinstall(place: &ReleaseFixture) {
    place.helm("install", &[CHART]);
    assert!(!place.kubectl.absent(&["resourceflavor", "probe"]));
    place.helm("upgrade", &[CHART, "--set", "crds.keep=false"]);
    place.helm("uninstall", &[]);
    let definitions = || place.kubectl.absent(&["crd", "workloads.lockkeeper.dev"]);
    wait::until(
        || Ok(definitions().then_some(())),
        || "a definition stays".to_owned(),
    )
    .unwrap();
}

/// An installation without Helm is adopted, including the data that processes have written.
fn take_over_ownership(place: &ReleaseFixture) {
    let kubectl = &place.kubectl;
    let definitions = lockkeeper::output(&["crds", "definitions"]);
    let flags = ["--server-side"];
    kubectl
        .apply(&definitions, &flags)
        .expect_accepted_without_warning();
    for file in ["server", "controller"] {
        let file = format!("examples/install/{file}.yaml");
        kubectl
            .run(&["apply", "-f", &file])
            .expect_accepted_without_warning();
    }
    let service = [
        "crds",
        "webhooks",
        "--service",
        "lockkeeper-system/lockkeeper",
    ];
    let webhooks = lockkeeper::output(&service);
    kubectl
        .apply(&webhooks, &[])
        .expect_accepted_without_warning();
    start_release_webhook(place).stop();
    let before = state_written_by_processes(place);
    place.helm("install", &[CHART, "--take-ownership"]);
    assert_eq!(state_written_by_processes(place), before);
    place.helm("uninstall", &[]);
}
