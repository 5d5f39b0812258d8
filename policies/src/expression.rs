//! What rules say in Kubernetes' CEL, for the API server.
//!
//! An expression says of an object what its rule says in Rust: it holds if and only if the rule finds nothing. Both are
//! held against each other on objects near what the rule allows (`crdgen/tests/agreement`, and on a real API server
//! `tests/e2e/scenarios/expressions`).

use crate::finding::ErrorKind;

/// What a rule says, or a part of it, of one place in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expression {
    /// The place: fields with dots between them, `[]` behind one for the items of its list. Where there is none in an
    /// object nothing is said of it.
    pub at: &'static str,
    /// What holds if all is well. `self` is the value at the place. One that names `oldSelf` is about updates alone.
    pub holds: &'static str,
    /// What is wrong and what would be accepted, in the words of the rule.
    pub message: &'static str,
    /// The same with what is seen in the object, as an expression that gives a text.
    pub detail: Option<&'static str>,
    /// The field that is to blame, below the place, such as `.borrowWithinCohort.policy`; the place itself if empty.
    pub field: &'static str,
    /// What is left as it was, if a finding of an update is one that the stored object has too. `self` and `oldSelf` are
    /// the values at the place. An expression about updates has none.
    pub kept: &'static str,
    /// What kind of error it is.
    pub kind: ErrorKind,
}

impl Expression {
    /// An expression about a place, with what is said if it does not hold.
    pub(crate) const fn new(at: &'static str, holds: &'static str, message: &'static str) -> Self {
        Self {
            at,
            holds,
            message,
            detail: None,
            field: "",
            kept: "self == oldSelf",
            kind: ErrorKind::Invalid,
        }
    }

    /// With what is seen in the object.
    pub(crate) const fn detailed(self, detail: &'static str) -> Self {
        Self {
            detail: Some(detail),
            ..self
        }
    }

    /// With the field that is to blame.
    pub(crate) const fn blaming(self, field: &'static str) -> Self {
        Self { field, ..self }
    }

    /// With what is left as it was by an update that makes nothing worse.
    pub(crate) const fn kept(self, kept: &'static str) -> Self {
        Self { kept, ..self }
    }

    /// As an error of this kind.
    pub(crate) const fn of_kind(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// Whether it compares an object with what is stored.
    #[must_use]
    pub fn is_about_updates(&self) -> bool {
        self.holds.contains("oldSelf")
    }
}

/// A quantity as CEL compares it. It may be written as a number.
macro_rules! quantity {
    ($($field:literal),+) => {
        concat!("quantity(string(", $($field),+, "))")
    };
}

/// Whether there is a quantity in a field of `self` that can be compared. What is none is for others to refuse.
macro_rules! is_amount {
    ($field:literal) => {
        concat!(
            "has(self.",
            $field,
            ") && isQuantity(string(self.",
            $field,
            "))"
        )
    };
}

/// Whether `oldSelf` has the same amount in a field, however it is written.
macro_rules! same_amount {
    ($field:literal) => {
        concat!(
            "has(oldSelf.",
            $field,
            ") && isQuantity(string(oldSelf.",
            $field,
            ")) && quantity(string(self.",
            $field,
            ")).compareTo(quantity(string(oldSelf.",
            $field,
            "))) == 0"
        )
    };
}

pub(crate) use {is_amount, quantity, same_amount};
