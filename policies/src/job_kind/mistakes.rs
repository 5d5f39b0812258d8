//! Findings about mistakes in declarations.

use crate::finding::Findings;
use lockkeeper_api::JobKind;
use lockkeeper_job_kinds::CompileError;
use serde_json::Value;

/// Reports each mistake with the value of its field.
pub(super) fn report(errors: Vec<CompileError>, object: &JobKind, out: &mut Findings) {
    let json = serde_json::to_value(object).unwrap_or_default();
    for error in errors {
        let value = json.pointer(&error.field.pointer());
        let value = value.and_then(Value::as_str).unwrap_or_default().to_owned();
        out.invalid(error.field, value, error.problem);
    }
}
