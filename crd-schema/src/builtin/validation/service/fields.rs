//! The fields of services.

use super::cluster_ips::{cluster_ips, external_ips, family_policy, immutable_addresses};
use super::spec::{
    EXTERNAL, has_node_ports, is_headless, is_same, kind, needs_health_check, prepared,
};
use crate::builtin::validation::addresses;
use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{
    annotation, integer, is_set, list, optional_text, text, text_or, texts, value,
};
use crate::builtin::validation::labels;
use crate::builtin::validation::pod_spec::{PROTOCOLS, port};
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::collections::BTreeSet;

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

const RANGES_ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// Validates a service without its metadata. Returns whether the addresses are valid; without them the API server
/// validates nothing else.
pub(in super::super) fn validate_addresses(
    object: &Value,
    old: Option<&Value>,
    out: &mut Causes,
) -> bool {
    let old = old.map(|it| value(it, "spec"));
    let spec = prepared(value(object, "spec"), old);
    let before = out.len();
    cluster_ips(&spec, old, out);
    if out.len() == before && kind(&spec) != EXTERNAL {
        family_policy(&spec, out);
    }
    out.len() == before
}

/// Validates the spec of a service.
pub(in super::super) fn validate(object: &Value, old: Option<&Value>, out: &mut Causes) {
    let stored = old.map(|it| value(it, "spec"));
    let spec = &prepared(value(object, "spec"), stored);
    if let Some(stored) = stored {
        immutable_addresses(spec, stored, out);
        if kind(spec) == "LoadBalancer" && kind(stored) == "LoadBalancer" {
            if !is_same(spec, stored, "loadBalancerClass") {
                out.invalid(
                    FieldPath::new("spec.loadBalancerClass"),
                    "may not change once set",
                );
            }
            let ports = [spec, stored].map(needs_health_check) == [true; 2];
            if ports && !is_same(spec, stored, "healthCheckNodePort") {
                out.forbidden(
                    FieldPath::new("spec.healthCheckNodePort"),
                    "field is immutable",
                );
            }
        }
    }
    let path = FieldPath::new("spec");
    let hints = annotation(object, "service.kubernetes.io/topology-aware-hints");
    let mode = annotation(object, "service.kubernetes.io/topology-mode");
    if hints.is_some() && mode.is_some() && hints != mode {
        let path =
            FieldPath::new("metadata.annotations").key("service.kubernetes.io/topology-mode");
        out.invalid(
            path,
            "must match the annotation of hints when both are specified",
        );
    }
    by_type(spec, &path, out);
    ports(spec, &path, out);
    labels::validate(spec, "selector", &path, out);
    session_affinity(spec, &path, out);
    cluster_ips(spec, stored, out);
    external_ips(spec, stored, &path, out);
    out.one_of(path.child("type"), kind(spec), TYPES);
    source_ranges(object, spec, old, &path, out);
    traffic(spec, &path, out);
}

fn by_type(spec: &Value, path: &FieldPath, out: &mut Causes) {
    let kind = kind(spec);
    if list(spec, "ports").is_empty() && !is_headless(spec) && kind != EXTERNAL {
        out.required(path.child("ports"), "");
    }
    if has_node_ports(spec) && is_headless(spec) {
        let detail = format!("may not be set to 'None' for {kind} services");
        out.invalid(path.child("clusterIPs").at(0), detail);
    }
    if kind == EXTERNAL {
        for key in ["clusterIPs", "ipFamilies"] {
            if !list(spec, key).is_empty() {
                out.forbidden(path.child(key), "may not be set for ExternalName services");
            }
        }
        if is_set(spec, "ipFamilyPolicy") {
            let detail = "may not be set for ExternalName services";
            out.forbidden(path.child("ipFamilyPolicy"), detail);
        }
        let name = text(spec, "externalName");
        let name = name.strip_suffix('.').unwrap_or(name);
        let field = path.child("externalName");
        if name.is_empty() {
            out.required(field, "");
        } else {
            out.reasons(&field, name, names::dns1123_subdomain(name));
        }
    }
    let detail = "may only be used when `type` is 'LoadBalancer'";
    if kind != "LoadBalancer" {
        for key in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if is_set(spec, key) {
                out.forbidden(path.child(key), detail);
            }
        }
    } else if let Some(class) = optional_text(spec, "loadBalancerClass") {
        out.reasons(
            &path.child("loadBalancerClass"),
            class,
            names::qualified_name(class),
        );
    }
}

