//! `JUnit` XML: a suite for each file, a case for each object.

use super::format::Format;
use super::result::{CheckedFile, FileObjects, ReportedFinding, ReportedObject};
use super::tally::Tally;
use crate::severity::Severity;
use std::fmt::Write as _;

pub struct Junit {
    fail_on: Severity,
}

impl Junit {
    pub fn new(fail_on: Severity) -> Self {
        Self { fail_on }
    }

    fn write_case(&self, out: &mut String, file: &str, object: &ReportedObject) {
        let identity = &object.identity;
        let name = format!("{} {}", identity.kind, identity.full_name());
        let fails = |it: &&ReportedFinding| it.severity >= self.fail_on;
        let failures: Vec<&ReportedFinding> = object.unsuppressed().filter(fails).collect();
        let others: Vec<&ReportedFinding> = object
            .findings
            .iter()
            .filter(|it| it.suppressed.is_some() || it.severity < self.fail_on)
            .collect();
        let (file, name) = (escape_xml(file), escape_xml(&name));
        // Writing to a string cannot fail.
        let _ = write!(out, "    <testcase classname=\"{file}\" name=\"{name}\"");
        if failures.is_empty() && others.is_empty() {
            out.push_str("/>\n");
            return;
        }
        out.push_str(">\n");
        if let Some(first) = failures.first() {
            let more = match failures.len() {
                1 => String::new(),
                count => format!(" (and {} more)", count.saturating_sub(1)),
            };
            let message = escape_xml(&format!("{}{more}", first.finding.text()));
            let rule = escape_xml(&first.finding.rule);
            let body = finding_lines(&file, &failures);
            let _ = writeln!(
                out,
                "      <failure message=\"{message}\" type=\"{rule}\">{body}</failure>"
            );
        }
        if !others.is_empty() {
            let body = finding_lines(&file, &others);
            let _ = writeln!(out, "      <system-out>{body}</system-out>");
        }
        out.push_str("    </testcase>\n");
    }

    fn write_suite(&self, out: &mut String, file: &str, objects: &FileObjects) {
        let has_failed =
            |object: &&ReportedObject| object.unsuppressed().any(|it| it.severity >= self.fail_on);
        let failures = objects.objects.iter().filter(has_failed).count();
        let (name, tests) = (escape_xml(file), objects.objects.len());
        let _ = writeln!(
            out,
            "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\">"
        );
        for object in &objects.objects {
            self.write_case(out, file, object);
        }
        out.push_str("  </testsuite>\n");
    }
}

impl Format for Junit {
    fn head(&self) -> String {
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"lockkeeper check\">\n"
            .to_owned()
    }

    fn file(&self, file: &CheckedFile) -> String {
        let mut out = String::new();
        match &file.outcome {
            // An empty suite has no information.
            Ok(objects) if objects.objects.is_empty() => {}
            Ok(objects) => self.write_suite(&mut out, &file.name, objects),
            Err(error) => {
                let name = escape_xml(&file.name);
                let at = error
                    .location
                    .map(|(line, column)| format!(":{line}:{column}"));
                let at = at.unwrap_or_default();
                let message = escape_xml(&format!("cannot be read: {}", error.message));
                let _ = write!(
                    out,
                    "  <testsuite name=\"{name}\" tests=\"1\" failures=\"0\" errors=\"1\">\n    \
                     <testcase classname=\"{name}\" name=\"file\">\n      \
                     <error message=\"{message}\" type=\"Unreadable\">{name}{at}: {message}</error>\n    \
                     </testcase>\n  </testsuite>\n"
                );
            }
        }
        out
    }

    fn tail(&self, _tally: &Tally) -> String {
        "</testsuites>\n".to_owned()
    }
}

/// A line for each finding. `file` is escaped already.
fn finding_lines(file: &str, all: &[&ReportedFinding]) -> String {
    let lines = all.iter().map(|line| {
        let at = line
            .location
            .map(|it| format!(":{}:{}", it.line, it.column));
        let at = at.unwrap_or_default();
        let (word, rule) = (line.severity.word(), &line.finding.rule);
        let text = escape_xml(&line.finding.text());
        let reason = line.suppressed.as_ref();
        let reason = reason.map(|it| format!(" (suppressed: {})", escape_xml(it)));
        let reason = reason.unwrap_or_default();
        format!("{file}{at}: {word}[{rule}]: {text}{reason}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Escapes a text for elements and attributes. Characters that XML forbids are replaced.
fn escape_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push(letter),
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            letter if letter.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            letter => out.push(letter),
        }
    }
    out
}
