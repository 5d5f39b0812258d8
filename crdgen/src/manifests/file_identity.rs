//! What tells whether two paths name the same file.

use std::fs::Metadata;
use std::path::Path;

/// The identity of a file or folder, the same for each of its names.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileIdentity {
    /// Device and inode.
    #[cfg(unix)]
    numbers: (u64, u64),
    /// The path without links. Hard links differ.
    #[cfg(not(unix))]
    path: std::path::PathBuf,
}

impl FileIdentity {
    #[cfg(unix)]
    pub(super) fn new(_path: &Path, data: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            numbers: (data.dev(), data.ino()),
        }
    }

    #[cfg(not(unix))]
    pub(super) fn new(path: &Path, _data: &Metadata) -> Self {
        Self {
            path: path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        }
    }
}
