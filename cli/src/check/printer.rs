//! Writes a report, and counts its findings.

use crate::progress::Progress;
use lockkeeper_check::report::{Format, Tally};
use lockkeeper_policies::settings::Settings;
use std::io::{self, Write};
use std::path::Path;

/// Writes the parts of a report.
pub(super) struct Printer<'a, W> {
    format: &'a dyn Format,
    out: &'a mut W,
    /// The first write error. Nothing is written after it.
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
            progress: Progress::new("checking", steps),
        }
    }

    /// Only counts from now on, without output.
    pub(super) fn mute(&mut self) {
        self.is_muted = true;
    }

    pub(super) fn write(&mut self, text: &str) {
        if self.write_result.is_ok() && !self.is_muted {
            self.write_result = self.out.write_all(text.as_bytes());
        }
    }

    /// Writes the part of a file.
    pub(super) fn write_file(&mut self, text: &str, tally: Tally) {
        self.tally.merge(tally);
        if text.is_empty() {
            return;
        }
        let separator = if self.is_first {
            ""
        } else {
            self.format.separator()
        };
        self.is_first = false;
        if self.write_result.is_err() || self.is_muted {
            return;
        }
        // The bar is drawn again on the same terminal: flush before that.
        let must_flush = self.progress.is_visible();
        let (out, result) = (&mut self.out, &mut self.write_result);
        self.progress.suspend(|| {
            let written = out
                .write_all(separator.as_bytes())
                .and_then(|()| out.write_all(text.as_bytes()));
            *result = written.and_then(|()| if must_flush { out.flush() } else { Ok(()) });
        });
    }

    /// Writes the part about exceptions, and counts expired ones as warnings.
    pub(super) fn write_exceptions(&mut self, settings: &Settings, config: Option<&Path>) {
        let statuses = self.tally.exception_usage.statuses(settings, config);
        let expired = statuses.iter().filter(|it| it.is_expired);
        self.tally.warnings = self.tally.warnings.saturating_add(expired.count());
        self.tally.exception_statuses = statuses;
        let text = self.format.exceptions(&self.tally.exception_statuses);
        self.write_file(&text, Tally::default());
    }

    pub(super) fn finish(mut self) -> io::Result<Tally> {
        self.progress.finish();
        let tail = self.format.tail(&self.tally);
        self.write(&tail);
        self.write_result?;
        self.out.flush()?;
        Ok(self.tally)
    }
}
