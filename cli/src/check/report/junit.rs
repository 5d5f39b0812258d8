//! For what reads the reports of tests: a suite for each file, a case for each object.

use super::{Format, Judged, Object, Objects, Severity, Told};
use std::fmt::Write as _;

pub(super) struct Junit {
    fail_on: Severity,
}

impl Junit {
    pub(super) fn new(fail_on: Severity) -> Self {
        Self { fail_on }
    }

    fn case(&self, out: &mut String, file: &str, object: &Object) {
        let identity = &object.identity;
        let name = format!("{} {}", identity.kind, identity.full_name());
        let fails = |it: &&Told| it.severity >= self.fail_on;
        let failures: Vec<&Told> = object.open().filter(fails).collect();
        let others: Vec<&Told> = object.told.iter().collect();
        let others = others.into_iter();
        let others: Vec<&Told> = others
            .filter(|it| it.suppressed.is_some() || it.severity < self.fail_on)
            .collect();
        let (file, name) = (escaped(file), escaped(&name));
        // Writing to a string does not fail.
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
            let message = escaped(&format!("{}{more}", first.finding.text()));
            let rule = escaped(&first.finding.rule);
            let body = listed(&file, &failures);
            let _ = writeln!(
                out,
                "      <failure message=\"{message}\" type=\"{rule}\">{body}</failure>"
            );
        }
        if !others.is_empty() {
            let body = listed(&file, &others);
            let _ = writeln!(out, "      <system-out>{body}</system-out>");
        }
        out.push_str("    </testcase>\n");
    }

    fn suite(&self, out: &mut String, file: &str, objects: &Objects) {
        let is_bad = |object: &&Object| object.open().any(|it| it.severity >= self.fail_on);
        let failures = objects.checked.iter().filter(is_bad).count();
        let (name, tests) = (escaped(file), objects.checked.len());
        let _ = writeln!(
            out,
            "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\">"
        );
        for object in &objects.checked {
            self.case(out, file, object);
        }
        out.push_str("  </testsuite>\n");
    }
}

impl Format for Junit {
    fn head(&self) -> String {
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"lockkeeper check\">\n"
            .to_owned()
    }

    fn file(&self, judged: &Judged) -> String {
        let mut out = String::new();
        match &judged.outcome {
            // A suite without cases says nothing.
            Ok(objects) if objects.checked.is_empty() => {}
            Ok(objects) => self.suite(&mut out, &judged.name, objects),
            Err(problem) => {
                let name = escaped(&judged.name);
                let at = problem
                    .place
                    .map(|(line, column)| format!(":{line}:{column}"));
                let at = at.unwrap_or_default();
                let message = escaped(&format!("cannot be read: {}", problem.message));
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

    fn tail(&self, _tally: &super::Tally) -> String {
        "</testsuites>\n".to_owned()
    }
}

/// Findings, a line each; `file` is escaped.
fn listed(file: &str, all: &[&Told]) -> String {
    let lines = all.iter().map(|it| {
        let at = it.place.map(|it| format!(":{}:{}", it.line, it.column));
        let at = at.unwrap_or_default();
        let (word, rule) = (it.severity.word(), &it.finding.rule);
        let text = escaped(&it.finding.text());
        let reason = it.suppressed.as_ref();
        let reason = reason.map(|it| format!(" (suppressed: {})", escaped(it)));
        let reason = reason.unwrap_or_default();
        format!("{file}{at}: {word}[{rule}]: {text}{reason}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A text as XML has it, in attributes too. Characters that XML cannot have are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for it in text.chars() {
        match it {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push(it),
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            it if it.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            it => out.push(it),
        }
    }
    out
}
