//! Sources of volumes whose fields are only required or have a format.

use super::paths;
use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{
    entries, flag, integer, optional_text, set, text, text_or, texts,
};
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// The texts that a kind requires.
fn required_texts(key: &str) -> &'static [&'static str] {
    match key {
        "gitRepo" => &["repository"],
        "gcePersistentDisk" => &["pdName"],
        "awsElasticBlockStore" | "cinder" | "portworxVolume" => &["volumeID"],
        "nfs" => &["server", "path"],
        "iscsi" => &["targetPortal", "iqn"],
        "glusterfs" => &["endpoints", "path"],
        "persistentVolumeClaim" => &["claimName"],
        "rbd" => &["image"],
        "flexVolume" | "csi" => &["driver"],
        "azureFile" => &["secretName", "shareName"],
        "vsphereVolume" => &["volumePath"],
        "photonPersistentDisk" => &["pdID"],
        "azureDisk" => &["diskName", "diskURI"],
        "storageos" => &["volumeName"],
        "scaleIO" => &["gateway", "system", "volumeName"],
        "quobyte" => &["volume"],
        _ => &[],
    }
}

/// Validates a source.
pub(super) fn validate(key: &str, source: &Value, path: &FieldPath, out: &mut Causes) {
    for key in required_texts(key) {
        out.not_empty(path.child(key), text(source, key));
    }
    match key {
        "gitRepo" => {
            let folder = text(source, "directory");
            out.reasons(&path.child("directory"), folder, paths::descending(folder));
        }
        "nfs" if !text(source, "path").starts_with('/') => {
            out.invalid(path.child("path"), "must be an absolute path");
        }
        "rbd" | "cephfs" if texts(source, "monitors").is_empty() => {
            out.required(path.child("monitors"), "");
        }
        "cinder" => secret_name(source, path, out),
        "iscsi" => iscsi(source, path, out),
        "flocker" => flocker(source, path, out),
        "quobyte" => quobyte(source, path, out),
        "fc" => fibre_channel(source, path, out),
        "flexVolume" => flex(source, path, out),
        "azureDisk" => azure_disk(source, path, out),
        "storageos" => {
            for key in ["volumeName", "volumeNamespace"] {
                let name = text(source, key);
                if !name.is_empty() {
                    out.reasons(&path.child(key), name, names::dns1123_label(name));
                }
            }
            secret_name(source, path, out);
        }
        "csi" => csi(source, path, out),
        _ => {}
    }
}

fn secret_name(source: &Value, path: &FieldPath, out: &mut Causes) {
    if let Some(secret) = set(source, "secretRef") {
        out.not_empty(path.child("secretRef.name"), text(secret, "name"));
    }
}

fn is_initiator(name: &str) -> bool {
    let is_word = |it: &str, length: usize| {
        it.len() == length && it.bytes().all(|it| it.is_ascii_alphanumeric())
    };
    if let Some(rest) = name.strip_prefix("iqn.") {
        let (date, rest) = rest.split_at_checked(8).unwrap_or_default();
        let is_date = date
            .bytes()
            .enumerate()
            .all(|(position, it)| match position {
                4 => it == b'-',
                7 => it == b'.',
                _ => it.is_ascii_digit(),
            });
        let is_host = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.');
        let is_forbidden = |it: char| ",;*&$|".contains(it) || it.is_ascii_whitespace();
        return date.len() == 8
            && is_date
            && rest.split_once(':').is_some_and(|(host, name)| {
                !host.is_empty()
                    && host.chars().all(is_host)
                    && !name.is_empty()
                    && !name.contains(is_forbidden)
            });
    }
    let (kind, rest) = name.split_at_checked(4).unwrap_or_default();
    kind.starts_with("eui") && is_word(rest, 16) || kind.starts_with("naa") && is_word(rest, 32)
}

fn iscsi(source: &Value, path: &FieldPath, out: &mut Causes) {
    let name = text(source, "iqn");
    if !name.is_empty() && !is_initiator(name) {
        out.invalid(
            path.child("iqn"),
            "must be valid format starting with iqn, eui, or naa",
        );
    }
    out.range(path.child("lun"), integer(source, "lun"), 0, 255);
    let uses_secret = flag(source, "chapAuthDiscovery") || flag(source, "chapAuthSession");
    if uses_secret && set(source, "secretRef").is_none() {
        out.required(path.child("secretRef"), "");
    }
    if optional_text(source, "initiatorName").is_some_and(|it| !is_initiator(it)) {
        out.invalid(
            path.child("initiatorname"),
            "must be valid format starting with iqn, eui, or naa",
        );
    }
}

