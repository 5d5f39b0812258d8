//! For programs: findings and a summary.

use super::{CheckedFile, ExceptionStatus, Format, ReportedFinding, ReportedObject, Tally};
use crate::check::source::ReadError;
use serde_json::{Value, json};

pub(super) struct Json;

impl Format for Json {
    fn head(&self) -> String {
        "{\n  \"findings\": [".to_owned()
    }

    fn file(&self, judged: &CheckedFile) -> String {
        let name = &judged.name;
        let all: Vec<Value> = match &judged.outcome {
            Err(problem) => vec![read_error_json(name, problem)],
            Ok(objects) => {
                let objects = objects.objects.iter();
                let all =
                    objects.flat_map(|object| object.unsuppressed().map(move |it| (object, it)));
                all.map(|(object, told)| finding_json(name, object, told))
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
            "files": tally.files, "objects": tally.objects, "skipped": tally.skipped,
            "errors": tally.errors, "warnings": tally.warnings, "suppressed": tally.suppressed,
            "unreadable": tally.unreadable.len(),
        });
        let summary = indented(&summary, 2);
        // Only where the configuration has any.
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
        let ended = all.iter().filter(|it| it.is_expired);
        let told = ended.map(|it| {
            json!({
                "rule": null, "severity": "warning", "file": it.file, "line": null, "column": null,
                "object": null, "field": null, "type": "ExceptionEnded", "message": it.problem(),
                "help": null, "related": [],
            })
        });
        items(&told.collect::<Vec<_>>(), 4)
    }
}

/// An object with one field more.
pub(in crate::check) fn with_field(mut object: Value, name: &str, value: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
    object
}

/// Values as items of a list that is being written, each on lines of its own.
pub(super) fn items(all: &[Value], depth: usize) -> String {
    let margin = " ".repeat(depth);
    let all = all
        .iter()
        .map(|it| format!("\n{margin}{}", indented(it, depth)));
    all.collect::<Vec<_>>().join(",")
}

/// A value as it is printed somewhere below the top. No line breaks stand inside of strings.
pub(super) fn indented(value: &Value, depth: usize) -> String {
    format!("{value:#}").replace('\n', &format!("\n{}", " ".repeat(depth)))
}

fn read_error_json(file: &str, problem: &ReadError) -> Value {
    let (line, column) = problem.location.unzip();
    json!({
        "rule": null, "severity": "error", "file": file, "line": line, "column": column,
        "object": null, "field": null, "type": "Unreadable", "message": problem.message,
        "help": null, "related": [],
    })
}

fn finding_json(file: &str, object: &ReportedObject, told: &ReportedFinding) -> Value {
    let (identity, finding) = (&object.identity, &told.finding);
    let place = told.location.map(|it| (it.line, it.column)).unzip();
    let related: Vec<Value> = told
        .notes
        .iter()
        .map(|note| json!({"file": file, "line": place.0, "column": place.1, "message": note}))
        .collect();
    json!({
        "rule": finding.rule,
        "severity": told.severity.word(),
        "file": file,
        "line": told.location.map(|it| it.line),
        "column": told.location.map(|it| it.column),
        "object": {
            "apiVersion": identity.api_version, "kind": identity.kind,
            "namespace": identity.namespace, "name": identity.name,
        },
        "field": finding.field.text(),
        "type": finding.kind.reason(),
        "message": finding.text(),
        "help": format!("lockkeeper rules {}", finding.rule),
        "related": related,
    })
}
