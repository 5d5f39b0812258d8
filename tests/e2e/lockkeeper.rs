//! Runs the binary under test.

use std::fmt;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lockkeeper_testkit::SecretVolume;
use rustix::process::Signal;

use crate::ROOT;
use crate::https::Endpoint;
use crate::process::{self, Process};
use crate::programs::OLDER_MINOR;

/// The HTTP versions the server is tested with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The API server's choice when the webhook URL is on localhost and the server offers both.
    Http2,
    /// The API server's choice for a webhook behind a Service.
    Http1,
}

impl fmt::Display for Protocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Http2 => "HTTP/2",
            Self::Http1 => "HTTP/1.1",
        })
    }
}

/// The name of the configuration file in the folder of a server.
const CONFIG: &str = "config.yaml";

/// A running `lockkeeper serve`. Dropping it kills it.
pub struct Lockkeeper {
    process: Process,
    port: u16,
    ca: PathBuf,
    stdout: PathBuf,
}

impl Lockkeeper {
    /// Starts the server on a cluster, with its files in `folder`, and waits until it is ready. With an empty
    /// `config` there is no configuration file.
    pub fn start(
        kubeconfig: &Path,
        folder: &Path,
        protocol: Protocol,
        config: &str,
    ) -> Result<Self, String> {
        Self::start_program(&Program::current(), kubeconfig, folder, protocol, config)
    }

    /// Like [`Self::start`], of another version.
    pub fn start_program(
        program: &Program,
        kubeconfig: &Path,
        folder: &Path,
        protocol: Protocol,
        config: &str,
    ) -> Result<Self, String> {
        let tls = folder.join("tls");
        let mut command = on_cluster(program, kubeconfig, folder, protocol, config)?;
        command.arg("--tls-dir").arg(&tls);
        Self::spawn(command, folder, tls.join("ca.crt"))?.wait_ready()
    }

    /// Starts one of several replicas with the same certificate, without waiting for readiness: the balancer probes
    /// it.
    pub fn replica(
        kubeconfig: &Path,
        folder: &Path,
        protocol: Protocol,
        config: &str,
        volume: &SecretVolume,
    ) -> Result<Self, String> {
        let program = Program::current();
        let mut command = on_cluster(&program, kubeconfig, folder, protocol, config)?;
        command.arg("--tls-cert").arg(volume.certificate());
        command.arg("--tls-key").arg(volume.key());
        Self::spawn(command, folder, volume.ca())
    }

    /// Starts the server without a cluster, in the root of the repository.
    pub fn start_without_cluster(folder: &Path, flags: &[&str]) -> Result<Self, String> {
        Self::start_unready(folder, flags)?.wait_ready()
    }

    /// Like [`Self::start_without_cluster`], and waits only until it listens.
    pub fn start_unready(folder: &Path, flags: &[&str]) -> Result<Self, String> {
        let mut command = serve(folder)?;
        command.args(flags).current_dir(ROOT);
        let tls = flags.windows(2).find(|pair| pair[0] == "--tls-dir");
        let tls = tls.map_or_else(|| folder.join("tls"), |pair| PathBuf::from(pair[1]));
        Self::spawn(command, folder, tls.join("ca.crt"))
    }

    fn spawn(command: Command, folder: &Path, ca: PathBuf) -> Result<Self, String> {
        let stdout = folder.join("stdout");
        let mut process = Process::start(
            "lockkeeper serve",
            command,
            &folder.join("stderr"),
            Some(process::create(&stdout)?),
        )?;
        let port = process.wait_ready(|| announced_port(&stdout))?;
        Ok(Self {
            process,
            port,
            ca,
            stdout,
        })
    }

    fn wait_ready(mut self) -> Result<Self, String> {
        self.wait_for(|endpoint| (endpoint.get("/readyz")?.0 == 200).then_some(()))?;
        Ok(self)
    }

    /// Waits until `holds` returns a value.
    pub fn wait_for<T>(
        &mut self,
        mut holds: impl FnMut(&Endpoint<'_>) -> Option<T>,
    ) -> Result<T, String> {
        let endpoint = endpoint(self.port, &self.ca);
        self.process.wait_ready(|| holds(&endpoint))
    }

    /// The port that the server listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The log of the server.
    pub fn log(&self) -> String {
        fs::read_to_string(self.stdout.with_file_name("stderr")).unwrap()
    }

    /// Whether the process is still running.
    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// The current value of a metric; `series` is the name without the common prefix, and the labels.
    #[track_caller]
    pub fn metric(&self, series: &str) -> u64 {
        let printed = self.stdout();
        let (_, rest) = printed.split_once("metrics      http://").unwrap();
        let (address, _) = rest.split_once("/metrics").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let line = format!("\nlockkeeper_webhook_{series} ");
        let (_, rest) = text
            .split_once(&line)
            .unwrap_or_else(|| panic!("no {series} in\n{text}"));
        rest.lines().next().unwrap().trim().parse().unwrap()
    }

    /// Its configuration file, if there is one.
    pub fn config(&self) -> Option<PathBuf> {
        let path = self.stdout.with_file_name(CONFIG);
        path.is_file().then_some(path)
    }

    /// The standard output of the server.
    pub fn stdout(&self) -> String {
        fs::read_to_string(&self.stdout).unwrap()
    }

    /// The webhook URL for the API server.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// The file with the CA of the serving certificate.
    pub fn ca(&self) -> &Path {
        &self.ca
    }

    /// The server as an endpoint for an HTTPS client.
    pub fn endpoint(&self) -> Endpoint<'_> {
        endpoint(self.port, &self.ca)
    }

