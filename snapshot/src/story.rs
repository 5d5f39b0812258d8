//! A decision told: as JSON for programs, as text for people, as a line for a condition.

mod json;
mod line;
mod text;

pub use json::{entry, nomination};
pub use line::why_not;
pub(crate) use text::shown;
pub use text::{tell_entry, tell_nomination};
