//! A breach of a good practice.

use crate::catalogue::{Check, Severity};
use serde::{Serialize, Serializer, ser::SerializeStruct};

/// A breach of a good practice, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The check.
    pub check: &'static Check,
    /// The object, as `Kind/name` or `Kind/namespace/name`.
    pub object: String,
    /// The field with the cause.
    pub field: String,
    /// What was found there.
    pub evidence: String,
}

impl Finding {
    /// The severity.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.check.severity
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Finding", 9)?;
        fields.serialize_field("id", self.check.id)?;
        fields.serialize_field("title", self.check.title)?;
        fields.serialize_field("severity", &self.check.severity)?;
        fields.serialize_field("object", &self.object)?;
        fields.serialize_field("field", &self.field)?;
        fields.serialize_field("evidence", &self.evidence)?;
        fields.serialize_field("risk", self.check.risk)?;
        fields.serialize_field("fix", self.check.fix)?;
        fields.serialize_field("source", self.check.source)?;
        fields.end()
    }
}
