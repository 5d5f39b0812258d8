//! A server that keeps its certificates in the Secret of the installation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{SECRET, text};
use crate::fixture::Fixture;
use crate::lockkeeper::{self, Protocol};
use crate::process::{self, Process};

/// Long enough for the API server to load a bundle on a busy machine, and short enough to wait
/// for twice.
const OVERLAP: &str = "webhook: {certificates: {overlapSeconds: 5}}\n";

/// A server with its certificates in the Secret. Dropping it kills it.
pub struct CertificateServer {
    process: Process,
    pub port: u16,
    folder: PathBuf,
}

impl CertificateServer {
    /// Starts a server and waits until it listens; it need not be ready.
    #[track_caller]
    pub fn start(stage: &mut Fixture, protocol: Protocol) -> Self {
        Self::wait(Self::start_unready(stage, protocol))
    }

    #[track_caller]
    pub fn start_unready(stage: &mut Fixture, protocol: Protocol) -> (Process, PathBuf) {
        Self::start_unready_with_flags(stage, protocol, &[])
    }

    /// Like `start`, with more flags.
    #[track_caller]
    pub fn start_unready_with_flags(
        stage: &mut Fixture,
        protocol: Protocol,
        flags: &[&str],
    ) -> (Process, PathBuf) {
        let folder = stage.new_folder();
        let mut flags = flags.to_vec();
        if protocol == Protocol::Http1 {
            flags.push("--http1-only");
        }
        Self::start_unready_as(stage.cluster().server(), folder, OVERLAP, &flags)
    }

    /// Like `start`, with these credentials and this configuration file.
    #[track_caller]
    pub fn start_unready_as(
        kubeconfig: &Path,
        folder: PathBuf,
        config: &str,
        flags: &[&str],
    ) -> (Process, PathBuf) {
        let mut command = lockkeeper::serve(&folder).unwrap();
        let file = folder.join("config.yaml");
        fs::write(&file, config).unwrap();
        command.arg("--config").arg(file);
        command.arg("--kubeconfig").arg(kubeconfig);
        command.args(["--tls-secret", SECRET, "--tls-name", "127.0.0.1"]);
        command.args(flags);
        let stdout = process::create(&folder.join("stdout")).unwrap();
        let log = folder.join("stderr");
        let process = Process::start("lockkeeper serve", command, &log, Some(stdout));
        (process.unwrap(), folder)
    }

    #[track_caller]
    pub fn wait((mut process, folder): (Process, PathBuf)) -> Self {
        let stdout = folder.join("stdout");
        let port = process
            .wait_ready(|| lockkeeper::announced_port(&stdout))
            .unwrap();
        Self {
            process,
            port,
            folder,
        }
    }

    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("stderr")).unwrap()
    }

    /// The response of `/readyz`, without verification of the certificate.
    #[track_caller]
    pub fn readyz(&self) -> String {
        let url = format!("{}/readyz", self.url());
        let output = Command::new("curl")
            .args(["--silent", "--insecure", &url])
            .output();
        text(&output.unwrap().stdout)
    }

    /// The value of a metric.
    #[track_caller]
    pub fn metric(&self, name: &str) -> u64 {
        let printed = fs::read_to_string(self.folder.join("stdout")).unwrap();
        let (_, rest) = printed.split_once("metrics      ").unwrap();
        let url = rest.lines().next().unwrap();
        let output = Command::new("curl").args(["--silent", url]).output();
        let all = text(&output.unwrap().stdout);
        let name = format!("lockkeeper_webhook_{name} ");
        let mut values = all.lines().filter_map(|line| line.strip_prefix(&name));
        values
            .next()
            .unwrap_or_else(|| panic!("{all}"))
            .parse()
            .unwrap()
    }

    #[track_caller]
    pub fn wait_ready(&mut self) {
        self.wait_for_log("ok\n");
    }

    /// Waits until the response of `/readyz` contains this text.
    #[track_caller]
    pub fn wait_for_log(&mut self, part: &str) -> String {
        let url = format!("{}/readyz", self.url());
        let body = self.process.wait_ready(|| {
            let output = Command::new("curl")
                .args(["--silent", "--insecure", &url])
                .output();
            let body = text(&output.ok()?.stdout);
            body.contains(part).then_some(body)
        });
        body.unwrap_or_else(|e| panic!("{part}: {}\n{e}", self.readyz()))
    }

    #[track_caller]
    pub fn stop(self) {
        assert!(self.process.terminate().unwrap().success());
    }
}
