//! The commands without a cluster, as a shell runs them: pipes, special files, large files and exit codes.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const QUEUE: &str = "\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  cohort: research # ours
";

const SCENARIO: &str = "\
id: one
clusterQueues:
- name: team
  resourceGroups:
  - resources: [cpu]
    flavors: [{name: spot, quotas: [{resource: cpu, nominal: \"8\"}]}]
incoming: {name: train, clusterQueue: team, podSets: [{requests: {cpu: \"4\"}}]}
";

/// A command in an empty environment, so that no kubeconfig of the machine is used.
fn lockkeeper(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockkeeper"));
    command.args(words).current_dir(folder).env_clear();
    command.env("HOME", folder).stdin(Stdio::null());
    command
}

fn run(folder: &Path, words: &[&str]) -> (i32, String, String) {
    finish(lockkeeper(folder, words).output().unwrap())
}

/// Runs the command with this standard input.
fn pipe(folder: &Path, words: &[&str], input: &str) -> (i32, String, String) {
    let mut command = lockkeeper(folder, words);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command may end without reading its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    finish(child.wait_with_output().unwrap())
}

fn finish(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn check_of_folder_with_loops_and_pipes_ends() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    fs::write(path.join("queue.yaml"), QUEUE).unwrap();
    symlink(".", path.join("a")).unwrap();
    symlink(".", path.join("b")).unwrap();
    make_fifo(&path.join("pipe.yaml"));
    let (code, text, _) = run(path, &["check", ".", "queue.yaml", "./queue.yaml"]);
    assert_eq!(code, 1);
    assert!(
        text.contains("1 error, 0 warnings in 1 file, 1 object checked"),
        "{text}"
    );
    let (code, text, _) = run(path, &["check", "--world", ".", "-"]);
    assert_eq!(code, 0, "{text}");
    let (code, text, _) = run(path, &["check", ".", "--exclude", "*.yaml"]);
    assert_eq!((code, text.contains("in 0 files")), (0, true), "{text}");
}

#[test]
fn check_reads_large_lists_and_many_documents() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let mut list = "apiVersion: v1\nkind: List\nitems:\n".to_owned();
    for number in 0..6000 {
        let _ = write!(
            list,
            "- apiVersion: kueue.x-k8s.io/v1beta2\n  kind: ClusterQueue\n  metadata: {{name: q{number}}}\n  spec:\n\
             \x20   namespaceSelector: {{}}\n    resourceGroups:\n    - coveredResources: [cpu, memory, pods]\n      flavors:\n\
             \x20     - name: spot\n        resources:\n        - {{name: cpu, nominalQuota: 4}}\n\
             \x20       - {{name: memory, nominalQuota: 4Gi}}\n        - {{name: pods, nominalQuota: 40}}\n"
        );
    }
    fs::write(path.join("list.yaml"), &list).unwrap();
    let flags = ["--select", "SC", "list.yaml"];
    let (code, text, _) = run(path, &[&["check"], &flags[..]].concat());
    assert!(text.contains("6000 objects checked"), "{text}");
    assert_eq!(code, 0);
    fs::write(
        path.join("many.yaml"),
        "kind: Other\napiVersion: a/v1\n---\n".repeat(40_000),
    )
    .unwrap();
    let (code, text, _) = run(path, &["check", "many.yaml"]);
    assert!(text.contains("40000 of other kinds"), "{text}");
    assert_eq!(code, 0);
}

#[test]
fn check_rejects_unknown_kinds_and_non_objects() {
    let folder = TempDir::new().unwrap();
    for (text, expected) in [
        (
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQeue\n",
            "did you mean ClusterQueue?",
        ),
        (
            "apiVersion: kueue.x-k8s.io/v1beta9\nkind: ClusterQueue\n",
            "did you mean kueue.x-k8s.io/v1beta2?",
        ),
        (
            "apiVersion: kueue.x-k8s.oi/v1beta2\nkind: ClusterQueue\n",
            "did you mean kueue.x-k8s.io/v1beta2?",
        ),
        (
            "metadata: {name: a}\n",
            "every object has apiVersion and kind",
        ),
        ("hello world\n", "every document must be an object"),
        ("[1, 2]\n", "every document must be an object"),
    ] {
        let (code, out, _) = pipe(folder.path(), &["check", "-"], text);
        assert_eq!(code, 1, "{text}: {out}");
        assert!(out.contains(expected), "{text}: {out}");
    }
    let other = "apiVersion: example.com/v1\nkind: Database\nmetadata: {name: a}\n";
    let (code, out, _) = pipe(folder.path(), &["check", "--verbose", "-"], other);
    assert_eq!(code, 0);
    assert!(
        out.contains("not checked: 1 example.com/v1 Database"),
        "{out}"
    );
    let (code, out, _) = pipe(folder.path(), &["check", "--strict", "-"], other);
    assert_eq!(code, 1);
    assert!(
        out.contains("example.com/v1 Database is not checked"),
        "{out}"
    );
    let (_, out, _) = pipe(folder.path(), &["check", "-o", "json", "-"], other);
    assert!(out.contains("\"example.com/v1 Database\": 1"), "{out}");
}

#[test]
fn check_fix_of_stdin_prints_corrected_text() {
    let folder = TempDir::new().unwrap();
    let (code, out, report) = pipe(folder.path(), &["check", "--fix=corrected", "-"], QUEUE);
    assert_eq!(out, QUEUE.replace("cohort:", "cohortName:"));
    assert!(
        report.contains("fixed 1 typo and added 0 defaults in 1 file"),
        "{report}"
    );
    assert!(report.contains("0 errors"), "{report}");
    assert_eq!(code, 0);
    let (_, out, _) = pipe(folder.path(), &["check", "--fix", "-"], QUEUE);
    assert!(
        out.contains("cohortName: research # ours\n") && out.contains("queueingStrategy"),
        "{out}"
    );
}

#[test]
fn closed_pipe_ends_commands_quietly() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    fs::write(path.join("queue.yaml"), QUEUE).unwrap();
    fs::write(path.join("scenario.yaml"), SCENARIO).unwrap();
    for words in [
        &["rules"][..],
        &["rules", "CQ001"],
        &["check", "queue.yaml"],
        &["check", "-o", "json", "queue.yaml"],
        &["check", "--diff", "queue.yaml"],
        &["explain", "--scenario", "scenario.yaml"],
        &["completions", "bash"],
        &["serve", "--print-config"],
        &["crds", "definitions"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = lockkeeper(path, words).stdout(writer).output().unwrap();
        let (code, _, error) = finish(output);
        assert_eq!((code, error.as_str()), (141, ""), "{words:?}");
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (code, _, error) = finish(lockkeeper(path, words).stdout(full).output().unwrap());
        assert!(
            code != 0 && error.contains("output: No space left on device"),
            "{words:?}: {error}"
        );
    }
}

#[test]
fn explain_rejects_mistakes_with_positions() {
    let folder = TempDir::new().unwrap();
    let explain = |text: &str, flags: &[&str]| {
        let words = [&["explain", "--scenario", "-"], flags].concat();
        pipe(folder.path(), &words, text)
    };
    assert_eq!(
        explain(SCENARIO, &["--id", "one", "--workload", "train"]).0,
        0
    );
    for (from, to, expected) in [
        (
            "incoming:",
            "incomming:",
            "-:7:1: incomming: unknown field; did you mean incoming?",
        ),
        (
            "name: train",
            "priorty: 3, name: train",
            "-:7:12: incoming.priorty: unknown field; did you mean priority?",
        ),
        (
            "clusterQueue: team",
            "clusterQueue: tean",
            "there is no ClusterQueue \"tean\"; did you mean team?",
        ),
        (
            "nominal: \"8\"",
            "nominal: 8x",
            "-:6:53: clusterQueues[0].resourceGroups[0].flavors[0].quotas[0].nominal: \"8x\" is no amount",
        ),
    ] {
        let (code, _, error) = explain(&SCENARIO.replace(from, to), &[]);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(expected), "{error}");
        assert!(
            !error.contains("enum") && !error.contains("struct"),
            "{error}"
        );
    }
    for (text, flags, expected) in [
        (SCENARIO, &["--id", "two"][..], "it has the id \"one\""),
        (
            SCENARIO,
            &["--workload", "nope"],
            "\"nope\" is not the incoming workload",
        ),
        ("", &[], "expected one scenario, found 0"),
        (
            QUEUE,
            &[],
            "a manifest (ClusterQueue of kueue.x-k8s.io/v1beta2), not a scenario",
        ),
        ("{}", &[], "neither clusterQueues nor nodes"),
    ] {
        let (code, _, error) = explain(text, flags);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn simulate_compares_configs_and_rejects_mistakes_with_positions() {
    const TRACE: &str = "\
id: one
clusterQueues:
- name: team
  resourceGroups:
  - resources: [cpu]
    flavors: [{name: spot, quotas: [{resource: cpu, nominal: \"8\"}]}]
  preemption: {withinClusterQueue: LowerPriority}
jobs:
- {name: low, clusterQueue: team, arrival: 0, runSeconds: 100, podSets: [{requests: {cpu: \"6\"}}]}
- {name: high, clusterQueue: team, arrival: 40, runSeconds: 10, priority: 1, podSets: [{requests: {cpu: \"4\"}}]}
";
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("resume.yaml"), "mode: resume\n").unwrap();
    fs::write(folder.path().join("restart.yaml"), "mode: restart\n").unwrap();
    let configs = ["--config", "resume.yaml", "--config", "restart.yaml"];
    let words = [&["simulate", "-"][..], &configs].concat();
    let (code, text, error) = pipe(folder.path(), &words, TRACE);
    assert_eq!(code, 0, "{error}");
    let makespans: Vec<&str> = text.lines().filter(|it| it.contains("makespan")).collect();
    assert_eq!(makespans, ["  makespan     110 s", "  makespan     150 s"]);
    let (code, text, _) = pipe(folder.path(), &["simulate", "-", "-o", "json"], TRACE);
    assert_eq!(code, 0);
    assert!(text.contains("\"outcome\": \"drained\""), "{text}");
    for (from, to, expected) in [
        (
            "arrival: 40",
            "arrival: -4",
            "-:10:36: jobs[1].arrival: -4 is out of range; use 0 to",
        ),
        ("priority: 1", "priority: x", "jobs[1].priority: "),
        (
            "name: high",
            "name: low",
            "jobs[1].name: duplicate job name \"low\"; use unique names",
        ),
        ("jobs:", "jobs: [", "-:"),
    ] {
        let (code, _, error) = pipe(folder.path(), &["simulate", "-"], &TRACE.replace(from, to));
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn cluster_errors_name_address_and_cause() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let config = "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
                  clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n\
                  contexts: [{name: c, context: {cluster: c}}]\n";
    fs::write(path.join("config"), config).unwrap();
    let expected = "error: API server http://127.0.0.1:1: cannot list ";
    let (code, _, error) = run(path, &["check", "--stored", "--kubeconfig", "config"]);
    assert_eq!(code, 2, "{error}");
    assert!(
        error.starts_with(expected) && error.contains("Connection refused"),
        "{error}"
    );
    let mut command = lockkeeper(path, &["check", "--stored", "--context", "c"]);
    let (_, _, error) = finish(command.env("KUBECONFIG", "config").output().unwrap());
    assert!(error.starts_with(expected), "{error}");
    fs::create_dir(path.join(".kube")).unwrap();
    fs::write(path.join(".kube/config"), config).unwrap();
    let (_, _, error) = run(path, &["check", "--stored"]);
    assert!(error.starts_with(expected), "{error}");
    fs::remove_dir_all(path.join(".kube")).unwrap();
    let (code, _, error) = run(path, &["check", "--stored"]);
    assert_eq!(code, 2);
    assert!(
        error.contains("no kubeconfig: set --kubeconfig or KUBECONFIG"),
        "{error}"
    );
    for words in [&["explain", "job/train"][..], &["queue"], &["top"]] {
        let (code, _, error) = run(path, words);
        assert_eq!(code, 2, "{error}");
        assert!(
            error.contains("or set --dump to read the objects"),
            "{error}"
        );
    }
    for words in [
        &["controller", "--kubeconfig", "missing"][..],
        &["serve", "--kubeconfig", "missing"],
        &["check", "--stored", "--kubeconfig", "missing"],
    ] {
        let (code, _, error) = run(path, words);
        assert_eq!(code, 2, "{words:?}: {error}");
        assert!(error.contains("missing"), "{error}");
    }
    let mut command = lockkeeper(path, &["controller"]);
    let (code, _, error) = finish(command.env("LOCKKEEPER_LOG", "blah=foo").output().unwrap());
    assert_eq!(code, 2);
    assert!(
        error.contains("LOCKKEEPER_LOG=\"blah=foo\" is invalid"),
        "{error}"
    );
}
