//! Reads the rows of a Parquet file as texts, in the form that a CSV file of the same table has.
//!
//! A crate of its own, because the Parquet library takes 38 s of CPU time to build: only builds with the feature `parquet` contain it.
//!
//! Pure: bytes in, rows out.
#![deny(clippy::arithmetic_side_effects)]

mod row_text;
mod table;
mod table_error;

pub use row_text::TimeText;
pub use table::{ParquetTable, RowTexts};
pub use table_error::TableError;
