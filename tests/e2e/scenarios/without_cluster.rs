//! The server without a cluster: the first command of the README, and common mistakes.

use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

use crate::ROOT;
use crate::lockkeeper::{self, Lockkeeper};

/// A trial that needs no cluster.
pub struct StandaloneTrial {
    pub name: &'static str,
    pub run: fn(&Path),
}

/// All trials without a cluster.
pub fn scenarios() -> Vec<StandaloneTrial> {
    let trial = |name, run| StandaloneTrial { name, run };
    vec![
        trial(
            "the commands that the server prints can be executed",
            startup_message,
        ),
        trial("a second server keeps the CA of the first", same_ca),
        trial("a port in use is reported", port_in_use),
        trial(
            "an invalid configuration is reported with its location",
            configuration,
        ),
        trial("a certificate from files is served", own_certificate),
        trial(
            "a certificate from another CA makes the server unready",
            checked_certificate,
        ),
        trial("a signal stops the server gracefully", signals),
        trial("metrics count the responses", metrics),
        trial("the printed configuration is valid", print_config),
        trial("a metrics port in use is reported", metrics_port_in_use),
        trial("the help lists all exit codes", exit_codes),
        trial("an unreadable object file is reported", invalid_world_file),
        trial("an invalid kubeconfig is reported", invalid_kubeconfig),
        trial(
            "an unreadable configuration is reported",
            config_path_not_a_file,
        ),
        trial(
            "a build without otel rejects its flags",
            tracing_feature_absent,
        ),
    ]
}

/// Runs a trial in its own folder.
pub fn run(alone: &StandaloneTrial) {
    let folder = TempDir::with_prefix("lockkeeper-alone-").unwrap();
    (alone.run)(folder.path());
}

fn startup_message(folder: &Path) {
    let server =
        Lockkeeper::start_without_cluster(folder, &["--tls-dir", path(&folder.join("tls"))])
            .unwrap();
    let printed = server.stdout();
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
    let [rejected, filled] = answers.as_slice() else {
        panic!("two lines to paste: {printed}");
    };
    assert_eq!(rejected["status"]["code"], 422);
    let message = rejected["status"]["message"].as_str().unwrap();
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
        let server = Lockkeeper::start_without_cluster(&home, &["--tls-dir", path(&tls)]).unwrap();
        authorities.push(fs::read(server.ca()).unwrap());
        server.stop().unwrap();
    }
    assert_eq!(authorities[0], authorities[1]);
}

fn port_in_use(folder: &Path) {
    let server =
        Lockkeeper::start_without_cluster(folder, &["--tls-dir", path(&folder.join("tls"))])
            .unwrap();
    let taken = server.url().replace("https://", "");
    let tls = folder.join("tls");
    let output = lockkeeper::run(&["serve", "--listen", &taken, "--tls-dir", path(&tls)]);
    assert_exit(&output, 1, &[&taken, "--listen"]);
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
            ["config.yaml:1:19", "lockkeeper rules"],
        ),
        (
            "webhook: {listen: localhost}\n",
            ["config.yaml:1:19", "127.0.0.1:9443"],
        ),
        ("rules: [\n", [":1:8", "expected a mapping"]),
        (
            "webhook: {limits: {requestsMax: 0}}\n",
            ["config.yaml:1:33", "from 1 to 65536"],
        ),
        (
            "webhook: {bodyLimitBytes: 2097152, limits: {bodiesMaxBytes: 1048576}}\n",
            ["webhook.bodyLimitBytes", "webhook.limits.bodiesMaxBytes"],
        ),
    ] {
        fs::write(&file, yaml).unwrap();
        assert_exit(
            &lockkeeper::run(&["serve", "--config", path(&file)]),
            2,
            &parts,
        );
    }
    fs::remove_file(&file).unwrap();
    assert_exit(
        &lockkeeper::run(&["serve", "--config", path(&file)]),
        2,
        &["config.yaml"],
    );
    assert_exit(
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
    let server = Lockkeeper::start_without_cluster(folder, &flags).unwrap();
    server.stop().unwrap();
    // A key that does not belong to the certificate is rejected.
    let other = folder.join("other");
    certificate(&names, &other);
    let key = other.join("tls.key");
    let flags = ["serve", "--tls-cert", path(&chain), "--tls-key", path(&key)];
    assert_exit(&lockkeeper::run(&flags), 1, &["tls.key"]);
}

