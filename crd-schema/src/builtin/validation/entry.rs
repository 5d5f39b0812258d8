//! Finds the validation of a kind.

use super::causes::Causes;
use super::metadata::{self, MetaRules};
use super::{
    admission_policies, autoscaling, networking, pods, policies, service, storage, volume_claims,
    webhooks, workloads,
};
use crate::finding::Finding;
use serde_json::Value;

/// Namespaced kinds whose names are subdomains.
const NAMESPACED: MetaRules = MetaRules {
    is_namespaced: true,
    name: metadata::subdomain,
    checks_finalizers: true,
};

/// Validates a decoded object of a kind; `old` is the stored object of an update. A kind without validation has no
/// causes.
#[must_use]
pub(crate) fn validate(
    group: &str,
    kind: &str,
    object: &Value,
    old: Option<&Value>,
) -> Vec<Finding> {
    let mut out = Causes::default();
    if (group, kind) == ("", "Service") && !service::validate_addresses(object, old, &mut out) {
        return out.into_findings();
    }
    let Some(rules) = meta_rules(group, kind) else {
        return Vec::new();
    };
    match old {
        // Budgets have only the metadata validation of all kinds, which follows that of the spec.
        None if kind == "PodDisruptionBudget" => {
            policies::validate_budget(object, None, &mut out);
            if out.len() == 0 {
                metadata::validate_new(object, rules, &mut out);
            }
            return out.into_findings();
        }
        None => metadata::validate_new(object, rules, &mut out),
        Some(old) => metadata::validate_change(object, old, rules, &mut out),
    }
    validate_kind(group, kind, object, old, &mut out);
    out.into_findings()
}

/// The rules for the metadata of a kind.
fn meta_rules(group: &str, kind: &str) -> Option<MetaRules> {
    let cluster = MetaRules {
        is_namespaced: false,
        ..NAMESPACED
    };
    Some(match (group, kind) {
        ("", "Pod" | "ConfigMap" | "Secret" | "ServiceAccount" | "PersistentVolumeClaim")
        | ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job" | "CronJob")
        | ("networking.k8s.io", "Ingress" | "NetworkPolicy")
        | ("autoscaling", "HorizontalPodAutoscaler") => NAMESPACED,
        ("", "Service") => MetaRules {
            name: metadata::label,
            ..NAMESPACED
        },
        ("policy", "PodDisruptionBudget") => MetaRules {
            name: metadata::path_segment,
            checks_finalizers: false,
            ..NAMESPACED
        },
        ("rbac.authorization.k8s.io", "Role" | "RoleBinding") => MetaRules {
            name: metadata::path_segment,
            ..NAMESPACED
        },
        ("rbac.authorization.k8s.io", "ClusterRole" | "ClusterRoleBinding") => MetaRules {
            name: metadata::path_segment,
            ..cluster
        },
        ("scheduling.k8s.io", "PriorityClass") => cluster,
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration"
            | "MutatingWebhookConfiguration"
            | "ValidatingAdmissionPolicy"
            | "ValidatingAdmissionPolicyBinding"
            | "MutatingAdmissionPolicy"
            | "MutatingAdmissionPolicyBinding",
        ) => MetaRules {
            checks_finalizers: false,
            ..cluster
        },
        _ => return None,
    })
}

fn validate_kind(group: &str, kind: &str, object: &Value, old: Option<&Value>, out: &mut Causes) {
    match (group, kind) {
        ("", "Pod") => pods::validate(object, old, out),
        ("", "ConfigMap") => storage::validate_config_map(object, old, out),
        ("", "Secret") => storage::validate_secret(object, old, out),
        ("", "PersistentVolumeClaim") => volume_claims::validate(object, old, out),
        ("", "Service") => service::validate(object, old, out),
        ("apps", "Deployment") => workloads::validate_deployment(object, old, out),
        ("apps", "ReplicaSet") => workloads::validate_replica_set(object, old, out),
        ("apps", "StatefulSet") => workloads::validate_stateful_set(object, old, out),
        ("apps", "DaemonSet") => workloads::validate_daemon_set(object, old, out),
        ("batch", "Job") => workloads::validate_job(object, old, out),
        ("batch", "CronJob") => workloads::validate_cron_job(object, old, out),
        (_, "Ingress") => networking::validate_ingress(object, old, out),
        (_, "NetworkPolicy") => networking::validate_policy(object, old, out),
        (_, "HorizontalPodAutoscaler") => autoscaling::validate(object, old, out),
        (_, "PodDisruptionBudget") => policies::validate_budget(object, old, out),
        (_, "Role") => policies::validate_role(object, true, out),
        (_, "ClusterRole") => {
            policies::validate_role(object, false, out);
            policies::validate_aggregation(object, old, out);
        }
        (_, "RoleBinding") => policies::validate_binding(object, old, true, out),
        (_, "ClusterRoleBinding") => policies::validate_binding(object, old, false, out),
        (_, "PriorityClass") => policies::validate_priority_class(object, old, out),
        (_, "ValidatingWebhookConfiguration") => webhooks::validate(object, old, false, out),
        (_, "MutatingWebhookConfiguration") => webhooks::validate(object, old, true, out),
        (_, "ValidatingAdmissionPolicy") => admission_policies::validate_validating(object, out),
        (_, "MutatingAdmissionPolicy") => admission_policies::validate_mutating(object, out),
        (_, "ValidatingAdmissionPolicyBinding") => {
            admission_policies::validate_binding(object, false, out);
        }
        (_, "MutatingAdmissionPolicyBinding") => {
            admission_policies::validate_binding(object, true, out);
        }
        _ => {}
    }
}
