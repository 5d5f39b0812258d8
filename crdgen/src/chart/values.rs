//! The values of the chart: their type, with descriptions and defaults. `values.yaml`, `values.schema.json` and
//! the table in `docs/installation.md` are generated from it.

mod render;

pub use render::{defaults_text, rows, schema_text};

use super::monitoring_values::{Dashboards, PodMonitor, PrometheusRule, ServiceMonitor};
use crate::admission_policies::guards;
use k8s_openapi::api::core::v1::{Affinity, LocalObjectReference, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
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
    /// The container image.
    pub image: Image,
    /// The Secrets to pull the image with, as `- name: NAME`.
    #[schemars(with = "Vec<LocalObjectReference>")]
    pub image_pull_secrets: Vec<Value>,
    /// The configuration file of all processes; `docs/configuration.md` lists the keys. A change restarts the pods.
    /// Write "off" in quotes: YAML reads it as false otherwise.
    #[schemars(with = "Config")]
    pub config: Section,
    /// The projects whose kinds the webhook also validates: kueue, koordinator. Those of
    /// config.webhook.foreignKinds are added.
    pub foreign_kinds: BTreeSet<ForeignKinds>,
    /// The serving certificate of the webhook.
    pub certificates: Certificates,
    /// The admission webhook.
    pub webhook: Webhook,
    /// The controller, which admits, preempts and requeues.
    pub controller: Controller,
    /// The CRDs of lockkeeper's kinds.
    pub crds: Crds,
    /// Admission policies: the API server validates and defaults even while no webhook replica is running.
    pub policies: Policies,
    /// Roles of people: aggregated to view, edit and admin, and to lockkeeper-batch-user and lockkeeper-batch-admin.
    pub roles: Roles,
    /// Network policies of the pods.
    pub network_policy: NetworkPolicy,
    /// `ServiceMonitors` for the Prometheus operator.
    pub service_monitor: ServiceMonitor,
    /// `PodMonitors` for the Prometheus operator, instead of `ServiceMonitors`: without Services for the metrics ports.
    pub pod_monitor: PodMonitor,
    /// Alerts, as a `PrometheusRule` for the Prometheus operator. `docs/runbooks.md` has a section for each.
    pub prometheus_rule: PrometheusRule,
    /// Grafana dashboards of the webhook, the controller and the queues, in `ConfigMaps`.
    pub dashboards: Dashboards,
    /// The priority class of all pods, such as system-cluster-critical. Empty: the cluster's default.
    pub priority_class_name: String,
    /// The log filter, such as `lockkeeper_webhook=debug`. Empty: the binary's default.
    pub log_filter: String,
    /// Labels for all objects and pods, in addition to the chart's own.
    pub extra_labels: BTreeMap<String, String>,
    /// Annotations for all pods.
    pub pod_annotations: BTreeMap<String, String>,
    /// Annotations for the service accounts.
    pub service_account_annotations: BTreeMap<String, String>,
    /// The global values of a parent chart. This chart does not use them.
    pub global: Global,
}

/// An object that the schema accepts without validation.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct Global {}

/// The image.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Image {
    /// The repository, without a tag.
    #[schemars(length(min = 1))]
    pub repository: String,
    /// The tag. Empty: the version of the chart.
    pub tag: String,
    /// The digest, such as sha256:…; it takes precedence over the tag.
    #[schemars(regex(pattern = "^(sha256:[0-9a-f]{64})?$"))]
    pub digest: String,
    /// The pull policy.
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

/// The pull policy of an image.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub enum PullPolicy {
    /// If the node does not have the image.
    IfNotPresent,
    /// On every start of a container.
    Always,
    /// Never.
    Never,
}

/// The source of the serving certificate.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Certificates {
    /// self: the webhook creates and rotates the certificates in a Secret, and injects its CA bundle. cert-manager: a
    /// Certificate. given: your own Secret.
    pub mode: CertificateMode,
    /// Your own Secret, of type kubernetes.io/tls, in the namespace of the release.
    pub secret_name: String,
    /// The CA of the certificate in that Secret, as PEM.
    pub ca_bundle: String,
    /// The cert-manager issuer. Without a name the chart creates a CA.
    pub issuer_ref: IssuerRef,
}

/// The issuer of the certificate.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CertificateMode {
    /// The webhook.
    #[default]
    #[serde(rename = "self")]
    Own,
    /// cert-manager.
    CertManager,
    /// The administrator, who creates the Secret.
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
    /// The number of replicas. With one there is no disruption budget, and the loss of its node stops the webhook.
    #[schemars(range(min = 1, max = 64))]
    pub replicas: u8,
    /// The failure policy for kinds of other projects while no replica answers: Ignore admits them, Fail rejects them.
    /// lockkeeper's own kinds are always rejected; pods and `PriorityClasses` are always admitted.
    pub foreign_failure_policy: FailurePolicy,
    /// The failure policy for Jobs, `JobSets` and declared kinds with a queue name while no replica answers: Ignore admits them, Fail
    /// rejects them.
    pub jobs_failure_policy: FailurePolicy,
    /// The kinds that a `JobKind` declares and whose new jobs the webhook suspends, with the versions of the declarations:
    /// `{name: rayjobs.ray.io, version: v1}`. Since Kubernetes 1.36 the policies of `lockkeeper crds job-kinds` do it without
    /// the webhook.
    pub job_kinds: Vec<JobKindName>,
    /// The CA of the API server's client certificates, as PEM. If set, reviews require a client certificate of this
    /// CA; config.webhook.clientNames restricts the names. Empty: every client is accepted.
    pub client_ca: String,
    /// Require a token of an API server (KEP-6060) with each admission review. Reviews of API servers that present none are
    /// rejected: Kubernetes 1.37 issues such tokens, but does not present them by itself.
    pub require_tokens: bool,
    /// Resource requests and limits.
    pub resources: Resources,
    /// The node selector of the pods.
    pub node_selector: BTreeMap<String, String>,
    /// The tolerations of the pods.
    #[schemars(with = "Vec<Toleration>")]
    pub tolerations: Vec<Value>,
    /// The affinity of the pods. Without it they are spread over nodes and zones.
    #[schemars(with = "Affinity")]
    pub affinity: Section,
}

