//! The defaults of pods and pod templates.

use super::{containers, resources, volumes};
use crate::builtin::fields::{below, default, ensure, is_set, items, set, text};
use serde_json::{Map, Value};

/// The lists of containers.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Sets the defaults of a `Pod`.
pub(super) fn set_pod(pod: &mut Value) {
    if let Some(spec) = ensure(pod, "spec") {
        let period = spec
            .get("terminationGracePeriodSeconds")
            .and_then(Value::as_i64);
        if period.is_some_and(|it| it < 0) {
            set(spec, "terminationGracePeriodSeconds", 1);
        }
        for list in ["containers", "initContainers"] {
            for container in items(spec, list) {
                resources::default_requests(container);
            }
        }
        default(spec, "enableServiceLinks", true);
        if spec.get("hostNetwork").and_then(Value::as_bool) == Some(true) {
            for list in ["containers", "initContainers"] {
                for container in items(spec, list) {
                    set_host_ports(container);
                }
            }
        }
        set_pod_spec(spec);
    }
}

/// On the network of the host the port of a container is one of the host.
fn set_host_ports(container: &mut Value) {
    for port in items(container, "ports") {
        if let Some(number) = port.get("containerPort").cloned() {
            default(port, "hostPort", number);
        }
    }
}

/// Sets the defaults of the pod template at a path.
pub(super) fn set_template(object: &mut Value, path: &[&str]) {
    if let Some(template) = below(object, path)
        && let Some(spec) = ensure(template, "spec")
    {
        set_pod_spec(spec);
    }
}

fn set_pod_spec(spec: &mut Value) {
    if !is_set(spec, "serviceAccountName") && !text(spec, "serviceAccount").is_empty() {
        let name = text(spec, "serviceAccount").to_owned();
        set(spec, "serviceAccountName", name);
    }
    if is_set(spec, "serviceAccountName") {
        let name = text(spec, "serviceAccountName").to_owned();
        set(spec, "serviceAccount", name);
    }
    default(spec, "dnsPolicy", "ClusterFirst");
    default(spec, "restartPolicy", "Always");
    default(spec, "securityContext", Map::new());
    default(spec, "terminationGracePeriodSeconds", 30);
    default(spec, "schedulerName", "default-scheduler");
    for volume in items(spec, "volumes") {
        volumes::set_volume(volume);
    }
    for list in CONTAINERS {
        for container in items(spec, list) {
            containers::set_container(container);
        }
    }
    resources::round(spec, "overhead");
    resources::round_requirements(spec, "resources");
}
