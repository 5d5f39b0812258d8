//! A progress bar on terminals for work that takes longer than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// Shorter work shows no bar.
const SHOW_AFTER: Duration = Duration::from_secs(1);

const REDRAWS_PER_SECOND: u8 = 10;

/// Progress, on standard error. Drawing is disabled unless standard error is a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    started_at: Instant,
    is_visible: bool,
}

impl Progress {
    /// A hidden bar with this many steps; `doing` is in front of it, such as `checking`.
    pub(crate) fn new(doing: &str, total: usize) -> Self {
        let total = u64::try_from(total).unwrap_or(u64::MAX);
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("  {msg} [{bar:24}] {percent:>3} %") {
            bar.set_style(style.progress_chars("=> "));
            bar.set_message(doing.to_owned());
        }
        Self {
            bar,
            started_at: Instant::now(),
            is_visible: false,
        }
    }

    /// Counts a completed step.
    pub(crate) fn step(&mut self) {
        if !self.is_visible && self.started_at.elapsed() >= SHOW_AFTER {
            let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND);
            self.bar.set_draw_target(target);
            self.is_visible = !self.bar.is_hidden();
        }
        self.bar.inc(1);
    }

    /// Runs `write` while the bar is cleared from the terminal, and draws the bar again.
    pub(crate) fn suspend(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    /// Clears the bar for good.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Whether the bar is on the terminal, so that other output must be flushed at once.
    pub(crate) fn is_visible(&self) -> bool {
        self.is_visible
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
