//! The defaults of volumes and of claims of volumes.

use super::{containers, resources};
use crate::builtin::fields::{below, default, ensure, items, text};
use serde_json::{Map, Value};

/// The mode of files from other objects, 0644.
const FILE_MODE: i64 = 0o644;

/// Defaults of texts and flags of volumes.
const TEXTS: [(&str, &str, &str); 9] = [
    ("iscsi", "iscsiInterface", "default"),
    ("rbd", "pool", "rbd"),
    ("rbd", "user", "admin"),
    ("rbd", "keyring", "/etc/ceph/keyring"),
    ("azureDisk", "cachingMode", "ReadWrite"),
    ("azureDisk", "fsType", "ext4"),
    ("azureDisk", "kind", "Shared"),
    ("scaleIO", "storageMode", "ThinProvisioned"),
    ("scaleIO", "fsType", "xfs"),
];

/// Sets the defaults of a volume of a pod.
pub(super) fn set_volume(volume: &mut Value) {
    let has_source = volume.as_object().is_some_and(|fields| {
        let mut others = fields.iter().filter(|(name, _)| *name != "name");
        others.any(|(_, value)| !value.is_null())
    });
    if !has_source {
        default(volume, "emptyDir", Map::new());
    }
    if let Some(image) = below(volume, &["image"]) {
        let policy = containers::pull_policy(text(image, "reference"));
        default(image, "pullPolicy", policy);
    }
    if let Some(path) = below(volume, &["hostPath"]) {
        default(path, "type", "");
    }
    for name in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = below(volume, &[name]) {
            default(source, "defaultMode", FILE_MODE);
        }
    }
    if let Some(source) = below(volume, &["downwardAPI"]) {
        set_downward_items(source);
    }
    for (source, name, value) in TEXTS {
        if let Some(source) = below(volume, &[source]) {
            default(source, name, value);
        }
    }
    if let Some(source) = below(volume, &["azureDisk"]) {
        default(source, "readOnly", false);
    }
    if let Some(source) = below(volume, &["projected"]) {
        for projection in items(source, "sources") {
            if let Some(source) = below(projection, &["downwardAPI"]) {
                set_downward_items(source);
            }
            if let Some(token) = below(projection, &["serviceAccountToken"]) {
                default(token, "expirationSeconds", 3600);
            }
        }
    }
    if let Some(spec) = below(volume, &["ephemeral", "volumeClaimTemplate", "spec"]) {
        set_claim_spec(spec);
    }
}

fn set_downward_items(source: &mut Value) {
    for item in items(source, "items") {
        if let Some(reference) = below(item, &["fieldRef"]) {
            default(reference, "apiVersion", "v1");
        }
    }
}

/// Sets the defaults of a `PersistentVolumeClaim`.
pub(super) fn set_claim(claim: &mut Value) {
    if let Some(status) = ensure(claim, "status") {
        default(status, "phase", "Pending");
        resources::round(status, "capacity");
        resources::round(status, "allocatedResources");
    }
    if let Some(spec) = ensure(claim, "spec") {
        set_claim_spec(spec);
    }
}

fn set_claim_spec(spec: &mut Value) {
    default(spec, "volumeMode", "Filesystem");
    resources::round_requirements(spec, "resources");
}
