//! YAML with positions. `granit-parser` reads each text once, into values and a tree of spans; `serde-saphyr` reads the
//! few texts with anchors, tags or ambiguous scalars, and reports all errors.

mod errors;
mod scalar;
mod tree;

pub use errors::place_and_message;
pub(crate) use scalar::is_plain_string;
pub use tree::SourceLocation;
pub(crate) use tree::{LastEntry, Mapping, YamlTree};
