//! For people: the place, the line, and what to do.

use super::{
    CheckedFile, ExceptionStatus, FileObjects, Format, ReportedFinding, SourceText, Tally,
    pluralize,
};
use crate::check::Severity;
use crate::check::source::Identity;
use crate::check::spans::SourceLocation;
use anstyle::{AnsiColor, Effects, Style};
use std::fmt::Write as _;
use unicode_width::UnicodeWidthChar;

/// The longest part of a line that is shown, in characters.
const LINE_LENGTH_MAX: usize = 160;

/// How much of a long line is shown before the field.
const BEFORE_MAX: usize = 60;

/// How things are coloured.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::check) struct Palette {
    error: Style,
    warning: Style,
    location: Style,
    margin: Style,
    help: Style,
}

impl Palette {
    /// For a terminal.
    pub(in crate::check) fn colored() -> Self {
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

pub(super) struct TextFormat {
    palette: Palette,
    is_stored: bool,
}

impl TextFormat {
    pub(super) fn new(palette: Palette, is_stored: bool) -> Self {
        Self { palette, is_stored }
    }

    fn write_finding(
        &self,
        out: &mut String,
        file: &str,
        objects: &FileObjects,
        told: (&Identity, &ReportedFinding),
    ) {
        let (identity, told) = told;
        let (palette, rule) = (&self.palette, &told.finding.rule);
        let (bold, help) = (palette.location, palette.help);
        let style = palette.for_severity(told.severity);
        let word = told.severity.word();
        let at = told
            .location
            .map(|it| format!(":{}:{}", it.line, it.column));
        let at = at.unwrap_or_default();
        let object = if self.is_stored {
            identity.kind.clone()
        } else {
            format!("{} {}", identity.kind, identity.full_name())
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{bold}{}{at}:{bold:#} {style}{word}[{rule}]{style:#}: {}: {}",
            escape_control_chars(file),
            escape_control_chars(object.trim_end()),
            escape_control_chars(&told.finding.text()),
        );
        if let Some(place) = told.location {
            self.write_excerpt(out, &objects.text, place, style);
        }
        for note in &told.notes {
            let _ = writeln!(out, "  {help}|{help:#} {}", escape_control_chars(note));
        }
        let _ = writeln!(out, "  {help}help:{help:#} lockkeeper rules {rule}\n");
    }

    /// The line, with the field underlined.
    fn write_excerpt(
        &self,
        out: &mut String,
        text: &SourceText,
        place: SourceLocation,
        style: Style,
    ) {
        let Some(line) = text.line(place.line) else {
            return;
        };
        let number = place.line.to_string();
        let gap = " ".repeat(number.len());
        let margin = self.palette.margin;
        let (shown, before, under) = excerpt(line, place);
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

    fn file(&self, judged: &CheckedFile) -> String {
        let mut out = String::new();
        match &judged.outcome {
            Err(problem) => {
                let at = problem
                    .location
                    .map(|(line, column)| format!(":{line}:{column}"));
                let at = at.unwrap_or_default();
                let (bold, error) = (self.palette.location, self.palette.error);
                let _ = writeln!(
                    out,
                    "{bold}{}{at}:{bold:#} {error}cannot be read{error:#}: {}\n",
                    escape_control_chars(&judged.name),
                    escape_control_chars(&problem.message)
                );
            }
            Ok(objects) => {
                for object in &objects.objects {
                    for told in object.unsuppressed() {
                        self.write_finding(
                            &mut out,
                            &judged.name,
                            objects,
                            (&object.identity, told),
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
        if !tally.unreadable.is_empty() {
            parts.push(format!(
                "{} not read",
                pluralize(tally.unreadable.len(), "file")
            ));
        }
        let (found, objects) = (parts.join(", "), pluralize(tally.objects, "object"));
        if self.is_stored {
            return format!("{found}, {objects} checked\n");
        }
        let files = pluralize(tally.files, "file");
        format!(
            "{found} in {files}, {objects} checked, {} of other kinds\n",
            tally.skipped
        )
    }
}

/// A text without what could steer a terminal.
fn escape_control_chars(text: &str) -> String {
    text.chars().map(escape_control_char).collect()
}

fn escape_control_char(it: char) -> char {
    if it.is_control() && it != '\t' {
        char::REPLACEMENT_CHARACTER
    } else {
        it
    }
}

/// The part of a line that is shown, what stands below it up to the field, and the underline. A wide character takes
/// two columns; a tab is repeated, so that it is as wide below as it is above.
fn excerpt(line: &str, place: SourceLocation) -> (String, String, String) {
    let column = place.column.saturating_sub(1);
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
    for it in kept.iter().take(at) {
        match it {
            '\t' => before.push('\t'),
            it => before.push_str(&" ".repeat(width(*it))),
        }
    }
    let field = kept.iter().skip(at).take(place.width);
    let under: usize = field.map(|it| width(*it)).sum();
    (text, before, "^".repeat(under.max(1)))
}
