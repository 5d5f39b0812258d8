//! `lockkeeper controller` under test.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::lockkeeper;
use crate::process::{self, Process};

/// A probe that is not answered for this long is asked again.
const TIMEOUT_S: u64 = 10;

/// A running `lockkeeper controller`. Dropping it kills it.
pub struct Controller {
    process: Process,
    port: u16,
    folder: PathBuf,
}

impl Controller {
    /// Starts a controller with its files in `folder`, and waits until it has seen the cluster.
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

    /// The same, and waits only until it listens.
    pub fn start_unready(
        kubeconfig: &Path,
        folder: &Path,
        config: &str,
        flags: &[&str],
    ) -> Result<Self, String> {
        let command = command(kubeconfig, folder, config, flags)?;
        let stdout = folder.join("stdout");
        let mut process = Process::start(
            "lockkeeper controller",
            command,
            &folder.join("stderr"),
            Some(process::create(&stdout)?),
        )?;
        let port = process.wait_ready(|| announced_port(&stdout))?;
        Ok(Self {
            process,
            port,
            folder: folder.to_owned(),
        })
    }

    /// Waits until it says that it is ready.
    pub fn until_ready(&mut self) -> Result<(), String> {
        let port = self.port;
        self.process.wait_ready(|| {
            let (status, _) = get(port, "/readyz")?;
            (status == 200).then_some(())
        })
    }

    /// What one of its metrics says; `series` is the name without its common beginning, and the labels.
    /// `None` if there is no such series.
    #[track_caller]
    pub fn metric(&self, series: &str) -> Option<u64> {
        let (_, text) = get(self.port, "/metrics").unwrap();
        let line = format!("\nlockkeeper_controller_{series} ");
        let (_, rest) = text.split_once(&line)?;
        Some(rest.lines().next()?.trim().parse().unwrap())
    }

    /// The status with which a probe is answered; `None` when it is not.
    pub fn probe_status(&self, path: &str) -> Option<u16> {
        let (status, _) = get(self.port, path)?;
        Some(status)
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("stderr")).unwrap()
    }

    /// Stops it in the middle of whatever it does, without killing it.
    pub fn freeze(&self) {
        self.process.signal(Signal::STOP).unwrap();
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.process.signal(Signal::CONT).unwrap();
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// Asks it to end, as Kubernetes does; an error unless it ends well.
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
    kubeconfig: &Path,
    folder: &Path,
    config: &str,
    flags: &[&str],
) -> Result<Command, String> {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut command = lockkeeper::binary();
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

/// The port in the line that says where it listens, once the line is there in full.
fn announced_port(stdout: &Path) -> Option<u16> {
    let text = fs::read_to_string(stdout).ok()?;
    let (_, rest) = text.split_once("probes and metrics on http://127.0.0.1:")?;
    let (port, _) = rest.split_once('\n')?;
    port.trim_end().parse().ok()
}

/// The status and the body; `None` when there is no answer (yet).
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
