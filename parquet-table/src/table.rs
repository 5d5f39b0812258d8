//! The rows of a file.

use crate::row_text::{Column, TimeText, row_text};
use crate::table_error::TableError;
use bytes::Bytes;
use csv::StringRecord;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::schema::types::{Type, TypePtr};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The most rows. Equal values take no room in a file, so its size does not bound them.
const ROWS_MAX: usize = 20_000_000;

/// The most columns.
const COLUMNS_MAX: usize = 10_000;

/// A Parquet file.
pub struct ParquetTable {
    reader: SerializedFileReader<Bytes>,
}

impl fmt::Debug for ParquetTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = self.header();
        formatter
            .debug_struct("ParquetTable")
            .field("header", &header)
            .finish_non_exhaustive()
    }
}

impl ParquetTable {
    /// Reads the description of a file. Costs its size.
    ///
    /// # Errors
    ///
    /// A [`TableError`] if it is no Parquet file, or is too large.
    pub fn open(file: Vec<u8>) -> Result<Self, TableError> {
        let reader = caught(|| Ok(SerializedFileReader::new(Bytes::from(file))?))?;
        let table = Self { reader };
        let rows = table.reader.metadata().file_metadata().num_rows();
        if usize::try_from(rows).is_ok_and(|it| it > ROWS_MAX) {
            let of = "rows";
            return Err(TableError::TooMany { max: ROWS_MAX, of });
        }
        if table.fields().len() > COLUMNS_MAX {
            let (max, of) = (COLUMNS_MAX, "columns");
            return Err(TableError::TooMany { max, of });
        }
        Ok(table)
    }

    fn schema(&self) -> &Type {
        self.reader.metadata().file_metadata().schema()
    }

    fn fields(&self) -> &[TypePtr] {
        self.schema().get_fields()
    }

    /// The names of the columns.
    #[must_use]
    pub fn header(&self) -> StringRecord {
        self.fields().iter().map(|it| it.name()).collect()
    }

    /// The rows, each with a field for each column. Those that are not read are empty, as null is. A column of timestamps has the form
    /// `times`; all others are written as they are. Costs the values that are read.
    ///
    /// # Errors
    ///
    /// A [`TableError`] if a column that is read has no simple values; later for each row that cannot be read.
    pub fn rows(
        &self,
        is_read: impl Fn(&str) -> bool,
        times: TimeText,
    ) -> Result<RowTexts<'_>, TableError> {
        let fields = self.fields();
        let columns = fields.iter().map(|it| Column::new(it, is_read(it.name())));
        let columns: Vec<Column> = columns.collect();
        let read = fields.iter().zip(&columns).filter(|(_, it)| it.is_read);
        let read: Vec<TypePtr> = read.map(|(field, _)| field.clone()).collect();
        if let Some(nested) = read.iter().find(|it| !it.is_primitive()) {
            return Err(TableError::Nested(nested.name().to_owned()));
        }
        let projection = Type::group_type_builder(self.schema().name()).with_fields(read);
        let projection = projection.build()?;
        let rows = caught(|| Ok(self.reader.get_row_iter(Some(projection))?))?;
        Ok(RowTexts {
            rows: Some(rows),
            left: ROWS_MAX,
            columns,
            times,
        })
    }
}

/// The rows of a file; ends at the first error.
pub struct RowTexts<'a> {
    /// `None` after an error.
    rows: Option<RowIter<'a>>,
    left: usize,
    columns: Vec<Column>,
    times: TimeText,
}

impl fmt::Debug for RowTexts<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns.len();
        formatter
            .debug_struct("RowTexts")
            .field("columns", &columns)
            .finish_non_exhaustive()
    }
}

impl Iterator for RowTexts<'_> {
    type Item = Result<StringRecord, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.rows.as_mut()?;
        let row = caught(|| rows.next().transpose().map_err(TableError::from)).transpose()?;
        let row = row.and_then(|row| {
            let left = self.left.checked_sub(1);
            let (max, of) = (ROWS_MAX, "rows");
            self.left = left.ok_or(TableError::TooMany { max, of })?;
            Ok(row_text(&row, &self.columns, self.times))
        });
        if row.is_err() {
            self.rows = None;
        }
        Some(row)
    }
}

/// The library panics where a file contradicts itself, such as at negative sizes.
fn caught<T>(read: impl FnOnce() -> Result<T, TableError>) -> Result<T, TableError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or(Err(TableError::Damaged))
}
