//! Volumes.

use super::claims::claim_template;
use super::context::{PULL_POLICIES, PodContext};
use super::downward::{files, key_paths, mode};
use super::paths;
use super::projected;
use super::volume_sources;
use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{integer, list, optional_text, set, text, text_or, value};
use crate::builtin::validation::quantities::nano;
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::collections::BTreeMap;

/// The valid volumes by name.
pub(super) type Volumes<'a> = BTreeMap<&'a str, &'a Value>;

/// The kinds of volumes in the order of their validation: the field, and its name in the cause of a second kind.
const KINDS: &[(&str, &str)] = &[
    ("emptyDir", "emptyDir"),
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    ("downwardAPI", "downwarAPI"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];

const HOST_PATH_TYPES: &[&str] = &[
    "",
    "DirectoryOrCreate",
    "Directory",
    "FileOrCreate",
    "File",
    "Socket",
    "CharDevice",
    "BlockDevice",
];

/// Validates the volumes of a pod. Returns those that are valid.
pub(super) fn validate<'a>(
    pod: &PodContext<'a>,
    path: &FieldPath,
    out: &mut Causes,
) -> Volumes<'a> {
    let path = path.child("volumes");
    let pod_name = pod.pod_name();
    let volumes = list(pod.spec, "volumes");
    let ephemeral = volumes.iter().filter(|it| set(it, "ephemeral").is_some());
    let created: Vec<String> = ephemeral
        .filter(|_| !pod_name.is_empty())
        .map(|it| format!("{pod_name}-{}", text(it, "name")))
        .collect();
    let mut valid = Volumes::new();
    for (position, volume) in volumes.iter().enumerate() {
        let path = path.at(position);
        let before = out.len();
        source(volume, pod, &path, out);
        let name = text(volume, "name");
        let name_path = path.child("name");
        if name.is_empty() {
            out.required(name_path.clone(), "");
        } else {
            out.reasons(&name_path, name, names::dns1123_label(name));
        }
        if valid.contains_key(name) {
            out.duplicate(name_path, name);
        }
        if out.len() == before {
            valid.insert(name, volume);
        }
        let claim = text(value(volume, "persistentVolumeClaim"), "claimName");
        if created.iter().any(|it| it == claim) {
            out.invalid(
                path.child("persistentVolumeClaim.claimName"),
                "must not reference a PVC that gets created for an ephemeral volume",
            );
        }
    }
    valid
}

fn source(volume: &Value, pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    let mut count: usize = 0;
    for (key, name) in KINDS {
        let Some(source) = set(volume, key) else {
            continue;
        };
        count = count.saturating_add(1);
        if count > 1 {
            out.forbidden(path.child(name), "may not specify more than 1 volume type");
            continue;
        }
        let field = if *key == "gcePersistentDisk" {
            "persistentDisk"
        } else {
            key
        };
        kind(key, source, volume, pod, &path.child(field), out);
    }
    if let Some(source) = set(volume, "iscsi") {
        let length = text(volume, "name")
            .len()
            .saturating_add(text(source, "targetPortal").len());
        if optional_text(source, "initiatorName").is_some() && length >= 64 {
            out.invalid(
                path.child("name"),
                "<volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified",
            );
        }
    }
}

fn kind(
    key: &str,
    source: &Value,
    volume: &Value,
    pod: &PodContext<'_>,
    path: &FieldPath,
    out: &mut Causes,
) {
    match key {
        "emptyDir" => {
            if nano(value(source, "sizeLimit")) < 0 {
                out.forbidden(path.child("sizeLimit"), "must be a valid resource quantity");
            }
        }
        "hostPath" => {
            let folder = text(source, "path");
            if folder.is_empty() {
                out.required(path.child("path"), "");
                return;
            }
            out.reasons(&path.child("path"), folder, paths::no_backsteps(folder));
            let kind = optional_text(source, "type");
            out.optional(path.child("type"), kind, HOST_PATH_TYPES);
        }
        "secret" => {
            out.not_empty(path.child("secretName"), text(source, "secretName"));
            mode(source, "defaultMode", path, out);
            key_paths(source, path, out);
        }
        "configMap" => {
            out.not_empty(path.child("name"), text(source, "name"));
            mode(source, "defaultMode", path, out);
            key_paths(source, path, out);
        }
        "downwardAPI" => {
            mode(source, "defaultMode", path, out);
            files(source, path, out);
        }
        "projected" => projected::validate(source, pod, path, out),
        "ephemeral" => {
            match set(source, "volumeClaimTemplate") {
                Some(template) => claim_template(template, &path.child("volumeClaimTemplate"), out),
                None => out.required(path.child("volumeClaimTemplate"), ""),
            }
            let (pod, volume) = (pod.pod_name(), text(volume, "name"));
            if !pod.is_empty() && !volume.is_empty() {
                let name = format!("{pod}-{volume}");
                // The path is that of the volume.
                let reasons = names::dns1123_subdomain(&name);
                out.reasons(&ephemeral_name(path), volume, reasons);
            }
        }
        "image" => {
            let reference = text(source, "reference");
            if !pod.accepts_empty_image() {
                out.not_empty(path.child("reference"), reference);
            }
            let policy = text_or(source, "pullPolicy", "IfNotPresent");
            out.choice(path.child("pullPolicy"), policy, PULL_POLICIES);
        }
        _ => volume_sources::validate(key, source, path, out),
    }
    if let ("gcePersistentDisk" | "awsElasticBlockStore", partition) =
        (key, integer(source, "partition"))
    {
        out.range(path.child("partition"), partition, 0, 255);
    }
}

/// The name of the volume with an ephemeral source.
fn ephemeral_name(path: &FieldPath) -> FieldPath {
    let text = path.to_string();
    let volume = text.strip_suffix(".ephemeral").unwrap_or(&text);
    FieldPath::default().named(format!("{volume}.name"))
}
