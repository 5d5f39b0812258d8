//! What is filled in that no schema can default, in Kubernetes' CEL, for the API server.
//!
//! Schema defaults and fillings together fill in what [`crate::guarded::Guarded::defaults`] does, as far as the object and what
//! is stored of it say what that is. (`crdgen/src/admission/mutating/tests.rs`, and on a real API server
//! `tests/e2e/scenarios/filling.rs`)

/// Something that is filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CelDefault {
    /// A finalizer, when an object is made.
    Finalizer(&'static str),
    /// A field, wherever it is missing.
    Field(FieldDefault),
}

/// A field that is filled in. In its expressions `object` is the object, and `oldObject` what is stored of it, or null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldDefault {
    /// The field, with dots between the steps. What it stands in is made as well, but for the first step.
    pub path: &'static str,
    /// When there is something to fill in; always if empty.
    pub when: &'static str,
    /// What is filled in.
    pub value: &'static str,
}
