//! The fields of pod specs, and of pods and templates around them.

use super::context::{self, PodContext};
use super::{claims, containers, resources, scheduling, security, volumes, windows};
use crate::builtin::validation::addresses;
use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{
    entries, flag, integer, is_equal, is_set, list, optional_flag, optional_text, set, text,
    text_or, texts, value,
};
use crate::builtin::validation::formats::subdomain_with_underscore;
use crate::builtin::validation::{labels, metadata};
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

const DEADLINE_MAX: i64 = 2_147_483_647;

/// Validates the template of a pod.
pub(in super::super) fn validate_template(
    template: &Value,
    old: Option<&Value>,
    path: &FieldPath,
    out: &mut Causes,
) {
    let pod = PodContext {
        spec: value(template, "spec"),
        owner: template,
        old: old.map(|it| value(it, "spec")),
        is_pod: false,
    };
    let labels_of = value(template, "metadata");
    // The paths of these causes have no `metadata`.
    labels::validate(labels_of, "labels", path, out);
    metadata::validate_annotations(labels_of, path, out);
    security::validate_annotations(&pod, &path.child("annotations"), out);
    let spec_path = path.child("spec");
    validate(&pod, &spec_path, out);
    security::validate_profiles_match(&pod, &spec_path, out);
    if !list(pod.spec, "ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        out.forbidden(spec_path.child("ephemeralContainers"), detail);
    }
}

/// Validates the annotations and the spec of a pod.
pub(in super::super) fn validate_pod(pod: &PodContext<'_>, out: &mut Causes) {
    let path = FieldPath::new("spec");
    security::validate_annotations(pod, &FieldPath::new("metadata.annotations"), out);
    validate(pod, &path, out);
    if !pod.has_service_account() {
        for (position, volume) in list(pod.spec, "volumes").iter().enumerate() {
            let path = path
                .child("volumes")
                .at(position)
                .field("projected.sources");
            let sources = list(value(volume, "projected"), "sources");
            for (position, source) in sources.iter().enumerate() {
                if is_set(source, "serviceAccountToken") {
                    let path = path.at(position).field("serviceAccountToken");
                    out.forbidden(
                        path,
                        "must not be specified when serviceAccountName is not set",
                    );
                }
            }
        }
    }
    for key in ["containers", "initContainers"] {
        for (position, container) in list(pod.spec, key).iter().enumerate() {
            containers::image_spaces(container, &path.child(key).at(position), out);
        }
    }
}

/// Validates what is only valid for new pods.
pub(in super::super) fn validate_new_pod(pod: &PodContext<'_>, out: &mut Causes) {
    let path = FieldPath::new("spec");
    if !list(pod.spec, "ephemeralContainers").is_empty() {
        out.forbidden(path.child("ephemeralContainers"), "cannot be set on create");
    }
    if !text(pod.spec, "nodeName").is_empty() && !list(pod.spec, "schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        out.forbidden(path.child("nodeName"), detail);
    }
    security::validate_profiles_match(pod, &path, out);
}

/// Validates a pod spec.
fn validate(pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    let spec = pod.spec;
    let valid = volumes::validate(pod, path, out);
    claims::resource_claims(spec, path, out);
    containers::validate(pod, &valid, path, out);
    resources::validate_pod(pod, path, out);
    host_network(pod, path, out);
    let policy = text_or(spec, "restartPolicy", "Always");
    let policies = ["Always", "OnFailure", "Never"];
    out.one_of(path.child("restartPolicy"), policy, &policies);
    labels::validate(spec, "nodeSelector", path, out);
    security::validate_pod(pod, path, out);
    if flag(spec, "shareProcessNamespace") && flag(spec, "hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        out.invalid(path.child("shareProcessNamespace"), detail);
    }
    scheduling::validate_affinity(pod, path, out);
    dns(spec, path, out);
    gates(spec, path, out);
    scheduling::validate_spread(pod, path, out);
    windows::validate_host_process(pod, path, out);
    host_users(pod, path, out);
    host_name(spec, path, out);
    named_fields(spec, path, out);
    scheduling::validate_tolerations(pod, path, out);
    if is_set(spec, "overhead") {
        let limits = serde_json::json!({ "limits": value(spec, "overhead") });
        let template = PodContext {
            is_pod: false,
            ..*pod
        };
        let path = path.child("overhead");
        resources::validate(&limits, resources::Level::Container, &template, &path, out);
    }
    windows::validate_os(pod, path, out);
    if let Some(group) = set(spec, "schedulingGroup") {
        let path = path.child("schedulingGroup.podGroupName");
        match optional_text(group, "podGroupName") {
            None => out.invalid(path, "must specify one of: `podGroupName`"),
            Some(name) => out.reasons(&path, name, names::dns1123_subdomain(name)),
        }
    }
    file_keys(spec, path, out);
}

