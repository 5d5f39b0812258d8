//! The state that the trials of one thread share: a cluster, and the server registered with it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lockkeeper_policies::registry;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::kubectl::{Kubectl, KubectlOutput};
use crate::lockkeeper::{self, Lockkeeper, Protocol};
use crate::wait;

/// No configuration file: every default.
pub const DEFAULTS: &str = "";

/// The kinds that a trial may leave objects of.
const KINDS: &str = "workloads.lockkeeper.dev,localqueues.lockkeeper.dev,\
    clusterqueues.lockkeeper.dev,cohorts.lockkeeper.dev,resourceflavors.lockkeeper.dev,\
    jobkinds.lockkeeper.dev,pods,jobs.batch,priorityclasses.scheduling.k8s.io";

/// The cluster and the server, each started on first use.
#[derive(Default)]
pub struct Fixture {
    // Declared before the cluster: the server stops before the API server that it watches.
    serving: Option<RegisteredServer>,
    /// A failed start is not repeated: it would take as long to fail again.
    cluster: Option<Result<Cluster, String>>,
    /// Whether the RBAC objects of the server are installed.
    is_installed: bool,
    /// The CRDs that are installed.
    definitions: Option<Definitions>,
    /// Number of servers started so far; each has its own folder.
    servers: usize,
}

/// The variants of the CRDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Definitions {
    /// As they are generated.
    Full,
    /// Without CEL rules: only the webhook rejects objects for a rule.
    WithoutRules,
}

struct RegisteredServer {
    server: Lockkeeper,
    protocol: Protocol,
    config: String,
}

impl Fixture {
    /// The cluster; lockkeeper may or may not be installed on it.
    #[track_caller]
    pub fn cluster(&mut self) -> &Cluster {
        match self.cluster.get_or_insert_with(Cluster::start) {
            Ok(cluster) => cluster,
            Err(e) => panic!("no cluster: {e}"),
        }
    }

    /// A cluster without objects of earlier trials, where a server with this protocol and configuration reviews every
    /// request. No controller acts on stored objects.
    #[track_caller]
    pub fn with_server(&mut self, protocol: Protocol, config: &str) -> Kubectl {
        let kubectl = self.swept_with_server(protocol, config);
        self.cluster_mut().stop_workers();
        kubectl
    }

    /// Like `with_server`, with workers: Jobs get pods, and nodes run them. There are no nodes yet.
    ///
    /// The workers run on the cluster of the fixture, because a second cluster would cost as much as the workers. The
    /// next `with_server` stops them, and the next call of this method starts them again: trials that need workers are
    /// next to each other in the list.
    #[track_caller]
    pub fn with_server_and_workers(&mut self, protocol: Protocol, config: &str) -> Kubectl {
        let kubectl = self.swept_with_server(protocol, config);
        let started = self.cluster_mut().start_workers();
        started.unwrap_or_else(|e| panic!("no workers: {e}"));
        kubectl
    }

    #[track_caller]
    fn swept_with_server(&mut self, protocol: Protocol, config: &str) -> Kubectl {
        let kubectl = self.register_server(protocol, config);
        if self.cluster().has_jobset() {
            let delete = [
                "delete",
                "jobsets.jobset.x-k8s.io",
                "--all",
                "--all-namespaces",
            ];
            kubectl.run(&delete).expect_accepted();
        }
        sweep(&kubectl);
        if self.cluster().has_workers() {
            kubectl.run(&["delete", "nodes", "--all"]).expect_accepted();
        }
        kubectl
    }

