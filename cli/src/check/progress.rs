//! A bar on a terminal for what takes longer than a moment.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Nothing is drawn before.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two drawings.
const PAUSE: Duration = Duration::from_millis(100);

/// The width of the bar, in columns.
const WIDTH: usize = 24;

/// Takes the cursor to the start of the line, and empties it.
const ERASE: &str = "\r\u{1b}[2K";

/// How far the work has come.
pub(super) struct Progress {
    to: Option<Box<dyn Write + Send>>,
    begun: Instant,
    /// When it was drawn last, if it is to be seen.
    drawn: Option<Instant>,
    done: usize,
    total: usize,
}

impl Progress {
    /// On standard error, if that is a terminal.
    pub(super) fn new(total: usize) -> Self {
        let is_seen = stderr().is_terminal();
        Self::on(is_seen.then(|| Box::new(stderr()) as Box<_>), total)
    }

    fn on(to: Option<Box<dyn Write + Send>>, total: usize) -> Self {
        Self {
            to,
            begun: Instant::now(),
            drawn: None,
            done: 0,
            total,
        }
    }

    /// One step more is done.
    pub(super) fn step(&mut self) {
        self.done = self.done.saturating_add(1);
        if self.to.is_some() {
            self.draw(Instant::now());
        }
    }

    fn draw(&mut self, now: Instant) {
        let since = self.drawn.map(|it| now.saturating_duration_since(it));
        let is_early = now.saturating_duration_since(self.begun) < PATIENCE;
        if is_early || since.is_some_and(|it| it < PAUSE) {
            return;
        }
        let full = self.done.saturating_mul(WIDTH).checked_div(self.total);
        let full = full.unwrap_or(WIDTH).min(WIDTH);
        let percent = self.done.saturating_mul(100).checked_div(self.total);
        let mut line = format!("{ERASE}  checking [");
        line.extend((0..WIDTH).map(|at| if at < full { '=' } else { ' ' }));
        // Writing to a string does not fail.
        let _ = write!(line, "] {:3} %", percent.unwrap_or(100));
        self.say(&line);
        self.drawn = Some(now);
    }

    /// Makes room for other output.
    pub(super) fn erase(&mut self) {
        if self.drawn.take().is_some() {
            self.say(ERASE);
        }
    }

    /// Whether other output may come between, so that it must not be held back.
    pub(super) fn is_seen(&self) -> bool {
        self.drawn.is_some()
    }

    /// Who closed standard error does not want to know.
    fn say(&mut self, text: &str) {
        if let Some(to) = &mut self.to {
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
    use super::{PATIENCE, PAUSE, Progress};
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
    fn it_waits_draws_now_and_then_and_leaves_nothing() {
        let shown = Shared::default();
        let mut progress = Progress::on(Some(Box::new(shown.clone())), 8);
        let begun = progress.begun;
        progress.done = 1;
        progress.draw(begun);
        progress.done = 2;
        progress.draw(begun + PATIENCE);
        progress.done = 3;
        progress.draw(begun + PATIENCE + PAUSE / 2);
        progress.done = 4;
        progress.draw(begun + PATIENCE + PAUSE);
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
