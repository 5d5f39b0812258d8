//! Prepares and validates decoded objects, in the order of the API server's strategies for custom resources.

use super::correlation::Correlated;
use super::definition::Schema;
use super::meta_validation;
use super::system_fields::set_system_fields;
use super::values::{metadata_of, normalized};
use super::{cel_rules, embedded, list_types, names, scale, value_validation};
use crate::finding::{ErrorKind, Finding};
use crate::rule_ids::SCHEMA_VIOLATION;
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Map, Value};
use std::borrow::Cow;

impl Schema {
    /// Sets what the API server sets before it validates a new object.
    pub(super) fn prepare_new(&self, object: &mut Value, namespace: &str) {
        let Value::Object(fields) = object else {
            return;
        };
        if self.has_status {
            fields.remove("status");
        }
        let metadata = fields
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(metadata) = metadata else {
            return;
        };
        self.set_namespace(metadata, namespace);
        set_system_fields(metadata);
    }

    /// The stored object, which has a namespace even if the given one has none.
    pub(super) fn stored(&self, old: &Value, namespace: &str) -> Value {
        let mut old = normalized(old);
        if let Some(Value::Object(metadata)) = old.get_mut("metadata") {
            self.set_namespace(metadata, namespace);
        }
        old
    }

    pub(super) fn set_namespace(&self, metadata: &mut Map<String, Value>, namespace: &str) {
        if self.is_namespaced {
            metadata
                .entry("namespace")
                .or_insert_with(|| namespace.into());
        } else {
            metadata.remove("namespace");
        }
    }

    /// Sets what the API server sets before it validates an update.
    pub(super) fn prepare_change(
        &self,
        object: &mut Value,
        old: &Value,
        namespace: &str,
        is_status: bool,
    ) {
        let Value::Object(fields) = object else {
            return;
        };
        if is_status {
            let status = fields.get("status").cloned();
            let mut stored = old.clone();
            if let Value::Object(stored) = &mut stored {
                match status {
                    Some(status) => stored.insert("status".to_owned(), status),
                    None => stored.remove("status"),
                };
            }
            *object = stored;
            return;
        }
        if self.has_status {
            match old.get("status") {
                Some(status) => fields.insert("status".to_owned(), status.clone()),
                None => fields.remove("status"),
            };
        }
        let metadata = fields
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(metadata) = metadata else {
            return;
        };
        self.set_namespace(metadata, namespace);
        metadata.remove("managedFields");
        metadata.remove("selfLink");
        let stored = metadata_of(old);
        for name in ["generation", "creationTimestamp", "deletionTimestamp"] {
            match stored.get(name) {
                Some(value) => metadata.insert(name.to_owned(), value.clone()),
                None if name == "deletionTimestamp" => None,
                None => metadata.remove(name),
            };
        }
        for name in ["uid", "deletionGracePeriodSeconds", "resourceVersion"] {
            if let Some(value) = stored.get(name) {
                metadata.entry(name).or_insert_with(|| value.clone());
            }
        }
    }

    pub(super) fn validate_new(&self, object: &Value) -> Vec<Finding> {
        let mut out = self.type_meta(object);
        if out.is_empty() {
            let metadata = metadata_of(object);
            let base = FieldPath::new("metadata");
            out = meta_validation::validate_new(
                metadata,
                self.is_namespaced,
                names::resource_name,
                &base,
            );
            out.extend(value_validation::validate(&self.root, object));
            out.extend(scale::validate_spec(self.scale.as_ref(), object));
            out.extend(scale::validate_status(self.scale.as_ref(), object));
        }
        out.extend(embedded::validate(&self.root, object));
        out.extend(list_types::validate(&self.root, object));
        if !self.root.has_rules_below {
            return out;
        }
        if is_blocking(&out) {
            out.push(rules_skipped());
        } else {
            out.extend(cel_rules::validate(&self.root, object));
        }
        out
    }

    pub(super) fn validate_change(
        &self,
        object: &Value,
        old: &Value,
        is_status: bool,
        warnings: &mut Vec<String>,
    ) -> Vec<Finding> {
        let correlation = Correlated::root(&self.root, object, Some(old));
        let mut out = self.type_meta(object);
        if out.is_empty() {
            let base = FieldPath::new("metadata");
            out = meta_validation::validate_change(metadata_of(object), metadata_of(old), &base);
            if is_status {
                out.extend(self.validate_status(object, old, correlation));
            } else {
                out.extend(value_validation::validate_update(&self.root, correlation));
                out.extend(scale::validate_spec(self.scale.as_ref(), object));
            }
            out.extend(scale::validate_status(self.scale.as_ref(), object));
        }
        if !is_status {
            out.extend(embedded::validate(&self.root, object));
        }
        if list_types::validate(&self.root, old).is_empty() {
            out.extend(list_types::validate(&self.root, object));
        }
        if !self.root.has_rules_below {
            return out;
        }
        if is_blocking(&out) {
            out.push(rules_skipped());
        } else {
            let (findings, ratcheted) = cel_rules::validate_update(&self.root, object, old);
            out.extend(findings);
            warnings.extend(ratcheted.iter().map(Finding::text));
        }
        out
    }

    /// Validates `status` by its own schema.
    pub(super) fn validate_status(
        &self,
        object: &Value,
        old: &Value,
        correlation: Correlated<'_>,
    ) -> Vec<Finding> {
        let (Some(status), Some(schema)) =
            (object.get("status"), self.root.properties.get("status"))
        else {
            return Vec::new();
        };
        let correlation = correlation.key("status").map_or_else(
            || Correlated::root(schema, status, old.get("status")),
            Correlated::as_root,
        );
        let mut findings = value_validation::validate_update(schema, correlation);
        for finding in &mut findings {
            finding.field = FieldPath::new("status").join(&finding.field);
        }
        findings
    }

    pub(super) fn type_meta(&self, object: &Value) -> Vec<Finding> {
        let expected = [
            ("kind", self.kind.clone()),
            ("apiVersion", self.api_version()),
        ];
        let mut out = Vec::new();
        for (name, expected) in expected {
            let actual = object.get(name).and_then(Value::as_str).unwrap_or_default();
            if actual != expected {
                out.push(Finding {
                    rule: Cow::Borrowed(SCHEMA_VIOLATION),
                    field: FieldPath::new(name),
                    kind: ErrorKind::Invalid,
                    value: Some(crate::finding::quoted(actual)),
                    detail: format!("must be {expected}").into(),
                });
            }
        }
        out
    }
}

/// Whether findings keep the API server from evaluating CEL rules.
fn is_blocking(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| {
        matches!(
            finding.kind,
            ErrorKind::NotSupported
                | ErrorKind::Required
                | ErrorKind::TooLong
                | ErrorKind::TooMany
                | ErrorKind::TypeInvalid
        )
    })
}

fn rules_skipped() -> Finding {
    Finding {
        rule: Cow::Borrowed(SCHEMA_VIOLATION),
        field: FieldPath::default(),
        kind: ErrorKind::Invalid,
        value: None,
        detail: Cow::Borrowed(
            "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ),
    }
}