/// Validates names of other objects and of hosts.
fn named_fields(spec: &Value, path: &FieldPath, out: &mut Causes) {
    let account = text_or(spec, "serviceAccountName", text(spec, "serviceAccount"));
    let name = |key: &str| Some(text(spec, key)).filter(|it| !it.is_empty());
    let account = Some(account).filter(|it| !it.is_empty());
    security::subdomain(&path.child("serviceAccountName"), account, out);
    for key in ["nodeName", "priorityClassName"] {
        security::subdomain(&path.child(key), name(key), out);
    }
    let class = optional_text(spec, "runtimeClassName");
    security::subdomain(&path.child("runtimeClassName"), class, out);
    for key in ["hostname", "subdomain"] {
        if let Some(label) = name(key) {
            out.reasons(&path.child(key), label, names::dns1123_label(label));
        }
    }
    let deadline = integer(spec, "activeDeadlineSeconds");
    out.range(
        path.child("activeDeadlineSeconds"),
        deadline,
        1,
        DEADLINE_MAX,
    );
    for (position, alias) in list(spec, "hostAliases").iter().enumerate() {
        let path = path.child("hostAliases").at(position);
        let address = text(alias, "ip");
        out.reasons(&path.child("ip"), address, addresses::ip(address));
        for (position, name) in texts(alias, "hostnames").into_iter().enumerate() {
            let path = path.child("hostnames").at(position);
            out.reasons(&path, name, names::dns1123_subdomain(name));
        }
    }
    if let Some(policy) = optional_text(spec, "preemptionPolicy") {
        let accepted = ["PreemptLowerPriority", "Never"];
        out.choice(path.child("preemptionPolicy"), policy, &accepted);
    }
}

fn host_network(pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    if !flag(pod.spec, "hostNetwork") {
        return;
    }
    for (position, container) in list(pod.spec, "containers").iter().enumerate() {
        let path = path.child("containers").at(position).field("ports");
        for (position, port) in list(container, "ports").iter().enumerate() {
            let host = integer(port, "hostPort").unwrap_or(0);
            if host != 0 && host != integer(port, "containerPort").unwrap_or(0) {
                let path = path.at(position).field("hostPort");
                out.invalid(
                    path,
                    "must match `containerPort` when `hostNetwork` is true",
                );
            }
        }
    }
}

