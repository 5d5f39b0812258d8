//! The result of a case.

use serde_json::Value;

/// A decision with its explanation.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseAnswer {
    /// The decision, in the field names of the cases.
    pub decision: Value,
    /// The steps of the decision, in order; may be empty.
    pub trace: Vec<Value>,
    /// Both as text.
    pub text: String,
}
