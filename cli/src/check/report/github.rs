//! Workflow commands that GitHub shows beside the lines.

use super::{CheckedFile, ExceptionStatus, Format, Severity};

pub(super) struct Github;

impl Format for Github {
    fn file(&self, judged: &CheckedFile) -> String {
        let objects = match &judged.outcome {
            Ok(objects) => objects,
            Err(it) => {
                let severity = Severity::Error;
                return annotation(
                    severity,
                    &judged.name,
                    it.location,
                    "unreadable",
                    &it.message,
                );
            }
        };
        let told = objects
            .objects
            .iter()
            .flat_map(super::ReportedObject::unsuppressed);
        told.map(|it| {
            let place = it.location.map(|it| (it.line, it.column));
            let text = it.finding.text();
            annotation(it.severity, &judged.name, place, &it.finding.rule, &text)
        })
        .collect()
    }

    fn exceptions(&self, all: &[ExceptionStatus]) -> String {
        let ended = all.iter().filter(|it| it.is_expired);
        let told = ended.map(|it| {
            let warning = Severity::Warning;
            annotation(warning, &it.file, None, "exception", &it.problem())
        });
        told.collect()
    }
}

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
