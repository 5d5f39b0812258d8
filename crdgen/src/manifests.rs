//! Manifest files: the files that a path names, their texts, and the documents in them. Every command reads files with
//! the same limits.

mod documents;
mod file_identity;
mod file_list;
mod messages;
mod name_pattern;
mod text;
mod values_max;

pub use documents::parse_documents;
pub use file_list::{FileList, ListedFile};
pub use messages::{SyntaxError, plain_words};
pub use name_pattern::{NamePattern, PatternError};
pub use text::{TEXT_MAX_MEBIBYTES, TextError, read_file, read_text};
pub use values_max::VALUES_MAX;
