//! The chart and `examples/install` grant the same rights, and run the same processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::rendered::CASES;
use crate::ROOT;
use crate::helm::{self, Helm};
use crate::lockkeeper;
use crate::scenarios::without_cluster::StandaloneTrial;

/// Values with every feature that needs a right.
pub const ALL_RIGHTS: &str =
    "foreignKinds: [koordinator, kueue]\nconfig: {webhook: {preview: true}}\n";

pub fn trials_without_cluster() -> Vec<StandaloneTrial> {
    let trial = |name, run| StandaloneTrial { name, run };
    vec![
        trial(
            "chart: its permissions and Deployment equal those of the examples",
            same_as_examples,
        ),
        trial(
            "chart: its webhook configurations equal those of the binary",
            same_webhook_configurations,
        ),
        trial(
            "chart: its CRDs equal those of the binary",
            same_definitions,
        ),
        trial(
            "chart: the binary accepts its flags and configuration",
            config_accepted_by_binary,
        ),
    ]
}

/// Configurations that decide which kinds of other projects are sent to the webhook.
const CONFIGURATIONS: [&str; 6] = [
    "{}\n",
    "webhook: {foreignKinds: [koordinator, kueue]}\n",
    "webhook: {foreignKinds: [kueue]}\nrules: {actions: {KL001: enforce, CQ015: 'off', KQ003: audit}}\n",
    "webhook: {foreignKinds: [koordinator]}\nrules: {actions: {EQ021: 'off', EQ022: 'off'}}\n",
    "webhook: {foreignKinds: [koordinator]}\nrules: {namespaces: {a: {actions: {EQ020: warn}}}}\n",
    "webhook: {foreignKinds: [kueue]}\n\
     rules: {actions: {LQ001: 'off'}, namespaces: {a: {actions: {LQ001: 'off', RF004: 'off'}}}}\n",
];

fn same_webhook_configurations(folder: &Path) {
    let service = format!("{}/lockkeeper", helm::NAMESPACE);
    for config in CONFIGURATIONS {
        let command = ["crds", "webhooks", "--service", &service];
        same_objects(folder, config, &command, "WebhookConfiguration", 2);
    }
}

/// Configurations that disable rules in the policies, so that only the webhook enforces them.
const RELAXED_CONFIGS: [&str; 4] = [
    "{}\n",
    "rules: {actions: {CQ007: warn, CQ004: 'off', CO005: audit}}\n",
    "rules: {namespaces: {a: {actions: {WL001: warn, RF001: 'off', CQ008: warn}}}}\n",
    "rules: {exceptions: [{rules: [CQ001, CQ010], expires: '2099-01-01', reason: moving, selector: {names: [a]}}]}\n",
];

fn same_definitions(folder: &Path) {
    for config in RELAXED_CONFIGS {
        let command = ["crds", "definitions"];
        same_objects(folder, config, &command, "CustomResourceDefinition", 6);
    }
}

/// With this configuration, the chart renders the same objects of a kind as `command` prints.
#[track_caller]
fn same_objects(folder: &Path, config: &str, command: &[&str], kind: &str, count: usize) {
    let indented = config.lines().map(|line| format!("  {line}\n"));
    let values = format!("config:\n{}", indented.collect::<String>());
    let file = folder.join("config.yaml");
    fs::write(&file, config).unwrap();
    let command = [command, &["--config", file.to_str().unwrap()]].concat();
    let printed = of_kind(&lockkeeper::output(&command), kind);
    let rendered = Helm::without_cluster(folder)
        .template_for_cluster(&values)
        .assert_silent()
        .stdout;
    assert_eq!(printed.len(), count);
    assert_eq!(of_kind(&rendered, kind), printed, "{config}");
}

/// The objects whose kind has this suffix, without Helm's labels, by kind and name.
fn of_kind(yaml: &str, kind: &str) -> BTreeMap<[String; 2], Value> {
    let all = helm::objects(yaml).into_iter().filter_map(|mut object| {
        let its = object["kind"].as_str()?.to_owned();
        let metadata = object["metadata"].as_object_mut()?;
        metadata.remove("labels");
        metadata.remove("annotations");
        let name = metadata["name"].as_str()?.to_owned();
        let object = without_empty(object);
        its.ends_with(kind).then_some(([its, name], object))
    });
    all.collect()
}

/// An empty list of expressions is the same as no list.
fn without_empty(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
            let kept = map
                .into_iter()
                .filter(|(key, value)| key != "x-kubernetes-validations" || !is_empty(value));
            Value::Object(kept.map(|(key, it)| (key, without_empty(it))).collect())
        }
        Value::Array(items) => items.into_iter().map(without_empty).collect(),
        other => other,
    }
}