fn flocker(source: &Value, path: &FieldPath, out: &mut Causes) {
    let (name, id) = (text(source, "datasetName"), text(source, "datasetUUID"));
    if name.is_empty() && id.is_empty() {
        out.required(
            path.clone(),
            "one of datasetName and datasetUUID is required",
        );
    }
    if !name.is_empty() && !id.is_empty() {
        let detail = "datasetName and datasetUUID can not be specified simultaneously";
        out.invalid(path.clone(), detail);
    }
    if name.contains('/') {
        out.invalid(path.child("datasetName"), "must not contain '/'");
    }
}

fn quobyte(source: &Value, path: &FieldPath, out: &mut Causes) {
    let registry = text(source, "registry");
    let detail = "must be a host:port pair or multiple pairs separated by commas";
    let is_pair = |pair: &str| match pair.strip_prefix('[') {
        Some(rest) => rest
            .split_once("]:")
            .is_some_and(|(_, port)| !port.contains(':')),
        None => pair.matches(':').count() == 1 && !pair.contains(['[', ']']),
    };
    if registry.is_empty() {
        out.required(path.child("registry"), detail);
    } else if text(source, "tenant").len() >= 65 {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        out.required(path.child("tenant"), detail);
    } else if !registry.split(',').all(is_pair) {
        out.invalid(path.child("registry"), detail);
    }
}

fn fibre_channel(source: &Value, path: &FieldPath, out: &mut Causes) {
    let has_targets = !texts(source, "targetWWNs").is_empty();
    let has_ids = !texts(source, "wwids").is_empty();
    let field = path.child("targetWWNs");
    if has_targets == has_ids {
        let detail = "must specify either targetWWNs or wwids, but not both";
        if has_ids {
            out.invalid(field, detail);
        } else {
            out.required(field, detail);
        }
    }
    if has_targets {
        let lun = integer(source, "lun");
        if lun.is_none() {
            out.required(
                path.child("lun"),
                "lun is required if targetWWNs is specified",
            );
        }
        out.range(path.child("lun"), lun, 0, 255);
    }
}

fn flex(source: &Value, path: &FieldPath, out: &mut Causes) {
    for (key, _) in entries(source, "options") {
        let domain = key.split_once('/').map_or(key, |it| it.0);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            out.invalid(
                path.child("options").entry(key),
                "kubernetes.io and k8s.io namespaces are reserved",
            );
        }
    }
}

fn azure_disk(source: &Value, path: &FieldPath, out: &mut Causes) {
    let caching = text_or(source, "cachingMode", "ReadWrite");
    let modes = ["None", "ReadOnly", "ReadWrite"];
    out.one_of(path.child("cachingMode"), caching, &modes);
    let kind = text_or(source, "kind", "Shared");
    out.one_of(
        path.child("kind"),
        kind,
        &["Shared", "Dedicated", "Managed"],
    );
    let address = text(source, "diskURI");
    let prefix = if kind == "Managed" {
        "/subscriptions/"
    } else {
        "https://"
    };
    if !address.starts_with(prefix) {
        out.not_supported(path.child("diskURI"), address, &[prefix]);
    }
}

fn csi(source: &Value, path: &FieldPath, out: &mut Causes) {
    let driver = text(source, "driver");
    let field = path.child("driver");
    if driver.len() > 63 {
        out.too_long(field.clone(), 63);
    }
    if !driver.is_empty() {
        out.reasons(
            &field,
            driver,
            names::dns1123_subdomain(&driver.to_lowercase()),
        );
    }
    if let Some(secret) = set(source, "nodePublishSecretRef") {
        let name = text(secret, "name");
        if name.is_empty() {
            out.required(path.child("nodePublishSecretRef.name"), "");
        } else {
            out.reasons(&path.child("name"), name, names::dns1123_subdomain(name));
        }
    }
}
