//! JSON: findings and a summary, written file by file.

use super::format::Format;
use super::result::{CheckedFile, ReportedFinding, ReportedObject};
use super::tally::Tally;
use super::words::help_command;
use crate::exception_usage::ExceptionStatus;
use crate::source::ReadError;
use serde_json::{Value, json};

pub struct Json;

impl Format for Json {
    fn head(&self) -> String {
        "{\n  \"findings\": [".to_owned()
    }

    fn file(&self, file: &CheckedFile) -> String {
        let name = &file.name;
        let all: Vec<Value> = match &file.outcome {
            Err(error) => vec![read_error_json(name, error)],
            Ok(objects) => {
                let objects = objects.objects.iter();
                let all =
                    objects.flat_map(|object| object.unsuppressed().map(move |it| (object, it)));
                all.map(|(object, reported)| finding_json(name, object, reported))
                    .collect()
            }
        };
        items(&all, 4)
    }

    fn separator(&self) -> &'static str {
        ","
    }

    fn tail(&self, tally: &Tally) -> String {
        let is_empty = tally.errors == 0 && tally.warnings == 0 && tally.unreadable.is_empty();
        let end = if is_empty { "" } else { "\n  " };
        let summary = json!({
            "files": tally.files, "objects": tally.objects, "skipped": tally.skipped.total(),
            "skippedKinds": tally.skipped.counts(),
            "errors": tally.errors, "warnings": tally.warnings, "suppressed": tally.suppressed,
            "unreadable": tally.unreadable.len(),
        });
        let summary = indented(&summary, 2);
        // The field is absent if the configuration has no exceptions.
        let exceptions = if tally.exception_statuses.is_empty() {
            String::new()
        } else {
            let all: Vec<Value> = tally
                .exception_statuses
                .iter()
                .map(ExceptionStatus::json)
                .collect();
            format!("\"exceptions\": {},\n  ", indented(&Value::from(all), 2))
        };
        format!("{end}],\n  {exceptions}\"summary\": {summary}\n}}\n")
    }

    fn exceptions(&self, all: &[ExceptionStatus]) -> String {
        let expired = all.iter().filter(|it| it.is_expired);
        let findings = expired.map(|exception| {
            json!({
                "rule": null, "severity": "warning", "file": exception.file, "line": null, "column": null,
                "object": null, "field": null, "type": "ExceptionEnded", "message": exception.problem(),
                "help": null, "related": [],
            })
        });
        items(&findings.collect::<Vec<_>>(), 4)
    }
}

/// An object with one more field.
pub fn with_field(mut object: Value, name: &str, value: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
    object
}

/// Values as items of a list, each on its own lines.
pub fn items(all: &[Value], depth: usize) -> String {
    let margin = " ".repeat(depth);
    let all = all
        .iter()
        .map(|it| format!("\n{margin}{}", indented(it, depth)));
    all.collect::<Vec<_>>().join(",")
}

/// A value at this depth of a document. Strings contain no raw line breaks, so all of them can be indented.
pub fn indented(value: &Value, depth: usize) -> String {
    format!("{value:#}").replace('\n', &format!("\n{}", " ".repeat(depth)))
}

fn read_error_json(file: &str, error: &ReadError) -> Value {
    let (line, column) = error.location.unzip();
    json!({
        "rule": null, "severity": "error", "file": file, "line": line, "column": column,
        "object": null, "field": null, "type": "Unreadable", "message": error.message,
        "help": null, "related": [],
    })
}

fn finding_json(file: &str, object: &ReportedObject, reported: &ReportedFinding) -> Value {
    let (identity, finding) = (&object.identity, &reported.finding);
    let (line, column) = reported.location.map(|it| (it.line, it.column)).unzip();
    let related: Vec<Value> = reported
        .notes
        .iter()
        .map(|note| json!({"file": file, "line": line, "column": column, "message": note}))
        .collect();
    json!({
        "rule": finding.rule,
        "severity": reported.severity.word(),
        "file": file,
        "line": line,
        "column": column,
        "object": {
            "apiVersion": identity.api_version, "kind": identity.kind,
            "namespace": identity.namespace, "name": identity.name,
        },
        "field": finding.field.text(),
        "type": finding.kind.reason(),
        "message": finding.text(),
        "help": help_command(&finding.rule),
        "related": related,
    })
}
