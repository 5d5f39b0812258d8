//! Kinds that store data: `ConfigMap`s, Secrets and `PersistentVolumeClaim`s.

use super::causes::{Below, Causes};
use super::fields::{
    annotation, entries, flag, is_equal, is_set, optional_text, set, text, text_entries, text_or,
    value,
};
use super::formats::config_key;
use super::pod_spec::claim_spec;
use super::quantities::nano;
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
    if let Some(old) = old
        && text_or(object, "type", text(old, "type")) != text(old, "type")
        && !(text(object, "type") == "Opaque" && text(old, "type").is_empty())
    {
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
    let kind = text_or(object, "type", old.map_or("", |it| text(it, "type")));
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

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// Validates a `PersistentVolumeClaim`.
pub(super) fn validate_claim(object: &Value, old: Option<&Value>, out: &mut Causes) {
    let spec = value(object, "spec");
    let path = FieldPath::new("spec");
    claim_spec(spec, old.map(|it| value(it, "spec")), &path, out);
    if let Some(old) = old {
        claim_update(object, old, out);
    }
}

fn claim_update(object: &Value, old: &Value, out: &mut Causes) {
    let (spec, stored) = (value(object, "spec"), value(old, "spec"));
    let mut new = spec.as_object().cloned().unwrap_or_default();
    let mut previous = stored.as_object().cloned().unwrap_or_default();
    if text(stored, "volumeName").is_empty() {
        previous.insert("volumeName".to_owned(), value(spec, "volumeName").clone());
    }
    if !is_set(spec, "volumeMode") {
        new.insert("volumeMode".to_owned(), "Filesystem".into());
    }
    let (class, old_class) = (
        optional_text(spec, "storageClassName"),
        optional_text(stored, "storageClassName"),
    );
    let annotations = (
        annotation(object, CLASS_ANNOTATION),
        annotation(old, CLASS_ANNOTATION),
    );
    let is_upgrade = class.is_some() && old_class.is_none();
    let from_annotation = is_upgrade
        && annotations.1.is_some()
        && class == annotations.1
        && (annotations.0.is_none() || annotations.0 == annotations.1);
    if from_annotation {
        new.remove("storageClassName");
    } else {
        if annotations.0.unwrap_or_default() != annotations.1.unwrap_or_default() {
            let field = FieldPath::new("metadata.annotations").named(CLASS_ANNOTATION);
            out.invalid(field, "field is immutable");
        }
        if is_upgrade && (annotations.1.is_none() || class == annotations.1) {
            new.remove("storageClassName");
        }
    }
    let is_bound = text(value(old, "status"), "phase") == "Bound";
    if is_bound {
        for key in ["resources", "volumeAttributesClassName"] {
            new.insert(key.to_owned(), value(stored, key).clone());
        }
    }
    // Either source of data sets the other.
    for fields in [&mut new, &mut previous] {
        if !fields.contains_key("dataSourceRef")
            && let Some(source) = fields.get("dataSource").cloned()
        {
            fields.insert("dataSourceRef".to_owned(), source);
        }
        if !fields.contains_key("dataSource")
            && let Some(source) = fields.get("dataSourceRef").cloned()
            && source.get("namespace").is_none()
        {
            fields.insert("dataSource".to_owned(), source);
        }
    }
    let storage = |it: &Value| nano(value(value(value(it, "resources"), "requests"), "storage"));
    let (size, old_size) = (storage(spec), storage(stored));
    if !is_same_claim(&Value::Object(new), &Value::Object(previous)) {
        out.forbidden(
            FieldPath::new("spec"),
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        );
    }
    let capacity = nano(value(value(value(old, "status"), "capacity"), "storage"));
    if size < old_size && size <= capacity {
        let field = FieldPath::new("spec.resources.requests.storage");
        out.forbidden(field, "field can not be less than status.capacity");
    }
    let mode = |it| text_or(it, "volumeMode", "Filesystem");
    if mode(spec) != mode(stored) {
        out.invalid(FieldPath::new("volumeMode"), "field is immutable");
    }
}

/// Whether specs of claims are equal; amounts are compared by value.
fn is_same_claim(new: &Value, old: &Value) -> bool {
    let rest = |it: &Value| {
        let mut fields = it.as_object().cloned().unwrap_or_default();
        fields.remove("resources");
        Value::Object(fields)
    };
    let amounts = |it: &Value, key: &str| {
        let resources = value(it, "resources").clone();
        let mut all: Vec<(String, i128)> = entries(&resources, key)
            .map(|(name, it)| (name.to_owned(), nano(it)))
            .collect();
        all.sort();
        all
    };
    is_equal(&rest(new), &rest(old))
        && ["limits", "requests"]
            .iter()
            .all(|key| amounts(new, key) == amounts(old, key))
        && set(value(new, "resources"), "claims") == set(value(old, "resources"), "claims")
}
