//! Compares two sets of CRDs and classifies the changes.
//!
//! The comparison is pure: definitions in, [`Change`]s out. A change is *compatible* only if every object that the API
//! server holds under the old schema is valid under the new one, and means the same; any other change is
//! breaking. `docs/crd-diff.md` has the classes and the codes.

mod accepted_changes;
mod bounds;
mod cel_rules;
mod change;
mod change_codes;
pub mod cli;
mod comparison;
mod definition;
mod junctors;
mod path;
pub mod render;
mod rule_folding;
mod rule_tokens;
mod schema;
pub mod source;
mod stored_objects;

pub use change::{Change, ChangeClass, ChangeLocation, Effect, StoredObjectsEffect};
pub use change_codes::{CODES, ChangeCode};
pub use comparison::{compare, name_of};
pub use path::SchemaPath;
pub use schema::compare as compare_schemas;
pub use stored_objects::{StoredObjectOutcome, StoredObjectReport, check_stored_objects};
