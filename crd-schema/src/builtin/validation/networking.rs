//! Ingresses and `NetworkPolicy`s.

use super::addresses::{self, Network, sloppy_ip};
use super::causes::{Below, Causes};
use super::fields::{
    annotation, integer, integer_of, is_set, list, optional_text, set, text, texts, value,
};
use super::formats::{port_name, wildcard_subdomain};
use super::labels::{LabelValues, is_valid_selector, validate_selector};
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

fn ip_block(block: &Value, stored: &[&str], path: &FieldPath, out: &mut Causes) {
    let range = text(block, "cidr");
    let field = path.child("cidr");
    if range.is_empty() {
        out.required(field, "");
        return;
    }
    if !stored.contains(&range) {
        out.reasons(&field, range, addresses::cidr(range));
    }
    let Some(network) = Network::parse(range) else {
        return;
    };
    for (position, range) in texts(block, "except").into_iter().enumerate() {
        let field = path.child("except").at(position);
        if !stored.contains(&range) {
            out.reasons(&field, range, addresses::cidr(range));
        }
        let Some(except) = Network::parse(range) else {
            continue;
        };
        if !network.contains(&except) || network.length >= except.length {
            out.invalid(field, "must be a strict subset of `cidr`");
        }
    }
}

fn peer(peer: &Value, values: LabelValues, stored: &[&str], path: &FieldPath, out: &mut Causes) {
    let mut count: usize = 0;
    for key in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = set(peer, key) {
            count = count.saturating_add(1);
            validate_selector(selector, values, &path.child(key), out);
        }
    }
    match set(peer, "ipBlock") {
        Some(block) => {
            ip_block(block, stored, &path.child("ipBlock"), out);
            if count > 0 {
                out.forbidden(
                    path.clone(),
                    "may not specify both ipBlock and another peer",
                );
            }
        }
        None if count == 0 => out.required(path.clone(), "must specify a peer"),
        None => {}
    }
}

fn policy_port(port: &Value, path: &FieldPath, out: &mut Causes) {
    let protocol = optional_text(port, "protocol");
    out.optional(path.child("protocol"), protocol, &["TCP", "UDP", "SCTP"]);
    let end = integer(port, "endPort");
    let end_field = path.child("endPort");
    match set(port, "port") {
        Some(Value::String(name)) => {
            if end.is_some() {
                out.invalid(end_field, "may not be specified when `port` is non-numeric");
            }
            out.reasons(&path.child("port"), name, port_name(name));
        }
        Some(number) => {
            let number = integer_of(number).unwrap_or(0);
            out.range(path.child("port"), Some(number), 1, 65535);
            if end.is_some_and(|it| it < number) {
                let detail = "must be greater than or equal to `port`";
                out.invalid(end_field.clone(), detail);
            }
            out.range(end_field, end, 1, 65535);
        }
        None if end.is_some() => {
            out.invalid(
                end_field,
                "may not be specified when `port` is not specified",
            );
        }
        None => {}
    }
}

/// The networks of a stored policy, which need not be valid.
fn networks(spec: &Value) -> Vec<&str> {
    let rules = [("ingress", "from"), ("egress", "to")].into_iter();
    let peers = rules
        .flat_map(|(rules, peers)| list(spec, rules).iter().flat_map(move |it| list(it, peers)));
    let blocks = peers.filter_map(|it| set(it, "ipBlock"));
    blocks
        .flat_map(|it| std::iter::once(text(it, "cidr")).chain(texts(it, "except")))
        .collect()
}

/// Validates a `NetworkPolicy`.
pub(super) fn validate_policy(object: &Value, old: Option<&Value>, out: &mut Causes) {
    let (spec, old) = (value(object, "spec"), old.map(|it| value(it, "spec")));
    let path = FieldPath::new("spec");
    let stored = old.map(networks).unwrap_or_default();
    let accepts = old.is_some_and(|it| !is_valid_selector(value(it, "podSelector")));
    let values = if accepts {
        LabelValues::AnyAccepted
    } else {
        LabelValues::Validated
    };
    validate_selector(
        value(spec, "podSelector"),
        values,
        &path.child("podSelector"),
        out,
    );
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for (position, rule) in list(spec, rules).iter().enumerate() {
            let path = path.child(rules).at(position);
            for (position, port) in list(rule, "ports").iter().enumerate() {
                policy_port(port, &path.child("ports").at(position), out);
            }
            for (position, item) in list(rule, peers).iter().enumerate() {
                peer(item, values, &stored, &path.child(peers).at(position), out);
            }
        }
    }
    let types = texts(spec, "policyTypes");
    let path = path.child("policyTypes");
    if types.len() > 2 {
        out.invalid(path, "may not specify more than two policyTypes");
        return;
    }
    for (position, kind) in types.iter().enumerate() {
        out.one_of(path.at(position), kind, &["Ingress", "Egress"]);
    }
}

fn host(name: &str, path: &FieldPath, out: &mut Causes) {
    let reasons = if name.contains('*') {
        wildcard_subdomain(name)
    } else {
        names::dns1123_subdomain(name)
    };
    out.reasons(path, name, reasons);
}

fn backend(backend: &Value, path: &FieldPath, out: &mut Causes) {
    match (set(backend, "resource"), set(backend, "service")) {
        (Some(_), Some(_)) => {
            out.invalid(
                path.clone(),
                "cannot set both resource and service backends",
            );
        }
        (Some(resource), None) => resource_backend(resource, &path.child("resource"), out),
        (None, Some(service)) => service_backend(service, path, out),
        (None, None) => out.invalid(path.clone(), "resource or service backend is required"),
    }
}

