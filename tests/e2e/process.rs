//! A server process that stops with its owner.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use rustix::process::Signal;

use crate::wait;

/// How much of a log is shown when a server fails.
const TAIL_LINES: usize = 30;

/// A running server. Dropping it kills it.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    /// Held open for as long as the server should live; see `tests/minicluster`.
    _stdin: Option<ChildStdin>,
}

impl Process {
    /// Starts `command` with its standard error in `log`. Its standard output
    /// goes there too, unless the caller has sent it elsewhere with `stdout`.
    pub fn start(
        name: &str,
        mut command: Command,
        log: &Path,
        stdout: Option<File>,
    ) -> Result<Self, String> {
        let stderr = create(log)?;
        let stdout = match stdout {
            Some(file) => file,
            None => stderr
                .try_clone()
                .map_err(|e| format!("{}: {e}", log.display()))?,
        };
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .map_err(|e| format!("{name} does not start: {e}"))?;
        Ok(Self {
            name: name.to_owned(),
            _stdin: child.stdin.take(),
            child,
            log: log.to_owned(),
        })
    }

    /// Waits until `ready` returns a value; an error with the end of the log if
    /// the process exits or after a timeout.
    pub fn wait_ready<T>(&mut self, mut ready: impl FnMut() -> Option<T>) -> Result<T, String> {
        let Self {
            name, child, log, ..
        } = self;
        wait::until(
            || match child.try_wait() {
                Ok(None) => Ok(ready()),
                Ok(Some(status)) => {
                    Err(failure_with_log(name, &format!("ended with {status}"), log))
                }
                Err(e) => Err(failure_with_log(name, &format!("is lost: {e}"), log)),
            },
            || failure_with_log(name, "was not ready in time", log),
        )
    }

    /// Whether it is still running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends SIGTERM, as Kubernetes does, and waits for the exit.
    pub fn terminate(self) -> Result<ExitStatus, String> {
        self.signal(Signal::TERM)?;
        self.wait()
    }

    /// Sends the process a signal.
    pub fn signal(&self, signal: Signal) -> Result<(), String> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal)
            .map_err(|e| failure_with_log(&self.name, &format!("takes no signal: {e}"), &self.log))
    }

    /// Waits until the process has exited.
    pub fn wait(mut self) -> Result<ExitStatus, String> {
        let Self {
            name, child, log, ..
        } = &mut self;
        wait::until(
            || child.try_wait().map_err(|e| format!("{name} is lost: {e}")),
            || failure_with_log(name, "did not exit after SIGTERM", log),
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the process has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An empty file at `path`.
pub fn create(path: &Path) -> Result<File, String> {
    File::create(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn failure_with_log(name: &str, what: &str, log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
    format!("{name} {what}; the end of its log:\n{tail}")
}
