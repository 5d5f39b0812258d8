//! The answer to a case.

use serde_json::Value;

/// A decision told.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseAnswer {
    /// The decision, in the field names of the cases.
    pub decision: Value,
    /// What was considered, in order; empty where there is nothing to consider.
    pub trace: Vec<Value>,
    /// Both for a person.
    pub text: String,
}
