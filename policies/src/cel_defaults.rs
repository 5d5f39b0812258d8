//! Defaults that a schema cannot express, as CEL for mutating admission policies.
//!
//! Together with schema defaults they set the same fields as [`crate::validated_kind::ValidatedKind::defaults`], as far
//! as these follow from the object and its stored version. (`crdgen/src/admission_policies/mutating/tests.rs`, and on a
//! real API server `tests/e2e/scenarios/policy_defaults.rs`)

/// One default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CelDefault {
    /// A finalizer, unless the object is being deleted.
    Finalizer(&'static str),
    /// A field, if it is unset.
    Field(FieldDefault),
}

/// The default of a field. In its expressions `object` is the object, and `oldObject` the stored one or null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldDefault {
    /// The path, separated by dots. Missing parents are created, except for the first segment.
    pub path: &'static str,
    /// The condition for setting the default; empty is always.
    pub when: &'static str,
    /// The value, as CEL.
    pub value: &'static str,
}
