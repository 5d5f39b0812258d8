//! A bar on a terminal for what takes longer than a moment.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Nothing is drawn before.
const SHOW_AFTER: Duration = Duration::from_secs(1);

/// Between two drawings.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// The width of the bar, in columns.
const BAR_WIDTH: usize = 24;

/// Takes the cursor to the start of the line, and empties it.
const ERASE_LINE: &str = "\r\u{1b}[2K";

/// How far the work has come.
pub(super) struct Progress {
    output: Option<Box<dyn Write + Send>>,
    started_at: Instant,
    /// When it was drawn last, if it is to be seen.
    last_drawn_at: Option<Instant>,
    done: usize,
    total: usize,
}

impl Progress {
    /// On standard error, if that is a terminal.
    pub(super) fn new(total: usize) -> Self {
        let is_seen = stderr().is_terminal();
        Self::with_output(is_seen.then(|| Box::new(stderr()) as Box<_>), total)
    }

    fn with_output(output: Option<Box<dyn Write + Send>>, total: usize) -> Self {
        Self {
            output,
            started_at: Instant::now(),
            last_drawn_at: None,
            done: 0,
            total,
        }
    }

    /// One step more is done.
    pub(super) fn step(&mut self) {
        self.done = self.done.saturating_add(1);
        if self.output.is_some() {
            self.draw(Instant::now());
        }
    }

    fn draw(&mut self, now: Instant) {
        let since = self
            .last_drawn_at
            .map(|it| now.saturating_duration_since(it));
        let is_early = now.saturating_duration_since(self.started_at) < SHOW_AFTER;
        if is_early || since.is_some_and(|it| it < REDRAW_INTERVAL) {
            return;
        }
        let full = self.done.saturating_mul(BAR_WIDTH).checked_div(self.total);
        let full = full.unwrap_or(BAR_WIDTH).min(BAR_WIDTH);
        let percent = self.done.saturating_mul(100).checked_div(self.total);
        let mut line = format!("{ERASE_LINE}  checking [");
        line.extend((0..BAR_WIDTH).map(|at| if at < full { '=' } else { ' ' }));
        // Writing to a string does not fail.
        let _ = write!(line, "] {:3} %", percent.unwrap_or(100));
        self.write_text(&line);
        self.last_drawn_at = Some(now);
    }

    /// Makes room for other output.
    pub(super) fn erase(&mut self) {
        if self.last_drawn_at.take().is_some() {
            self.write_text(ERASE_LINE);
        }
    }

    /// Whether other output may come between, so that it must not be held back.
    pub(super) fn is_visible(&self) -> bool {
        self.last_drawn_at.is_some()
    }

    /// Who closed standard error does not want to know.
    fn write_text(&mut self, text: &str) {
        if let Some(to) = &mut self.output {
            let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.erase();
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, REDRAW_INTERVAL, SHOW_AFTER};
    use std::io::{Result, Write};
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn progress_waits_redraws_and_erases() {
        let shown = Shared::default();
        let mut progress = Progress::with_output(Some(Box::new(shown.clone())), 8);
        let begun = progress.started_at;
        progress.done = 1;
        progress.draw(begun);
        progress.done = 2;
        progress.draw(begun + SHOW_AFTER);
        progress.done = 3;
        progress.draw(begun + SHOW_AFTER + REDRAW_INTERVAL / 2);
        progress.done = 4;
        progress.draw(begun + SHOW_AFTER + REDRAW_INTERVAL);
        drop(progress);
        let text = String::from_utf8(shown.0.lock().unwrap().clone()).unwrap();
        let drawn: Vec<&str> = text.split("\r\u{1b}[2K").collect();
        assert_eq!(
            drawn,
            [
                "",
                "  checking [======                  ]  25 %",
                "  checking [============            ]  50 %",
                ""
            ]
        );
    }
}
