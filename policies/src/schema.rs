//! The rules that the schema of a CRD enforces for any custom resource.

mod metadata;
mod rules;

pub use lockkeeper_crd_schema::crd::is_string_format;
pub use lockkeeper_crd_schema::rule_ids::{
    CEL_RULE_VIOLATION as EXPRESSION, SCHEMA_VIOLATION, UNKNOWN_FIELD as UNKNOWN,
};
pub use lockkeeper_crd_schema::{Correction, MisspeltPart, SchemaError, StructuralSchema};
pub use metadata::{METADATA, metadata};
pub(crate) use rules::rule_infos;