    /// Starts and registers a server with this protocol and configuration, and keeps the stored objects.
    #[track_caller]
    pub fn register_server(&mut self, protocol: Protocol, config: &str) -> Kubectl {
        let kubectl = self.installed();
        if let Some(serving) = &self.serving
            && serving.protocol == protocol
            && serving.config == config
        {
            return kubectl;
        }
        self.stop();
        let folder = self.new_folder();
        let server = Lockkeeper::start(self.cluster().server(), &folder, protocol, config)
            .unwrap_or_else(|e| panic!("{e}"));
        let file = server.config();
        register_webhook_with_config(&kubectl, &server.url(), server.ca(), file.as_deref());
        self.serving = Some(RegisteredServer {
            server,
            protocol,
            config: config.to_owned(),
        });
        kubectl
    }

    /// The cluster with the CRDs and no registered server, for a trial with its own servers. The next
    /// `register_server` registers the shared server again.
    #[track_caller]
    pub fn without_server(&mut self) -> Kubectl {
        self.stop();
        self.installed()
    }

    /// A cluster with the CRDs, the RBAC objects and the Secret of an installation.
    #[track_caller]
    fn installed(&mut self) -> Kubectl {
        self.installed_with(Definitions::Full)
    }

    #[track_caller]
    fn installed_with(&mut self, definitions: Definitions) -> Kubectl {
        let kubectl = self.cluster().kubectl().clone();
        if self.definitions != Some(definitions) {
            // Unknown until `define` has succeeded.
            self.definitions = None;
            define(&kubectl, definitions, &self.new_folder());
            self.definitions = Some(definitions);
        }
        if !self.is_installed {
            install(&kubectl);
            self.is_installed = true;
        }
        kubectl
    }

    /// The cluster with the CRDs and no webhook configurations.
    #[track_caller]
    pub fn without_webhook(&mut self) -> Kubectl {
        self.without_webhook_with(Definitions::Full)
    }

    /// Like `without_webhook`, and the schemas contain no CEL rules: for objects that were stored before the rules
    /// were added. The next trial that needs another variant installs the complete CRDs again.
    #[track_caller]
    pub fn without_webhook_and_rules(&mut self) -> Kubectl {
        self.without_webhook_with(Definitions::WithoutRules)
    }

    #[track_caller]
    fn without_webhook_with(&mut self, definitions: Definitions) -> Kubectl {
        self.stop();
        // Done first: the webhook would reject the objects that test which CRDs are served.
        let kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
        let delete = ["delete", kinds, "lockkeeper", "--ignore-not-found"];
        self.cluster().kubectl().run(&delete).expect_accepted();
        self.installed_with(definitions)
    }

    /// The kubeconfig of the controller's account, with the rights that an installation grants.
    #[track_caller]
    pub fn controller(&mut self) -> PathBuf {
        self.installed();
        self.cluster().controller().to_owned()
    }

    /// A new folder for a server.
    #[track_caller]
    pub fn new_folder(&mut self) -> PathBuf {
        self.servers += 1;
        let name = format!("server-{}", self.servers);
        self.cluster().folder().join(name)
    }

    /// The cluster, for trials that stop and start parts of it.
    #[track_caller]
    pub fn cluster_mut(&mut self) -> &mut Cluster {
        self.cluster();
        match &mut self.cluster {
            Some(Ok(cluster)) => cluster,
            _ => unreachable!("the cluster was started above"),
        }
    }

    /// The registered server.
    #[track_caller]
    pub fn server(&self) -> &Lockkeeper {
        &self.serving.as_ref().expect("a server was started").server
    }

    /// Stops the server if one is running; fails unless it exits successfully.
    #[track_caller]
    pub fn stop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.server.stop().unwrap_or_else(|e| panic!("{e}"));
        }
    }

    /// Stops the server and the cluster.
    pub fn stop_all(&mut self) {
        self.serving = None;
        self.cluster = None;
    }
}

