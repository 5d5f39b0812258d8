//! One object of a manifest, and the object it was converted from.

use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::KueueConversion;
use lockkeeper_policies::finding::Finding;
use serde_json::Value;
use std::borrow::Cow;

/// An object in a file.
pub struct Document {
    /// The number of its YAML document, from 0. Null documents are not counted.
    pub number: usize,
    /// Its JSON pointer in that document: empty, or an item of a list.
    pub pointer: String,
    /// The object; after a conversion, the converted object.
    pub value: Value,
    /// The object before a conversion.
    pub origin: Option<Box<Origin>>,
    /// The object is a patch: fields may be missing. Only unknown fields and wrong types are reported.
    pub is_patch: bool,
}

/// An object before its conversion.
pub struct Origin {
    /// The identity in the file.
    pub identity: Identity,
    /// Findings about fields that the conversion drops.
    pub lost_fields: Vec<Finding>,
    /// The conversion has no result, such as for a Topology.
    pub is_dropped: bool,
    pub(crate) converted: KueueConversion,
}

/// Kind and name of an object. Absent fields are empty.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Document {
    /// The object to check; `None` if its conversion has no result.
    #[must_use]
    pub fn object(&self) -> Option<&Value> {
        let is_dropped = self.origin.as_ref().is_some_and(|it| it.is_dropped);
        (!is_dropped).then_some(&self.value)
    }
}

impl Origin {
    /// The field of the original object that a field of the converted object comes from.
    pub(crate) fn source_field(&self, field: &FieldPath) -> FieldPath {
        self.converted.origin(field)
    }
}

impl Identity {
    /// Reads the identity of any object.
    #[must_use]
    pub fn from_object(object: &Value) -> Self {
        let text = |value: Option<&Value>| {
            let text = value.and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let metadata = object.get("metadata");
        let metadata_text = |key: &str| text(metadata.and_then(|it| it.get(key)));
        Self {
            api_version: text(object.get("apiVersion")),
            kind: text(object.get("kind")),
            namespace: metadata_text("namespace"),
            name: metadata_text("name"),
        }
    }

    /// `namespace/name`, or the name of a cluster-scoped object.
    #[must_use]
    pub fn full_name(&self) -> Cow<'_, str> {
        if self.namespace.is_empty() {
            Cow::Borrowed(&self.name)
        } else {
            Cow::Owned(format!("{}/{}", self.namespace, self.name))
        }
    }
}
