//! `lockkeeper controller` under test.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::lockkeeper::Program;
use crate::process::{self, Process};

/// Timeout of a probe; a probe without a response is repeated.
const TIMEOUT_S: u64 = 10;

/// A running `lockkeeper controller`. Dropping it kills it.
pub struct Controller {
    process: Process,
    port: u16,
    folder: PathBuf,
}

impl Controller {
    /// Starts a controller with its files in `folder`, and waits until it is ready.
    pub fn start(
        kubeconfig: &Path,
        folder: &Path,
        config: &str,
        flags: &[&str],
    ) -> Result<Self, String> {
        let mut controller = Self::start_unready(kubeconfig, folder, config, flags)?;
        controller.until_ready()?;
        Ok(controller)
    }

    /// Like [`Self::start`], of another version.
    pub fn start_program(
        program: &Program,
        kubeconfig: &Path,
        folder: &Path,
        flags: &[&str],
    ) -> Result<Self, String> {
        let command = command(program, kubeconfig, folder, "", flags)?;
        let mut controller = Self::spawn(command, folder)?;
        controller.until_ready()?;
        Ok(controller)
    }

    /// Starts a controller, and waits only until it listens.
    pub fn start_unready(
        kubeconfig: &Path,
        folder: &Path,
        config: &str,
        flags: &[&str],
    ) -> Result<Self, String> {
        let command = command(&Program::current(), kubeconfig, folder, config, flags)?;
        Self::spawn(command, folder)
    }

    fn spawn(command: Command, folder: &Path) -> Result<Self, String> {
        let stdout = folder.join("stdout");
        let mut process = Process::start(
            "lockkeeper controller",
            command,
            &folder.join("stderr"),
            Some(process::create(&stdout)?),
        )?;
        // With the decision log on standard output, the startup message is on standard error.
        let stderr = folder.join("stderr");
        let announced = || announced_port(&stdout).or_else(|| announced_port(&stderr));
        let port = process.wait_ready(announced)?;
        Ok(Self {
            process,
            port,
            folder: folder.to_owned(),
        })
    }

    /// Waits until the controller reports that it is ready.
    pub fn until_ready(&mut self) -> Result<(), String> {
        let port = self.port;
        self.process.wait_ready(|| {
            let (status, _) = get(port, "/readyz")?;
            (status == 200).then_some(())
        })
    }

    /// The value of a metric; `series` is the name without the common prefix, and the labels. `None` if the series
    /// does not exist.
    #[track_caller]
    pub fn metric(&self, series: &str) -> Option<u64> {
        Some(self.metric_text(series)?.parse().unwrap())
    }

    /// The value of a series as it is printed.
    pub fn metric_text(&self, series: &str) -> Option<String> {
        let (_, text) = get(self.port, "/metrics").unwrap();
        let line = format!("\nlockkeeper_controller_{series} ");
        let (_, rest) = text.split_once(&line)?;
        Some(rest.lines().next()?.trim().to_owned())
    }

    /// The status code of a probe; `None` without a response.
    pub fn probe_status(&self, path: &str) -> Option<u16> {
        let (status, _) = get(self.port, path)?;
        Some(status)
    }

    /// The body of a response of its port.
    #[track_caller]
    pub fn get(&self, path: &str) -> String {
        let (_, body) = get(self.port, path).unwrap_or_else(|| panic!("{path}: no response"));
        body
    }

    /// The log of the controller.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("stderr")).unwrap()
    }

    /// Its standard output.
    pub fn stdout(&self) -> String {
        fs::read_to_string(self.folder.join("stdout")).unwrap()
    }

    /// Pauses the process with a signal, without killing it.
    pub fn freeze(&self) {
        self.process.signal(Signal::STOP).unwrap();
    }

    /// Continues the process.
    pub fn resume(&self) {
        self.process.signal(Signal::CONT).unwrap();
    }

    /// Whether the process is still running.
    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// Sends SIGTERM, as Kubernetes does; an error unless the controller exits successfully.
    pub fn stop(self) -> Result<(), String> {
        let log = self.folder.join("stderr");
        let status = self.process.terminate()?;
        if status.success() {
            return Ok(());
        }
        let log = fs::read_to_string(log).unwrap_or_default();
        Err(format!(
            "lockkeeper controller exited with {status} when stopped:\n{log}"
        ))
    }
}

fn command(
    program: &Program,
    kubeconfig: &Path,
    folder: &Path,
    config: &str,
    flags: &[&str],
) -> Result<Command, String> {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut command = program.command();
    command
        .args(["controller", "--control-listen", "127.0.0.1:0"])
        .env("LOCKKEEPER_LOG", "info,lockkeeper_controller=debug")
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(flags);
    if !config.is_empty() {
        let path = folder.join("config.yaml");
        fs::write(&path, config).map_err(|e| format!("{}: {e}", path.display()))?;
        command.arg("--config").arg(path);
    }
    Ok(command)
}

/// The port in the startup line, once the line is complete.
fn announced_port(stdout: &Path) -> Option<u16> {
    let text = fs::read_to_string(stdout).ok()?;
    let (_, rest) = text.split_once("probes and metrics on http://127.0.0.1:")?;
    let (port, _) = rest.split_once('\n')?;
    port.trim_end().parse().ok()
}

/// The status code and the body; `None` without a response.
fn get(port: u16, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    let timeout = Duration::from_secs(TIMEOUT_S);
    stream.set_read_timeout(Some(timeout)).ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}