/// With `--tls-ca` the server is ready only with a certificate of that CA for that name.
fn checked_certificate(folder: &Path) {
    let (own, other) = (folder.join("tls"), folder.join("other"));
    certificate(
        &["--name", "lockkeeper.team.svc", "--name", "127.0.0.1"],
        &own,
    );
    certificate(&["--name", "lockkeeper.team.svc"], &other);
    let (chain, key) = (own.join("tls.crt"), own.join("tls.key"));
    let given = ["--tls-cert", path(&chain), "--tls-key", path(&key)];
    let (own, other) = (own.join("ca.crt"), other.join("ca.crt"));
    for (ca, names, ready) in [
        (&own, &["--tls-name", "lockkeeper.team.svc"][..], true),
        (&own, &["--tls-name", "127.0.0.1"], true),
        (&own, &["--tls-name", "example.com"], false),
        // The expected name `localhost` is not in the certificate.
        (&own, &[], false),
        (&other, &["--tls-name", "lockkeeper.team.svc"], false),
    ] {
        let flags = [&given[..], &["--tls-ca", path(ca)], names].concat();
        let mut server = Lockkeeper::start_unready(folder, &flags).unwrap();
        server
            .wait_for(|endpoint| {
                let (code, reasons) = endpoint.get("/readyz")?;
                let is_checked = code == 200 || reasons.contains("self-check: no handshake: ");
                is_checked.then(|| assert_eq!(code == 200, ready, "{names:?}: {reasons}"))
            })
            .unwrap();
        server.stop().unwrap();
    }

    let without = [&["serve"], &given[..], &["--tls-name", "example.com"]].concat();
    assert_exit(&lockkeeper::run(&without), 2, &["--tls-name", "--tls-ca"]);
    let alone = ["serve", "--tls-ca", path(&own)];
    assert_exit(&lockkeeper::run(&alone), 2, &["--tls-cert"]);
}

