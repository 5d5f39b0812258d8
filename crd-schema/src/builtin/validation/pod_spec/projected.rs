//! Projected volumes.

use super::context::PodContext;
use super::downward::{files, key_paths, mode};
use super::paths;
use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{
    integer, list, optional_text, set, text, text_entries, value,
};
use crate::builtin::validation::labels::{LabelValues, validate_selector};
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::collections::BTreeSet;

const KEY_TYPES: &[&str] = &[
    "RSA3072",
    "RSA4096",
    "ECDSAP256",
    "ECDSAP384",
    "ECDSAP521",
    "ED25519",
];

/// The longest lifetime of a certificate in seconds, and that of a signer of Kubernetes.
const LIFETIME_MAX: i64 = 7_862_400;
const KUBERNETES_LIFETIME_MAX: i64 = 86400;

/// The paths of the files of a volume.
struct Files<'a> {
    path: &'a FieldPath,
    seen: BTreeSet<&'a str>,
}

impl<'a> Files<'a> {
    fn add(&mut self, file: &'a str, out: &mut Causes) {
        if !self.seen.insert(file) {
            out.invalid(self.path.clone(), "conflicting duplicate paths");
        }
    }

    fn add_items(&mut self, source: &'a Value, out: &mut Causes) {
        let items = list(source, "items").iter();
        let files = items.map(|it| text(it, "path"));
        for file in files.filter(|it| !it.is_empty()) {
            self.add(file, out);
        }
    }
}

/// Validates a projected volume.
pub(super) fn validate(volume: &Value, pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    mode(volume, "defaultMode", path, out);
    let mut seen = Files {
        path,
        seen: BTreeSet::new(),
    };
    for (position, source) in list(volume, "sources").iter().enumerate() {
        let source_path = path.child("sources").at(position);
        let mut count: usize = 0;
        for key in [
            "secret",
            "configMap",
            "downwardAPI",
            "serviceAccountToken",
            "clusterTrustBundle",
            "podCertificate",
        ] {
            let Some(part) = set(source, key) else {
                continue;
            };
            count = count.saturating_add(1);
            let at = source_path.child(key);
            match key {
                "secret" | "configMap" => {
                    out.not_empty(at.child("name"), text(part, "name"));
                    key_paths(part, &at, out);
                    seen.add_items(part, out);
                }
                "downwardAPI" => {
                    files(part, &at, out);
                    seen.add_items(part, out);
                }
                "serviceAccountToken" => token(part, pod, path, &at, out),
                "clusterTrustBundle" => {
                    trust_bundle(part, &at, out);
                    seen.add(text(part, "path"), out);
                }
                _ => certificate(part, &at, &mut seen, out),
            }
        }
        if count > 1 {
            out.forbidden(
                source_path,
                "may not specify more than 1 volume type per source",
            );
        }
    }
}

fn token(part: &Value, pod: &PodContext<'_>, volume: &FieldPath, at: &FieldPath, out: &mut Causes) {
    let seconds = integer(part, "expirationSeconds");
    if seconds.is_some_and(|it| !(600..=1_i64 << 32).contains(&it)) {
        let detail = "may not specify a duration less than 10 minutes or larger than 2^32 seconds";
        out.invalid(at.child("expirationSeconds"), detail);
    }
    let file = text(part, "path");
    out.not_empty(volume.child("path"), file);
    if !file.is_empty() && !pod.accepts_any_token_path() {
        out.reasons(&volume.child("path"), file, paths::non_reserved(file));
    }
}

fn trust_bundle(part: &Value, at: &FieldPath, out: &mut Causes) {
    let name = optional_text(part, "name");
    let signer = optional_text(part, "signerName");
    match (name, signer) {
        (Some(_), Some(_)) => {
            out.invalid(at.clone(), "only one of name and signerName may be used");
        }
        (Some(name), None) => {
            out.not_empty(at.child("name"), name);
            // A name with a signer has its name as a prefix.
            let name = name.rsplit_once(':').map_or(name, |it| it.1);
            out.reasons(&at.child("name"), name, names::dns1123_subdomain(name));
            if set(part, "labelSelector").is_some() {
                let detail = "labelSelector must be unset if name is specified";
                out.invalid(at.child("labelSelector"), detail);
            }
        }
        (None, Some(signer)) => {
            signer_name(signer, &at.child("signerName"), out);
            let selector = value(part, "labelSelector");
            validate_selector(
                selector,
                LabelValues::Validated,
                &at.child("labelSelector"),
                out,
            );
        }
        (None, None) => out.required(at.clone(), "either name or signerName must be specified"),
    }
    let file = text(part, "path");
    out.not_empty(at.child("path"), file);
    out.reasons(&at.child("path"), file, paths::non_reserved(file));
}

fn signer_name(name: &str, at: &FieldPath, out: &mut Causes) {
    out.not_empty(at.clone(), name);
    let Some((domain, rest)) = name.split_once('/').filter(|it| !it.1.contains('/')) else {
        if !name.is_empty() {
            let detail =
                "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            out.invalid(at.clone(), detail);
        }
        return;
    };
    if domain.len() > 253 {
        out.too_long(at.clone(), 253);
    }
    let is_domain = domain.contains('.')
        && domain
            .split('.')
            .all(|it| names::dns1123_label(it).is_empty());
    if !is_domain || !names::dns1123_subdomain(rest).is_empty() {
        out.invalid(at.clone(), "must be a domain and a path of DNS labels");
    }
}

fn certificate<'a>(part: &'a Value, at: &FieldPath, seen: &mut Files<'a>, out: &mut Causes) {
    let signer = text(part, "signerName");
    signer_name(signer, &at.child("signerName"), out);
    for (key, _) in text_entries(part, "userAnnotations") {
        let key = key.to_lowercase();
        let field = at.child("userAnnotations");
        if key.is_empty() {
            out.required(field, "");
        } else if !names::qualified_name(&key).is_empty() || !key.contains('/') {
            out.invalid(
                field,
                "must be a domain-prefixed key (such as \"acme.io/foo\")",
            );
        }
    }
    out.one_of(at.child("keyType"), text(part, "keyType"), KEY_TYPES);
    let domain = signer.split_once('/').map_or("", |it| it.0);
    let is_kubernetes = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
    let max = if is_kubernetes {
        KUBERNETES_LIFETIME_MAX
    } else {
        LIFETIME_MAX
    };
    let lifetime = integer(part, "maxExpirationSeconds");
    out.range(at.child("maxExpirationSeconds"), lifetime, 3600, max);
    let mut has_path = false;
    for key in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
        let file = text(part, key);
        if !file.is_empty() {
            has_path = true;
            out.reasons(&at.child(key), file, paths::non_reserved(file));
            seen.add(file, out);
        }
    }
    if !has_path {
        let detail =
            "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        out.required(at.clone(), detail);
    }
}
