//! The server without a cluster: what the README shows first, and what goes wrong first.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::ROOT;
use crate::lockkeeper::{self, Lockkeeper};

/// A trial that needs no cluster.
pub struct Alone {
    pub name: &'static str,
    pub run: fn(&Path),
}

/// All of them.
pub fn scenarios() -> Vec<Alone> {
    let trial = |name, run| Alone { name, run };
    vec![
        trial("the lines that the server prints can be pasted", greeting),
        trial("a second server keeps the CA of the first", same_ca),
        trial("a port in use is said so", port_in_use),
        trial(
            "a wrong configuration is said with its place",
            configuration,
        ),
        trial("a certificate of one's own is served", own_certificate),
    ]
}

/// Runs one in a folder of its own.
pub fn run(alone: &Alone) {
    let folder = TempDir::with_prefix("lockkeeper-alone-").unwrap();
    (alone.run)(folder.path());
}

fn greeting(folder: &Path) {
    let server = Lockkeeper::alone(folder, &["--tls-dir", path(&folder.join("tls"))]).unwrap();
    let printed = server.printed();
    assert!(
        printed.contains("examples/world: 3 priority classes"),
        "{printed}"
    );
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    for line in printed
        .lines()
        .filter(|line| !line.contains("127.0.0.1") && !line.contains("/tls.crt"))
    {
        assert!(readme.contains(line), "the README does not show: {line}");
    }
    let mut answers = Vec::new();
    for line in printed.lines().filter(|line| line.starts_with("  curl ")) {
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(ROOT)
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}\n{}", text(&output.stderr));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answers.push(answer["response"].clone());
    }
    let [refused, filled] = answers.as_slice() else {
        panic!("two lines to paste: {printed}");
    };
    assert_eq!(refused["status"]["code"], 422);
    let message = refused["status"]["message"].as_str().unwrap();
    assert!(
        message.contains("CQ001") && message.contains("CQ007"),
        "{message}"
    );
    assert_eq!(filled["allowed"], true);
    let fields = filled["auditAnnotations"]["defaulted"].as_str().unwrap();
    assert!(
        fields.contains("spec.preemptionPriorityClassName"),
        "{fields}"
    );
    server.stop().unwrap();
}

fn same_ca(folder: &Path) {
    let tls = folder.join("tls");
    let mut authorities = Vec::new();
    for start in ["one", "two"] {
        let home = folder.join(start);
        let server = Lockkeeper::alone(&home, &["--tls-dir", path(&tls)]).unwrap();
        authorities.push(fs::read(server.ca()).unwrap());
        server.stop().unwrap();
    }
    assert_eq!(authorities[0], authorities[1]);
}

fn port_in_use(folder: &Path) {
    let server = Lockkeeper::alone(folder, &["--tls-dir", path(&folder.join("tls"))]).unwrap();
    let taken = server.url().replace("https://", "");
    let tls = folder.join("tls");
    let output = lockkeeper::run(&["serve", "--listen", &taken, "--tls-dir", path(&tls)]);
    fails(&output, 1, &[&taken, "--listen"]);
    server.stop().unwrap();
}

fn configuration(folder: &Path) {
    let file = folder.join("config.yaml");
    for (yaml, parts) in [
        (
            "priority:\n  maxPremptionAboveScheduling: 1\n",
            [":2:3", "maxPreemptionAboveScheduling"],
        ),
        (
            "rules: {actions: {CQ999: warn}}\n",
            ["config.yaml", "CQ001"],
        ),
        ("rules: [\n", [":1:8", "expected mapping"]),
    ] {
        fs::write(&file, yaml).unwrap();
        fails(
            &lockkeeper::run(&["serve", "--config", path(&file)]),
            2,
            &parts,
        );
    }
    fs::remove_file(&file).unwrap();
    fails(
        &lockkeeper::run(&["serve", "--config", path(&file)]),
        2,
        &["config.yaml"],
    );
    fails(
        &lockkeeper::run(&["serve", "--no-such-flag"]),
        2,
        &["--no-such-flag"],
    );
}

fn own_certificate(folder: &Path) {
    let tls = folder.join("tls");
    let names = ["--name", "localhost", "--name", "127.0.0.1"];
    certificate(&names, &tls);
    let (chain, key) = (tls.join("tls.crt"), tls.join("tls.key"));
    let flags = ["--tls-cert", path(&chain), "--tls-key", path(&key)];
    let server = Lockkeeper::alone(folder, &flags).unwrap();
    server.stop().unwrap();
    // The key of another certificate is not served.
    let other = folder.join("other");
    certificate(&names, &other);
    let key = other.join("tls.key");
    let flags = ["serve", "--tls-cert", path(&chain), "--tls-key", path(&key)];
    fails(&lockkeeper::run(&flags), 1, &["tls.key"]);
}

#[track_caller]
fn certificate(names: &[&str], folder: &Path) {
    let mut arguments = vec!["certificate", "--output-dir", path(folder)];
    arguments.extend(names);
    lockkeeper::output(&arguments);
}

#[track_caller]
fn fails(output: &Output, code: i32, parts: &[&str]) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{part} is not in:\n{stderr}");
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
