//! Validation by the schema of a kind with rules.

use super::cel_counterparts::is_expression;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::schema::{StructuralSchema, metadata};
use serde_json::Value;

/// A schema, and what of it is validated.
pub struct SchemaValidation<'a> {
    pub structure: &'a StructuralSchema,
    /// Whether objects have a namespace.
    pub is_namespaced: bool,
    /// Whether expressions are evaluated.
    pub evaluates_cel: bool,
    /// Whether the evaluators of expressions are compared.
    pub verifies: bool,
}

impl SchemaValidation<'_> {
    /// Validates an object, or its change from an old one, and applies its defaults. Returns whether rules can run.
    pub fn run(
        &self,
        (object, old): (&mut Value, Option<&Value>),
        mut report: impl FnMut(Finding),
    ) -> bool {
        // Unknown fields alone do not prevent the rules from running.
        self.structure
            .prune(object)
            .into_iter()
            .for_each(&mut report);
        self.structure.apply_defaults(object);
        let mut violations = metadata(object, self.is_namespaced);
        // A manifest may omit the namespace: `kubectl apply -n` sets it.
        let namespace = FieldPath::new("metadata").field("namespace");
        violations.retain(|it| !self.is_namespaced || it.field != namespace);
        violations.extend(if self.evaluates_cel {
            self.structure.check(object, old)
        } else {
            self.structure.check_shape(object, old)
        });
        if self.verifies {
            violations.extend(self.structure.verify(object));
        }
        // Rules report most breaches of expressions more exactly.
        let is_valid = violations.iter().all(is_expression);
        violations.into_iter().for_each(report);
        is_valid
    }
}
