//! Captures log lines.

use std::io;
use std::sync::{Arc, Mutex, Once};

/// The log lines of this thread.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Enables log lines in all threads. Every test calls it before its first log line: a line that another thread
    /// reaches first, without a subscriber, is disabled in all threads for some time.
    pub fn enable() {
        static ENABLED: Once = Once::new();
        ENABLED.call_once(|| {
            let subscriber = tracing_subscriber::fmt().with_writer(io::sink).finish();
            tracing::subscriber::set_global_default(subscriber).unwrap();
        });
    }

    /// Captures the log of this thread until the guard is dropped.
    pub fn take() -> (Self, tracing::subscriber::DefaultGuard) {
        Self::enable();
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
