//! GitHub workflow commands, which GitHub shows as annotations of the lines.

use super::format::Format;
use super::result::{CheckedFile, ReportedObject};
use crate::exception_usage::ExceptionStatus;
use crate::severity::Severity;

pub struct Github;

impl Format for Github {
    fn file(&self, file: &CheckedFile) -> String {
        let objects = match &file.outcome {
            Ok(objects) => objects,
            Err(error) => {
                return annotation(
                    Severity::Error,
                    &file.name,
                    error.location,
                    "unreadable",
                    &error.message,
                );
            }
        };
        let findings = objects
            .objects
            .iter()
            .flat_map(ReportedObject::unsuppressed);
        findings
            .map(|reported| {
                let location = reported.location.map(|it| (it.line, it.column));
                let finding = &reported.finding;
                annotation(
                    reported.severity,
                    &file.name,
                    location,
                    &finding.rule,
                    &finding.text(),
                )
            })
            .collect()
    }

    fn exceptions(&self, all: &[ExceptionStatus]) -> String {
        let expired = all.iter().filter(|it| it.is_expired);
        let annotations = expired.map(|exception| {
            let warning = Severity::Warning;
            annotation(
                warning,
                &exception.file,
                None,
                "exception",
                &exception.problem(),
            )
        });
        annotations.collect()
    }
}

fn annotation(
    severity: Severity,
    file: &str,
    location: Option<(usize, usize)>,
    title: &str,
    message: &str,
) -> String {
    // `%` first: the other replacements contain it.
    let escaped = |text: &str| {
        let text = text.replace('%', "%25").replace('\r', "%0D");
        text.replace('\n', "%0A")
    };
    let property = |text: &str| escaped(text).replace(':', "%3A").replace(',', "%2C");
    let position = location.map(|(line, column)| format!(",line={line},col={column}"));
    format!(
        "::{} file={}{},title={}::{}\n",
        severity.word(),
        property(file),
        position.unwrap_or_default(),
        property(title),
        escaped(message)
    )
}