/// Signals while a request is in flight, and the exit of the server.
fn signals(folder: &Path) {
    for (number, first, second, code) in [
        (1, Signal::TERM, None, 0),
        (2, Signal::INT, None, 0),
        (3, Signal::TERM, Some(Signal::TERM), 143),
        (4, Signal::TERM, Some(Signal::INT), 130),
        (5, Signal::INT, Some(Signal::INT), 130),
        (6, Signal::INT, Some(Signal::TERM), 143),
    ] {
        let home = folder.join(number.to_string());
        fs::create_dir(&home).unwrap();
        let config = home.join("config.yaml");
        let yaml = "webhook: {drainSeconds: 3600, limits: {bodyTimeoutSeconds: 60}}\n";
        fs::write(&config, yaml).unwrap();
        let tls = home.join("tls");
        let flags = ["--tls-dir", path(&tls), "--config", path(&config)];
        let mut server = Lockkeeper::start_without_cluster(&home, &flags).unwrap();

        // The server waits for the second half of the body.
        let file = Path::new(ROOT).join("examples/reviews/workload-defaulted.json");
        let review = fs::read(file).unwrap();
        let (half, rest) = review.split_at(review.len() / 2);
        let mut stream = server.endpoint().open().unwrap();
        let head = format!(
            "POST /mutate?timeout=30s HTTP/1.1\r\nHost: localhost\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            review.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(half).unwrap();
        let metrics = metrics_url(&server);
        let in_flight = "\nlockkeeper_webhook_requests_in_flight 1\n";
        let is_there = || curl(&[&metrics]).contains(in_flight);
        server.wait_for(|_| is_there().then_some(())).unwrap();

        server.signal(first).unwrap();
        if let Some(second) = second {
            let process = server.into_process();
            process.signal(second).unwrap();
            assert_eq!(process.wait().unwrap().code(), Some(code), "{number}");
            continue;
        }
        stream.write_all(rest).unwrap();
        let mut answer = Vec::new();
        // The server may close the connection without closing TLS first.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", text(&answer));
        let status = server.into_process().wait().unwrap();
        assert_eq!(status.code(), Some(code), "{number}");
    }
}

fn metrics(folder: &Path) {
    let tls = folder.join("tls");
    let server = Lockkeeper::start_without_cluster(folder, &["--tls-dir", path(&tls)]).unwrap();
    let review = format!("{}/validate", server.url());
    let rejected = "@examples/reviews/clusterqueue-rejected.json";
    let kind = "Content-Type: application/json";
    let ca = path(server.ca());
    curl(&["--cacert", ca, "-H", kind, "--data", rejected, &review]);
    let url = metrics_url(&server);
    let text = curl(&[&url]);
    for line in [
        r#"requests_total{kind="ClusterQueue",operation="create",path="validate",verdict="denied"} 1"#,
        r#"rule_hits_total{rule="CQ007",action="enforce"} 1"#,
        r#"request_duration_seconds_count{path="validate"} 1"#,
        r#"store_objects{store="priorityclasses"} 3"#,
        "requests_in_flight 0",
    ] {
        let line = format!("\nlockkeeper_webhook_{line}\n");
        assert!(text.contains(&line), "{line} is not in:\n{text}");
    }
    let ends = "\nlockkeeper_webhook_certificate_not_after_seconds ";
    let (_, ends_s) = text.split_once(ends).unwrap();
    let ends_s: i64 = ends_s.lines().next().unwrap().parse().unwrap();
    assert!(ends_s > 1_700_000_000, "{ends_s}");
    assert_eq!(curl(&[&url.replace("/metrics", "/healthz")]), "ok\n");
    server.stop().unwrap();
}

/// Flags take precedence over the file, and the printed configuration includes both.
fn print_config(folder: &Path) {
    let file = folder.join("config.yaml");
    let yaml = "rules: {actions: {CQ007: warn}}\nwebhook: {metricsListen: off, drainSeconds: 1}\n";
    fs::write(&file, yaml).unwrap();
    let flags = ["--listen", "127.0.0.1:1", "--tls-min-version", "1.2"];
    let arguments = ["serve", "--print-config", "--config", path(&file)];
    let printed = lockkeeper::output(&[&arguments[..], &flags].concat());
    for part in [
        "CQ007: warn",
        "127.0.0.1:1",
        "off",
        "1.2",
        "drainSeconds: 1",
    ] {
        assert!(printed.contains(part), "{part} is not in:\n{printed}");
    }
    fs::write(&file, &printed).unwrap();
    assert_eq!(lockkeeper::output(&arguments), printed);
}

/// The metrics address in the server's output.
fn metrics_url(server: &Lockkeeper) -> String {
    let printed = server.stdout();
    let (_, rest) = printed.split_once("metrics      ").unwrap();
    rest.lines().next().unwrap().to_owned()
}

fn metrics_port_in_use(folder: &Path) {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let tls = folder.join("tls");
    let flags = ["--metrics-listen", &taken, "--tls-dir", path(&tls)];
    let output = lockkeeper::run(&[&["serve", "--listen", "127.0.0.1:0"][..], &flags].concat());
    assert_exit(&output, 1, &[&taken, "--metrics-listen"]);
}

fn exit_codes(_: &Path) {
    for arguments in [&["--help"][..], &["serve", "--help"]] {
        let help = lockkeeper::output(arguments);
        let (_, codes) = help.split_once("Exit codes:\n").unwrap();
        let codes: Vec<&str> = codes
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(codes, ["0", "1", "2", "130", "141", "143"]);
    }
    assert!(lockkeeper::run(&["--version"]).status.success());
    assert_exit(&lockkeeper::run(&["sreve"]), 2, &["serve"]);
    assert_exit(&lockkeeper::run(&[]), 2, &["Usage"]);
}

/// The message of `serve` for these invalid flags.
fn serve_rejects_flags(folder: &Path, flags: &[&str]) -> Output {
    let tls = folder.join("tls");
    let serve = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--metrics-listen",
        "off",
    ];
    let tls = ["--tls-dir", path(&tls)];
    lockkeeper::run(&[&serve[..], &tls, flags].concat())
}

