//! Errors of Parquet files.

use parquet::errors::ParquetError;

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The Parquet library rejects the file.
    #[error("{0}")]
    Rejected(String),
    /// The file contradicts itself.
    #[error("the file is damaged")]
    Damaged,
    /// There are too many rows or columns.
    #[error("the file has more than {max} {of}; split it into smaller files")]
    TooMany {
        /// The limit.
        max: usize,
        /// Rows or columns.
        of: &'static str,
    },
    /// A column that is read has lists or groups.
    #[error("the column {0:?} has no simple values")]
    Nested(String),
}

impl From<ParquetError> for TableError {
    fn from(error: ParquetError) -> Self {
        Self::Rejected(error.to_string())
    }
}
