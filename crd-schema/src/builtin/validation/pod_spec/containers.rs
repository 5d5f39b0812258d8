//! Containers.

use super::context::{PULL_POLICIES, PodContext};
use super::environment;
use super::paths;
use super::probes::{validate_lifecycle, validate_probes};
use super::resources::{self, Level};
use super::security;
use super::volumes::Volumes;
use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{
    flag, integer, is_set, list, optional_text, set, text, text_or, value,
};
use crate::builtin::validation::formats::port_name;
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::collections::BTreeSet;

/// Protocols of ports.
pub(in super::super) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// The fields that ephemeral containers may not have.
const NOT_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
];

/// Validates all containers of a pod.
pub(super) fn validate(
    pod: &PodContext<'_>,
    volumes: &Volumes<'_>,
    path: &FieldPath,
    out: &mut Causes,
) {
    let all = Containers { pod, volumes };
    all.regular(&path.child("containers"), out);
    all.initial(&path.child("initContainers"), out);
    all.ephemeral(&path.child("ephemeralContainers"), out);
}

/// The containers of a pod with its volumes.
struct Containers<'a> {
    pod: &'a PodContext<'a>,
    volumes: &'a Volumes<'a>,
}

impl Containers<'_> {
    fn regular(&self, path: &FieldPath, out: &mut Causes) {
        let containers = list(self.pod.spec, "containers");
        if containers.is_empty() {
            out.required(path.clone(), "");
            return;
        }
        let mut seen = BTreeSet::new();
        for (position, container) in containers.iter().enumerate() {
            let path = path.at(position);
            self.common(container, &path, out);
            let name = text(container, "name");
            if !seen.insert(name) {
                out.duplicate(path.child("name"), name);
            }
            if let Some(lifecycle) = set(container, "lifecycle") {
                validate_lifecycle(lifecycle, self.pod, &path.child("lifecycle"), out);
            }
            validate_probes(container, &path, out);
            restart_policy(container, &path, false, out);
        }
        self.host_ports(containers, path, out);
    }

    fn initial(&self, path: &FieldPath, out: &mut Causes) {
        let regular = list(self.pod.spec, "containers").iter();
        let mut seen: BTreeSet<&str> = regular.map(|it| text(it, "name")).collect();
        for (position, container) in list(self.pod.spec, "initContainers").iter().enumerate() {
            let item = path.at(position);
            self.common(container, &item, out);
            restart_policy(container, &item, true, out);
            let name = text(container, "name");
            if seen.contains(name) {
                out.duplicate(item.child("name"), name);
            } else if !name.is_empty() {
                seen.insert(name);
            }
            self.host_ports(std::slice::from_ref(container), path, out);
            let is_sidecar = text(container, "restartPolicy") == "Always";
            if is_sidecar {
                if let Some(lifecycle) = set(container, "lifecycle") {
                    validate_lifecycle(lifecycle, self.pod, &item.child("lifecycle"), out);
                }
                validate_probes(container, &item, out);
                continue;
            }
            for key in [
                "lifecycle",
                "livenessProbe",
                "readinessProbe",
                "startupProbe",
            ] {
                if is_set(container, key) {
                    let detail = "may not be set for init containers without restartPolicy=Always";
                    out.forbidden(item.child(key), detail);
                }
            }
            for (position, policy) in list(container, "resizePolicy").iter().enumerate() {
                if text(policy, "restartPolicy") == "RestartContainer"
                    && !self.pod.accepts_resize_restart()
                {
                    out.invalid(
                        item.child("resizePolicy")
                            .at(position)
                            .field("restartPolicy"),
                        "must not be set to 'RestartContainer' for non-sidecar initContainers",
                    );
                }
            }
        }
    }

    fn ephemeral(&self, path: &FieldPath, out: &mut Causes) {
        let others = ["containers", "initContainers"].iter();
        let others = others.flat_map(|it| list(self.pod.spec, it));
        let others: BTreeSet<&str> = others.map(|it| text(it, "name")).collect();
        let mut seen = others.clone();
        for (position, container) in list(self.pod.spec, "ephemeralContainers")
            .iter()
            .enumerate()
        {
            let path = path.at(position);
            self.common(container, &path, out);
            image_spaces(container, &path, out);
            let name = text(container, "name");
            if !seen.insert(name) {
                out.duplicate(path.child("name"), name);
            }
            let target = text(container, "targetContainerName");
            if !target.is_empty() && !others.contains(target) {
                out.not_found(path.child("targetContainerName"), target);
            }
            for key in NOT_EPHEMERAL {
                let field = value(container, key);
                let is_absent = match field {
                    Value::Null => true,
                    Value::Array(items) => items.is_empty(),
                    Value::Object(fields) => key == "resources" && fields.is_empty(),
                    _ => false,
                };
                if !is_absent {
                    out.forbidden(path.child(key), "cannot be set for an Ephemeral Container");
                }
            }
            for (position, mount) in list(container, "volumeMounts").iter().enumerate() {
                for key in ["subPath", "subPathExpr"] {
                    if !text(mount, key).is_empty() {
                        let path = path.child("volumeMounts").at(position).field(key);
                        out.forbidden(path, "cannot be set for an Ephemeral Container");
                    }
                }
            }
        }
    }

    /// Validates the fields that all containers have.
    fn common(&self, container: &Value, path: &FieldPath, out: &mut Causes) {
        let name = text(container, "name");
        if name.is_empty() {
            out.required(path.child("name"), "");
        } else {
            out.reasons(&path.child("name"), name, names::dns1123_label(name));
        }
        out.not_empty(path.child("image"), text(container, "image"));
        let policy = text_or(container, "terminationMessagePolicy", "File");
        let accepted = ["File", "FallbackToLogsOnError"];
        out.choice(path.child("terminationMessagePolicy"), policy, &accepted);
        ports(container, &path.child("ports"), out);
        environment::validate(container, path, out);
        self.mounts(container, path, out);
        self.devices(container, path, out);
        let policy = text_or(container, "imagePullPolicy", "Always");
        out.choice(path.child("imagePullPolicy"), policy, PULL_POLICIES);
        let all = value(container, "resources");
        resources::validate(
            all,
            Level::Container,
            self.pod,
            &path.child("resources"),
            out,
        );
        let restarts = text_or(self.pod.spec, "restartPolicy", "Always") != "Never";
        resize_policy(container, restarts, &path.child("resizePolicy"), out);
        if let Some(context) = set(container, "securityContext") {
            security::validate_container(context, self.pod, &path.child("securityContext"), out);
        }
    }

    fn mounts(&self, container: &Value, path: &FieldPath, out: &mut Causes) {
        let path = path.child("volumeMounts");
        let devices = list(container, "volumeDevices");
        let mut seen = BTreeSet::new();
        for (position, mount) in list(container, "volumeMounts").iter().enumerate() {
            let item = path.at(position);
            let (name, folder) = (text(mount, "name"), text(mount, "mountPath"));
            out.not_empty(item.child("name"), name);
            if !self.volumes.contains_key(name) {
                out.not_found(item.child("name"), name);
            }
            out.not_empty(item.child("mountPath"), folder);
            if !seen.insert(folder) {
                out.invalid(item.child("mountPath"), "must be unique");
            }
            if devices.iter().any(|it| text(it, "name") == name) {
                out.invalid(
                    item.child("name"),
                    "must not already exist in volumeDevices",
                );
            }
            if devices.iter().any(|it| text(it, "devicePath") == folder) {
                let detail = "must not already exist as a path in volumeDevices";
                out.invalid(item.child("mountPath"), detail);
            }
            // These causes name the list, not the item.
            for key in ["subPath", "subPathExpr"] {
                let folder = text(mount, key);
                out.reasons(&path.child(key), folder, paths::descending(folder));
            }
            if !text(mount, "subPath").is_empty() && !text(mount, "subPathExpr").is_empty() {
                let detail = "subPathExpr and subPath are mutually exclusive";
                out.invalid(item.child("subPathExpr"), detail);
            }
            propagation(mount, container, &path, out);
        }
    }

    fn devices(&self, container: &Value, path: &FieldPath, out: &mut Causes) {
        let path = path.child("volumeDevices");
        let mounts = list(container, "volumeMounts");
        let (mut names, mut places) = (BTreeSet::new(), BTreeSet::new());
        for (position, device) in list(container, "volumeDevices").iter().enumerate() {
            let item = path.at(position);
            let (name, place) = (text(device, "name"), text(device, "devicePath"));
            out.not_empty(item.child("name"), name);
            if !name.is_empty() && !names.insert(name) {
                out.invalid(item.child("name"), "must be unique");
            }
            match self.volumes.get(name) {
                None => out.not_found(item.child("name"), name),
                Some(volume) if is_set(volume, "persistentVolumeClaim") || is_set(volume, "ephemeral") => {}
                Some(_) => out.invalid(
                    item.child("name"),
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
                ),
            }
            out.not_empty(item.child("devicePath"), place);
            if places.contains(place) {
                out.invalid(item.child("devicePath"), "must be unique");
            }
            if paths::no_backsteps(place).is_empty() {
                places.insert(place);
            } else {
                out.invalid(item.child("devicePath"), "can not contain backsteps ('..')");
            }
            if mounts.iter().any(|it| text(it, "name") == name) {
                out.invalid(item.child("name"), "must not already exist in volumeMounts");
            }
            if mounts.iter().any(|it| text(it, "mountPath") == place) {
                let detail = "must not already exist as a path in volumeMounts";
                out.invalid(item.child("devicePath"), detail);
            }
        }
    }

    /// Validates that containers use each port of the host once.
    fn host_ports(&self, containers: &[Value], path: &FieldPath, out: &mut Causes) {
        let mut seen = BTreeSet::new();
        let defaults = self.pod.is_pod && flag(self.pod.spec, "hostNetwork");
        for (position, container) in containers.iter().enumerate() {
            let path = path.at(position).field("ports");
            for (position, port) in list(container, "ports").iter().enumerate() {
                let mut number = integer(port, "hostPort").unwrap_or(0);
                if number == 0 && defaults {
                    number = integer(port, "containerPort").unwrap_or(0);
                }
                if number == 0 {
                    continue;
                }
                let protocol = text_or(port, "protocol", "TCP");
                let key = format!("{protocol}/{}/{number}", text(port, "hostIP"));
                if seen.contains(&key) {
                    out.duplicate(path.at(position).field("hostPort"), &key);
                }
                seen.insert(key);
            }
        }
    }
}

