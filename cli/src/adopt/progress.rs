//! The progress of the writes, for a person at a terminal.

use std::io::{self, IsTerminal, Write};

/// The most characters of the line: one that wraps could not be replaced.
const WIDTH_MAX: usize = 79;

/// A line that shows the current job and step, and is replaced by the next one.
#[derive(Debug)]
pub(crate) struct Progress<W: Write> {
    /// `None` without a terminal.
    out: Option<W>,
}

impl Progress<io::Stderr> {
    /// Progress on standard error, if that is a terminal.
    pub(crate) fn on_standard_error() -> Self {
        let out = io::stderr();
        Self::new(out.is_terminal().then_some(out))
    }
}

impl<W: Write> Progress<W> {
    /// Progress on `out`; none without it.
    pub(crate) const fn new(out: Option<W>) -> Self {
        Self { out }
    }

    /// Shows the step of the job with this number, from 1.
    pub(crate) fn show(&mut self, number: usize, total: usize, job: &str, step: &str) {
        let line = format!("{number}/{total} {step}: {job}");
        let line: String = line.chars().take(WIDTH_MAX).collect();
        self.replace(&line);
    }

    /// Removes the line.
    pub(crate) fn clear(&mut self) {
        self.replace("");
    }

    /// An error changes no adoption, so it is ignored.
    fn replace(&mut self, line: &str) {
        if let Some(out) = &mut self.out {
            let _ = write!(out, "\r\x1b[K{line}").and_then(|()| out.flush());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;

    #[test]
    fn progress_replaces_its_line() {
        let mut out = Vec::new();
        let mut progress = Progress::new(Some(&mut out));
        progress.show(1, 12, "team/train", "write admission");
        progress.show(2, 12, &"x".repeat(100), "label");
        progress.clear();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.split("\r\u{1b}[K").collect();
        let long = format!("2/12 label: {}", "x".repeat(67));
        assert_eq!(lines, ["", "1/12 write admission: team/train", &long, ""]);
    }

    #[test]
    fn progress_without_terminal_writes_nothing() {
        let mut progress: Progress<Vec<u8>> = Progress::new(None);
        progress.show(1, 1, "team/train", "label");
        progress.clear();
        assert!(progress.out.is_none());
    }
}
