//! Formats that several commands print: indented JSON, YAML and tables.

use anyhow::{Error, anyhow};
use serde::Serialize;
use std::io::Write;
use tabwriter::TabWriter;

/// The number of blanks between columns.
const PADDING: usize = 3;

/// A value as indented JSON.
pub(crate) fn to_pretty_json(value: &impl Serialize) -> Result<String, Error> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// A value as YAML.
pub(crate) fn to_yaml(value: &impl Serialize) -> Result<String, Error> {
    Ok(serde_saphyr::to_string(value)?)
}

/// Rows as aligned columns, as kubectl prints them, without blanks at the ends of lines.
pub(crate) fn to_table<Row: AsRef<[String]>>(rows: &[Row]) -> Result<String, Error> {
    let mut table = TabWriter::new(Vec::new()).padding(PADDING);
    for row in rows {
        writeln!(table, "{}", row.as_ref().join("\t"))?;
    }
    let text = table.into_inner();
    let text = String::from_utf8(text.map_err(|error| anyhow!("{}", error.error()))?)?;
    Ok(text
        .lines()
        .map(|it| it.trim_end().to_owned() + "\n")
        .collect())
}
