//! Structural schemas: the `OpenAPI` schema of a CRD, compiled.
//!
//! A JSON Schema validator would not do: the API server prunes, sets defaults, compares lists by key, does not
//! validate unchanged parts again on update (ratcheting), and has its own kinds of errors.

mod cel_eval;
mod check;
mod defaults_and_pruning;
mod error;
mod node;
pub(crate) mod path;
mod typo_corrections;

pub use check::display_value;
pub use error::SchemaError;
pub use typo_corrections::{Correction, MisspeltPart};

use crate::finding::{ErrorKind, Finding};
use node::Node;
use serde_json::Value;

/// A compiled `openAPIV3Schema`.
#[derive(Debug)]
pub struct StructuralSchema {
    root: Node,
}

impl StructuralSchema {
    /// Compiles an `openAPIV3Schema`, with its patterns and CEL rules.
    ///
    /// # Errors
    ///
    /// A [`SchemaError`] if a pattern or a CEL rule does not compile, or the schema is nested too deep.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        let root = Node::new(schema, &mut Vec::new())?;
        Ok(Self { root })
    }

    /// Removes unknown fields and reports them: at most a hundred findings. The API server drops them without a
    /// message, unless the request sets strict field validation.
    pub fn prune(&self, object: &mut Value) -> Vec<Finding> {
        defaults_and_pruning::prune(&self.root, object)
    }

    /// Sets the defaults of the schema. Idempotent.
    pub fn apply_defaults(&self, object: &mut Value) {
        defaults_and_pruning::apply_defaults(&self.root, object);
    }

    /// Misspelt names and values with exactly one likely correction: at most a hundred.
    #[must_use]
    pub fn corrections(&self, object: &Value) -> Vec<Correction> {
        typo_corrections::corrections(&self.root, object)
    }

    /// Validates a new object, or an update of `old`. Unchanged parts are not validated again. CEL rules are
    /// evaluated only if types and bounds are right, as in the API server.
    #[must_use]
    pub fn check(&self, object: &Value, old: Option<&Value>) -> Vec<Finding> {
        let mut findings = self.check_shape(object, old);
        if Self::can_evaluate_cel(&findings) {
            findings.extend(cel_eval::expressions(&self.root, object, old));
        }
        findings
    }

    /// CEL rules that the fast path and `kube-cel` evaluate differently for a new object: none, unless one of them
    /// has a bug. An object with wrong types or bounds is not compared.
    #[must_use]
    pub fn verify(&self, object: &Value) -> Vec<Finding> {
        if Self::can_evaluate_cel(&self.check_shape(object, None)) {
            cel_eval::fast_path_mismatches(&self.root, object)
        } else {
            Vec::new()
        }
    }

    /// Validates types and bounds only: [`StructuralSchema::check`] without CEL.
    #[must_use]
    pub fn check_shape(&self, object: &Value, old: Option<&Value>) -> Vec<Finding> {
        check::check_shape(&self.root, object, old)
    }

    /// The number of nodes with CEL rules: (all of them on the fast path, in total).
    #[must_use]
    pub fn fast_expression_counts(&self) -> (usize, usize) {
        self.root.fast_expression_counts()
    }

    /// Whether CEL can be evaluated: the findings of types and bounds that stop it in the API server.
    fn can_evaluate_cel(findings: &[Finding]) -> bool {
        // Other findings leave types and sizes as the rules expect them, so CEL can run.
        let is_blocked = findings.iter().any(|finding| {
            matches!(
                finding.kind,
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
