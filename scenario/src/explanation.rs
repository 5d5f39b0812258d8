//! Explanations of decisions, as JSON and as text.

mod json;
mod text;

pub use json::{entry_json, nomination_json};
pub use text::{write_entry, write_nomination};
