//! The objects that are checked.

use crate::webhook::{self, Endpoint, ServiceName, Webhook};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Namespace, Node, Service};
use k8s_openapi::api::discovery::v1::{Endpoint as SliceEndpoint, EndpointSlice};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use lockkeeper_api::JobKind;
use lockkeeper_explain::{WorldBuilder, for_each_item};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A kind whose absent objects can be findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Services.
    Service,
    /// The endpoints of Services.
    EndpointSlice,
    /// Disruption budgets.
    PodDisruptionBudget,
}

/// An object that waits for its finalizers.
#[derive(Clone, Debug)]
pub(crate) struct DeletedObject {
    /// As `Kind/name` or `Kind/namespace/name`.
    pub(crate) object: String,
    pub(crate) deleted: String,
    pub(crate) finalizers: Vec<String>,
    /// The messages of conditions that say what remains.
    pub(crate) remaining: Vec<String>,
}

/// A workload controller that runs pods from a template.
#[derive(Clone, Debug)]
pub(crate) struct PodOwner {
    /// As `Kind/name`.
    pub(crate) object: String,
    pub(crate) namespace: String,
    /// Absent for a `DaemonSet`.
    pub(crate) replicas: Option<i32>,
    pub(crate) labels: BTreeMap<String, String>,
}

/// The objects of a cluster, or manifests.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub(crate) webhooks: Vec<Webhook>,
    pub(crate) definitions: Vec<CustomResourceDefinition>,
    pub(crate) job_kinds: Vec<JobKind>,
    pub(crate) api_services: Vec<APIService>,
    pub(crate) services: Vec<Service>,
    pub(crate) slices: Vec<EndpointSlice>,
    pub(crate) owners: Vec<PodOwner>,
    pub(crate) budgets: Vec<PodDisruptionBudget>,
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) deleted: Vec<DeletedObject>,
    pub(crate) queues: WorldBuilder,
    complete: BTreeSet<Kind>,
    unreadable: Vec<String>,
}

impl Snapshot {
    /// Creates a snapshot without objects.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object, or each item of a list. Objects of other kinds are only checked for stuck finalizers.
    pub fn add(&mut self, object: Value) {
        for_each_item(object, &mut |item| {
            let name = object_name(&item);
            self.deleted.extend(deleted_object(&item, &name));
            if let Err(error) = self.add_object(item) {
                self.unreadable.push(format!("{name}: {error}"));
            }
        });
    }

    fn add_object(&mut self, object: Value) -> Result<(), serde_json::Error> {
        let text = |field| {
            object
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let group = text("apiVersion")
            .rsplit_once('/')
            .map_or("", |(group, _)| group);
        match (group, text("kind")) {
            ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => {
                self.webhooks.extend(webhook::validating(&decode(object)?));
            }
            ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => {
                self.webhooks.extend(webhook::mutating(&decode(object)?));
            }
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                self.definitions.push(decode(object)?);
            }
            (lockkeeper_api::GROUP, "JobKind") => self.job_kinds.push(decode(object)?),
            ("apiregistration.k8s.io", "APIService") => self.api_services.push(decode(object)?),
            ("", "Service") => self.services.push(decode(object)?),
            ("discovery.k8s.io", "EndpointSlice") => self.slices.push(decode(object)?),
            ("apps", "Deployment") => {
                let it: Deployment = decode(object)?;
                let spec = it.spec;
                let replicas = Some(spec.replicas.unwrap_or(1));
                self.add_owner("Deployment", &it.metadata, replicas, spec.template.metadata);
            }
            ("apps", "StatefulSet") => {
                let it: StatefulSet = decode(object)?;
                let spec = it.spec;
                let replicas = Some(spec.replicas.unwrap_or(1));
                self.add_owner(
                    "StatefulSet",
                    &it.metadata,
                    replicas,
                    spec.template.metadata,
                );
            }
            ("apps", "DaemonSet") => {
                let it: DaemonSet = decode(object)?;
                let spec = it.spec;
                self.add_owner("DaemonSet", &it.metadata, None, spec.template.metadata);
            }
            ("policy", "PodDisruptionBudget") => self.budgets.push(decode(object)?),
            ("", "Node") => self.nodes.push(decode(object)?),
            ("", "Namespace") => {
                self.namespaces.push(decode(object.clone())?);
                self.queues.add(object);
            }
            _ => self.queues.add(object),
        }
        Ok(())
    }

    fn add_owner(
        &mut self,
        kind: &str,
        metadata: &ObjectMeta,
        replicas: Option<i32>,
        template: Option<ObjectMeta>,
    ) {
        let namespace = metadata.namespace.clone().unwrap_or_default();
        let name = metadata.name.as_deref().unwrap_or_default();
        self.owners.push(PodOwner {
            object: format!("{kind}/{namespace}/{name}"),
            namespace,
            replicas,
            labels: template.and_then(|it| it.labels).unwrap_or_default(),
        });
    }