fn resource_backend(resource: &Value, path: &FieldPath, out: &mut Causes) {
    if let Some(group) = optional_text(resource, "apiGroup") {
        out.reasons(
            &path.child("apiGroup"),
            group,
            names::dns1123_subdomain(group),
        );
    }
    for key in ["kind", "name"] {
        let name = text(resource, key);
        if name.is_empty() {
            out.required(path.child(key), "");
        } else {
            out.reasons(&path.child(key), name, names::path_segment(name, false));
        }
    }
}

fn service_backend(service: &Value, path: &FieldPath, out: &mut Causes) {
    let name = text(service, "name");
    let field = path.child("service.name");
    if name.is_empty() {
        out.required(field, "");
    } else {
        out.reasons(&field, name, names::dns1123_label(name));
    }
    let port = value(service, "port");
    let (name, number) = (text(port, "name"), integer(port, "number").unwrap_or(0));
    if !name.is_empty() && number != 0 {
        out.invalid(path.clone(), "cannot set both port name & port number");
    } else if !name.is_empty() {
        out.reasons(&path.child("service.port.name"), name, port_name(name));
    } else if number != 0 {
        out.range(path.child("service.port.number"), Some(number), 1, 65535);
    } else {
        out.required(path.clone(), "port name or number is required");
    }
}

fn http(http: &Value, path: &FieldPath, out: &mut Causes) {
    let path = path.child("paths");
    let paths = list(http, "paths");
    if paths.is_empty() {
        out.required(path.clone(), "");
    }
    for (position, item) in paths.iter().enumerate() {
        let path = path.at(position);
        let field = path.child("path");
        let prefix = text(item, "path");
        let Some(kind) = optional_text(item, "pathType") else {
            out.required(path.child("pathType"), "pathType must be specified");
            continue;
        };
        match kind {
            "Exact" | "Prefix" => {
                if !prefix.starts_with('/') {
                    out.invalid(field.clone(), "must be an absolute path");
                }
                let is_wrong = ["//", "/./", "/../", "%2f", "%2F"]
                    .iter()
                    .any(|it| prefix.contains(it))
                    || prefix.ends_with("/..")
                    || prefix.ends_with("/.");
                if is_wrong {
                    out.invalid(field, "must not contain '//', '/./', '/../' or '%2f'");
                }
            }
            "ImplementationSpecific" => {
                if !prefix.is_empty() && !prefix.starts_with('/') {
                    out.invalid(field, "must be an absolute path");
                }
            }
            other => {
                let kinds = ["Exact", "ImplementationSpecific", "Prefix"];
                out.not_supported(path.child("pathType"), other, &kinds);
            }
        }
        backend(value(item, "backend"), &path.child("backend"), out);
    }
}

/// Whether a stored Ingress has a rule for a wildcard host that is not valid.
fn accepts_wildcard_rules(old: &Value) -> bool {
    list(old, "rules").iter().any(|rule| {
        let mut causes = Causes::default();
        if let Some(rule) = set(rule, "http") {
            http(rule, &FieldPath::default(), &mut causes);
        }
        text(rule, "host").contains('*') && causes.len() > 0
    })
}

/// Validates an Ingress.
pub(super) fn validate_ingress(object: &Value, old: Option<&Value>, out: &mut Causes) {
    let (spec, old) = (value(object, "spec"), old.map(|it| value(it, "spec")));
    let path = FieldPath::new("spec");
    let rules = list(spec, "rules");
    let default = set(spec, "defaultBackend");
    if rules.is_empty() && default.is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        out.invalid(path.clone(), detail);
    }
    if let Some(default) = default {
        backend(default, &path.child("defaultBackend"), out);
    }
    let accepts_wildcards = old.is_some_and(accepts_wildcard_rules);
    for (position, rule) in rules.iter().enumerate() {
        let path = path.child("rules").at(position);
        let name = text(rule, "host");
        if !name.is_empty() {
            if sloppy_ip(name).is_some() {
                out.invalid(path.child("host"), "must be a DNS name, not an IP address");
            }
            host(name, &path.child("host"), out);
        }
        if let Some(rule) = set(rule, "http")
            && !(name.contains('*') && accepts_wildcards)
        {
            http(rule, &path.child("http"), out);
        }
    }
    let is_secret = |it: &str| it.is_empty() || names::dns1123_subdomain(it).is_empty();
    let accepts_secrets = old.is_some_and(|it| {
        !list(it, "tls")
            .iter()
            .all(|it| is_secret(text(it, "secretName")))
    });
    for (position, tls) in list(spec, "tls").iter().enumerate() {
        let path = path.child("tls").at(position);
        for (position, name) in texts(tls, "hosts").into_iter().enumerate() {
            host(name, &path.child("hosts").at(position), out);
        }
        let secret = text(tls, "secretName");
        if !accepts_secrets && !secret.is_empty() {
            out.reasons(
                &path.child("secretName"),
                secret,
                names::dns1123_subdomain(secret),
            );
        }
    }
    let class = optional_text(spec, "ingressClassName");
    if let Some(class) = class {
        out.reasons(
            &path.child("ingressClassName"),
            class,
            names::dns1123_subdomain(class),
        );
    }
    let annotated = annotation(object, CLASS_ANNOTATION);
    if old.is_none()
        && is_set(spec, "ingressClassName")
        && annotated.is_some()
        && annotated != class
    {
        let field = FieldPath::new("annotations").named(CLASS_ANNOTATION);
        out.invalid(
            field,
            "must match `ingressClassName` when both are specified",
        );
    }
}
