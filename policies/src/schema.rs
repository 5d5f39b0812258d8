//! What the schema of a custom resource says of an object: shape, bounds and CEL, in the order in
//! which the API server asks, with its kinds of errors and its paths.
//!
//! JSON Schema alone would not do: the API server prunes, fills in defaults, keys lists, lets what an update
//! leaves alone pass, and has its own kinds of errors.

mod cel_eval;
mod cel_fast_path;
mod check;
mod defaults_and_pruning;
mod metadata;
mod node;
mod path;
mod rules;
mod typo_corrections;

use crate::finding::{ErrorKind, Finding};
pub(crate) use cel_eval::RESERVED;
pub(crate) use check::display_value;
pub use metadata::metadata;
use node::Node;
pub(crate) use rules::rule_infos;
use serde_json::Value;
use std::fmt;
pub use typo_corrections::{Correction, MisspeltPart};

/// The id under which findings of shape and bounds go.
pub const SCHEMA_VIOLATION: &str = "SC002";

/// The id under which findings of the schema's CEL expressions go.
pub const EXPRESSION: &str = "SC003";

/// The id under which findings of names and namespaces go.
pub const METADATA: &str = "SC004";

/// The id under which unknown fields go.
pub const UNKNOWN: &str = "SC005";

/// How deep a schema may be.
const DEPTH_MAX: usize = 64;

/// A schema that can be asked.
#[derive(Debug)]
pub struct StructuralSchema {
    root: Node,
}

/// A schema that no API server would take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// Where in the schema, as a path of its fields.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for SchemaError {}

impl StructuralSchema {
    /// Reads an `openAPIV3Schema`.
    ///
    /// # Errors
    ///
    /// A [`SchemaError`] for a pattern or an expression that does not compile, and for a schema that is
    /// nested too deep.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        let root = Node::new(schema, &mut Vec::new())?;
        Ok(Self { root })
    }

    /// Removes what the schema does not know, and says what it was: at most a hundred findings. The API server
    /// drops it silently, unless it is asked to be strict.
    pub fn prune(&self, object: &mut Value) -> Vec<Finding> {
        defaults_and_pruning::prune(&self.root, object)
    }

    /// Fills in the schema's defaults. Doing it twice changes nothing.
    pub fn apply_defaults(&self, object: &mut Value) {
        defaults_and_pruning::apply_defaults(&self.root, object);
    }

    /// Misspelt names and values that have one obvious correction: at most a hundred.
    #[must_use]
    pub fn corrections(&self, object: &Value) -> Vec<Correction> {
        typo_corrections::corrections(&self.root, object)
    }

    /// What is wrong with an object that is made, or was changed from `old`. What a change left as it was is
    /// not looked at. If its shape is wrong the expressions are not asked: they could not be answered.
    #[must_use]
    pub fn check(&self, object: &Value, old: Option<&Value>) -> Vec<Finding> {
        let mut findings = self.check_shape(object, old);
        if Self::can_evaluate_cel(&findings) {
            findings.extend(cel_eval::expressions(&self.root, object, old));
        }
        findings
    }

    /// Expressions that are answered differently by what asks them fast and by the crate that is asked otherwise, of an
    /// object that is made: there are none, unless one of both is wrong. An object of the wrong shape is not asked.
    #[must_use]
    pub fn verify(&self, object: &Value) -> Vec<Finding> {
        if Self::can_evaluate_cel(&self.check_shape(object, None)) {
            cel_eval::fast_path_mismatches(&self.root, object)
        } else {
            Vec::new()
        }
    }

    /// What [`Structure::check`] says without the expressions.
    #[must_use]
    pub fn check_shape(&self, object: &Value, old: Option<&Value>) -> Vec<Finding> {
        check::check_shape(&self.root, object, old)
    }

    /// In how many places all expressions are simple, and in how many there are any.
    #[cfg(test)]
    pub(crate) fn fast_expression_counts(&self) -> (usize, usize) {
        self.root.fast_expression_counts()
    }

    /// Whether the shape is right enough for expressions.
    fn can_evaluate_cel(findings: &[Finding]) -> bool {
        let is_blocked = findings.iter().any(|it| {
            matches!(
                it.kind,
                ErrorKind::NotSupported
                    | ErrorKind::Required
                    | ErrorKind::TooLong
                    | ErrorKind::TooMany
                    | ErrorKind::TypeInvalid
            )
        });
        !is_blocked
    }
}