fn dns(spec: &Value, path: &FieldPath, out: &mut Causes) {
    let policy = text_or(spec, "dnsPolicy", "ClusterFirst");
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    out.one_of(path.child("dnsPolicy"), policy, &policies);
    let path = path.child("dnsConfig");
    let config = set(spec, "dnsConfig");
    let servers = config.map_or_else(Vec::new, |it| texts(it, "nameservers"));
    let servers_path = path.child("nameservers");
    if policy == "None" && servers.is_empty() {
        let detail = "must provide `dnsConfig` with a nameserver when `dnsPolicy` is None";
        out.required(if config.is_some() { servers_path } else { path }, detail);
        return;
    }
    let Some(config) = config else {
        return;
    };
    if servers.len() > 3 {
        out.invalid(
            servers_path.clone(),
            "must not have more than 3 nameservers",
        );
    }
    for (position, server) in servers.iter().enumerate() {
        out.reasons(&servers_path.at(position), server, addresses::ip(server));
    }
    let searches = texts(config, "searches");
    let searches_path = path.child("searches");
    if searches.len() > 32 || searches.join(" ").len() > 2048 {
        let detail = "must not have more than 32 search paths or 2048 characters";
        out.invalid(searches_path.clone(), detail);
    }
    for (position, search) in searches.iter().enumerate().filter(|it| *it.1 != ".") {
        let name = search.strip_suffix('.').unwrap_or(search);
        let path = searches_path.at(position);
        out.reasons(&path, name, subdomain_with_underscore(name));
    }
    for (position, option) in list(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            out.required(path.child("options").at(position), "must not be empty");
        }
    }
}

fn gates(spec: &Value, path: &FieldPath, out: &mut Causes) {
    for (position, gate) in list(spec, "readinessGates").iter().enumerate() {
        let path = path
            .child("readinessGates")
            .at(position)
            .field("conditionType");
        let kind = text(gate, "conditionType");
        out.reasons(&path, kind, names::qualified_name(kind));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (position, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let path = path.child("schedulingGates").at(position);
        let name = text(gate, "name");
        out.reasons(&path, name, names::qualified_name(name));
        if seen.contains(&name) {
            out.duplicate(path, name);
        }
        seen.push(name);
    }
}

fn host_users(pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    if optional_flag(pod.spec, "hostUsers") != Some(false) {
        return;
    }
    let detail = "when `hostUsers` is false";
    let had_both = pod
        .old
        .is_some_and(|it| flag(it, "hostNetwork") && optional_flag(it, "hostUsers") == Some(false));
    for (key, field) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if flag(pod.spec, key) && !(had_both && key == "hostNetwork") {
            out.forbidden(path.child(field), detail);
        }
    }
    if pod.accepts_devices_with_user_namespace() {
        return;
    }
    for (path, container) in context::containers(pod.spec, path) {
        if !list(container, "volumeDevices").is_empty() {
            out.forbidden(path.child("volumeDevices"), detail);
        }
    }
}

fn host_name(spec: &Value, path: &FieldPath, out: &mut Causes) {
    let Some(name) = optional_text(spec, "hostnameOverride") else {
        return;
    };
    let field = path.child("hostnameOverride");
    for key in ["setHostnameAsFQDN", "hostNetwork"] {
        if flag(spec, key) {
            out.forbidden(
                field.clone(),
                format!("may not be specified when {key} is true"),
            );
        }
    }
    if name.len() > 64 {
        out.too_long(field.clone(), 64);
    }
    out.reasons(&field, name, names::dns1123_subdomain(name));
}

/// Validates that variables read files of `emptyDir` volumes.
fn file_keys(spec: &Value, path: &FieldPath, out: &mut Causes) {
    for (path, container) in context::containers(spec, path) {
        for (position, variable) in list(container, "env").iter().enumerate() {
            let Some(key) = set(value(variable, "valueFrom"), "fileKeyRef") else {
                continue;
            };
            let path = path.child("env").at(position);
            let path = path.child("valueFrom.fileKeyRef.volumeName");
            let name = text(key, "volumeName");
            let volumes = list(spec, "volumes").iter().rev();
            let volume = volumes.clone().find(|it| text(it, "name") == name);
            match volume {
                None => out.not_found(path, name),
                Some(volume) if is_set(volume, "emptyDir") || has_no_source(volume) => {}
                Some(_) => out.invalid(path, "referenced volume must be of type emptyDir"),
            }
        }
    }
}

/// Whether a volume has no source. It becomes an `emptyDir`.
fn has_no_source(volume: &Value) -> bool {
    let object = serde_json::json!({ "volume": volume });
    entries(&object, "volume").all(|it| it.0 == "name" || is_equal(it.1, &Value::Null))
}
