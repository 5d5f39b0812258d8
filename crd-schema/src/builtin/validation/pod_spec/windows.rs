//! Options for Windows, and fields that are only for one operating system.

use super::context::{PodContext, containers};
use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{
    flag, is_set, list, optional_flag, optional_text, set, value,
};
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

const CREDENTIAL_MAX_BYTES: usize = 64 * 1024;

/// The fields of security contexts of pods that are only for Linux.
const LINUX_POD: [&str; 11] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
];

/// The fields of security contexts of containers that are only for Linux.
const LINUX_CONTAINER: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// Validates options for Windows.
pub(super) fn validate_options(options: &Value, path: &FieldPath, out: &mut Causes) {
    if let Some(name) = optional_text(options, "gmsaCredentialSpecName") {
        let field = path.child("gmsaCredentialSpecName");
        out.reasons(&field, name, names::dns1123_subdomain(name));
    }
    let credential = optional_text(options, "gmsaCredentialSpec");
    if credential.is_some_and(|it| it.is_empty() || it.len() > CREDENTIAL_MAX_BYTES) {
        let detail = "must not be empty, and its size must be under 64 KiB";
        out.invalid(path.child("gmsaCredentialSpec"), detail);
    }
    if optional_text(options, "runAsUserName").is_some_and(|it| !is_user_name(it)) {
        out.invalid(
            path.child("runAsUserName"),
            "must be a name of a user of Windows",
        );
    }
}

fn is_user_name(name: &str) -> bool {
    if name.is_empty() || name.chars().any(|it| it.is_ascii_control()) {
        return false;
    }
    let (domain, user) = match name.split_once('\\') {
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    let is_bios = |it: &str| {
        !it.is_empty()
            && it.chars().count() <= 15
            && !it.starts_with('.')
            && !it.contains(|it| "\\/:*?\"<>|".contains(it))
    };
    let is_label = |label: &str| {
        let is_edge = |it: Option<&u8>| it.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = label.as_bytes();
        label.len() <= 63
            && is_edge(bytes.first())
            && is_edge(bytes.last())
            && bytes
                .iter()
                .all(|it| it.is_ascii_alphanumeric() || *it == b'-')
    };
    let is_domain = |it: &str| it.len() < 256 && (is_bios(it) || it.split('.').all(is_label));
    domain.is_none_or(is_domain)
        && !user.is_empty()
        && user.len() <= 104
        && !user.chars().all(|it| matches!(it, '.' | ' '))
        && !user.contains(|it| "\"/\\:;|=,+*?<>@[]".contains(it))
}

/// Validates containers that are processes of the host.
pub(super) fn validate_host_process(pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    let host_process =
        |context: &Value| optional_flag(value(context, "windowsOptions"), "hostProcess");
    let of_pod = host_process(value(pod.spec, "securityContext"));
    let (mut count, mut total): (usize, usize) = (0, 0);
    for (path, container) in containers(pod.spec, path) {
        total = total.saturating_add(1);
        let own = host_process(value(container, "securityContext"));
        if own.is_some() && of_pod.is_some() && own != of_pod {
            out.invalid(
                path.child("securityContext.windowsOptions.hostProcess"),
                "must be that of the pod if both are specified",
            );
        }
        if own.or(of_pod) == Some(true) {
            count = count.saturating_add(1);
        }
    }
    if count > 0 && count != total {
        let detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        out.invalid(path.clone(), detail);
    }
    if count > 0 && !flag(pod.spec, "hostNetwork") {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        out.invalid(path.child("hostNetwork"), detail);
    }
}

/// Validates the operating system, and fields that it does not have.
pub(super) fn validate_os(pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    match pod.os() {
        None => {}
        Some("") => out.required(path.child("os.name"), ""),
        Some("linux") => linux(pod, path, out),
        Some("windows") => windows(pod, path, out),
        Some(other) => out.not_supported(path.child("os"), other, &["linux", "windows"]),
    }
}

/// The security contexts of the pod and its containers.
fn contexts<'a>(pod: &PodContext<'a>, path: &FieldPath) -> Vec<(FieldPath, &'a Value)> {
    let all = containers(pod.spec, path);
    all.filter_map(|(path, it)| Some((path.child("securityContext"), set(it, "securityContext")?)))
        .collect()
}

fn linux(pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    let own = (
        path.child("securityContext"),
        value(pod.spec, "securityContext"),
    );
    for (path, context) in std::iter::once(own).chain(contexts(pod, path)) {
        if is_set(context, "windowsOptions") {
            let detail = "windows options cannot be set for a linux pod";
            out.forbidden(path.child("windowsOptions"), detail);
        }
    }
}

fn windows(pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    let detail = "cannot be set for a windows pod";
    let context = value(pod.spec, "securityContext");
    for key in LINUX_POD {
        let is_empty_list = key == "sysctls" && list(context, key).is_empty();
        if is_set(context, key) && !is_empty_list {
            out.forbidden(path.child("securityContext").field(key), detail);
        }
    }
    for key in ["hostPID", "hostIPC"] {
        if flag(pod.spec, key) {
            out.forbidden(path.child(key), detail);
        }
    }
    for key in ["hostUsers", "shareProcessNamespace"] {
        if is_set(pod.spec, key) {
            out.forbidden(path.child(key), detail);
        }
    }
    for (path, context) in contexts(pod, path) {
        for key in LINUX_CONTAINER {
            if is_set(context, key) {
                out.forbidden(path.child(key), detail);
            }
        }
    }
}