fn invalid_world_file(folder: &Path) {
    let world = folder.join("world");
    let check = |content: &[u8], parts: &[&str]| {
        fs::create_dir_all(&world).unwrap();
        fs::write(world.join("objects.yaml"), content).unwrap();
        assert_exit(
            &serve_rejects_flags(folder, &["--world", path(&world)]),
            1,
            parts,
        );
    };
    check(
        b"kind: [\n",
        &["world/objects.yaml:1:7", "unclosed bracket"],
    );
    check(b"\xff\xfe", &["world/objects.yaml", "fix it", "UTF-8"]);
    check(
        b"{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: high}, value: x}",
        &["world/objects.yaml", "PriorityClass high", "i32"],
    );
    let file = world.join("objects.yaml");
    let absent = folder.join("absent");
    for no_folder in [&file, &absent, &file.join("below")] {
        let output = serve_rejects_flags(folder, &["--world", path(no_folder)]);
        assert_exit(&output, 1, &[path(no_folder), "set --world"]);
    }
    fs::remove_file(&file).unwrap();
    symlink("nowhere", &file).unwrap();
    let output = serve_rejects_flags(folder, &["--world", path(&world)]);
    assert_exit(&output, 1, &["world/objects.yaml", "fix it"]);
}

fn invalid_kubeconfig(folder: &Path) {
    let file = folder.join("kubeconfig");
    let of = |file: &Path| serve_rejects_flags(folder, &["--kubeconfig", path(file)]);
    assert_exit(
        &of(&file),
        2,
        &[path(&file), "--kubeconfig", "No such file"],
    );
    assert_exit(&of(folder), 2, &[path(folder), "--kubeconfig", "directory"]);
    for (yaml, part) in [
        ("clusters: [\n", ":1:11: unclosed bracket"),
        ("rules: {}\n", "no current-context"),
        ("current-context: gone\n", "no context \"gone\""),
        (
            "current-context: a\ncontexts: [{name: a, context: {cluster: b, user: c}}]\n\
             clusters: [{name: b, cluster: {server: 'https://127.0.0.1:1', certificate-authority: nowhere.crt}}]\n\
             users: [{name: c, user: {}}]\n",
            "nowhere.crt",
        ),
    ] {
        fs::write(&file, yaml).unwrap();
        let output = of(&file);
        assert_exit(&output, 2, &[path(&file), part]);
        assert_eq!(text(&output.stderr).lines().count(), 1);
    }
}

fn config_path_not_a_file(folder: &Path) {
    let file = folder.join("config.yaml");
    fs::write(&file, "").unwrap();
    for no_file in [folder, &file.join("below")] {
        let output = serve_rejects_flags(folder, &["--config", path(no_file)]);
        assert_exit(&output, 2, &[path(no_file), "check the path"]);
    }
    fs::write(&file, b"\xff\xfe").unwrap();
    let output = serve_rejects_flags(folder, &["--config", path(&file)]);
    assert_exit(&output, 2, &[path(&file), "UTF-8"]);
}

/// A user who sets the variable expects spans; a log message states that this build does not support them.
fn tracing_feature_absent(folder: &Path) {
    let absent = folder.join("absent");
    let start = |endpoint: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockkeeper"));
        let arguments = ["serve", "--world", path(&absent)];
        command.args(arguments).env_remove("LOCKKEEPER_LOG");
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
        command.output().unwrap()
    };
    let message = "built without the feature otel";
    assert_exit(&start("http://127.0.0.1:4318"), 1, &[message, "INFO"]);
    let silent = text(&start("").stderr);
    assert!(!silent.contains(message), "{silent}");
}

/// The response to a request.
#[track_caller]
fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--fail"])
        .args(arguments)
        .current_dir(ROOT)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn certificate(names: &[&str], folder: &Path) {
    let mut arguments = vec!["certificate", "--output-dir", path(folder)];
    arguments.extend(names);
    lockkeeper::output(&arguments);
}

#[track_caller]
fn assert_exit(output: &Output, code: i32, parts: &[&str]) {
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
