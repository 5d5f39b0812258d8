//! Objects in files and on standard input, with the position in errors.

use anyhow::{Context, Error, anyhow};
use lockkeeper_crdgen::manifests::{parse_documents, read_file, read_text};
use serde_json::Value;
use std::io::stdin;
use std::path::Path;

/// The documents of a file, or of standard input for `-`. Errors name the file, and the line and column of a syntax error.
pub(crate) fn read_documents(file: &Path) -> Result<Vec<Value>, Error> {
    let (shown, text) = if file.as_os_str() == "-" {
        ("stdin".to_owned(), read_text(stdin().lock()))
    } else {
        (file.display().to_string(), read_file(file))
    };
    let text = text.with_context(|| format!("cannot read {shown}"))?;
    parse_documents(&text).map_err(|error| match error.location {
        Some((line, column)) => anyhow!("{shown}:{line}:{column}: {}", error.message),
        None => anyhow!("{shown}: {}", error.message),
    })
}
