//! A decision told: as JSON for programs, as text for people, as a line for a condition.

mod json;
mod text;

pub use json::{entry_json, nomination_json};
pub use text::{write_entry, write_nomination};