/// Validates that the image has no spaces around it.
pub(super) fn image_spaces(container: &Value, path: &FieldPath, out: &mut Causes) {
    let image = text(container, "image");
    if image.trim() != image {
        out.invalid(
            path.child("image"),
            "must not have leading or trailing whitespace",
        );
    }
}

fn ports(container: &Value, path: &FieldPath, out: &mut Causes) {
    let mut seen = BTreeSet::new();
    for (position, port) in list(container, "ports").iter().enumerate() {
        let path = path.at(position);
        let name = text(port, "name");
        if !name.is_empty() {
            let reasons = port_name(name);
            if reasons.is_empty() && !seen.insert(name) {
                out.duplicate(path.child("name"), name);
            }
            out.reasons(&path.child("name"), name, reasons);
        }
        match integer(port, "containerPort").unwrap_or(0) {
            0 => out.required(path.child("containerPort"), ""),
            number => out.range(path.child("containerPort"), Some(number), 1, 65535),
        }
        let host = integer(port, "hostPort").filter(|it| *it != 0);
        out.range(path.child("hostPort"), host, 1, 65535);
        let protocol = text_or(port, "protocol", "TCP");
        out.one_of(path.child("protocol"), protocol, PROTOCOLS);
    }
}

fn propagation(mount: &Value, container: &Value, path: &FieldPath, out: &mut Causes) {
    let propagation = optional_text(mount, "mountPropagation");
    let field = path.child("mountPropagation");
    let modes = ["Bidirectional", "HostToContainer", "None"];
    out.optional(field.clone(), propagation, &modes);
    let is_privileged = flag(value(container, "securityContext"), "privileged");
    if propagation == Some("Bidirectional") && !is_privileged {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        out.forbidden(field, detail);
    }
    let field = path.child("recursiveReadOnly");
    match optional_text(mount, "recursiveReadOnly") {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !flag(mount, "readOnly") {
                out.forbidden(field.clone(), "may only be specified when readOnly is true");
            }
            if !matches!(propagation, None | Some("None")) {
                let detail = "may only be specified when mountPropagation is None or not specified";
                out.forbidden(field, detail);
            }
        }
        Some(other) => {
            out.not_supported(field, other, &["Disabled", "Enabled", "IfPossible"]);
        }
    }
}

