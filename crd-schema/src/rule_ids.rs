//! Ids under which this crate reports findings.

/// A value that cannot be decoded into the type of its field.
pub const UNDECODABLE: &str = "SC001";

/// A value that does not match the types and bounds of its schema.
pub const SCHEMA_VIOLATION: &str = "SC002";

/// A CEL rule of the schema (`x-kubernetes-validations`) that an object does not satisfy.
pub const CEL_RULE_VIOLATION: &str = "SC003";

/// A field that the schema does not specify.
pub const UNKNOWN_FIELD: &str = "SC005";
