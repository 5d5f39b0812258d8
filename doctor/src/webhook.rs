//! Webhooks of both kinds of configurations in one form.

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhookConfiguration, RuleWithOperations,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use lockkeeper_cluster_state::label_selector::Selector;

/// The timeout that the API server sets by default, in seconds.
const DEFAULT_TIMEOUT_S: i32 = 10;

/// The default port of a Service.
const DEFAULT_PORT: i32 = 443;

/// A Service by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The Service that the API server calls, and the certificates that it trusts there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// The Service.
    pub service: ServiceName,
    /// The port of the Service.
    pub port: i32,
    /// The CA bundle in PEM; empty if there is none.
    pub ca_bundle: Vec<u8>,
}

impl Endpoint {
    pub(crate) fn new(
        namespace: &str,
        name: &str,
        port: Option<i32>,
        ca_bundle: Option<&ByteString>,
    ) -> Self {
        Self {
            service: ServiceName {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            },
            port: port.unwrap_or(DEFAULT_PORT),
            ca_bundle: ca_bundle.map(|it| it.0.clone()).unwrap_or_default(),
        }
    }

    /// The name that the certificate of the server must have.
    #[must_use]
    pub fn host(&self) -> String {
        format!("{}.{}.svc", self.service.name, self.service.namespace)
    }
}

/// A webhook.
#[derive(Clone, Debug)]
pub(crate) struct Webhook {
    /// The configuration, as `Kind/name`.
    pub(crate) object: String,
    /// Its position in the configuration.
    pub(crate) position: usize,
    pub(crate) name: String,
    /// Absent for a URL.
    pub(crate) endpoint: Option<Endpoint>,
    /// Whether a call that fails rejects the request.
    pub(crate) must_answer: bool,
    pub(crate) timeout_s: i32,
    pub(crate) is_exact: bool,
    pub(crate) rules: Vec<RuleWithOperations>,
    /// Empty if it matches all.
    pub(crate) namespace_selector: Selector,
    pub(crate) object_selector: Selector,
    pub(crate) conditions: Vec<MatchCondition>,
    /// Whether the object comes from a cluster, and not from a manifest.
    pub(crate) is_stored: bool,
}

impl Webhook {
    /// The path of a field.
    pub(crate) fn field(&self, name: &str) -> String {
        format!("webhooks[{}].{name}", self.position)
    }
}

fn endpoint(config: &WebhookClientConfig) -> Option<Endpoint> {
    let service = config.service.as_ref()?;
    Some(Endpoint::new(
        &service.namespace,
        &service.name,
        service.port,
        config.ca_bundle.as_ref(),
    ))
}

fn selector(given: Option<&LabelSelector>) -> Selector {
    given.map(Selector::from).unwrap_or_default()
}

/// Whether an object was read from a cluster.
pub(crate) const fn is_stored(metadata: &ObjectMeta) -> bool {
    metadata.uid.is_some()
}

/// Both kinds have the same fields, in types of their own.
macro_rules! webhooks_of {
    ($configuration:expr, $kind:literal) => {{
        let configuration = $configuration;
        let name = configuration.metadata.name.as_deref().unwrap_or_default();
        let is_stored = is_stored(&configuration.metadata);
        let webhooks = configuration.webhooks.iter().flatten().enumerate();
        webhooks
            .map(|(position, it)| Webhook {
                object: format!("{}/{name}", $kind),
                position,
                name: it.name.clone(),
                endpoint: endpoint(&it.client_config),
                must_answer: it.failure_policy.as_deref() != Some("Ignore"),
                timeout_s: it.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_S),
                is_exact: it.match_policy.as_deref() == Some("Exact"),
                rules: it.rules.clone().unwrap_or_default(),
                namespace_selector: selector(it.namespace_selector.as_ref()),
                object_selector: selector(it.object_selector.as_ref()),
                conditions: it.match_conditions.clone().unwrap_or_default(),
                is_stored,
            })
            .collect()
    }};
}

pub(crate) fn validating(configuration: &ValidatingWebhookConfiguration) -> Vec<Webhook> {
    webhooks_of!(configuration, "ValidatingWebhookConfiguration")
}

pub(crate) fn mutating(configuration: &MutatingWebhookConfiguration) -> Vec<Webhook> {
    webhooks_of!(configuration, "MutatingWebhookConfiguration")
}
