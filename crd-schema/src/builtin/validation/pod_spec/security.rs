//! Security contexts of pods and containers.

use super::context::{PodContext, containers, is_host_sysctl};
use super::paths;
use super::windows;
use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{
    flag, integer, integer_of, list, optional_flag, optional_text, set, text, texts, value,
};
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::collections::BTreeSet;

const ID_MAX: i64 = 2_147_483_647;

const PROFILE_TYPES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];

/// Validates the security context of a container.
pub(super) fn validate_container(
    context: &Value,
    pod: &PodContext<'_>,
    path: &FieldPath,
    out: &mut Causes,
) {
    for key in ["runAsUser", "runAsGroup"] {
        out.range(path.child(key), integer(context, key), 0, ID_MAX);
    }
    if let Some(mount) = optional_text(context, "procMount") {
        out.one_of(path.child("procMount"), mount, &["Default", "Unmasked"]);
        if mount == "Unmasked" && pod.uses_host_users() {
            out.invalid(
                path.child("procMount"),
                "`hostUsers` must be false to use `Unmasked`",
            );
        }
    }
    profiles(context, path, out);
    if optional_flag(context, "allowPrivilegeEscalation") == Some(false) {
        let adds_admin = texts(value(context, "capabilities"), "add").contains(&"CAP_SYS_ADMIN");
        if flag(context, "privileged") || adds_admin && !pod.accepts_sys_admin() {
            out.invalid(
                path.clone(),
                "cannot set `allowPrivilegeEscalation` to false and `privileged` to true or `capabilities.Add` CAP_SYS_ADMIN",
            );
        }
    }
}

/// Validates the profiles of a security context and its options for Windows.
fn profiles(context: &Value, path: &FieldPath, out: &mut Causes) {
    if let Some(profile) = set(context, "seccompProfile") {
        seccomp(profile, &path.child("seccompProfile"), out);
    }
    if let Some(options) = set(context, "windowsOptions") {
        windows::validate_options(options, &path.child("windowsOptions"), out);
    }
    if let Some(profile) = set(context, "appArmorProfile") {
        app_armor(profile, &path.child("appArmorProfile"), out);
    }
}

fn seccomp(profile: &Value, path: &FieldPath, out: &mut Causes) {
    out.choice(path.child("type"), text(profile, "type"), PROFILE_TYPES);
    let field = path.child("localhostProfile");
    let name = optional_text(profile, "localhostProfile");
    match (text(profile, "type"), name) {
        ("Localhost", None) => out.required(field, "must be set when seccomp type is Localhost"),
        ("Localhost", Some(name)) => out.reasons(&field, name, paths::descending(name)),
        (_, Some(_)) => out.invalid(field, "can only be set when seccomp type is Localhost"),
        (_, None) => {}
    }
}

fn app_armor(profile: &Value, path: &FieldPath, out: &mut Causes) {
    out.choice(path.child("type"), text(profile, "type"), PROFILE_TYPES);
    let field = path.child("localhostProfile");
    let name = optional_text(profile, "localhostProfile");
    match (text(profile, "type"), name) {
        ("Localhost", Some(name)) => {
            if name.trim() != name {
                out.invalid(field.clone(), "must not be padded with whitespace");
            } else if name.is_empty() {
                out.required(field.clone(), "must be set when AppArmor type is Localhost");
            }
            if name.len() > 4095 {
                out.too_long(field, 4095);
            }
        }
        ("Localhost", None) => out.required(field, "must be set when AppArmor type is Localhost"),
        ("RuntimeDefault" | "Unconfined", Some(_)) => {
            out.invalid(field, "can only be set when AppArmor type is Localhost");
        }
        _ => {}
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_edge = |it: &u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        let edges = [bytes.first(), bytes.last()];
        edges.into_iter().all(|it| it.is_some_and(is_edge))
            && bytes
                .iter()
                .all(|it| is_edge(it) || matches!(it, b'-' | b'_'))
    };
    name.len() <= 253 && name.split(['.', '/']).all(is_part)
}

/// Validates the security context of a pod.
pub(super) fn validate_pod(pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    let context = value(pod.spec, "securityContext");
    let path = path.child("securityContext");
    for key in ["fsGroup", "runAsUser", "runAsGroup"] {
        out.range(path.child(key), integer(context, key), 0, ID_MAX);
    }
    for (position, group) in list(context, "supplementalGroups").iter().enumerate() {
        let path = path.child("supplementalGroups").at(position);
        out.range(path, integer_of(group), 0, ID_MAX);
    }
    let mut seen = BTreeSet::new();
    let accepts_host = pod.accepts_host_sysctls();
    for (position, sysctl) in list(context, "sysctls").iter().enumerate() {
        let path = path.child("sysctls").at(position).field("name");
        let name = text(sysctl, "name");
        if name.is_empty() {
            out.required(path.clone(), "");
        } else if !is_sysctl(name) {
            let detail = "must have at most 253 characters and be segments with separators";
            out.invalid(path.clone(), detail);
        } else if seen.contains(name) {
            out.duplicate(path.clone(), name);
        }
        if !accepts_host && is_host_sysctl(name, pod.spec) {
            out.invalid(
                path,
                "may not be specified when the namespace of the host is used",
            );
        }
        seen.insert(name);
    }
    for (key, accepted) in [
        ("fsGroupChangePolicy", ["OnRootMismatch", "Always"]),
        ("supplementalGroupsPolicy", ["Merge", "Strict"]),
        ("seLinuxChangePolicy", ["Recursive", "MountOption"]),
    ] {
        out.optional(path.child(key), optional_text(context, key), &accepted);
    }
    profiles(context, &path, out);
}