fn resize_policy(container: &Value, restarts: bool, path: &FieldPath, out: &mut Causes) {
    let mut seen = BTreeSet::new();
    for (position, policy) in list(container, "resizePolicy").iter().enumerate() {
        let resource = text(policy, "resourceName");
        if !seen.insert(resource) {
            out.duplicate(path.at(position), resource);
        }
        out.choice(path.clone(), resource, &["cpu", "memory"]);
        let restart = text(policy, "restartPolicy");
        out.choice(path.clone(), restart, &["NotRequired", "RestartContainer"]);
        if !restarts && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            out.invalid(path.clone(), detail);
        }
    }
}

fn restart_policy(container: &Value, path: &FieldPath, is_initial: bool, out: &mut Causes) {
    let rules = list(container, "restartPolicyRules");
    let field = path.child("restartPolicy");
    match optional_text(container, "restartPolicy") {
        None if rules.is_empty() => return,
        None => {
            out.required(
                field,
                "must specify restartPolicy when restart rules are used",
            );
            if is_initial {
                return;
            }
        }
        Some(policy) => out.one_of(field, policy, &["Always", "Never", "OnFailure"]),
    }
    let path = path.child("restartPolicyRules");
    if rules.len() > 20 {
        out.too_many(path.clone(), rules.len(), 20);
    }
    for (position, rule) in rules.iter().enumerate() {
        let path = path.at(position);
        let actions = ["Restart", "RestartAllContainers"];
        out.one_of(path.child("action"), text(rule, "action"), &actions);
        let Some(codes) = set(rule, "exitCodes") else {
            out.required(path.child("exitCodes"), "must be specified");
            continue;
        };
        let path = path.child("exitCodes");
        out.one_of(
            path.child("operator"),
            text(codes, "operator"),
            &["In", "NotIn"],
        );
        let count = list(codes, "values").len();
        if count > 255 {
            out.too_many(path.child("values"), count, 255);
        }
    }
}
