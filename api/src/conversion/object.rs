//! An object in its parts: what a conversion may touch, and what it may not.

use super::error::{ConvertError, ConvertErrorKind, ObjectIdentity, VersionError};
use super::preserved_fields::is_preserved_annotation;
use crate::field_path::FieldPath;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// An object in its parts.
pub(super) struct ObjectParts {
    pub(super) api_version: String,
    pub(super) kind: String,
    metadata: Map<String, Value>,
    /// All the rest.
    pub(super) payload: Value,
}

impl ObjectParts {
    /// Takes an object apart that is to have another version.
    pub(super) fn from_object(object: Value, desired: &str) -> Result<Self, ConvertError> {
        let named = object_identity(&object);
        let malformed = |field: FieldPath, reason: &str| ConvertError {
            object: Box::new(named.clone()),
            desired: desired.to_owned(),
            kind: ConvertErrorKind::Malformed(VersionError::new(field, reason)),
        };
        let Value::Object(mut fields) = object else {
            return Err(malformed(FieldPath::default(), "must be an object"));
        };
        let mut text = |key: &'static str| match fields.remove(key) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text),
            _ => Err(malformed(FieldPath::new(key), "must be a text")),
        };
        let (api_version, kind) = (text("apiVersion")?, text("kind")?);
        let Some(Value::Object(metadata)) = fields.remove("metadata") else {
            return Err(malformed(FieldPath::new("metadata"), "must be an object"));
        };
        if !metadata
            .get(ANNOTATIONS)
            .is_none_or(|it| it.is_object() || it.is_null())
        {
            return Err(malformed(
                FieldPath::new("metadata.annotations"),
                "must be an object",
            ));
        }
        Ok(Self {
            api_version,
            kind,
            metadata,
            payload: Value::Object(fields),
        })
    }

    /// The error about this object.
    pub(super) fn error(&self, desired: &str, why: ConvertErrorKind) -> ConvertError {
        let text = |key| self.metadata.get(key).and_then(Value::as_str);
        ConvertError {
            object: Box::new(ObjectIdentity {
                kind: self.kind.clone(),
                api_version: self.api_version.clone(),
                namespace: text("namespace").unwrap_or_default().to_owned(),
                name: text("name").unwrap_or_default().to_owned(),
            }),
            desired: desired.to_owned(),
            kind: why,
        }
    }

    /// Its annotations.
    pub(super) fn annotations(&self) -> Option<&Map<String, Value>> {
        self.metadata.get(ANNOTATIONS)?.as_object()
    }

    /// The object as it was.
    pub(super) fn into_object(self) -> Value {
        let api_version = self.api_version.clone();
        let payload = self.payload.clone();
        self.assemble(&api_version, payload)
    }

    /// The object in another version, with these annotations in the place of those that kept something before.
    pub(super) fn with_payload(
        mut self,
        api_version: &str,
        payload: Value,
        kept: BTreeMap<String, String>,
    ) -> Value {
        remove_preserved_annotations(&mut self.metadata);
        if !kept.is_empty() {
            let all = self.metadata.entry(ANNOTATIONS).or_insert(Value::Null);
            if all.is_null() {
                *all = Map::new().into();
            }
            if let Some(all) = all.as_object_mut() {
                all.extend(kept.into_iter().map(|(key, text)| (key, text.into())));
            }
        }
        self.assemble(api_version, payload)
    }

    fn assemble(self, api_version: &str, payload: Value) -> Value {
        let mut fields = Map::new();
        fields.insert("apiVersion".to_owned(), api_version.into());
        fields.insert("kind".to_owned(), self.kind.into());
        fields.insert("metadata".to_owned(), self.metadata.into());
        if let Value::Object(payload) = payload {
            fields.extend(payload);
        }
        fields.into()
    }
}

const ANNOTATIONS: &str = "annotations";

/// What no version has for itself.
pub(super) const HEAD_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes what is kept from metadata.
pub(super) fn remove_preserved_annotations(metadata: &mut Map<String, Value>) {
    let annotations = metadata.get_mut(ANNOTATIONS);
    let Some(all) = annotations.and_then(Value::as_object_mut) else {
        return;
    };
    let before = all.len();
    all.retain(|key, _| !is_preserved_annotation(key));
    if before > 0 && all.is_empty() {
        metadata.remove(ANNOTATIONS);
    }
}

/// How an object is named that may be none.
fn object_identity(object: &Value) -> ObjectIdentity {
    let text = |pointer: &str| {
        let found = object.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    ObjectIdentity {
        kind: text("/kind"),
        api_version: text("/apiVersion"),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name"),
    }
}