/// Validates annotations of pods that configure security and scheduling.
pub(super) fn validate_annotations(pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    let metadata = value(pod.owner, "metadata");
    for (key, profile) in crate::builtin::validation::fields::text_entries(metadata, "annotations")
    {
        match key {
            "kubernetes.io/config.mirror" if text(pod.spec, "nodeName").is_empty() => {
                let detail = "must set spec.nodeName if mirror pod annotation is set";
                out.invalid(path.entry(key), detail);
            }
            "controller.kubernetes.io/pod-deletion-cost" if !pod.has_old() && !is_cost(profile) => {
                out.invalid(path.entry(key), "must be a 32bit integer");
            }
            "seccomp.security.alpha.kubernetes.io/pod" => {
                seccomp_annotation(profile, &path.clone().named(key), out);
            }
            _ => {}
        }
        if key.starts_with("container.seccomp.security.alpha.kubernetes.io/") {
            seccomp_annotation(profile, &path.clone().named(key), out);
        }
        if let Some(name) = key.strip_prefix("container.apparmor.security.beta.kubernetes.io/") {
            let mut all = containers(pod.spec, path);
            if !all.any(|it| text(it.1, "name") == name) {
                out.invalid(path.entry(key), "container not found");
            }
            let is_known = matches!(profile, "" | "runtime/default" | "unconfined");
            if !is_known && !profile.starts_with("localhost/") {
                out.invalid(path.entry(key), "invalid AppArmor profile name");
            }
        }
    }
}

fn is_cost(text: &str) -> bool {
    let is_number =
        text == "0" || text.starts_with('-') || text.starts_with(|it| matches!(it, '1'..='9'));
    is_number && text.parse::<i32>().is_ok()
}

fn seccomp_annotation(profile: &str, path: &FieldPath, out: &mut Causes) {
    if let Some(name) = profile.strip_prefix("localhost/") {
        out.reasons(path, name, paths::descending(name));
    } else if !matches!(profile, "runtime/default" | "docker/default" | "unconfined") {
        out.invalid(path.clone(), "must be a valid seccomp profile");
    }
}

/// Validates that profiles in annotations and fields are the same.
pub(super) fn validate_profiles_match(pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    let metadata = value(pod.owner, "metadata");
    let annotation = |key: &str| optional_text(value(metadata, "annotations"), key);
    let context = value(pod.spec, "securityContext");
    let pod_seccomp = annotation("seccomp.security.alpha.kubernetes.io/pod");
    let seccomp_path = path.child("securityContext.seccompProfile");
    profile_matches(
        value(context, "seccompProfile"),
        pod_seccomp,
        true,
        &seccomp_path,
        out,
    );
    for (path, container) in containers(pod.spec, path) {
        let name = text(container, "name");
        let own = value(container, "securityContext");
        let path = path.child("securityContext");
        let key = format!("container.seccomp.security.alpha.kubernetes.io/{name}");
        let profile = value(own, "seccompProfile");
        profile_matches(
            profile,
            annotation(&key),
            true,
            &path.child("seccompProfile"),
            out,
        );
        if pod.os() == Some("windows") {
            continue;
        }
        let key = format!("container.apparmor.security.beta.kubernetes.io/{name}");
        let profile = set(own, "appArmorProfile").unwrap_or(value(context, "appArmorProfile"));
        profile_matches(
            profile,
            annotation(&key),
            false,
            &path.child("appArmorProfile"),
            out,
        );
    }
}

fn profile_matches(
    profile: &Value,
    annotation: Option<&str>,
    is_seccomp: bool,
    path: &FieldPath,
    out: &mut Causes,
) {
    let Some(annotation) = annotation else {
        return;
    };
    let is_same = match text(profile, "type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => {
            annotation == "runtime/default" || is_seccomp && annotation == "docker/default"
        }
        "Localhost" => match annotation.strip_prefix("localhost/") {
            None => false,
            Some(name) => {
                if optional_text(profile, "localhostProfile") != Some(name) {
                    let detail = "profile in annotation and field must match";
                    out.forbidden(path.child("localhostProfile"), detail);
                }
                true
            }
        },
        _ => true,
    };
    if !is_same {
        out.forbidden(
            path.child("type"),
            "type in annotation and field must match",
        );
    }
}

/// Validates names that are subdomains.
pub(super) fn subdomain(field: &FieldPath, name: Option<&str>, out: &mut Causes) {
    if let Some(name) = name {
        out.reasons(field, name, names::dns1123_subdomain(name));
    }
}