fn ports(spec: &Value, path: &FieldPath, out: &mut Causes) {
    let all = list(spec, "ports");
    let (mut port_names, mut numbers, mut node_ports) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (position, item) in all.iter().enumerate() {
        let path = path.child("ports").at(position);
        let name = text(item, "name");
        if name.is_empty() && all.len() > 1 {
            out.required(path.child("name"), "");
        } else if !name.is_empty() {
            out.reasons(&path.child("name"), name, names::dns1123_label(name));
            if !port_names.insert(name) {
                out.duplicate(path.child("name"), name);
            }
        }
        let number = integer(item, "port").unwrap_or(0);
        out.range(path.child("port"), Some(number), 1, 65535);
        let protocol = text_or(item, "protocol", "TCP");
        out.one_of(path.child("protocol"), protocol, PROTOCOLS);
        let target = match value(item, "targetPort") {
            Value::String(name) if !name.is_empty() => value(item, "targetPort"),
            Value::Number(_) if integer(item, "targetPort") != Some(0) => value(item, "targetPort"),
            _ => value(item, "port"),
        };
        port(target, &path.child("targetPort"), out);
        if let Some(name) = optional_text(item, "appProtocol") {
            out.reasons(
                &path.child("appProtocol"),
                name,
                names::qualified_name(name),
            );
        }
        let node_port = integer(item, "nodePort").unwrap_or(0);
        if node_port != 0 {
            if kind(spec) == "ClusterIP" {
                let detail = "may not be used when `type` is 'ClusterIP'";
                out.forbidden(path.child("nodePort"), detail);
            }
            if !node_ports.insert((protocol, node_port)) {
                out.duplicate(path.child("nodePort"), &node_port.to_string());
            }
        }
        if !numbers.insert((protocol, number)) {
            out.duplicate(path, &number.to_string());
        }
    }
}

fn session_affinity(spec: &Value, path: &FieldPath, out: &mut Causes) {
    let affinity = text_or(spec, "sessionAffinity", "None");
    out.one_of(
        path.child("sessionAffinity"),
        affinity,
        &["ClientIP", "None"],
    );
    if affinity == "ClientIP" {
        let client = value(value(spec, "sessionAffinityConfig"), "clientIP");
        if integer(client, "timeoutSeconds").is_some_and(|it| !(1..=86400).contains(&it)) {
            let path = path.child("sessionAffinityConfig.clientIP.timeoutSeconds");
            out.invalid(path, "must be greater than 0 and less than 86400");
        }
    }
}

fn source_ranges(
    object: &Value,
    spec: &Value,
    old: Option<&Value>,
    path: &FieldPath,
    out: &mut Causes,
) {
    let detail = "may only be used when `type` is 'LoadBalancer'";
    let is_balanced = kind(spec) == "LoadBalancer";
    let ranges = texts(spec, "loadBalancerSourceRanges");
    let field = path.child("LoadBalancerSourceRanges");
    if !ranges.is_empty() {
        if !is_balanced {
            out.forbidden(field.clone(), detail);
        }
        let stored = old.map_or(&Value::Null, |it| value(it, "spec"));
        let stored = texts(stored, "loadBalancerSourceRanges");
        for (position, range) in ranges.iter().enumerate() {
            let range = range.trim();
            if !stored.iter().any(|it| it.trim() == range) {
                out.reasons(&field.at(position), range, addresses::cidr(range));
            }
        }
    } else if let Some(ranges) = annotation(object, RANGES_ANNOTATION) {
        let field = FieldPath::new("metadata.annotations").key(RANGES_ANNOTATION);
        if !is_balanced {
            out.forbidden(field.clone(), detail);
        }
        let stored = old.and_then(|it| annotation(it, RANGES_ANNOTATION));
        if stored != Some(ranges) && !ranges.trim().is_empty() {
            for range in ranges.split(',').map(str::trim) {
                out.reasons(&field, range, addresses::cidr(range));
            }
        }
    }
}

fn traffic(spec: &Value, path: &FieldPath, out: &mut Causes) {
    let is_external =
        has_node_ports(spec) || kind(spec) == "ClusterIP" && !list(spec, "externalIPs").is_empty();
    let policy = text(spec, "externalTrafficPolicy");
    let field = path.child("externalTrafficPolicy");
    if !is_external && !policy.is_empty() {
        out.invalid(field, "may only be set for externally-accessible services");
    } else if !policy.is_empty() {
        out.one_of(field, policy, &["Cluster", "Local"]);
    }
    let health = integer(spec, "healthCheckNodePort").unwrap_or(0);
    let field = path.child("healthCheckNodePort");
    if !needs_health_check(spec) && health != 0 {
        out.invalid(
            field,
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
        );
    } else if health != 0 {
        out.range(field, Some(health), 1, 65535);
    }
    let policy = optional_text(spec, "internalTrafficPolicy");
    out.optional(
        path.child("internalTrafficPolicy"),
        policy,
        &["Cluster", "Local"],
    );
    let distribution = optional_text(spec, "trafficDistribution");
    let accepted = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    out.optional(path.child("trafficDistribution"), distribution, &accepted);
}
