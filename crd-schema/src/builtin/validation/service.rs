//! Services.

use super::addresses::{self, is_dual_stack, sloppy_ip};
use super::causes::{Below, Causes};
use super::fields::{
    annotation, integer, is_set, list, optional_text, text, text_or, texts, value,
};
use super::labels;
use super::pod_spec::{PROTOCOLS, port};
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::net::IpAddr;

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

/// The label of a service that is not in the cluster.
const EXTERNAL: &str = "ExternalName";

const RANGES_ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

fn kind(spec: &Value) -> &str {
    text_or(spec, "type", "ClusterIP")
}

fn is_headless(spec: &Value) -> bool {
    texts(spec, "clusterIPs") == ["None"]
}

fn has_node_ports(spec: &Value) -> bool {
    matches!(kind(spec), "NodePort" | "LoadBalancer")
}

fn is_same(new: &Value, old: &Value, key: &str) -> bool {
    super::fields::is_equal(value(new, key), value(old, key))
}

/// The spec with what the API server sets before it validates.
fn prepared(spec: &Value, old: Option<&Value>) -> Value {
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

fn needs_health_check(spec: &Value) -> bool {
    kind(spec) == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

/// Validates a service without its metadata. Returns whether the addresses are valid; without them the API server
/// validates nothing else.
pub(super) fn validate_addresses(object: &Value, old: Option<&Value>, out: &mut Causes) -> bool {
    let old = old.map(|it| value(it, "spec"));
    let spec = prepared(value(object, "spec"), old);
    let before = out.len();
    cluster_ips(&spec, old, out);
    if out.len() == before && kind(&spec) != EXTERNAL {
        family_policy(&spec, out);
    }
    out.len() == before
}

fn family_policy(spec: &Value, out: &mut Causes) {
    let is_headless = text(spec, "clusterIP") == "None" && !is_set(spec, "selector");
    let policy = text(spec, "ipFamilyPolicy");
    let is_single = policy == "SingleStack" || policy.is_empty() && !is_headless;
    let is_many = ["clusterIPs", "ipFamilies"]
        .iter()
        .any(|it| list(spec, it).len() == 2);
    if is_single && is_many {
        out.invalid(
            FieldPath::new("spec.ipFamilyPolicy"),
            "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs or IP families are specified",
        );
    }
}

/// Validates the spec of a service.
pub(super) fn validate(object: &Value, old: Option<&Value>, out: &mut Causes) {
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

fn external_ips(spec: &Value, old: Option<&Value>, path: &FieldPath, out: &mut Causes) {
    let stored = old.map_or_else(Vec::new, |it| texts(it, "externalIPs"));
    for (position, text) in texts(spec, "externalIPs").into_iter().enumerate() {
        let path = path.child("externalIPs").at(position);
        let reasons = addresses::ip(text);
        if !reasons.is_empty() && !stored.contains(&text) {
            out.reasons(&path, text, reasons);
            continue;
        }
        let is_reserved = sloppy_ip(text).is_some_and(|it| match it {
            IpAddr::V4(it) => {
                it.is_unspecified()
                    || it.is_loopback()
                    || it.is_link_local()
                    || it.octets().starts_with(&[224, 0, 0])
            }
            IpAddr::V6(it) => {
                let first = it.segments().first().copied().unwrap_or(0);
                it.is_unspecified()
                    || it.is_loopback()
                    || first & 0xffc0 == 0xfe80
                    || first & 0xff0f == 0xff02
            }
        });
        if is_reserved {
            out.invalid(
                path,
                "may not be unspecified, or in the loopback or link-local range",
            );
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

/// Validates addresses in the cluster and their families.
fn cluster_ips(spec: &Value, old: Option<&Value>, out: &mut Causes) {
    if kind(spec) == EXTERNAL {
        return;
    }
    let path = FieldPath::new("spec");
    let field = path.child("clusterIPs");
    let (first, all) = (text(spec, "clusterIP"), texts(spec, "clusterIPs"));
    if first.is_empty() && !all.is_empty() {
        out.invalid(
            field.clone(),
            "must be empty when `clusterIP` is not specified",
        );
    } else if !first.is_empty() && all.is_empty() {
        out.required(field.clone(), "");
    } else if all.first().is_some_and(|it| *it != first) {
        out.invalid(field.clone(), "first value must match `clusterIP`");
    }
    let families = texts(spec, "ipFamilies");
    for (position, family) in families.iter().enumerate() {
        let path = path.child("ipFamilies").at(position);
        out.one_of(path.clone(), family, &["IPv4", "IPv6"]);
        if families.iter().take(position).any(|it| it == family) {
            out.duplicate(path, family);
        }
    }
    let policy = optional_text(spec, "ipFamilyPolicy");
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    out.optional(path.child("ipFamilyPolicy"), policy, &policies);
    let stored = old.map_or_else(Vec::new, |it| texts(it, "clusterIPs"));
    let mut is_invalid = false;
    for (position, address) in all.iter().enumerate() {
        if position == 0 && *address == "None" {
            if all.len() > 1 {
                is_invalid = true;
                out.invalid(field.clone(), "'None' must be the first and only value");
            }
            continue;
        }
        if !stored.contains(address) {
            let reasons = addresses::ip(address);
            is_invalid |= !reasons.is_empty();
            out.reasons(&field.at(position), address, reasons);
        }
    }
    if all.len() > 2 {
        out.invalid(field.clone(), "may only hold up to 2 values");
    }
    if is_invalid {
        return;
    }
    if all.len() > 1 && !is_dual_stack(&all) {
        out.invalid(
            field.clone(),
            "may specify no more than one IP for each IP family",
        );
    }
    if is_headless(spec) {
        return;
    }
    for (position, (address, family)) in all.iter().zip(&families).enumerate() {
        let is_new = address.contains(':');
        if *family == "IPv4" && is_new || *family == "IPv6" && !is_new {
            let detail = format!("expected an {family} value as indicated by `ipFamilies`");
            out.invalid(field.at(position), detail);
        }
    }
}

/// Validates that an update keeps the first address and family.
fn immutable_addresses(spec: &Value, old: &Value, out: &mut Causes) {
    if kind(spec) == EXTERNAL || kind(old) == EXTERNAL {
        return;
    }
    let path = FieldPath::new("spec");
    let is_single = text(spec, "ipFamilyPolicy") == "SingleStack";
    let headless = (is_headless(spec), is_headless(old));
    for key in ["clusterIPs", "ipFamilies"] {
        let is_address = key == "clusterIPs";
        if headless == (true, true) || !is_address && headless.0 != headless.1 {
            continue;
        }
        let field = path.child(key);
        let (new, stored) = (texts(spec, key), texts(old, key));
        let first = |detail: &'static str, out: &mut Causes| out.invalid(field.at(0), detail);
        if new.len() == stored.len() {
            for (position, _) in new
                .iter()
                .zip(&stored)
                .enumerate()
                .filter(|it| it.1.0 != it.1.1)
            {
                let position = if is_address { position } else { 0 };
                out.invalid(field.at(position), "may not change once set");
            }
            continue;
        }
        if !stored.is_empty() && !new.is_empty() && new.first() != stored.first() {
            first("may not change once set", out);
        }
        if stored.len() > new.len() {
            if new.is_empty() {
                first("the first value can not be unset", out);
            }
            if new.len() == 1 && !is_single {
                let detail = "must be set to 'SingleStack' when releasing the secondary value";
                out.invalid(path.child("ipFamilyPolicy"), detail);
            }
        }
    }
}
