//! A decision told: as JSON for programs, and as text for people.

mod json;
mod text;

pub use json::{entry, nomination};
pub use text::{tell_entry, tell_nomination};
