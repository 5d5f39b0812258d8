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
    written: io::Result<()>,
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
            written: Ok(()),
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
        if self.written.is_ok() && !self.is_muted {
            self.written = self.out.write_all(text.as_bytes());
        }
    }

    /// What is told of a file.
    pub(super) fn file(&mut self, text: &str, tally: Tally) {
        self.tally.add(tally);
        if text.is_empty() {
            return;
        }
        let must_not_wait = self.progress.is_seen();
        self.progress.erase();
        if !self.is_first {
            self.write(self.format.separator());
        }
        self.is_first = false;
        self.write(text);
        if must_not_wait && self.written.is_ok() {
            self.written = self.out.flush();
        }
    }

    /// What is said of exceptions.
    pub(super) fn exceptions(&mut self, settings: &Settings, config: Option<&Path>) {
        let said = self.tally.excuses.say(settings, config);
        let ended = said.iter().filter(|it| it.has_ended);
        self.tally.warnings = self.tally.warnings.saturating_add(ended.count());
        self.tally.exceptions = said;
        let text = self.format.exceptions(&self.tally.exceptions);
        self.file(&text, Tally::default());
    }

    pub(super) fn finish(mut self) -> io::Result<Tally> {
        self.progress.erase();
        let tail = self.format.tail(&self.tally);
        self.write(&tail);
        self.written?;
        self.out.flush()?;
        Ok(self.tally)
    }
}
