//! Settings of the decision log.

use super::bounded::BoundedInt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The decision log of the controller.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DecisionLogSettings {
    /// The file that every decision is written to, with what it depends on, for `lockkeeper replay` and `lockkeeper log`;
    /// `-` is standard output. Compressed with gzip if its name ends in `.gz`. Without it there is no decision log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The size at which a new file is begun, in bytes. The file before is renamed: `.1` is the newest. Not for standard
    /// output.
    pub file_bytes_max: BoundedInt<65_536, 68_719_476_736>,
    /// How many files are kept, with the current one.
    pub files_max: BoundedInt<1, 1_000>,
}

impl Default for DecisionLogSettings {
    fn default() -> Self {
        Self {
            file: None,
            file_bytes_max: const { BoundedInt::from_default(67_108_864) },
            files_max: const { BoundedInt::from_default(8) },
        }
    }
}
