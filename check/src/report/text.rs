//! The text format: position, excerpt and remedy.

use super::format::Format;
use super::result::{CheckedFile, FileObjects, ReportedFinding, SourceText};
use super::tally::Tally;
use super::words::{help_command, pluralize};
use crate::document::Identity;
use crate::exception_usage::ExceptionStatus;
use crate::severity::Severity;
use crate::yaml::SourceLocation;
use anstyle::{AnsiColor, Effects, Style};
use std::fmt::Write as _;
use unicode_width::UnicodeWidthChar;

/// The longest excerpt of a line, in characters.
const LINE_LENGTH_MAX: usize = 160;

/// How much of a long line to show before the field, in characters.
const BEFORE_MAX: usize = 60;

/// The groups with dots of kinds that are built in.
const BUILT_IN_GROUPS: [&str; 18] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// The styles of the text format; plain by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Palette {
    error: Style,
    warning: Style,
    location: Style,
    margin: Style,
    help: Style,
}

impl Palette {
    /// The styles for a terminal.
    #[must_use]
    pub fn colored() -> Self {
        let bold = |colour: AnsiColor| colour.on_default().effects(Effects::BOLD);
        Self {
            error: bold(AnsiColor::Red),
            warning: bold(AnsiColor::Yellow),
            location: Style::new().effects(Effects::BOLD),
            margin: bold(AnsiColor::Blue),
            help: AnsiColor::Cyan.on_default(),
        }
    }

    fn for_severity(&self, severity: Severity) -> Style {
        match severity {
            Severity::Error => self.error,
            Severity::Warning => self.warning,
        }
    }
}

pub struct TextFormat {
    palette: Palette,
    is_stored: bool,
    is_verbose: bool,
    is_summary: bool,
}

impl TextFormat {
    pub fn new(palette: Palette, is_stored: bool, is_verbose: bool, is_summary: bool) -> Self {
        Self {
            palette,
            is_stored,
            is_verbose,
            is_summary,
        }
    }

    fn write_finding(
        &self,
        out: &mut String,
        file: &str,
        objects: &FileObjects,
        (identity, reported): (&Identity, &ReportedFinding),
    ) {
        let (palette, rule) = (&self.palette, &reported.finding.rule);
        let (bold, help) = (palette.location, palette.help);
        let style = palette.for_severity(reported.severity);
        let word = reported.severity.word();
        let at = reported
            .location
            .map(|it| format!(":{}:{}", it.line, it.column));
        let at = at.unwrap_or_default();
        let object = if self.is_stored {
            // Kinds of several groups have the same name.
            match identity.api_version.split_once('/') {
                Some((group, _)) => format!("{}.{group}", identity.kind),
                None => identity.kind.clone(),
            }
        } else {
            format!("{} {}", identity.kind, identity.full_name())
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{bold}{}{at}:{bold:#} {style}{word}[{rule}]{style:#}: {}: {}",
            escape_control_chars(file),
            escape_control_chars(object.trim_end()),
            escape_control_chars(&reported.finding.text()),
        );
        // The report may be read by more people than the secret.
        if let Some(location) = reported.location.filter(|_| identity.kind != "Secret") {
            self.write_excerpt(out, &objects.text, location, style);
        }
        for note in &reported.notes {
            let _ = writeln!(out, "  {help}|{help:#} {}", escape_control_chars(note));
        }
        let _ = writeln!(out, "  {help}help:{help:#} {}\n", help_command(rule));
    }

    /// Writes the line with the field underlined.
    fn write_excerpt(
        &self,
        out: &mut String,
        text: &SourceText,
        location: SourceLocation,
        style: Style,
    ) {
        let Some(line) = text.line(location.line) else {
            return;
        };
        let number = location.line.to_string();
        let gap = " ".repeat(number.len());
        let margin = self.palette.margin;
        let (shown, before, under) = excerpt(line, location);
        let _ = writeln!(
            out,
            "{margin}{gap} |{margin:#}\n{margin}{number} |{margin:#} {shown}\n\
             {margin}{gap} |{margin:#} {before}{style}{under}{style:#}"
        );
    }
}

impl Format for TextFormat {
    fn exceptions(&self, all: &[ExceptionStatus]) -> String {
        all.iter().map(ExceptionStatus::text).collect()
    }

    fn file(&self, file: &CheckedFile) -> String {
        let mut out = String::new();
        match &file.outcome {
            Err(error) => {
                let at = error
                    .location
                    .map(|(line, column)| format!(":{line}:{column}"));
                let at = at.unwrap_or_default();
                let (bold, red) = (self.palette.location, self.palette.error);
                let _ = writeln!(
                    out,
                    "{bold}{}{at}:{bold:#} {red}cannot be read{red:#}: {}\n",
                    escape_control_chars(&file.name),
                    escape_control_chars(&error.message)
                );
            }
            Ok(_) if self.is_summary => {}
            Ok(objects) => {
                for object in &objects.objects {
                    for reported in object.unsuppressed() {
                        self.write_finding(
                            &mut out,
                            &file.name,
                            objects,
                            (&object.identity, reported),
                        );
                    }
                }
            }
        }
        out
    }

