//! Runs kubectl as a user would, and returns its output.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::ROOT;
use crate::programs::{OLDER_MINOR, Programs};
use crate::wait;

/// kubectl with the credentials of one cluster and its own home folder.
#[derive(Clone)]
pub struct Kubectl {
    programs: Programs,
    kubeconfig: PathBuf,
    home: PathBuf,
}

/// A message of an older API server as the newest one writes it: older ones name the type in place of the value that a CEL rule
/// rejects, and quote null.
fn as_newest(message: String) -> String {
    if OLDER_MINOR.is_none() {
        return message;
    }
    let message = message.replace("Invalid value: \"null\"", "Invalid value: null");
    ["object", "array", "string", "integer"]
        .iter()
        .fold(message, |message, kind| {
            message.replace(&format!("Invalid value: \"{kind}\": "), "Invalid value: ")
        })
}

impl Kubectl {
    pub fn new(programs: Programs, kubeconfig: PathBuf, home: PathBuf) -> Self {
        Self {
            programs,
            kubeconfig,
            home,
        }
    }

    /// The kubeconfig that it uses.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Runs kubectl at the root of the repository.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> KubectlOutput {
        self.with_input(arguments, "")
    }

    /// Runs `kubectl apply` on manifests given as text; `flags` are appended.
    #[track_caller]
    pub fn apply(&self, manifests: &str, flags: &[&str]) -> KubectlOutput {
        let mut arguments = vec!["apply", "-f", "-"];
        arguments.extend(flags);
        self.with_input(&arguments, manifests)
    }

    /// Installs the CRDs of a file, and waits until they are served.
    #[track_caller]
    pub fn install_crds(&self, file: &Path) {
        let file = file.to_str().unwrap();
        self.run(&["apply", "--server-side", "-f", file])
            .expect_accepted_without_warning();
        // A CRD that no controller has processed yet has no conditions, which `kubectl wait` reports as an error.
        let established = [
            "wait",
            "--for=condition=Established",
            "--timeout=5s",
            "-f",
            file,
        ];
        let served = wait::until(
            || Ok((self.run(&established).code == Some(0)).then_some(())),
            || format!("{file} is never established"),
        );
        served.unwrap_or_else(|e| panic!("{e}"));
    }

    /// The object or list that `kubectl get` prints.
    #[track_caller]
    pub fn get(&self, arguments: &[&str]) -> Value {
        let mut all = vec!["get", "-o", "json"];
        all.extend(arguments);
        let reply = self.run(&all).expect_accepted();
        serde_json::from_str(&reply.stdout).unwrap()
    }

    /// Whether the object does not exist.
    #[track_caller]
    pub fn absent(&self, arguments: &[&str]) -> bool {
        let mut all = vec!["get", "--ignore-not-found", "-o", "name"];
        all.extend(arguments);
        self.run(&all).expect_accepted().stdout.is_empty()
    }

    /// Runs kubectl with `input` as its standard input.
    #[track_caller]
    pub fn with_input(&self, arguments: &[&str], input: &str) -> KubectlOutput {
        // A wait that would never end: `--request-timeout` does not bound it.
        let bound = (arguments.first() == Some(&"delete")).then_some("--timeout=120s");
        let mut child = self
            .command()
            .args(arguments)
            .args(bound)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("kubectl does not start: {e}"));
        // Fails if kubectl exits before it has read everything; its output has the reason.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        KubectlOutput {
            command: arguments.join(" "),
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: as_newest(String::from_utf8(output.stderr).unwrap()),
        }
    }

    fn command(&self) -> Command {
        let mut command = self.programs.command("kubectl");
        command
            .current_dir(ROOT)
            .env_remove("KUBECONFIG")
            .env_remove("KUBECACHEDIR")
            .env_remove("MINICLUSTER_EXIT_WITH_STDIN")
            .env("HOME", &self.home)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .arg("--request-timeout=60s");
        command
    }
}

/// The output of one run of kubectl.
#[derive(Debug)]
pub struct KubectlOutput {
    command: String,
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl KubectlOutput {
    /// Returns the output if kubectl succeeded.
    #[track_caller]
    pub fn expect_accepted(self) -> Self {
        assert_eq!(
            self.code,
            Some(0),
            "kubectl {}:\n{}",
            self.command,
            self.stderr
        );
        self
    }

    /// Returns the output if kubectl succeeded without a warning.
    #[track_caller]
    pub fn expect_accepted_without_warning(self) -> Self {
        let reply = self.expect_accepted();
        assert_eq!(reply.stderr, "", "kubectl {}", reply.command);
        reply
    }

    /// Returns the output if kubectl succeeded without a warning other than a preview.
    #[track_caller]
    pub fn expect_accepted_with_preview(self) -> Self {
        let reply = self.expect_accepted();
        let mut lines = reply.stderr.lines();
        let is_expected = lines.all(|it| it.starts_with("Warning: preview: "));
        assert!(is_expected, "kubectl {}:\n{}", reply.command, reply.stderr);
        reply
    }

    /// Returns the output if the API server rejected the request.
    #[track_caller]
    pub fn expect_rejected(self) -> Self {
        assert_eq!(
            self.code,
            Some(1),
            "kubectl {} must be rejected:\n{}{}",
            self.command,
            self.stdout,
            self.stderr
        );
        self
    }
}