    /// Sends the server a signal, and waits until the log confirms it.
    pub fn signal(&mut self, signal: Signal) -> Result<(), String> {
        self.process.signal(signal)?;
        let log = self.stdout.with_file_name("stderr");
        self.wait_for(|_| {
            let log = fs::read_to_string(&log).ok()?;
            log.contains("stopping: ").then_some(())
        })
    }

    /// Returns the process, for trials that check its exit.
    pub fn into_process(self) -> Process {
        self.process
    }

    /// Sends SIGTERM, as Kubernetes does; an error unless the server exits successfully.
    pub fn stop(self) -> Result<(), String> {
        let status = self.process.terminate()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!(
                "lockkeeper serve ended with {status} after SIGTERM"
            ))
        }
    }
}

/// `lockkeeper serve` on a cluster. With an empty `config` there is no configuration file.
fn on_cluster(
    program: &Program,
    kubeconfig: &Path,
    folder: &Path,
    protocol: Protocol,
    config: &str,
) -> Result<Command, String> {
    let mut command = serve_program(program, folder)?;
    command.arg("--kubeconfig").arg(kubeconfig);
    if protocol == Protocol::Http1 {
        command.arg("--http1-only");
    }
    if !config.is_empty() {
        let path = folder.join(CONFIG);
        fs::write(&path, config).map_err(|e| format!("{}: {e}", path.display()))?;
        command.arg("--config").arg(path);
    }
    Ok(command)
}

/// `lockkeeper serve` on a free port, with its files in `folder`.
pub fn serve(folder: &Path) -> Result<Command, String> {
    serve_program(&Program::current(), folder)
}

fn serve_program(program: &Program, folder: &Path) -> Result<Command, String> {
    // The server creates its private folder inside this one.
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut command = program.command();
    command.args(["serve", "--log-format", "json"]);
    command.args(["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]);
    Ok(command)
}

/// Completes a command line as fish does: each line has a candidate, and its description behind a tab.
#[track_caller]
pub fn complete(arguments: &[&str]) -> String {
    let mut command = binary();
    command.env("LOCKKEEPER_COMPLETE", "fish").args(arguments);
    let output = command.output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the binary with `arguments`.
pub fn run(arguments: &[&str]) -> Output {
    binary().args(arguments).output().unwrap()
}

/// Runs the binary with `arguments` and returns its standard output.
#[track_caller]
pub fn output(arguments: &[&str]) -> String {
    Program::current().output(arguments)
}

/// A lockkeeper binary of some version.
#[derive(Clone)]
pub struct Program(PathBuf);

impl Program {
    /// The binary under test.
    pub fn current() -> Self {
        Self(env!("CARGO_BIN_EXE_lockkeeper").into())
    }

    /// The earlier binary that upgrades start from, if `LOCKKEEPER_EARLIER` names one.
    pub fn earlier() -> Option<Self> {
        let path = std::env::var_os("LOCKKEEPER_EARLIER")?;
        Some(Self(path.into()))
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.0);
        command
            .env_remove("KUBECONFIG")
            .env_remove("LOCKKEEPER_LOG");
        command
    }

    /// Runs the binary with `arguments` and returns its standard output.
    #[track_caller]
    pub fn output(&self, arguments: &[&str]) -> String {
        let version = OLDER_MINOR.map(|minor| format!("--kubernetes-version=1.{minor}"));
        let mut arguments = arguments.to_vec();
        // Objects for the cluster, as its administrator emits them.
        if let Some(version) = &version
            && let ["crds", "definitions" | "policies" | "job-kinds", ..] = arguments[..]
        {
            arguments.push(version);
        }
        let output = self.command().args(&arguments).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "lockkeeper {}:\n{stderr}",
            arguments.join(" ")
        );
        String::from_utf8(output.stdout).unwrap()
    }
}

pub fn binary() -> Command {
    Program::current().command()
}

fn endpoint(port: u16, ca: &Path) -> Endpoint<'_> {
    Endpoint {
        port,
        ca,
        token: None,
    }
}

/// The port in the startup line, once the line is complete.
pub fn announced_port(stdout: &Path) -> Option<u16> {
    let text = fs::read_to_string(stdout).ok()?;
    let (_, rest) = text.split_once("serving on https://127.0.0.1:")?;
    let (port, _) = rest.split_once('\n')?;
    port.trim_end().parse().ok()
}
