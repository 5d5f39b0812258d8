//! The way of what is told to where it is printed.

use super::progress::Progress;
use super::report::{Format, Tally};
use lockkeeper_policies::settings::Settings;
use std::io::{self, Write};
use std::path::Path;

/// Prints, and counts what was printed.
pub(super) struct Printer<'a, W> {
    format: &'a dyn Format,
    out: &'a mut W,
    /// The first error of writing. What comes after it is not written.
    write_result: io::Result<()>,
    is_first: bool,
    is_muted: bool,
    tally: Tally,
    pub(super) progress: Progress,
}

impl<'a, W: Write> Printer<'a, W> {
    pub(super) fn new(format: &'a dyn Format, out: &'a mut W, steps: usize) -> Self {
        Self {
            format,
            out,
            write_result: Ok(()),
            is_first: true,
            is_muted: false,
            tally: Tally::default(),
            progress: Progress::new(steps),
        }
    }

    /// Only counts from now on.
    pub(super) fn mute(&mut self) {
        self.is_muted = true;
    }

    pub(super) fn write(&mut self, text: &str) {
        if self.write_result.is_ok() && !self.is_muted {
            self.write_result = self.out.write_all(text.as_bytes());
        }
    }

    /// What is told of a file.
    pub(super) fn write_file(&mut self, text: &str, tally: Tally) {
        self.tally.merge(tally);
        if text.is_empty() {
            return;
        }
        let must_not_wait = self.progress.is_visible();
        self.progress.erase();
        if !self.is_first {
            self.write(self.format.separator());
        }
        self.is_first = false;
        self.write(text);
        if must_not_wait && self.write_result.is_ok() {
            self.write_result = self.out.flush();
        }
    }

    /// What is said of exceptions.
    pub(super) fn write_exceptions(&mut self, settings: &Settings, config: Option<&Path>) {
        let said = self.tally.exception_usage.statuses(settings, config);
        let ended = said.iter().filter(|it| it.is_expired);
        self.tally.warnings = self.tally.warnings.saturating_add(ended.count());
        self.tally.exception_statuses = said;
        let text = self.format.exceptions(&self.tally.exception_statuses);
        self.write_file(&text, Tally::default());
    }

    pub(super) fn finish(mut self) -> io::Result<Tally> {
        self.progress.erase();
        let tail = self.format.tail(&self.tally);
        self.write(&tail);
        self.write_result?;
        self.out.flush()?;
        Ok(self.tally)
    }
}