/// Installs the CRDs and waits until they are served. Rules with the action `warn` are in no schema.
#[track_caller]
fn define(kubectl: &Kubectl, which: Definitions, folder: &Path) {
    let soft = warn_only_config(folder);
    let mut arguments = vec!["crds", "definitions"];
    if which == Definitions::WithoutRules {
        arguments.extend(["--config", soft.to_str().unwrap()]);
    }
    let definitions = lockkeeper::output(&arguments);
    let apply = ["--server-side", "--force-conflicts"];
    kubectl
        .apply(&definitions, &apply)
        .expect_accepted_without_warning();
    let served = [
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        "-f",
        "-",
    ];
    kubectl.with_input(&served, &definitions).expect_accepted();
    // The API server serves a changed schema a moment after it is stored.
    let rejects = || {
        let tried = kubectl.apply(TAINTED, &["--dry-run=server"]);
        let is_rejected = tried.code != Some(0);
        Ok((is_rejected == (which == Definitions::Full)).then_some(()))
    };
    let late = || format!("the {which:?} definitions are not served");
    wait::until(rejects, late).unwrap_or_else(|e| panic!("{e}"));
}

/// A configuration in which every rule only warns.
pub fn warn_only_config(folder: &Path) -> PathBuf {
    let file = folder.with_extension("soft.yaml");
    let ids: BTreeSet<&str> = registry::all().iter().map(|rule| rule.id).collect();
    let actions: Vec<String> = ids.iter().map(|id| format!("    {id}: warn\n")).collect();
    fs::write(&file, format!("rules:\n  actions:\n{}", actions.concat())).unwrap();
    file
}

/// An object that the schema of ResourceFlavor rejects by a CEL rule.
const TAINTED: &str = r"
apiVersion: lockkeeper.dev/v1alpha1
kind: ResourceFlavor
metadata: {name: tainted}
spec: {nodeTaints: [{key: '@', effect: NoSchedule}]}
";

/// Applies what the README installs, into a namespace with the `restricted` Pod Security level. The server and the
/// controller use its RBAC objects; no kubelet runs the pods.
#[track_caller]
pub fn install(kubectl: &Kubectl) {
    kubectl
        .apply(NAMESPACE, &[])
        .expect_accepted_without_warning();
    for file in ["server", "controller"] {
        let file = format!("examples/install/{file}.yaml");
        kubectl
            .run(&["apply", "-f", &file])
            .expect_accepted_without_warning();
    }
}

/// Pod Security warnings would show up in the output of kubectl.
pub const NAMESPACE: &str = r"
apiVersion: v1
kind: Namespace
metadata:
  name: lockkeeper-system
  labels:
    pod-security.kubernetes.io/enforce: restricted
    pod-security.kubernetes.io/warn: restricted
";

/// Registers the server at `url` and waits until the API server calls it.
#[track_caller]
pub fn register_webhook(kubectl: &Kubectl, url: &str, ca: &Path) {
    register_webhook_with_config(kubectl, url, ca, None);
}

/// Registers a server with this configuration file.
#[track_caller]
fn register_webhook_with_config(kubectl: &Kubectl, url: &str, ca: &Path, config: Option<&Path>) {
    let ca = ca.to_str().unwrap();
    let mut command = vec!["crds", "webhooks", "--url", url, "--ca-bundle", ca];
    if let Some(config) = config {
        command.extend(["--config", config.to_str().unwrap()]);
    }
    let webhooks = lockkeeper::output(&command);
    kubectl
        .apply(&webhooks, &[])
        .expect_accepted_without_warning();

    // The API server picks up the two configurations independently, so both are tested.
    let mut last = String::new();
    let called = wait::until(
        || {
            let validated = kubectl.apply(VALIDATING_CONFIGURATION, &["--dry-run=server"]);
            let mutated =
                kubectl.apply(MUTATING_CONFIGURATION, &["--dry-run=server", "-o", "json"]);
            let both = validated.stderr.contains("WL001")
                && mutated.stdout.contains("lockkeeper.dev/resource-in-use");
            last = format!("{}{}{}", validated.stderr, mutated.stderr, mutated.stdout);
            Ok(both.then_some(()))
        },
        || "the API server did not call the webhook in time".to_owned(),
    );
    called.unwrap_or_else(|e| panic!("{e}; last:\n{last}"));
}

