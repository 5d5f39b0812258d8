//! The values of the chart: their type, with what each is for and its default. `values.yaml`, `values.schema.json` and
//! the table in `docs/installation.md` are made from it.

mod render;

pub use render::{defaults_text, rows, schema_text};

use k8s_openapi::api::core::v1::{Affinity, LocalObjectReference, Toleration};
use lockkeeper_api::config::{Config, ForeignKinds};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A map that is empty by default, of the type that the schema names.
type Section = Map<String, Value>;

/// The values of the chart, in the order in which `values.yaml` shows them.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Values {
    /// The image that holds the binary.
    pub image: Image,
    /// The Secrets to pull the image with, as `- name: NAME`.
    #[schemars(with = "Vec<LocalObjectReference>")]
    pub image_pull_secrets: Vec<Value>,
    /// The configuration file of all processes, key by key as `docs/configuration.md` says. A change restarts the pods.
    /// Write "off" in quotes: without them it is false in a file of Helm.
    #[schemars(with = "Config")]
    pub config: Section,
    /// The projects whose kinds the webhook guards besides lockkeeper's own: kueue, koordinator. Those of
    /// config.webhook.foreignKinds count as well.
    pub foreign_kinds: BTreeSet<ForeignKinds>,
    /// The certificate that the webhook serves.
    pub certificates: Certificates,
    /// The admission webhook.
    pub webhook: Webhook,
    /// The controller, which admits, preempts and requeues.
    pub controller: Controller,
    /// The definitions of lockkeeper's kinds.
    pub crds: Crds,
    /// What the API server refuses and fills in by itself, while no replica of the webhook answers.
    pub policies: Policies,
    /// Rules for the network of the pods.
    pub network_policy: NetworkPolicy,
    /// What tells the operator of Prometheus to scrape.
    pub service_monitor: ServiceMonitor,
    /// The priority class of all pods, such as system-cluster-critical. Empty is the default of the cluster.
    pub priority_class_name: String,
    /// What is logged, such as `lockkeeper_webhook=debug`. Empty is what the binary logs by itself.
    pub log_filter: String,
    /// Labels for all objects and pods, besides the chart's own.
    pub extra_labels: BTreeMap<String, String>,
    /// Annotations for all pods.
    pub pod_annotations: BTreeMap<String, String>,
    /// Annotations for the service accounts.
    pub service_account_annotations: BTreeMap<String, String>,
    /// What a parent chart gives to all of its parts. Nothing here reads it.
    pub global: Global,
}

/// What the schema lets through as it is.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct Global {}

/// The image.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Image {
    /// Where it is, without a tag.
    #[schemars(length(min = 1))]
    pub repository: String,
    /// The tag. Empty is the version of the chart.
    pub tag: String,
    /// The digest, such as sha256:…; it goes before the tag.
    #[schemars(regex(pattern = "^(sha256:[0-9a-f]{64})?$"))]
    pub digest: String,
    /// When it is pulled.
    pub pull_policy: PullPolicy,
}

impl Default for Image {
    fn default() -> Self {
        Self {
            repository: "lockkeeper".to_owned(),
            tag: String::new(),
            digest: String::new(),
            pull_policy: PullPolicy::IfNotPresent,
        }
    }
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub enum PullPolicy {
    /// When the node has none.
    IfNotPresent,
    /// Each time.
    Always,
    /// Never.
    Never,
}

/// Where the certificate comes from.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Certificates {
    /// self: the webhook makes and rotates them in a Secret, and puts its CA bundle where it belongs. cert-manager: a
    /// Certificate. given: a Secret of yours.
    pub mode: CertificateMode,
    /// The Secret of yours, of type kubernetes.io/tls, in the namespace of the release.
    pub secret_name: String,
    /// The CA of the certificate in that Secret, as PEM.
    pub ca_bundle: String,
    /// The issuer of cert-manager that signs. Without a name the chart makes a CA of its own.
    pub issuer_ref: IssuerRef,
}

/// Who makes the certificate.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CertificateMode {
    /// The webhook.
    #[default]
    #[serde(rename = "self")]
    Own,
    /// cert-manager.
    CertManager,
    /// Somebody else.
    Given,
}

/// An issuer of cert-manager.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct IssuerRef {
    /// Its name.
    pub name: String,
    /// Its kind: `Issuer`, `ClusterIssuer` or that of another project.
    pub kind: String,
    /// The API group of that kind.
    pub group: String,
}

impl Default for IssuerRef {
    fn default() -> Self {
        Self {
            name: String::new(),
            kind: "Issuer".to_owned(),
            group: "cert-manager.io".to_owned(),
        }
    }
}

