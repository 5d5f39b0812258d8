//! What the trials share: one cluster, and the one server registered with it.

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

/// The kinds a trial may leave objects of.
const KINDS: &str = "workloads.lockkeeper.dev,localqueues.lockkeeper.dev,\
    clusterqueues.lockkeeper.dev,cohorts.lockkeeper.dev,resourceflavors.lockkeeper.dev,\
    pods,jobs.batch,priorityclasses.scheduling.k8s.io";

/// The cluster and the server, each started when first needed.
#[derive(Default)]
pub struct Fixture {
    // The server ends before the API server it watches.
    serving: Option<RegisteredServer>,
    /// A start that failed is not tried again: it would fail as slowly.
    cluster: Option<Result<Cluster, String>>,
    /// Whether the rights of the server are there.
    is_installed: bool,
    /// Which CRDs are there.
    definitions: Option<Definitions>,
    /// How many servers were started; each has a folder of its own.
    servers: usize,
}

/// The CRDs that a cluster may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Definitions {
    /// As they are emitted.
    Full,
    /// Without expressions of rules, which then are for the webhook alone to refuse by.
    WithoutRules,
}

struct RegisteredServer {
    server: Lockkeeper,
    protocol: Protocol,
    config: String,
}

impl Fixture {
    /// The cluster, and nothing of lockkeeper promised on it.
    #[track_caller]
    pub fn cluster(&mut self) -> &Cluster {
        match self.cluster.get_or_insert_with(Cluster::start) {
            Ok(cluster) => cluster,
            Err(e) => panic!("no cluster: {e}"),
        }
    }

    /// A cluster without objects of earlier trials, where a server with this
    /// protocol and configuration reviews every request, and nobody acts on
    /// what is stored.
    #[track_caller]
    pub fn with_server(&mut self, protocol: Protocol, config: &str) -> Kubectl {
        let kubectl = self.swept_with_server(protocol, config);
        self.cluster_mut().stop_workers();
        kubectl
    }

    /// The same, and workers act: Jobs get pods, and nodes run them. There are no nodes yet.
    ///
    /// All trials share one cluster, because a second one would cost as much again as the workers
    /// do. The workers end with the next `fresh`, and start with the next call of this: those that
    /// need them come one after another.
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

    /// Puts a server with this protocol and configuration in charge, and
    /// leaves the objects as they are.
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

    /// The cluster with the CRDs and no server in charge, for a trial with servers of its own. The
    /// next `serve` takes over again.
    #[track_caller]
    pub fn without_server(&mut self) -> Kubectl {
        self.stop();
        self.installed()
    }

    /// A cluster with the definitions, the rights and the Secret of an installation.
    #[track_caller]
    fn installed(&mut self) -> Kubectl {
        self.installed_with(Definitions::Full)
    }

    #[track_caller]
    fn installed_with(&mut self, definitions: Definitions) -> Kubectl {
        let kubectl = self.cluster().kubectl().clone();
        if self.definitions != Some(definitions) {
            // Unknown until it is done.
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

    /// The same, and no server in charge: nothing is reviewed.
    #[track_caller]
    pub fn without_webhook(&mut self) -> Kubectl {
        self.without_webhook_with(Definitions::Full)
    }

    /// The same, and the schemas say nothing but shapes and bounds: for objects that somebody stored before rules held
    /// there. The next trial that asks for anything else has the whole definitions again.
    #[track_caller]
    pub fn without_webhook_and_rules(&mut self) -> Kubectl {
        self.without_webhook_with(Definitions::WithoutRules)
    }

    #[track_caller]
    fn without_webhook_with(&mut self, definitions: Definitions) -> Kubectl {
        self.stop();
        // First, as it would refuse what is tried to see which definitions are served.
        let kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
        let delete = ["delete", kinds, "lockkeeper", "--ignore-not-found"];
        self.cluster().kubectl().run(&delete).expect_accepted();
        self.installed_with(definitions)
    }

    /// The credentials that a controller works with: those of its account, with the rights that an
    /// installation gives it.
    #[track_caller]
    pub fn controller(&mut self) -> PathBuf {
        self.installed();
        self.cluster().controller().to_owned()
    }

    /// A folder for another server.
    #[track_caller]
    pub fn new_folder(&mut self) -> PathBuf {
        self.servers += 1;
        let name = format!("server-{}", self.servers);
        self.cluster().folder().join(name)
    }

    /// The cluster, to stop and start a part of it.
    #[track_caller]
    pub fn cluster_mut(&mut self) -> &mut Cluster {
        self.cluster();
        match &mut self.cluster {
            Some(Ok(cluster)) => cluster,
            _ => unreachable!("it was there a moment ago"),
        }
    }

    /// The server in charge.
    #[track_caller]
    pub fn server(&self) -> &Lockkeeper {
        &self.serving.as_ref().expect("a server was started").server
    }

    /// Stops the server, if there is one; it has to end well.
    #[track_caller]
    pub fn stop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.server.stop().unwrap_or_else(|e| panic!("{e}"));
        }
    }

    /// Ends everything.
    pub fn stop_all(&mut self) {
        self.serving = None;
        self.cluster = None;
    }
}

