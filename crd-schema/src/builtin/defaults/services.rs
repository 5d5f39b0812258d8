//! The defaults of services, network policies and autoscalers.

use crate::builtin::fields::{below, default, ensure, is_empty, is_set, items, remove, set, text};
use serde_json::{Value, json};

/// Seconds for which a service sends a client to the same pod.
const AFFINITY_SECONDS: i64 = 10_800;

pub(super) fn set_service(object: &mut Value) {
    let Some(spec) = ensure(object, "spec") else {
        return;
    };
    default(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            remove(spec, "sessionAffinityConfig");
        }
        "ClientIP"
            if spec
                .pointer("/sessionAffinityConfig/clientIP/timeoutSeconds")
                .is_none() =>
        {
            let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
            set(spec, "sessionAffinityConfig", config);
        }
        _ => {}
    }
    default(spec, "type", "ClusterIP");
    for port in items(spec, "ports") {
        default(port, "protocol", "TCP");
        let target = port.get("targetPort");
        if target.is_none_or(|it| it == 0 || it == "" || it.is_null()) {
            let number = port.get("port").cloned().unwrap_or_else(|| 0.into());
            set(port, "targetPort", number);
        }
    }
    let kind = text(spec, "type").to_owned();
    let is_external = matches!(kind.as_str(), "LoadBalancer" | "NodePort")
        || (kind == "ClusterIP" && !is_empty(spec, "externalIPs"));
    if is_external {
        default(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        default(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", true);
        if let Some(balancer) = below(object, &["status", "loadBalancer"]) {
            for ingress in items(balancer, "ingress") {
                if is_set(ingress, "ip") {
                    default(ingress, "ipMode", "VIP");
                }
            }
        }
    }
}

pub(super) fn set_network_policy(object: &mut Value) {
    let Some(spec) = ensure(object, "spec") else {
        return;
    };
    for direction in ["ingress", "egress"] {
        for rule in items(spec, direction) {
            for port in items(rule, "ports") {
                default(port, "protocol", "TCP");
            }
        }
    }
    if is_empty(spec, "policyTypes") {
        let types = if is_empty(spec, "egress") {
            json!(["Ingress"])
        } else {
            json!(["Ingress", "Egress"])
        };
        set(spec, "policyTypes", types);
    }
}

pub(super) fn set_autoscaler(object: &mut Value) {
    let Some(spec) = ensure(object, "spec") else {
        return;
    };
    default(spec, "minReplicas", 1);
    if is_empty(spec, "metrics") {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        set(spec, "metrics", json!([metric]));
    }
    let Some(behavior) = below(spec, &["behavior"]) else {
        return;
    };
    if let Some(rules) = ensure(behavior, "scaleUp") {
        default(rules, "stabilizationWindowSeconds", 0);
        set_scaling_rules(
            rules,
            json!([
                {"type": "Pods", "value": 4, "periodSeconds": 15},
                {"type": "Percent", "value": 100, "periodSeconds": 15},
            ]),
        );
    }
    if let Some(rules) = ensure(behavior, "scaleDown") {
        set_scaling_rules(
            rules,
            json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]),
        );
    }
}

fn set_scaling_rules(rules: &mut Value, policies: Value) {
    default(rules, "selectPolicy", "Max");
    default(rules, "policies", policies);
}
