//! Scenarios that say in `kind` what they ask: each kind has a door of its own.

use super::{Arguments, Output, parse, pretty};
use anyhow::{Context, Error};
use lockkeeper_snapshot::job;
use serde_json::{Value, json};

/// The answer, if it is such a scenario.
pub(super) fn tell(text: &str, at: &str, arguments: &Arguments) -> Result<Option<String>, Error> {
    // Most have no kind, and need not be read twice.
    if !text.contains("kind") {
        return Ok(None);
    }
    let Ok(value) = parse::<Value>(text) else {
        return Ok(None);
    };
    if job::Case::is_one(&value) {
        return of_job(value, arguments)
            .with_context(|| format!("{at} is no scenario"))
            .map(Some);
    }
    Ok(None)
}

fn of_job(value: Value, arguments: &Arguments) -> Result<String, Error> {
    let told = job::Case::of(value)?.decide()?;
    match arguments.output {
        Output::Human => Ok(told.text),
        Output::Json => pretty(&json!({"decision": told.decision, "trace": told.trace})),
    }
}
