//! CSV files, with a mapping of their columns.

use crate::import_error::{ImportError, ImportProblem};
use crate::mapping::Mapping;
use crate::table_rows::{Columns, RowFields};
use crate::trace_builder::{ImportedTrace, TraceBuilder};
use csv::{ErrorKind, ReaderBuilder, StringRecord};

/// Reads a CSV file. Its first row has the names of the columns.
///
/// Costs the text, and for each job the number of rules and the logarithm of the number of jobs.
///
/// # Errors
///
/// The first mistake, with its line.
pub fn parse_csv(text: &str, mapping: &Mapping) -> Result<ImportedTrace, ImportError> {
    let format = &mapping.csv;
    let delimiter = u8::try_from(format.delimiter).ok().filter(u8::is_ascii);
    let delimiter = delimiter
        .ok_or_else(|| ImportError::general(ImportProblem::Delimiter(format.delimiter)))?;
    // A spreadsheet may write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| csv_error(&error))?;
    let columns = Columns::new(&format.columns, header, Some(1))?;
    let mut builder = TraceBuilder::new(mapping);
    let mut row = StringRecord::new();
    while reader
        .read_record(&mut row)
        .map_err(|error| csv_error(&error))?
    {
        let line = row.position().map_or(0, csv::Position::line);
        let fields = RowFields {
            row: &row,
            format,
            line,
            unnamed: "line",
        };
        let record = fields.record(&columns, &mut builder)?;
        builder.add(record)?;
    }
    builder.finish()
}

fn csv_error(error: &csv::Error) -> ImportError {
    let line = error.position().map(csv::Position::line);
    let text = match error.kind() {
        ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!("{len} fields; the first row has {expected_len}"),
        _ => error.to_string(),
    };
    ImportError {
        line,
        problem: ImportProblem::Csv(text),
    }
}
