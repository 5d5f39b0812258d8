//! Standard output. Its errors name it, and a closed pipe ends the program quietly.

use anyhow::Error;
use lockkeeper_check::report::escape_control_chars;
use std::io::{self, Write};
use std::process::ExitCode;

/// The exit code when the reader has closed standard output: 128 + SIGPIPE, as of a program that the signal ends.
pub(crate) const CLOSED_EXIT_CODE: u8 = 141;

/// A writer to standard output.
#[derive(Debug)]
pub(crate) struct StandardOutput {
    out: io::Stdout,
    is_closed: bool,
}

/// An error of standard output, as the inner error of an [`io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
struct StandardOutputError(io::Error);

impl StandardOutput {
    /// A writer without a buffer of its own.
    pub(crate) fn new() -> Self {
        Self {
            out: io::stdout(),
            is_closed: false,
        }
    }

    /// Whether a write failed because the reader has closed the pipe.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            self.is_closed |= kind == io::ErrorKind::BrokenPipe;
            io::Error::new(kind, StandardOutputError(error))
        })
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.out.write(bytes);
        self.note(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.out.flush();
        self.note(result)
    }
}

/// Writes a text for people to standard output. Names in a dump may contain control characters, which could change what a
/// terminal shows; they are replaced.
pub(crate) fn print_visible(text: &str) -> io::Result<()> {
    print(visible(text))
}

fn visible(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(escape_control_chars).collect();
    lines.join("\n")
}

/// Writes a text to standard output.
pub(crate) fn print(text: impl AsRef<[u8]>) -> io::Result<()> {
    let mut out = StandardOutput::new();
    out.write_all(text.as_ref())?;
    out.flush()
}

/// The exit code if the error is that the reader has closed standard output.
pub(crate) fn closed_exit_code(error: &Error) -> Option<ExitCode> {
    let mut causes = error
        .chain()
        .filter_map(|it| it.downcast_ref::<io::Error>());
    let is_closed = causes.any(|it| {
        let inner = it.get_ref();
        let is_output = inner
            .and_then(|it| it.downcast_ref::<StandardOutputError>())
            .is_some();
        is_output && it.kind() == io::ErrorKind::BrokenPipe
    });
    is_closed.then(|| ExitCode::from(CLOSED_EXIT_CODE))
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(visible("a\tb\n\u{1b}[2Jc\r"), "a\tb\n\u{fffd}[2Jc\u{fffd}");
    }
}
