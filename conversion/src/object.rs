//! Splits an object into the parts that a conversion may change and those that it may not.

use crate::error::{ConvertError, ConvertErrorKind, ObjectIdentity, VersionError};
use crate::preserved_fields::is_preserved_annotation;
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// An object, split into its parts.
pub(crate) struct ObjectParts {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    metadata: Map<String, Value>,
    /// All other fields.
    pub(crate) payload: Value,
}

impl ObjectParts {
    /// Splits an object that is to be converted to `desired`.
    pub(crate) fn from_object(object: Value, desired: &str) -> Result<Self, ConvertError> {
        let identity = object_identity(&object);
        let malformed = |field: FieldPath, reason: &str| ConvertError {
            object: Box::new(identity.clone()),
            desired: desired.to_owned(),
            kind: ConvertErrorKind::Malformed(VersionError::new(field, reason)),
        };
        let Value::Object(mut fields) = object else {
            return Err(malformed(FieldPath::default(), "must be an object"));
        };
        let mut text = |key: &'static str| match fields.remove(key) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text),
            _ => Err(malformed(FieldPath::new(key), "must be a string")),
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

    /// An error about this object.
    pub(crate) fn error(&self, desired: &str, kind: ConvertErrorKind) -> ConvertError {
        let text = |key| self.metadata.get(key).and_then(Value::as_str);
        ConvertError {
            object: Box::new(ObjectIdentity {
                kind: self.kind.clone(),
                api_version: self.api_version.clone(),
                namespace: text("namespace").unwrap_or_default().to_owned(),
                name: text("name").unwrap_or_default().to_owned(),
            }),
            desired: desired.to_owned(),
            kind,
        }
    }

    pub(crate) fn annotations(&self) -> Option<&Map<String, Value>> {
        self.metadata.get(ANNOTATIONS)?.as_object()
    }

    /// Reassembles the unchanged object.
    pub(crate) fn into_object(self) -> Value {
        let api_version = self.api_version.clone();
        let payload = self.payload.clone();
        self.assemble(&api_version, payload)
    }

    /// The object in another version; `preserved` replaces the annotations of earlier conversions.
    pub(crate) fn with_payload(
        mut self,
        api_version: &str,
        payload: Value,
        preserved: BTreeMap<String, String>,
    ) -> Value {
        remove_preserved_annotations(&mut self.metadata);
        if !preserved.is_empty() {
            let all = self.metadata.entry(ANNOTATIONS).or_insert(Value::Null);
            if all.is_null() {
                *all = Map::new().into();
            }
            if let Some(all) = all.as_object_mut() {
                all.extend(preserved.into_iter().map(|(key, text)| (key, text.into())));
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

/// The fields that all versions share; a conversion never passes them to a [`Version`](crate::Version).
pub(crate) const HEAD_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes the annotations with preserved fields.
pub(crate) fn remove_preserved_annotations(metadata: &mut Map<String, Value>) {
    let annotations = metadata.get_mut(ANNOTATIONS);
    let Some(all) = annotations.and_then(Value::as_object_mut) else {
        return;
    };
    let before = all.len();
    all.retain(|key, _| !is_preserved_annotation(key));
    // A map that was empty before stays; one that had only preserved fields is removed.
    if before > 0 && all.is_empty() {
        metadata.remove(ANNOTATIONS);
    }
}

/// The identity of a value that may not be an object.
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
