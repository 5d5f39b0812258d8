//! The defaults of containers.

use super::{image, resources};
use crate::builtin::fields::{below, default, items, text};
use serde_json::Value;

/// The fields of a container with a probe.
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// The policy for pulling an image.
pub(super) fn pull_policy(image: &str) -> &'static str {
    if image::is_latest(image) {
        "Always"
    } else {
        "IfNotPresent"
    }
}

/// Sets the defaults of a container of any kind.
pub(super) fn set_container(container: &mut Value) {
    let policy = pull_policy(text(container, "image"));
    default(container, "imagePullPolicy", policy);
    default(container, "terminationMessagePath", "/dev/termination-log");
    default(container, "terminationMessagePolicy", "File");
    for port in items(container, "ports") {
        default(port, "protocol", "TCP");
    }
    for variable in items(container, "env") {
        if let Some(reference) = below(variable, &["valueFrom", "fieldRef"]) {
            default(reference, "apiVersion", "v1");
        }
        if let Some(reference) = below(variable, &["valueFrom", "fileKeyRef"]) {
            default(reference, "optional", false);
        }
    }
    resources::round_requirements(container, "resources");
    for name in PROBES {
        if let Some(probe) = below(container, &[name]) {
            set_probe(probe);
        }
    }
    for name in ["postStart", "preStop"] {
        if let Some(action) = below(container, &["lifecycle", name, "httpGet"]) {
            set_http_get(action);
        }
    }
}

fn set_probe(probe: &mut Value) {
    for (name, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        default(probe, name, value);
    }
    if let Some(action) = below(probe, &["httpGet"]) {
        set_http_get(action);
    }
    if let Some(action) = below(probe, &["grpc"]) {
        default(action, "service", "");
    }
}

fn set_http_get(action: &mut Value) {
    default(action, "path", "/");
    default(action, "scheme", "HTTP");
}
