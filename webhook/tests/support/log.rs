//! Captures log lines.

use std::io;
use std::sync::{Arc, Mutex};

/// The log lines of this thread.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Captures the log until the guard is dropped.
    pub fn take() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let sink = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || sink.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// The number of lines with this text.
    pub fn count_lines(&self, part: &str) -> usize {
        let text = self.text();
        text.lines().filter(|line| line.contains(part)).count()
    }

    /// All lines.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
