//! Sets the defaults of built-in kinds, as `pkg/apis/*/v1/defaults.go` and `zz_generated.defaults.go` do.

mod containers;
mod image;
mod pod;
mod resources;
mod services;
mod volumes;
mod webhooks;
mod workloads;

use super::fields::{default, items, set, text};
use super::kind::BuiltInKind;
use serde_json::Value;

pub(super) use resources::set_pod_level_resources;

/// Sets the defaults of a decoded object. Idempotent.
pub(super) fn set_defaults(kind: BuiltInKind, object: &mut Value) {
    match (kind.api_version(), kind.name()) {
        ("v1", "Pod") => pod::set_pod(object),
        ("v1", "PodTemplate") => pod::set_template(object, &["template"]),
        ("v1", "Service") => services::set_service(object),
        ("v1", "PersistentVolumeClaim") => volumes::set_claim(object),
        ("v1", "Secret") => default(object, "type", "Opaque"),
        ("v1", "ReplicationController") => workloads::set_replication_controller(object),
        ("apps/v1", "Deployment") => workloads::set_deployment(object),
        ("apps/v1", "DaemonSet") => workloads::set_daemon_set(object),
        ("apps/v1", "StatefulSet") => workloads::set_stateful_set(object),
        ("apps/v1", "ReplicaSet") => workloads::set_replica_set(object),
        ("batch/v1", "Job") => workloads::set_job(object),
        ("batch/v1", "CronJob") => workloads::set_cron_job(object),
        ("autoscaling/v2", "HorizontalPodAutoscaler") => services::set_autoscaler(object),
        ("networking.k8s.io/v1", "NetworkPolicy") => services::set_network_policy(object),
        ("rbac.authorization.k8s.io/v1", "RoleBinding" | "ClusterRoleBinding") => {
            set_role_binding(object);
        }
        ("scheduling.k8s.io/v1", "PriorityClass") => {
            default(object, "preemptionPolicy", "PreemptLowerPriority");
        }
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration") => {
            webhooks::set_webhooks(object, false);
        }
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration") => {
            webhooks::set_webhooks(object, true);
        }
        _ => {}
    }
}

fn set_role_binding(object: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    if let Some(reference) = object.get_mut("roleRef") {
        default(reference, "apiGroup", GROUP);
    }
    for subject in items(object, "subjects") {
        if text(subject, "apiGroup").is_empty() && matches!(text(subject, "kind"), "User" | "Group")
        {
            set(subject, "apiGroup", GROUP);
        }
    }
}
