//! Reads the objects of a cluster, and makes TLS handshakes with its webhooks.

use super::handshake::handshakes;
use crate::Failure;
use crate::world_source::ClusterArguments;
use crate::world_source::cluster::{QueueKind, list_with, queue_kind};
use anyhow::Context;
use lockkeeper_doctor::{Handshake, Kind, Snapshot};
use serde_json::Value;

/// The kinds that are listed beside queues.
#[rustfmt::skip]
const KINDS: [(&str, QueueKind); 14] = [
    ("admissionregistration.k8s.io/v1", queue_kind("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false, true)),
    ("admissionregistration.k8s.io/v1", queue_kind("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", false, true)),
    ("apiextensions.k8s.io/v1", queue_kind("CustomResourceDefinition", "customresourcedefinitions", false, true)),
    ("lockkeeper.dev/v1alpha1", queue_kind("JobKind", "jobkinds", false, false)),
    ("apiregistration.k8s.io/v1", queue_kind("APIService", "apiservices", false, true)),
    ("v1", queue_kind("Service", "services", true, true)),
    ("discovery.k8s.io/v1", queue_kind("EndpointSlice", "endpointslices", true, true)),
    ("apps/v1", queue_kind("Deployment", "deployments", true, true)),
    ("apps/v1", queue_kind("StatefulSet", "statefulsets", true, true)),
    ("apps/v1", queue_kind("DaemonSet", "daemonsets", true, true)),
    ("policy/v1", queue_kind("PodDisruptionBudget", "poddisruptionbudgets", true, true)),
    ("v1", queue_kind("Node", "nodes", false, true)),
    ("batch/v1", queue_kind("Job", "jobs", true, false)),
    ("v1", queue_kind("PersistentVolumeClaim", "persistentvolumeclaims", true, false)),
];

/// The kinds whose absent objects can be findings.
const COMPLETE: [(&str, Kind); 3] = [
    ("services", Kind::Service),
    ("endpointslices", Kind::EndpointSlice),
    ("poddisruptionbudgets", Kind::PodDisruptionBudget),
];

/// The objects of a cluster, and the outcomes of handshakes.
#[derive(Default)]
pub(super) struct LiveSnapshot {
    pub(super) snapshot: Snapshot,
    pub(super) handshakes: Vec<Handshake>,
    /// What the account may not list.
    pub(super) not_listed: Vec<String>,
}

/// Reads the objects of a cluster. Kinds that the account may not list are left out.
pub(super) fn read(arguments: &ClusterArguments) -> Result<LiveSnapshot, Failure> {
    arguments.connected(async |connection| {
        let mut snapshot = Snapshot::new();
        let mut add = |object: Value| snapshot.add(object);
        let notes = list_with(&connection.client, &connection.namespace, &KINDS, &mut add)
            .await
            .with_context(|| format!("API server {}", connection.address))
            .map_err(Failure::Usage)?;
        for (plural, kind) in COMPLETE {
            if !notes.iter().any(|it| it.plural == plural) {
                snapshot.mark_complete(kind);
            }
        }
        let handshakes = handshakes(&snapshot).await;
        Ok(LiveSnapshot {
            snapshot,
            handshakes,
            not_listed: notes.into_iter().map(|it| it.text).collect(),
        })
    })
}