/// The admission webhook.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Webhook {
    /// How many pods answer. With one there is no disruption budget, and a node that goes takes the webhook along.
    #[schemars(range(min = 1, max = 64))]
    pub replicas: u8,
    /// What becomes of objects of the foreign kinds while nobody answers: Ignore lets them pass, Fail refuses them.
    /// lockkeeper's own kinds are refused, and those of Kubernetes pass.
    pub foreign_failure_policy: FailurePolicy,
    /// What a pod asks for and may take.
    pub resources: Resources,
    /// The labels of the nodes to run on.
    pub node_selector: BTreeMap<String, String>,
    /// The taints of nodes that are borne.
    #[schemars(with = "Vec<Toleration>")]
    pub tolerations: Vec<Value>,
    /// The affinity of the pods. They are spread over nodes and zones without it.
    #[schemars(with = "Affinity")]
    pub affinity: Section,
}

impl Default for Webhook {
    fn default() -> Self {
        Self {
            replicas: 2,
            foreign_failure_policy: FailurePolicy::Ignore,
            resources: Resources::default(),
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            affinity: Section::new(),
        }
    }
}

/// What becomes of a request that the webhook cannot be asked about.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub enum FailurePolicy {
    /// It passes.
    Ignore,
    /// It is refused.
    Fail,
}

/// The controller.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Controller {
    /// Whether it is there. Leave it off where Kueue or Koordinator admits.
    pub enabled: bool,
    /// How many pods there are. One works, the others wait for its Lease.
    #[schemars(range(min = 1, max = 64))]
    pub replicas: u8,
    /// What a pod asks for and may take.
    pub resources: Resources,
    /// The labels of the nodes to run on.
    pub node_selector: BTreeMap<String, String>,
    /// The taints of nodes that are borne.
    #[schemars(with = "Vec<Toleration>")]
    pub tolerations: Vec<Value>,
    /// The affinity of the pods. They are spread over nodes and zones without it.
    #[schemars(with = "Affinity")]
    pub affinity: Section,
}

impl Default for Controller {
    fn default() -> Self {
        Self {
            enabled: true,
            replicas: 2,
            resources: Resources::new("50m", "64Mi", "512Mi"),
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            affinity: Section::new(),
        }
    }
}

/// What a container asks for and may take, by resource.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(default)]
pub struct Resources {
    /// What is kept for it on a node.
    pub requests: BTreeMap<String, Amount>,
    /// What it may take at most. There is no limit on cpu: a webhook that is throttled holds up writes.
    pub limits: BTreeMap<String, Amount>,
}

impl Default for Resources {
    fn default() -> Self {
        Self::new("50m", "64Mi", "256Mi")
    }
}

impl Resources {
    fn new(cpu: &str, memory: &str, memory_max: &str) -> Self {
        let amount = |text: &str| Amount::Text(text.to_owned());
        let requests = [("cpu", amount(cpu)), ("memory", amount(memory))];
        let requests = requests.map(|(name, amount)| (name.to_owned(), amount));
        Self {
            requests: requests.into(),
            limits: [("memory".to_owned(), amount(memory_max))].into(),
        }
    }
}

/// A quantity of Kubernetes, as text or as a number.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Amount {
    /// Such as 64Mi.
    Text(String),
    /// Such as 2.
    Number(u64),
}

/// The definitions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(default)]
pub struct Crds {
    /// Whether they come with the release, and are upgraded with it.
    pub install: bool,
    /// Whether an uninstallation leaves them, and with them all objects of their kinds.
    pub keep: bool,
}

impl Default for Crds {
    fn default() -> Self {
        Self {
            install: true,
            keep: true,
        }
    }
}

/// Admission policies.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(default)]
pub struct Policies {
    /// Whether they are there: what rules refuse that no schema can, defaults that no schema fills in, and Jobs and JobSets
    /// of a queue suspended. What the configuration changes of a rule is left to the webhook.
    pub enabled: bool,
}

impl Default for Policies {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// Rules for the network.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPolicy {
    /// Whether they are there: in may come what asks the webhook, and who scrapes; out may go what asks the API server
    /// and DNS.
    pub enabled: bool,
    /// The addresses of the API server, such as 10.0.0.1/32: nobody else asks the webhook, and nobody else is asked.
    /// Empty is any.
    pub api_server_cidrs: Vec<String>,
    /// The ports of the API server: that of its Service, and where this leads.
    pub api_server_ports: Vec<u16>,
    /// The labels of the namespaces that may scrape metrics. Empty is any.
    pub scraped_by: BTreeMap<String, String>,
}

impl Default for NetworkPolicy {
    fn default() -> Self {
        Self {
            enabled: false,
            api_server_cidrs: Vec::new(),
            api_server_ports: vec![443, 6443],
            scraped_by: BTreeMap::new(),
        }
    }
}

/// Scraping.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ServiceMonitor {
    /// Whether there is a `ServiceMonitor` of each, and Services for the ports of the metrics.
    pub enabled: bool,
    /// How often it is scraped.
    #[schemars(regex(pattern = "^[0-9]+(ms|s|m|h)$"))]
    pub interval: String,
    /// Labels that the Prometheus of the cluster selects by.
    pub labels: BTreeMap<String, String>,
}

impl Default for ServiceMonitor {
    fn default() -> Self {
        Self {
            enabled: false,
            interval: "30s".to_owned(),
            labels: BTreeMap::new(),
        }
    }
}
