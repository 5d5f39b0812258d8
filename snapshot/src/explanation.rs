//! A decision told: as JSON for programs, as text for people, as a line for a condition.

mod json;
mod pending_message;
mod text;

pub use json::{entry_json, nomination_json};
pub use pending_message::pending_message;
pub(crate) use text::format_amount;
pub use text::{write_entry, write_nomination};