    /// Notes that all objects of a kind were added: others do not exist.
    pub fn mark_complete(&mut self, kind: Kind) {
        self.complete.insert(kind);
    }

    /// Whether all objects of a kind were added.
    pub(crate) fn is_complete(&self, kind: Kind) -> bool {
        self.complete.contains(&kind)
    }

    /// The objects that could not be decoded, with the reasons.
    #[must_use]
    pub fn unreadable(&self) -> &[String] {
        &self.unreadable
    }

    /// The addresses and ports where the servers behind a Service listen, as far as its `EndpointSlices` are known.
    #[must_use]
    pub fn addresses(&self, endpoint: &Endpoint) -> Vec<(String, u16)> {
        let service = self
            .services
            .iter()
            .find(|it| names(&it.metadata, &endpoint.service));
        let ports = service.and_then(|it| it.spec.as_ref()?.ports.as_ref());
        let port = ports
            .into_iter()
            .flatten()
            .find(|it| it.port == endpoint.port);
        let port_name = port.map(|it| it.name.clone().unwrap_or_default());
        let slices = self.slices_of(&endpoint.service);
        let addresses = slices.flat_map(|slice| {
            let ports = slice.ports.iter().flatten();
            let mut ports = ports
                .filter(|it| port_name.as_deref() == Some(it.name.as_deref().unwrap_or_default()));
            let number = ports.next().and_then(|it| u16::try_from(it.port?).ok());
            let ready = slice.endpoints.iter().flatten().filter(|it| is_ready(it));
            let addresses = ready.flat_map(|it| it.addresses.iter().cloned());
            addresses.filter_map(move |it| Some((it, number?)))
        });
        addresses.collect()
    }

    pub(crate) fn slices_of<'a>(
        &'a self,
        service: &'a ServiceName,
    ) -> impl Iterator<Item = &'a EndpointSlice> {
        self.slices.iter().filter(|it| {
            let labels = it.metadata.labels.as_ref();
            let owner = labels.and_then(|it| it.get("kubernetes.io/service-name"));
            it.metadata.namespace.as_ref() == Some(&service.namespace)
                && owner == Some(&service.name)
        })
    }

    /// All Services that the API server calls, sorted: those of webhooks, and of conversions between versions.
    #[must_use]
    pub fn endpoints(&self) -> Vec<Endpoint> {
        let webhooks = self.webhooks.iter().filter_map(|it| it.endpoint.clone());
        let conversions = self.definitions.iter().filter_map(conversion_endpoint);
        let all: BTreeSet<Endpoint> = webhooks.chain(conversions).collect();
        all.into_iter().collect()
    }
}

/// The Service that converts objects between the versions of a CRD.
pub(crate) fn conversion_endpoint(definition: &CustomResourceDefinition) -> Option<Endpoint> {
    let webhook = definition.spec.conversion.as_ref()?.webhook.as_ref()?;
    let config = webhook.client_config.as_ref()?;
    let service = config.service.as_ref()?;
    let bundle = config.ca_bundle.as_ref();
    Some(Endpoint::new(
        &service.namespace,
        &service.name,
        service.port,
        bundle,
    ))
}

pub(crate) fn names(metadata: &ObjectMeta, service: &ServiceName) -> bool {
    metadata.name.as_ref() == Some(&service.name)
        && metadata.namespace.as_ref() == Some(&service.namespace)
}

/// Whether an endpoint gets requests. An unknown state counts as ready, as in kube-proxy.
pub(crate) fn is_ready(endpoint: &SliceEndpoint) -> bool {
    let conditions = endpoint.conditions.as_ref();
    conditions.and_then(|it| it.ready).unwrap_or(true)
}

fn decode<T: DeserializeOwned>(object: Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(object)
}

fn object_name(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let kind = text("/kind").unwrap_or("?");
    let name = text("/metadata/name").unwrap_or("?");
    match text("/metadata/namespace") {
        Some(namespace) => format!("{kind}/{namespace}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

fn deleted_object(object: &Value, name: &str) -> Option<DeletedObject> {
    let deleted = object.pointer("/metadata/deletionTimestamp")?.as_str()?;
    let texts = |pointer: &str| -> Vec<String> {
        let list = object.pointer(pointer).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(|it| it.as_str().map(str::to_owned))
            .collect()
    };
    let mut finalizers = texts("/metadata/finalizers");
    // A namespace has its finalizers in the spec.
    finalizers.extend(texts("/spec/finalizers"));
    let conditions = object
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let remaining = conditions.into_iter().flatten().filter(|it| {
        let text = |field| it.get(field).and_then(Value::as_str).unwrap_or_default();
        let is_cause = text("type").ends_with("Remaining") || text("type").ends_with("Failure");
        text("status") == "True" && is_cause
    });
    let remaining = remaining.filter_map(|it| it.get("message")?.as_str().map(str::to_owned));
    Some(DeletedObject {
        object: name.to_owned(),
        deleted: deleted.to_owned(),
        finalizers,
        remaining: remaining.collect(),
    })
}