impl Default for Webhook {
    fn default() -> Self {
        Self {
            replicas: 2,
            foreign_failure_policy: FailurePolicy::Ignore,
            jobs_failure_policy: FailurePolicy::Ignore,
            job_kinds: Vec::new(),
            client_ca: String::new(),
            require_tokens: false,
            resources: Resources::default(),
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            affinity: Section::new(),
        }
    }
}

/// A kind that a `JobKind` declares.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct JobKindName {
    /// The name of the `JobKind`: `<plural>.<group>`.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9-]*(\.[a-z0-9-]+)+$"))]
    pub name: String,
    /// Its version.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9-]*$"))]
    pub version: String,
}

/// The failure policy: the result of a request that the webhook cannot answer.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub enum FailurePolicy {
    /// The request is admitted.
    Ignore,
    /// The request is rejected.
    Fail,
}

/// The controller.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Controller {
    /// Whether the controller is installed. Leave it off where Kueue or Koordinator admits workloads.
    pub enabled: bool,
    /// The number of replicas. One is the leader; the others wait for its Lease.
    #[schemars(range(min = 1, max = 64))]
    pub replicas: u8,
    /// Resource requests and limits.
    pub resources: Resources,
    /// The node selector of the pods.
    pub node_selector: BTreeMap<String, String>,
    /// The tolerations of the pods.
    #[schemars(with = "Vec<Toleration>")]
    pub tolerations: Vec<Value>,
    /// The affinity of the pods. Without it they are spread over nodes and zones.
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

/// Resource requests and limits of a container.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(default)]
pub struct Resources {
    /// The requests.
    pub requests: BTreeMap<String, Amount>,
    /// The limits. There is no limit on cpu: a throttled webhook delays writes.
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

/// A Kubernetes quantity, as a string or a number.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Amount {
    /// Such as 64Mi.
    Text(String),
    /// Such as 2.
    Number(u64),
}

/// The CRDs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(default)]
pub struct Crds {
    /// Whether the release contains the CRDs, and upgrades them.
    pub install: bool,
    /// Whether `helm uninstall` keeps the CRDs, and with them all objects of their kinds.
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
#[serde(rename_all = "camelCase", default)]
pub struct Policies {
    /// Whether the policies are installed: rules and defaults that no schema can express, and suspension of Jobs and
    /// JobSets with a queue name. Rules that the configuration changes are left to the webhook.
    pub enabled: bool,
    /// Namespaces where every Job and JobSet needs a queue.
    pub queue_required: QueueRequired,
    /// Namespaces where new Jobs and JobSets without a queue get one. Needs Kubernetes 1.36.
    pub default_queue: DefaultQueue,
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            enabled: true,
            queue_required: QueueRequired::default(),
            default_queue: DefaultQueue::default(),
        }
    }
}

/// Namespaces where every Job and JobSet needs a queue.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct QueueRequired {
    /// Their label selector. Empty: none. A Job or JobSet without the label lockkeeper.dev/queue-name is rejected there,
    /// and the label cannot be removed.
    #[schemars(with = "LabelSelector")]
    pub namespace_selector: Section,
    /// The users whose Jobs need no queue, and that may resume Jobs, such as the account of JobSet's controller: its Jobs use the quota
    /// of the JobSet.
    pub exempt_users: Vec<ExemptUser>,
}

/// Namespaces where new Jobs and JobSets without a queue get one.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DefaultQueue {
    /// Their label selector. Empty: none. `policies.queueRequired.exemptUsers` are exempt here, too.
    #[schemars(with = "LabelSelector")]
    pub namespace_selector: Section,
    /// The name of the LocalQueue, which every such namespace needs.
    #[schemars(regex(pattern = r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$"))]
    pub name: String,
}

/// The name of a user. It becomes a string in CEL.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ExemptUser(#[schemars(regex(pattern = r"^[^'\\]+$"))] pub String);

impl Default for QueueRequired {
    fn default() -> Self {
        Self {
            namespace_selector: Section::new(),
            exempt_users: vec![ExemptUser(guards::JOBSET_ACCOUNT.to_owned())],
        }
    }
}

/// Roles of people.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Roles {
    /// Whether the roles are installed.
    pub enabled: bool,
}

impl Default for Roles {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// Network policies.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPolicy {
    /// Whether network policies are installed. Ingress: requests to the webhook, probes and scrapes. Egress: the API
    /// server and DNS. They are also installed if `apiServerCidrs` is set.
    pub enabled: bool,
    /// The addresses of the API server, such as 10.0.0.1/32: the only ones that may call the webhook or be called.
    /// Empty: any address, and no network policies unless `enabled` is true.
    pub api_server_cidrs: Vec<String>,
    /// The ports of the API server: the port of its Service, and the target port.
    pub api_server_ports: Vec<u16>,
    /// The labels of the namespaces that may scrape metrics. Empty: any namespace.
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
