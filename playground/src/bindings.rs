//! The functions for JavaScript.

use lockkeeper_check::Release;
use wasm_bindgen::prelude::{JsError, wasm_bindgen};

/// Checks manifests. The request and the report are JSON texts; a wrong request throws an error.
#[wasm_bindgen]
pub fn check(request: &str) -> Result<String, JsError> {
    Ok(crate::check_json(request)?)
}

/// The values of `kubernetesVersion` of a request, the newest first.
#[wasm_bindgen(js_name = kubernetesVersions)]
pub fn kubernetes_versions() -> Vec<String> {
    let supported = Release::SUPPORTED.iter().rev();
    supported.map(ToString::to_string).collect()
}
