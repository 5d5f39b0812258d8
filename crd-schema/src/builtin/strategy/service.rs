//! What the API server sets in services: addresses and ports of the stored object, families of addresses.

use crate::builtin::fields::{default, ensure, is_empty, is_set, items, remove, set, text};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Prepares a service, as `pkg/registry/core/service`.
pub(super) fn prepare(object: &mut Value, old: Option<&Value>) {
    let stored = old.and_then(|it| it.get("spec"));
    let Some(spec) = ensure(object, "spec") else {
        return;
    };
    match stored {
        None if is_set(spec, "clusterIP") && is_empty(spec, "clusterIPs") => {
            let address = text(spec, "clusterIP").to_owned();
            set(spec, "clusterIPs", json!([address]));
        }
        None => {}
        Some(stored) => {
            keep_addresses(spec, stored);
            keep_node_ports(spec, stored);
            drop_unused(spec, stored);
        }
    }
    set_families(spec, stored);
}

fn needs_address(spec: &Value) -> bool {
    matches!(
        text(spec, "type"),
        "ClusterIP" | "NodePort" | "LoadBalancer"
    )
}

fn needs_node_ports(spec: &Value) -> bool {
    text(spec, "type") == "NodePort"
        || (text(spec, "type") == "LoadBalancer"
            && spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)))
}

/// Sets addresses that an update leaves out, and the list of addresses of a client that knows only one of them.
fn keep_addresses(spec: &mut Value, stored: &Value) {
    let has_same_list = spec.get("clusterIPs") == stored.get("clusterIPs");
    let address = text(spec, "clusterIP").to_owned();
    let is_changed = address != text(stored, "clusterIP");
    if is_changed && has_same_list {
        if address.is_empty() {
            remove(spec, "clusterIPs");
        } else {
            set(spec, "clusterIPs", json!([address]));
        }
    }
    if needs_address(stored) && needs_address(spec) {
        for key in ["clusterIP", "clusterIPs"] {
            if let Some(value) = stored.get(key).filter(|_| is_empty(spec, key)) {
                set(spec, key, value.clone());
            }
        }
    }
}

/// Sets node ports that an update leaves out, by the names of their ports.
fn keep_node_ports(spec: &mut Value, stored: &Value) {
    if !needs_node_ports(stored) || !needs_node_ports(spec) {
        return;
    }
    let ports = |spec: &Value| {
        let ports = spec.get("ports").and_then(Value::as_array).cloned();
        let ports = ports.unwrap_or_default().into_iter();
        let ports = ports.map(|it| {
            let number = it.get("nodePort").and_then(Value::as_i64);
            (text(&it, "name").to_owned(), number.unwrap_or_default())
        });
        ports.collect::<BTreeMap<String, i64>>()
    };
    let stored = ports(stored);
    let kept: BTreeSet<i64> = ports(spec).into_values().collect();
    for port in items(spec, "ports") {
        let number = stored.get(text(port, "name")).copied().unwrap_or_default();
        if number != 0 && !kept.contains(&number) {
            default(port, "nodePort", number);
        }
    }
}

/// Removes unchanged fields that the new type of the service does not use.
fn drop_unused(spec: &mut Value, stored: &Value) {
    let mut unused: Vec<&str> = Vec::new();
    if needs_address(stored) && !needs_address(spec) {
        unused.extend(["clusterIPs", "clusterIP", "ipFamilies", "ipFamilyPolicy"]);
    }
    if text(stored, "type") == "LoadBalancer" && text(spec, "type") != "LoadBalancer" {
        unused.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    let is_external = |spec: &Value| {
        matches!(text(spec, "type"), "LoadBalancer" | "NodePort") || !is_empty(spec, "externalIPs")
    };
    if is_external(stored) && !is_external(spec) {
        unused.push("externalTrafficPolicy");
    }
    for key in unused {
        if spec.get(key) == stored.get(key) {
            remove(spec, key);
        }
    }
    if needs_node_ports(stored) && !needs_node_ports(spec) {
        let number = |it: &Value| it.get("nodePort").cloned();
        let numbers = |spec: &Value| -> Vec<Option<Value>> {
            let ports = spec.get("ports").and_then(Value::as_array);
            ports.into_iter().flatten().map(number).collect()
        };
        if numbers(spec) == numbers(stored) {
            for port in items(spec, "ports") {
                remove(port, "nodePort");
            }
        }
    }
}

/// The families and the policy of the addresses of a service in a cluster with IPv4 only. The addresses themselves
/// depend on the cluster.
fn set_families(spec: &mut Value, stored: Option<&Value>) {
    if text(spec, "type") == "ExternalName" {
        return;
    }
    let is_headless = text(spec, "clusterIP") == "None";
    let has_selector = spec
        .get("selector")
        .and_then(Value::as_object)
        .is_some_and(|it| !it.is_empty());
    let is_endpointless = is_headless && !has_selector;
    let stored = stored.and_then(|it| it.get("ipFamilyPolicy")).cloned();
    let policy = stored.unwrap_or_else(|| {
        if is_endpointless {
            "RequireDualStack".into()
        } else {
            "SingleStack".into()
        }
    });
    default(spec, "ipFamilyPolicy", policy);
    let families = spec.get("ipFamilies").and_then(Value::as_array);
    let mut families = families.cloned().unwrap_or_default();
    if families.is_empty() {
        families.push("IPv4".into());
    }
    if is_endpointless && families.len() < 2 && text(spec, "ipFamilyPolicy") != "SingleStack" {
        let other = if families.first().is_some_and(|it| it == "IPv4") {
            "IPv6"
        } else {
            "IPv4"
        };
        families.push(other.into());
    }
    set(spec, "ipFamilies", families);
}
