//! The functions for JavaScript.

use wasm_bindgen::prelude::{JsError, wasm_bindgen};

/// Checks manifests. The request and the report are JSON texts; a wrong request throws an error.
#[wasm_bindgen]
pub fn check(request: &str) -> Result<String, JsError> {
    Ok(crate::check_json(request)?)
}
