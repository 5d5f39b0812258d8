//! Kinds that store data: `ConfigMap`s and Secrets.

use super::causes::{Below, Causes};
use super::fields::{annotation, flag, is_equal, optional_text, text_entries, text_or, value};
use super::formats::config_key;
use crate::crd::base64;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// The size limit of all values, in bytes.
const DATA_MAX_BYTES: usize = 1024 * 1024;

fn decoded_len(text: &str) -> usize {
    let encoded = text.trim_end_matches('=').len();
    encoded.saturating_mul(3) / 4
}

fn immutable(object: &Value, old: Option<&Value>, keys: &[&'static str], out: &mut Causes) {
    let Some(old) = old.filter(|it| flag(it, "immutable")) else {
        return;
    };
    let detail = "field is immutable when `immutable` is set";
    if !flag(object, "immutable") {
        out.forbidden(FieldPath::new("immutable"), detail);
    }
    for key in keys {
        if !is_equal(value(object, key), value(old, key)) {
            out.forbidden(FieldPath::new(key), detail);
        }
    }
}

/// Validates a `ConfigMap`.
pub(super) fn validate_config_map(object: &Value, old: Option<&Value>, out: &mut Causes) {
    immutable(object, old, &["data", "binaryData"], out);
    let mut size: usize = 0;
    for (key, text) in text_entries(object, "data") {
        let field = FieldPath::new("data").key(key);
        out.reasons(&field, key, config_key(key));
        if value(object, "binaryData").get(key).is_some() {
            out.invalid(field, "duplicate of key present in binaryData");
        }
        size = size.saturating_add(text.len());
    }
    for (key, text) in text_entries(object, "binaryData") {
        let field = FieldPath::new("binaryData").key(key);
        out.reasons(&field, key, config_key(key));
        size = size.saturating_add(decoded_len(text));
    }
    if size > DATA_MAX_BYTES {
        out.too_long(FieldPath::new(""), DATA_MAX_BYTES);
    }
}

/// Validates a Secret.
pub(super) fn validate_secret(object: &Value, old: Option<&Value>, out: &mut Causes) {
    let kind = text_or(object, "type", "Opaque");
    if old.is_some_and(|it| text_or(it, "type", "Opaque") != kind) {
        out.invalid(FieldPath::new("type"), "field is immutable");
    }
    immutable(object, old, &["data"], out);
    let path = FieldPath::new("data");
    let mut size: usize = 0;
    // `stringData` is merged into `data` before validation.
    let texts = value(object, "stringData");
    for (key, text) in text_entries(object, "data") {
        if texts.get(key).is_none() {
            out.reasons(&path.entry(key), key, config_key(key));
            size = size.saturating_add(decoded_len(text));
        }
    }
    for (key, text) in text_entries(object, "stringData") {
        out.reasons(&path.entry(key), key, config_key(key));
        size = size.saturating_add(text.len());
    }
    if size > DATA_MAX_BYTES {
        out.too_long(path.clone(), DATA_MAX_BYTES);
    }
    secret_type(object, kind, &path, out);
}

/// The value of a key, decoded.
fn data(object: &Value, key: &str) -> Option<Vec<u8>> {
    if let Some(text) = optional_text(value(object, "stringData"), key) {
        return Some(text.as_bytes().to_vec());
    }
    let encoded = value(object, "data").get(key)?;
    let text = encoded.as_str().unwrap_or_default();
    Some(base64::decode(text, base64::Alphabet::Standard).unwrap_or_default())
}

fn secret_type(object: &Value, kind: &str, path: &FieldPath, out: &mut Causes) {
    let mut require = |keys: &[&str]| {
        for key in keys {
            out.required(path.entry(key), "");
        }
    };
    let has = |key: &str| data(object, key).is_some();
    match kind {
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            if annotation(object, key).unwrap_or_default().is_empty() {
                out.required(FieldPath::new("metadata.annotations").key(key), "");
            }
        }
        "kubernetes.io/dockercfg" => docker(object, ".dockercfg", path, out),
        "kubernetes.io/dockerconfigjson" => docker(object, ".dockerconfigjson", path, out),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            require(&["username", "password"]);
        }
        "kubernetes.io/ssh-auth"
            if data(object, "ssh-privatekey")
                .unwrap_or_default()
                .is_empty() =>
        {
            require(&["ssh-privatekey"]);
        }
        "kubernetes.io/tls" => {
            let missing: Vec<&str> = ["tls.crt", "tls.key"]
                .into_iter()
                .filter(|it| !has(it))
                .collect();
            require(&missing);
        }
        _ => {}
    }
}

fn docker(object: &Value, key: &str, path: &FieldPath, out: &mut Causes) {
    match data(object, key) {
        None => out.required(path.entry(key), ""),
        Some(bytes) => {
            let parsed = serde_json::from_slice::<Value>(&bytes);
            if !parsed.is_ok_and(|it| it.is_object() || it.is_null()) {
                out.invalid(path.entry(key), "must be a JSON object");
            }
        }
    }
}
