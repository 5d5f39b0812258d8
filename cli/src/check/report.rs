//! What is printed.

use super::excuses::Said;
use super::lines::Place;
use super::source::{Document, Problem, Source};
use super::{Output, Severity};
use lockkeeper_policies::finding::Finding;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// One finding, and where it is.
pub(super) struct Told<'a> {
    pub(super) source: &'a Source,
    pub(super) document: &'a Document,
    pub(super) place: Option<Place>,
    pub(super) severity: Severity,
    pub(super) finding: &'a Finding,
}

/// Everything that was found.
pub(super) struct Report {
    output: Output,
    text: String,
    findings: Vec<Value>,
    exceptions: Vec<Value>,
    pub(super) files: usize,
    pub(super) objects: usize,
    pub(super) skipped: usize,
    errors: usize,
    warnings: usize,
    unreadable: usize,
}

impl Severity {
    const fn word(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Report {
    pub(super) fn new(output: Output) -> Self {
        Self {
            output,
            text: String::new(),
            findings: Vec::new(),
            exceptions: Vec::new(),
            files: 0,
            objects: 0,
            skipped: 0,
            errors: 0,
            warnings: 0,
            unreadable: 0,
        }
    }

    pub(super) fn unreadable(&mut self, problems: Vec<Problem>) {
        for it in problems {
            self.unreadable = self.unreadable.saturating_add(1);
            let (line, column) = it.place.unzip();
            let place = it.place.map(|(line, column)| format!(":{line}:{column}"));
            let place = place.unwrap_or_default();
            let told = match self.output {
                Output::Github => annotation(
                    Severity::Error,
                    &it.file,
                    it.place,
                    "unreadable",
                    &it.message,
                ),
                _ => format!("{}{place}: cannot be read: {}\n", it.file, it.message),
            };
            self.text.push_str(&told);
            self.findings.push(json!({
                "rule": null, "severity": "error", "file": it.file, "line": line, "column": column,
                "object": null, "field": null, "type": "Unreadable", "message": it.message,
                "help": null, "related": [],
            }));
        }
    }

    pub(super) fn tell(&mut self, told: &Told<'_>) {
        match told.severity {
            Severity::Error => self.errors = self.errors.saturating_add(1),
            Severity::Warning => self.warnings = self.warnings.saturating_add(1),
        }
        match self.output {
            Output::Human => write(&mut self.text, told),
            Output::Json => self.findings.push(as_json(told)),
            Output::Github => {
                let place = told.place.map(|it| (it.line, it.column));
                let (file, finding) = (&told.source.name, told.finding);
                let line = annotation(told.severity, file, place, &finding.rule, &finding.text());
                self.text.push_str(&line);
            }
        }
    }

    /// What is said of exceptions. One that has ended is a warning.
    pub(super) fn exceptions(&mut self, all: &[Said]) {
        self.exceptions = all.iter().map(Said::json).collect();
        for it in all {
            if it.has_ended {
                self.warnings = self.warnings.saturating_add(1);
            }
            match self.output {
                Output::Human => self.text.push_str(&it.text()),
                Output::Github if it.has_ended => {
                    let warning = Severity::Warning;
                    let told = annotation(warning, &it.file, None, "exception", &it.problem());
                    self.text.push_str(&told);
                }
                Output::Json if it.has_ended => self.findings.push(json!({
                    "rule": null, "severity": "warning", "file": it.file, "line": null, "column": null,
                    "object": null, "field": null, "type": "ExceptionEnded", "message": it.problem(),
                    "help": null, "related": [],
                })),
                Output::Github | Output::Json => {}
            }
        }
    }

    /// 2 if anything could not be read, 1 if anything was found that is bad enough.
    pub(super) fn code(&self, fail_on: Severity) -> u8 {
        let found = match fail_on {
            Severity::Error => self.errors,
            Severity::Warning => self.errors.saturating_add(self.warnings),
        };
        if self.unreadable > 0 {
            2
        } else {
            u8::from(found > 0)
        }
    }

    pub(super) fn finish(mut self) -> String {
        let Self {
            files,
            objects,
            skipped,
            errors,
            warnings,
            unreadable,
            ..
        } = self;
        if self.output == Output::Github {
            return self.text;
        }
        if self.output == Output::Json {
            let mut all = json!({"findings": self.findings, "summary": {
                "files": files, "objects": objects, "skipped": skipped,
                "errors": errors, "warnings": warnings, "unreadable": unreadable,
            }});
            // Only where the configuration has any.
            if !self.exceptions.is_empty()
                && let Some(fields) = all.as_object_mut()
            {
                fields.insert("exceptions".to_owned(), self.exceptions.into());
            }
            return format!("{all:#}\n");
        }
        let counted = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            count => format!("{count} {what}s"),
        };
        let mut parts = vec![counted(errors, "error"), counted(warnings, "warning")];
        if unreadable > 0 {
            parts.push(format!("{} not read", counted(unreadable, "file")));
        }
        let _ = writeln!(
            self.text,
            "{} in {}, {} checked, {skipped} of other kinds",
            parts.join(", "),
            counted(files, "file"),
            counted(objects, "object"),
        );
        self.text
    }
}

/// A workflow command that GitHub shows beside the line.
fn annotation(
    severity: Severity,
    file: &str,
    place: Option<(usize, usize)>,
    title: &str,
    message: &str,
) -> String {
    let escaped = |text: &str| {
        let text = text.replace('%', "%25").replace('\r', "%0D");
        text.replace('\n', "%0A")
    };
    let property = |text: &str| escaped(text).replace(':', "%3A").replace(',', "%2C");
    let at = place.map(|(line, column)| format!(",line={line},col={column}"));
    format!(
        "::{} file={}{},title={}::{}\n",
        severity.word(),
        property(file),
        at.unwrap_or_default(),
        property(title),
        escaped(message)
    )
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    let value = object.pointer(pointer).and_then(Value::as_str);
    value.unwrap_or_default()
}

fn as_json(told: &Told<'_>) -> Value {
    let (object, finding) = (&told.document.value, told.finding);
    json!({
        "rule": finding.rule,
        "severity": told.severity.word(),
        "file": told.source.name,
        "line": told.place.map(|it| it.line),
        "column": told.place.map(|it| it.column),
        "object": {
            "apiVersion": text(object, "/apiVersion"), "kind": text(object, "/kind"),
            "namespace": text(object, "/metadata/namespace"),
            "name": text(object, "/metadata/name"),
        },
        "field": finding.field.text(),
        "type": finding.kind.reason(),
        "message": finding.text(),
        "help": format!("lockkeeper rules {}", finding.rule),
        "related": [],
    })
}

fn write(out: &mut String, told: &Told<'_>) {
    let (object, finding) = (&told.document.value, told.finding);
    let place = told.place;
    let at = place.map(|it| format!(":{}:{}", it.line, it.column));
    let word = told.severity.word();
    let name = match text(object, "/metadata/namespace") {
        "" => text(object, "/metadata/name").to_owned(),
        namespace => format!("{namespace}/{}", text(object, "/metadata/name")),
    };
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "{}{}: {word}[{}]: {} {name}: {}",
        told.source.name,
        at.unwrap_or_default(),
        finding.rule,
        text(object, "/kind"),
        finding.text(),
    );
    let line =
        place.and_then(|it| Some((it, told.source.text.lines().nth(it.line.checked_sub(1)?)?)));
    if let Some((place, line)) = line {
        let number = place.line.to_string();
        let margin = " ".repeat(number.len());
        let before = " ".repeat(place.column.saturating_sub(1));
        let under = "^".repeat(place.width);
        let _ = writeln!(
            out,
            "{margin} |\n{number} | {line}\n{margin} | {before}{under}"
        );
    }
    let _ = writeln!(out, "  help: lockkeeper rules {}\n", finding.rule);
}