    fn tail(&self, tally: &Tally) -> String {
        let mut parts = vec![
            pluralize(tally.errors, "error"),
            pluralize(tally.warnings, "warning"),
        ];
        if tally.suppressed > 0 {
            parts.push(format!("{} suppressed", tally.suppressed));
        }
        let (found, objects) = (parts.join(", "), pluralize(tally.objects, "object"));
        let mut out = String::new();
        if self.is_summary {
            for (kind, it) in &tally.kinds {
                // Writing to a string cannot fail.
                let _ = writeln!(
                    out,
                    "{}: {}, {}, {}",
                    escape_control_chars(kind),
                    pluralize(it.objects, "object"),
                    pluralize(it.errors, "error"),
                    pluralize(it.warnings, "warning"),
                );
            }
        }
        if self.is_stored {
            let _ = writeln!(out, "{found}, {objects} checked");
            return out;
        }
        let files = pluralize(tally.files, "file");
        let skipped = tally.skipped.total();
        if self.is_verbose {
            for (kind, count) in tally.skipped.counts() {
                // Writing to a string cannot fail.
                let (name, reason) = (escape_control_chars(kind), skip_reason(kind));
                let _ = writeln!(out, "not checked: {count} {name}{reason}");
            }
        }
        let _ = write!(
            out,
            "{found} in {files}, {objects} checked, {skipped} of other kinds"
        );
        if !tally.unreadable.is_empty() {
            let files = pluralize(tally.unreadable.len(), "file");
            let _ = write!(out, "; {files} could not be read");
        }
        out.push('\n');
        out
    }
}

/// Groups without definitions, whose objects other API servers compute.
const AGGREGATED_GROUPS: [&str; 4] = [
    "custom.metrics.k8s.io",
    "external.metrics.k8s.io",
    "metrics.k8s.io",
    "visibility.kueue.x-k8s.io",
];

/// Whether a group of Kubernetes' projects has configuration files, which are no objects of an API server.
fn is_configuration(group: &str) -> bool {
    group.ends_with(".config.k8s.io")
        || group.starts_with("config.") && group.ends_with(".x-k8s.io")
        || matches!(group, "kind.x-k8s.io" | "kubeadm.k8s.io")
}

/// Why objects of a kind are skipped.
fn skip_reason(kind: &str) -> &'static str {
    let Some((version, _)) = kind.split_once(' ') else {
        return "";
    };
    let group = version.split_once('/').map_or("", |it| it.0);
    if group == "kustomize.config.k8s.io" {
        " (input of kustomize)"
    } else if kind.ends_with(" CustomResourceDefinition") {
        " (patch of a definition)"
    } else if is_configuration(group) {
        " (configuration file of a component)"
    } else if AGGREGATED_GROUPS.contains(&group) {
        " (served by an aggregated API server)"
    } else if group.contains('.') && !BUILT_IN_GROUPS.contains(&group) {
        " (no definition: give it with --crds)"
    } else {
        " (built-in kind without rules)"
    }
}

/// Replaces control characters except tabs: a manifest must not send escape sequences to the terminal.
#[must_use]
pub fn escape_control_chars(text: &str) -> String {
    text.chars().map(escape_control_char).collect()
}

fn escape_control_char(it: char) -> char {
    if it.is_control() && it != '\t' {
        char::REPLACEMENT_CHARACTER
    } else {
        it
    }
}

/// The part of a line to show, the space below it up to the field, and the underline.
fn excerpt(line: &str, location: SourceLocation) -> (String, String, String) {
    let column = location.column.saturating_sub(1);
    // `nth` stops at the limit; `count` would walk a line of many megabytes.
    let is_long = line.chars().nth(LINE_LENGTH_MAX).is_some();
    let skipped = if is_long {
        column.saturating_sub(BEFORE_MAX)
    } else {
        0
    };
    let kept: Vec<char> = line.chars().skip(skipped).take(LINE_LENGTH_MAX).collect();
    let width = |it: char| escape_control_char(it).width().unwrap_or(0);
    let (mut text, mut before) = (String::new(), String::new());
    if skipped > 0 {
        text.push('…');
        before.push(' ');
    }
    text.extend(kept.iter().map(|it| escape_control_char(*it)));
    if line
        .chars()
        .nth(skipped.saturating_add(LINE_LENGTH_MAX))
        .is_some()
    {
        text.push('…');
    }
    let at = column.saturating_sub(skipped);
    for symbol in kept.iter().take(at) {
        match symbol {
            // A tab is repeated, so that both lines align in every terminal.
            '\t' => before.push('\t'),
            // A wide character takes two columns.
            symbol => before.push_str(&" ".repeat(width(*symbol))),
        }
    }
    let field = kept.iter().skip(at).take(location.width);
    let under: usize = field.map(|it| width(*it)).sum();
    (text, before, "^".repeat(under.max(1)))
}
