//! `lockkeeper check` as a library for web pages: manifests in, findings out.
//!
//! [`check_json`] takes a [`CheckRequest`] as JSON and returns what `lockkeeper check --output json` prints. Built for
//! `wasm32-unknown-unknown`, the crate exports it to JavaScript as `check`. Nothing is read but the request: the texts
//! of the user stay in the browser.

#[cfg(target_family = "wasm")]
mod bindings;
mod check_request;
mod manifest_check;
#[cfg(test)]
mod tests;

pub use check_request::{CheckRequest, RequestError, SourceFile};
pub use manifest_check::{check_json, check_manifests};