/// Installs the CRDs and waits until they are served. A rule that is softened is in no schema.
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
    // A changed schema is served a moment after it is stored.
    let refuses = || {
        let tried = kubectl.apply(TAINTED, &["--dry-run=server"]);
        let is_refused = tried.code != Some(0);
        Ok((is_refused == (which == Definitions::Full)).then_some(()))
    };
    let late = || format!("the {which:?} definitions are not served");
    wait::until(refuses, late).unwrap_or_else(|e| panic!("{e}"));
}

/// A configuration that only warns of what rules find.
pub fn warn_only_config(folder: &Path) -> PathBuf {
    let file = folder.with_extension("soft.yaml");
    let ids: BTreeSet<&str> = registry::all().iter().map(|rule| rule.id).collect();
    let actions: Vec<String> = ids.iter().map(|id| format!("    {id}: warn\n")).collect();
    fs::write(&file, format!("rules:\n  actions:\n{}", actions.concat())).unwrap();
    file
}

/// What the schema of flavors refuses by an expression.
const TAINTED: &str = r"
apiVersion: lockkeeper.dev/v1alpha1
kind: ResourceFlavor
metadata: {name: tainted}
spec: {nodeTaints: [{key: '@', effect: NoSchedule}]}
";

/// Applies what the README installs, into a namespace that lets only restricted pods in. Of it the
/// server and the controller get their rights; no kubelet runs their pods here.
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

/// Its warnings would be seen: nothing is silent that breaks the standard.
pub const NAMESPACE: &str = r"
apiVersion: v1
kind: Namespace
metadata:
  name: lockkeeper-system
  labels:
    pod-security.kubernetes.io/enforce: restricted
    pod-security.kubernetes.io/warn: restricted
";

/// Registers the server at `url` and waits until the API server asks it.
#[track_caller]
pub fn register_webhook(kubectl: &Kubectl, url: &str, ca: &Path) {
    register_webhook_with_config(kubectl, url, ca, None);
}

/// The same for a server with this configuration file.
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

    // The two configurations are noticed apart, so each is asked for.
    let mut last = String::new();
    let asked = wait::until(
        || {
            let validated = kubectl.apply(VALIDATING_CONFIGURATION, &["--dry-run=server"]);
            let mutated =
                kubectl.apply(MUTATING_CONFIGURATION, &["--dry-run=server", "-o", "json"]);
            let both = validated.stderr.contains("WL001")
                && mutated.stdout.contains("lockkeeper.dev/resource-in-use");
            last = format!("{}{}{}", validated.stderr, mutated.stderr, mutated.stdout);
            Ok(both.then_some(()))
        },
        || "the API server did not ask the webhook in time".to_owned(),
    );
    asked.unwrap_or_else(|e| panic!("{e}; last:\n{last}"));
}

/// Only the webhook can refuse this: it knows the values of the classes.
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

/// The webhook gives this a finalizer.
pub const MUTATING_CONFIGURATION: &str = r"
apiVersion: lockkeeper.dev/v1alpha1
kind: ResourceFlavor
metadata:
  name: probe
";

/// Removes what earlier trials left.
#[track_caller]
pub fn sweep(kubectl: &Kubectl) {
    let left = leftovers(kubectl);
    if left.is_empty() {
        return;
    }
    let names: Vec<Value> = left.iter().map(reference).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": names}).to_string();
    kubectl
        .with_input(
            // Pods go at once, whether or not anybody is there who would confirm that they ended;
            // what has finalizers goes below.
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
    // No controller runs that would remove the finalizers, unless there are workers: then an
    // object may be gone before it is asked for.
    for object in left
        .iter()
        .filter(|o| o["metadata"]["finalizers"].is_array())
    {
        let reply = try_remove_finalizers(kubectl, object);
        if !reply.stderr.contains("(NotFound)") {
            reply.expect_accepted();
        }
    }
    wait::until(
        || Ok(leftovers(kubectl).is_empty().then_some(())),
        || "objects of an earlier trial do not go away".to_owned(),
    )
    .unwrap_or_else(|e| panic!("{e}"));
}

/// All objects of `KINDS` that the API server did not make itself.
#[track_caller]
fn leftovers(kubectl: &Kubectl) -> Vec<Value> {
    let mut list = kubectl.get(&[KINDS, "--all-namespaces"]);
    let Value::Array(mut items) = list["items"].take() else {
        panic!("kubectl get prints no list");
    };
    items.retain(|item| {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        item["kind"] != "PriorityClass" || !name.starts_with("system-")
    });
    items
}

/// Removes the finalizers of an object that is being deleted.
#[track_caller]
pub fn remove_finalizers(kubectl: &Kubectl, object: &Value) {
    try_remove_finalizers(kubectl, object).expect_accepted();
}

fn try_remove_finalizers(kubectl: &Kubectl, object: &Value) -> KubectlOutput {
    let patch = r#"{"metadata":{"finalizers":null}}"#;
    let reference = reference(object).to_string();
    let flags = ["patch", "-f", "-", "--type=merge", "--patch", patch];
    kubectl.with_input(&flags, &reference)
}

/// As much of an object as names it.
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