/// One granted right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    pub group: String,
    /// With its subresource.
    pub resource: String,
    /// The name of the object, if the right is limited to one.
    pub name: Option<String>,
    pub verb: String,
    /// The namespace of the role, if it has one.
    pub namespace: Option<String>,
}

/// The rights of the roles among these objects, by role name.
pub fn rights(objects: &[Value], role: &str) -> BTreeSet<Right> {
    let of = |object: &&Value| {
        let kind = object["kind"].as_str().unwrap_or_default();
        ["ClusterRole", "Role"].contains(&kind) && object["metadata"]["name"] == role
    };
    objects.iter().filter(of).flat_map(granted_rights).collect()
}

fn granted_rights(role: &Value) -> Vec<Right> {
    let namespace = role["metadata"]["namespace"].as_str().map(str::to_owned);
    let mut out = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        let mut names: Vec<Option<String>> = words(&rule["resourceNames"]).map(Some).collect();
        if names.is_empty() {
            names.push(None);
        }
        for group in words(&rule["apiGroups"]) {
            for resource in words(&rule["resources"]) {
                for verb in words(&rule["verbs"]) {
                    out.extend(names.iter().map(|name| Right {
                        group: group.clone(),
                        resource: resource.clone(),
                        name: name.clone(),
                        verb: verb.clone(),
                        namespace: namespace.clone(),
                    }));
                }
            }
        }
    }
    out
}

fn words(list: &Value) -> impl Iterator<Item = String> {
    let list = list.as_array().cloned().unwrap_or_default();
    list.into_iter().map(|it| it.as_str().unwrap().to_owned())
}

fn same_as_examples(folder: &Path) {
    let rendered = Helm::without_cluster(folder)
        .template(ALL_RIGHTS)
        .assert_silent()
        .stdout;
    let rendered = helm::objects(&rendered);
    for (file, name) in [
        ("server", "lockkeeper"),
        ("controller", "lockkeeper-controller"),
    ] {
        let path = Path::new(ROOT).join(format!("examples/install/{file}.yaml"));
        let example = helm::objects(&fs::read_to_string(path).unwrap());
        let granted = rights(&example, name);
        assert!(granted.len() > 10, "{granted:?}");
        assert_eq!(rights(&rendered, name), granted, "{name}");
        for pointer in SAME_FIELDS {
            let [ours, theirs] = [&rendered, &example].map(|objects| {
                let deployment = deployment(objects, name);
                deployment.pointer(pointer).cloned().unwrap_or_default()
            });
            assert_eq!(ours, theirs, "{name}: {pointer}");
        }
    }
}

/// The processes accept the flags and the configuration file of every case.
fn config_accepted_by_binary(folder: &Path) {
    let helm = Helm::without_cluster(folder);
    let file = folder.join("config.yaml");
    let file = file.to_str().unwrap();
    for (name, values) in CASES.iter().chain([&("default", "")]) {
        let objects = helm::objects(&helm.template(values).assert_silent().stdout);
        let config = objects.iter().find(|it| it["kind"] == "ConfigMap").unwrap();
        fs::write(file, config["data"]["config.yaml"].as_str().unwrap()).unwrap();
        let deployments = objects.iter().filter(|it| it["kind"] == "Deployment");
        for deployment in deployments {
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            let flags = words(&container["args"]);
            let mut flags: Vec<String> = flags
                .map(|it| it.replace("/etc/lockkeeper/config.yaml", file))
                .collect();
            flags.extend(["--print-config".to_owned(), format!("--kubeconfig={file}")]);
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            let printed: Value = serde_saphyr::from_str(&lockkeeper::output(&flags)).unwrap();
            let lease = &printed["controller"]["leaderElection"]["lease"];
            assert_eq!(lease, "lockkeeper-system/lockkeeper-controller", "{name}");
            let listen = &printed["webhook"]["listen"];
            let is_webhook = deployment["metadata"]["name"] == "lockkeeper";
            assert_eq!(listen == "0.0.0.0:9443", is_webhook, "{name}");
        }
    }
}

/// The fields that both Deployments have in common.
const SAME_FIELDS: [&str; 8] = [
    "/spec/replicas",
    "/spec/template/spec/terminationGracePeriodSeconds",
    "/spec/template/spec/containers/0/ports",
    "/spec/template/spec/containers/0/env",
    "/spec/template/spec/containers/0/readinessProbe",
    "/spec/template/spec/containers/0/livenessProbe",
    "/spec/template/spec/containers/0/resources",
    "/spec/template/spec/containers/0/securityContext",
];

/// The Deployment of this name.
#[track_caller]
pub fn deployment<'a>(objects: &'a [Value], name: &str) -> &'a Value {
    let is_it = |it: &&Value| it["kind"] == "Deployment" && it["metadata"]["name"] == name;
    objects.iter().find(is_it).expect(name)
}
