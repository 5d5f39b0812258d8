//! Computed defaults of services, network policies and RBAC.

use crate::builtin::json::{has_items, is_unset, items_mut, object_at, object_mut, text};
use serde_json::{Map, Value, json};

const CLIENT_IP_SECONDS: i32 = 10_800;

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// Source: `SetDefaults_Service`.
pub(super) fn service(fields: &mut Map<String, Value>) {
    let Some(spec) = object_mut(fields, "spec") else {
        return;
    };
    let has_type = |spec: &Map<String, Value>, name: &str| {
        let given = text(spec, "type");
        given == name || (given.is_empty() && name == "ClusterIP")
    };
    match text(spec, "sessionAffinity") {
        "" | "None" => drop(spec.remove("sessionAffinityConfig")),
        "ClientIP" => {
            let timeout = spec
                .get("sessionAffinityConfig")
                .and_then(|it| it.pointer("/clientIP/timeoutSeconds"));
            if timeout.is_none_or(Value::is_null) {
                let config = json!({"clientIP": {"timeoutSeconds": CLIENT_IP_SECONDS}});
                spec.insert("sessionAffinityConfig".to_owned(), config);
            }
        }
        _ => {}
    }
    for port in items_mut(spec, "ports") {
        let target = port.get("targetPort");
        let is_set = target.is_some_and(|it| *it != 0 && *it != "" && !it.is_null());
        if !is_set && let Some(number) = port.get("port").cloned() {
            port.insert("targetPort".to_owned(), number);
        }
    }
    let is_balancer = has_type(spec, "LoadBalancer");
    let is_internal = has_type(spec, "ClusterIP");
    let is_external = is_balancer
        || has_type(spec, "NodePort")
        || (is_internal && has_items(spec, "externalIPs"));
    if is_external && text(spec, "externalTrafficPolicy").is_empty() {
        spec.insert("externalTrafficPolicy".to_owned(), "Cluster".into());
    }
    if (is_external || is_internal) && is_unset(spec, "internalTrafficPolicy") {
        spec.insert("internalTrafficPolicy".to_owned(), "Cluster".into());
    }
    if is_balancer && is_unset(spec, "allocateLoadBalancerNodePorts") {
        spec.insert("allocateLoadBalancerNodePorts".to_owned(), true.into());
    }
}

/// Source: `SetDefaults_Namespace`.
pub(super) fn namespace(fields: &mut Map<String, Value>) {
    let Some(metadata) = object_mut(fields, "metadata") else {
        return;
    };
    let name = text(metadata, "name").to_owned();
    if name.is_empty() {
        return;
    }
    let labels = metadata
        .entry("labels")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(labels) = labels {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
    }
}

/// Source: `SetDefaults_NetworkPolicy`.
pub(super) fn network_policy(fields: &mut Map<String, Value>) {
    let Some(spec) = object_mut(fields, "spec") else {
        return;
    };
    if has_items(spec, "policyTypes") {
        return;
    }
    let types = if has_items(spec, "egress") {
        json!(["Ingress", "Egress"])
    } else {
        json!(["Ingress"])
    };
    spec.insert("policyTypes".to_owned(), types);
}

/// Source: `SetDefaults_Subject`.
pub(super) fn subject(fields: &mut Map<String, Value>) {
    if text(fields, "apiGroup").is_empty() && matches!(text(fields, "kind"), "User" | "Group") {
        fields.insert("apiGroup".to_owned(), RBAC_GROUP.into());
    }
}

/// The labels of the pod template, if there are any.
pub(super) fn template_labels(spec: &Map<String, Value>) -> Option<&Value> {
    let metadata = object_at(object_at(spec, "template")?, "metadata")?;
    metadata.get("labels").filter(|it| it.is_object())
}
