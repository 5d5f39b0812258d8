//! The spec of a service, and what the API server sets in it before it validates.

use crate::builtin::validation::fields::{
    integer, is_equal, is_set, list, text, text_or, texts, value,
};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The label of a service that is not in the cluster.
pub(super) const EXTERNAL: &str = "ExternalName";

/// The type of a service.
pub(super) fn kind(spec: &Value) -> &str {
    text_or(spec, "type", "ClusterIP")
}

/// Whether a service has no address.
pub(super) fn is_headless(spec: &Value) -> bool {
    texts(spec, "clusterIPs") == ["None"]
}

/// Whether a service has ports of nodes.
pub(super) fn has_node_ports(spec: &Value) -> bool {
    matches!(kind(spec), "NodePort" | "LoadBalancer")
}

/// Whether a field of two specs is equal.
pub(super) fn is_same(new: &Value, old: &Value, key: &str) -> bool {
    is_equal(value(new, key), value(old, key))
}

/// The spec with what the API server sets before it validates.
pub(super) fn prepared(spec: &Value, old: Option<&Value>) -> Value {
    let mut out = spec.as_object().cloned().unwrap_or_default();
    match old {
        None => {
            if list(spec, "clusterIPs").is_empty() && !text(spec, "clusterIP").is_empty() {
                let addresses = Value::Array(vec![value(spec, "clusterIP").clone()]);
                out.insert("clusterIPs".to_owned(), addresses);
            }
        }
        Some(old) => keep_allocated(spec, old, &mut out),
    }
    Value::Object(out)
}

fn keep_allocated(spec: &Value, old: &Value, out: &mut Map<String, Value>) {
    let mut keep = |key: &str| {
        out.insert(key.to_owned(), value(old, key).clone());
    };
    let is_internal = kind(spec) != EXTERNAL;
    if is_internal && kind(old) != EXTERNAL {
        if text(spec, "clusterIP").is_empty() {
            keep("clusterIP");
        }
        if list(spec, "clusterIPs").is_empty() {
            keep("clusterIPs");
        }
        if !is_set(spec, "ipFamilyPolicy") {
            keep("ipFamilyPolicy");
        }
        if list(spec, "ipFamilies").is_empty() {
            keep("ipFamilies");
        }
    }
    if integer(spec, "healthCheckNodePort").unwrap_or(0) == 0 && needs_health_check(spec) {
        keep("healthCheckNodePort");
    }
    let merged = Value::Object(out.clone());
    let addresses_same = is_same(&merged, old, "clusterIPs");
    if text(&merged, "clusterIP") != text(old, "clusterIP") && addresses_same {
        let address = Value::Array(vec![value(&merged, "clusterIP").clone()]);
        out.insert("clusterIPs".to_owned(), address);
    }
    drop_dependent(spec, old, out);
}

/// Removes the fields that a changed type no longer has, if the update does not change them.
fn drop_dependent(spec: &Value, old: &Value, out: &mut Map<String, Value>) {
    let mut drop = |key: &str| {
        if is_same(spec, old, key) {
            out.remove(key);
        }
    };
    if kind(spec) == EXTERNAL && kind(old) != EXTERNAL {
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            drop(key);
        }
    }
    if kind(old) == "LoadBalancer" && kind(spec) != "LoadBalancer" {
        for key in [
            "allocateLoadBalancerNodePorts",
            "loadBalancerClass",
            "healthCheckNodePort",
        ] {
            drop(key);
        }
    }
    if has_node_ports(old) && !has_node_ports(spec) {
        drop("externalTrafficPolicy");
        let old_ports: BTreeSet<i64> = list(old, "ports")
            .iter()
            .filter_map(|it| integer(it, "nodePort"))
            .collect();
        let mut new_ports = list(spec, "ports")
            .iter()
            .filter_map(|it| integer(it, "nodePort"));
        if new_ports.all(|it| old_ports.contains(&it))
            && let Some(Value::Array(ports)) = out.get_mut("ports")
        {
            for port in ports.iter_mut().filter_map(Value::as_object_mut) {
                port.remove("nodePort");
            }
        }
    }
}

/// Whether a service has a port for health checks.
pub(super) fn needs_health_check(spec: &Value) -> bool {
    kind(spec) == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}