/// Only the webhook can reject this object: it knows the values of the classes.
pub const VALIDATING_CONFIGURATION: &str = r"
apiVersion: lockkeeper.dev/v1alpha1
kind: Workload
metadata:
  name: probe
  namespace: default
spec:
  priorityClassName: system-node-critical
  preemptionPriorityClassName: system-cluster-critical
  podSets:
    - count: 1
      template:
        spec:
          containers:
            - name: probe
              image: registry.example.com/probe:1
";

/// The webhook adds a finalizer to this object.
pub const MUTATING_CONFIGURATION: &str = r"
apiVersion: lockkeeper.dev/v1alpha1
kind: ResourceFlavor
metadata:
  name: probe
";

/// Removes the objects of earlier trials.
#[track_caller]
pub fn sweep(kubectl: &Kubectl) {
    let left = leftovers(kubectl);
    if left.is_empty() {
        return;
    }
    let list = list_of(left.iter());
    kubectl
        .with_input(
            // Pods are deleted with force: without workers no kubelet confirms that they have ended. Objects with
            // finalizers are handled below.
            &[
                "delete",
                "-f",
                "-",
                "--force",
                "--wait=false",
                "--ignore-not-found",
            ],
            &list,
        )
        .expect_accepted();
    // Without workers no controller removes the finalizers. One call for all: there can be a thousand.
    let mut held = left
        .iter()
        .filter(|o| o["metadata"]["finalizers"].is_array())
        .peekable();
    if held.peek().is_some() {
        let reply = try_remove_finalizers(kubectl, &list_of(held));
        // With workers an object may be gone before the patch.
        let is_gone = |line: &str| line.contains("(NotFound)");
        if !reply.stderr.lines().all(is_gone) {
            reply.expect_accepted();
        }
    }
    wait::until(
        || Ok(leftovers(kubectl).is_empty().then_some(())),
        || {
            let left = leftovers(kubectl);
            let metadata: Vec<&Value> = left.iter().map(|it| &it["metadata"]).collect();
            format!("objects of an earlier trial are not deleted: {metadata:#?}")
        },
    )
    .unwrap_or_else(|e| panic!("{e}"));
}

/// Lists all objects of `KINDS`, except for the classes of the API server and the pods of an installation.
#[track_caller]
fn leftovers(kubectl: &Kubectl) -> Vec<Value> {
    let mut list = kubectl.get(&[KINDS, "--all-namespaces"]);
    let Value::Array(mut items) = list["items"].take() else {
        panic!("kubectl get prints no list");
    };
    items.retain(|item| {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        let is_system_class = item["kind"] == "PriorityClass" && name.starts_with("system-");
        // The Deployments that were installed create theirs again.
        let is_installed = item["metadata"]["namespace"] == "lockkeeper-system";
        !is_system_class && !is_installed
    });
    items
}

/// Removes the finalizers of an object that is being deleted.
#[track_caller]
pub fn remove_finalizers(kubectl: &Kubectl, object: &Value) {
    try_remove_finalizers(kubectl, &reference(object).to_string()).expect_accepted();
}

/// Removes the finalizers of an object, or of all in a list.
fn try_remove_finalizers(kubectl: &Kubectl, references: &str) -> KubectlOutput {
    let patch = r#"{"metadata":{"finalizers":null}}"#;
    let flags = ["patch", "-f", "-", "--type=merge", "--patch", patch];
    kubectl.with_input(&flags, references)
}

/// A list with the fields that identify the objects.
fn list_of<'a>(objects: impl Iterator<Item = &'a Value>) -> String {
    let items: Vec<Value> = objects.map(reference).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// The fields that identify an object.
fn reference(object: &Value) -> Value {
    json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "metadata": {
            "name": object["metadata"]["name"],
            "namespace": object["metadata"]["namespace"],
        },
    })
}
