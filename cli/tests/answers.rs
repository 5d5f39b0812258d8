//! The flags of `explain`, `queue`, `top`, `diff`, `doctor` and `dump`, each with its effect for the user.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const DUMP: &str = "examples/explain/kueue.yaml";
const CHANGE: &str = "examples/explain/team-b-8-gpus.yaml";

fn command(program: impl AsRef<Path>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program.as_ref());
    command.args(arguments).current_dir(ROOT);
    command
}

fn lockkeeper(arguments: &[&str]) -> Command {
    command(env!("CARGO_BIN_EXE_lockkeeper"), arguments)
}

#[track_caller]
fn run(arguments: &[&str], exit_code: i32) -> String {
    let output = lockkeeper(arguments).output().unwrap();
    text_of(&output, exit_code)
}

#[track_caller]
fn text_of(output: &Output, exit_code: i32) -> String {
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(output.status.code(), Some(exit_code), "{text}");
    text
}

fn file(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

/// The example as objects of lockkeeper, with `waits` instead of `train`.
fn own_objects() -> String {
    let text = fs::read_to_string(Path::new(ROOT).join(DUMP)).unwrap();
    let text = text.replace("kueue.x-k8s.io/v1beta2", "lockkeeper.dev/v1alpha1");
    let text = text
        .replace("train", "waits")
        .replace("    priority: 0\n", "");
    // The class of Kueue has no counterpart in this group.
    text.replace("WorkloadPriorityClass", "Unknown")
}

#[test]
fn config_sets_the_resources_that_need_no_quota() {
    let folder = TempDir::new().unwrap();
    let config = file(
        &folder,
        "config.yaml",
        "resources: {excludePrefixes: [nvidia.com/]}\n",
    );
    let waits = run(&["explain", "job/train", "--dump", DUMP], 0);
    assert!(
        waits.starts_with("team-a/job-train-0d9aa needs 3 more nvidia.com/gpu"),
        "{waits}"
    );
    assert!(waits.contains("default configuration"), "{waits}");
    let config = config.to_str().unwrap();
    let fits = run(
        &["explain", "job/train", "--dump", DUMP, "--config", config],
        0,
    );
    assert!(
        fits.starts_with("team-a/job-train-0d9aa is admitted in the next cycle"),
        "{fits}"
    );
    assert!(!fits.contains("default configuration"), "{fits}");
}

#[test]
fn configuration_of_kueue_is_read_from_a_file_or_the_dump() {
    let folder = TempDir::new().unwrap();
    let text = "\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: kueue-manager-config}
  data:
    controller_manager_config.yaml: |
      apiVersion: config.kueue.x-k8s.io/v1beta2
      kind: Configuration
      admissionFairSharing: {usageHalfLifeTime: 168h}
      resources:
        excludeResourcePrefixes: [nvidia.com/]
";
    let list = file(&folder, "list.yaml", text);
    let list = list.to_str().unwrap();
    let (_, map) = text.split_once("items:\n").unwrap();
    let map = map.replace("\n  ", "\n").replacen("- ", "", 1);
    let map = file(&folder, "map.yaml", &map);
    let explain = ["explain", "job/train", "--dump", DUMP];
    for more in [["--dump", list], ["--config", map.to_str().unwrap()]] {
        let fits = run(&[explain.as_slice(), &more].concat(), 0);
        let first = "team-a/job-train-0d9aa is admitted in the next cycle";
        assert!(fits.starts_with(first), "{fits}");
        let assumed = "settings of Kueue's Configuration are not considered: admissionFairSharing";
        assert!(fits.contains(assumed), "{fits}");
    }
    // Of the controller of lockkeeper it says nothing.
    let own = file(&folder, "own.yaml", &own_objects());
    let own = ["explain", "job/waits", "--dump", own.to_str().unwrap()];
    let waits = run(&[own.as_slice(), &["--dump", list]].concat(), 0);
    assert!(waits.contains("needs 3 more nvidia.com/gpu"), "{waits}");
}

#[test]
fn objects_of_one_scheduler_are_chosen() {
    let folder = TempDir::new().unwrap();
    let own = file(&folder, "own.yaml", &own_objects());
    let both = ["--dump", DUMP, "--dump", own.to_str().unwrap()];
    let names = |flags: &[&str]| {
        run(
            &[&["queue", "--output", "name"], &both[..], flags].concat(),
            0,
        )
    };
    assert_eq!(names(&[]), "team-a/job-waits-0d9aa\n");
    assert_eq!(names(&["--scheduler", "kueue"]), "team-a/job-train-0d9aa\n");
    let explained = run(
        &[
            &["explain", "job/train", "--compatibility", "kueue"],
            &both[..],
        ]
        .concat(),
        0,
    );
    assert!(explained.contains("needs 3 more"), "{explained}");
    let other = run(&[&["explain", "job/train"], &both[..]].concat(), 1);
    assert!(other.contains("job/train has no Workload"), "{other}");
}

#[test]
fn yaml_has_the_values_of_json() {
    let folder = TempDir::new().unwrap();
    let scenario = "{id: one, clusterQueues: [{name: team, resourceGroups: []}], incoming: {name: train, clusterQueue: team, podSets: []}}";
    let scenario = file(&folder, "scenario.yaml", scenario);
    let commands: [&[&str]; 4] = [
        &["queue", "--dump", DUMP],
        &["top", "--dump", DUMP],
        &["explain", "job/train", "--dump", DUMP],
        &["explain", "--scenario", scenario.to_str().unwrap()],
    ];
    for command in commands {
        let output = |format: &str| run(&[command, &["--output", format]].concat(), 0);
        let json: Value = serde_json::from_str(&output("json")).unwrap();
        let yaml: Value = serde_saphyr::from_str(&output("yaml")).unwrap();
        assert_eq!(yaml, json, "{command:?}");
        assert!(yaml.is_array() || yaml.is_object());
    }
}

const JOB_KIND: &str = "\
apiVersion: lockkeeper.dev/v1alpha1
kind: JobKind
metadata: {name: trainingruns.training.example.com}
spec:
  version: v1
  kind: TrainingRun
  podSets: [{forEach: spec.roles, template: template, count: item.replicas}]
";

const TRAINING_RUN: &str = "\
apiVersion: training.example.com/v1
kind: TrainingRun
metadata: {name: run, namespace: research, labels: {lockkeeper.dev/queue-name: batch}}
spec:
  roles:
  - name: workers
    replicas: 3
    template: {spec: {containers: [{name: c, resources: {requests: {nvidia.com/gpu: 1}}}]}}
";

#[test]
fn a_manifest_of_a_declared_kind_is_explained() {
    let folder = TempDir::new().unwrap();
    let example = "examples/explain/training.yaml";
    let explain = |manifest: &Path, dumps: &[&str], exit_code: i32| {
        let dumps = dumps.iter().flat_map(|it| ["--dump", it]);
        let arguments = ["explain", "-f", manifest.to_str().unwrap()].into_iter();
        run(&arguments.chain(dumps).collect::<Vec<_>>(), exit_code)
    };
    // The declaration is in the file, or in the dump.
    let together = format!("{JOB_KIND}---\n{TRAINING_RUN}");
    let together = file(&folder, "together.yaml", &together);
    let alone = file(&folder, "alone.yaml", TRAINING_RUN);
    let declaration = file(&folder, "jobkind.yaml", JOB_KIND);
    let declaration = declaration.to_str().unwrap();
    for answer in [
        explain(&together, &[example], 0),
        explain(&alone, &[example, declaration], 0),
    ] {
        assert!(answer.contains("TrainingRun/run"), "{answer}");
        assert!(answer.contains("3 requested, 2 free"), "{answer}");
    }
    let unknown = explain(&alone, &[example], 2);
    assert!(unknown.contains("no JobKind declares it"), "{unknown}");
    let wrong = together.with_file_name("wrong.yaml");
    let text = format!("{JOB_KIND}---\n{TRAINING_RUN}");
    fs::write(&wrong, text.replace("item.replicas", "item.replicas +")).unwrap();
    let wrong = explain(&wrong, &[example], 2);
    assert!(wrong.contains("spec.podSets[0].count"), "{wrong}");
}

#[test]
fn queue_is_limited_by_namespace_and_cluster_queue() {
    let queue = |flags: &[&str]| run(&[&["queue", "--dump", DUMP], flags].concat(), 0);
    assert!(queue(&[]).contains("job-train-0d9aa"));
    assert!(queue(&["--all-namespaces"]).contains("job-train-0d9aa"));
    assert_eq!(queue(&["--namespace", "team-b"]), "no pending workload\n");
    assert_eq!(queue(&["team-b"]), "no pending workload\n");
    assert!(queue(&["team-a", "--namespace", "team-a"]).contains("job-train-0d9aa"));
    assert!(queue(&["--output", "wide"]).contains("3 more needed"));
    let rows: Value = serde_json::from_str(&queue(&["--output", "json"])).unwrap();
    assert_eq!(rows.pointer("/0/position"), Some(&Value::from(0)));
    run(
        &[
            "queue",
            "--dump",
            DUMP,
            "--all-namespaces",
            "--namespace",
            "team-a",
        ],
        2,
    );
}

#[test]
fn top_prints_paths_and_json() {
    let paths = run(&["top", "--dump", DUMP, "--output", "name"], 0);
    assert_eq!(paths, "/research\n/research/team-a\n/research/team-b\n");
    let rows: Value =
        serde_json::from_str(&run(&["top", "--dump", DUMP, "--output", "json"], 0)).unwrap();
    assert_eq!(rows.pointer("/1/pending"), Some(&Value::from(1)), "{rows}");
}

#[test]
fn dump_is_read_from_standard_input() {
    let mut child = lockkeeper(&["queue", "--dump", "-", "--output", "name"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = fs::read(Path::new(ROOT).join(DUMP)).unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(text_of(&output, 0), "team-a/job-train-0d9aa\n");
}

#[test]
fn dumps_that_end_too_early_are_rejected_with_their_place() {
    let folder = TempDir::new().unwrap();
    for (name, text, place) in [
        (
            "cut.json",
            "{\"items\": [\n{\"kind\": \"Work",
            "cut.json:2:",
        ),
        ("cut.yaml", "items:\n- kind: [Workload\n", "cut.yaml:"),
    ] {
        let path = file(&folder, name, text);
        let message = run(&["queue", "--dump", path.to_str().unwrap()], 2);
        assert!(message.contains(place), "{message}");
    }
    let missing = run(&["top", "--dump", "no-such-file"], 2);
    assert!(missing.contains("cannot read no-such-file"), "{missing}");
}

#[test]
fn objects_that_are_not_considered_are_reported() {
    let folder = TempDir::new().unwrap();
    let text = "apiVersion: lockkeeper.dev/v1alpha1\nkind: ClusterQueue\nmetadata: {name: wrong}\nspec: {resourceGroups: 5}\n";
    let path = file(&folder, "wrong.yaml", text);
    let message = run(&["top", "--dump", path.to_str().unwrap()], 0);
    assert!(
        message.contains("warning: ClusterQueue wrong: "),
        "{message}"
    );
}

#[test]
fn exit_code_of_diff_depends_on_the_effects() {
    let diff =
        |flags: &[&str], code| run(&[&["diff", CHANGE, "--dump", DUMP], flags].concat(), code);
    diff(&[], 0);
    diff(&["--fail-on", "harm"], 0);
    diff(&["--fail-on", "any"], 1);
    diff(&["--fail-on", "never"], 0);
}

#[test]
fn diff_compares_revisions_of_git() {
    let folder = TempDir::new().unwrap();
    let git = |arguments: &[&str]| {
        let done = Command::new("git")
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments:?}: {done:?}");
    };
    let change = fs::read_to_string(Path::new(ROOT).join(CHANGE)).unwrap();
    file(&folder, "queue.yaml", &change);
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    let identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
    git(&[&identity[..], &["commit", "--quiet", "--message", "before"]].concat());
    // team-b has 8 GPUs at the revision, and 4 afterwards: what it uses exceeds its quota.
    file(&folder, "queue.yaml", &change.replace("\"8\"", "\"4\""));
    let dump = Path::new(ROOT).join(DUMP);
    let output = lockkeeper(&[
        "diff",
        "HEAD",
        "queue.yaml",
        "--dump",
        dump.to_str().unwrap(),
    ])
    .current_dir(folder.path())
    .output()
    .unwrap();
    let text = text_of(&output, 1);
    assert!(text.contains("1 running workload may lose quota"), "{text}");
    assert!(
        text.contains("team-b/job-llama-7f3c1 (Job/llama)"),
        "{text}"
    );
}

/// A rule looks at all objects: the finding is about one that the change does not have.
#[test]
fn diff_reports_findings_that_a_change_adds_or_resolves() {
    let folder = TempDir::new().unwrap();
    let manifest = |annotations: &str| {
        format!(
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata:\n  name: team-b\n{annotations}\
             spec:\n  cohortName: research\n  namespaceSelector: {{}}\n  resourceGroups:\n  - coveredResources: [cpu]\n    \
             flavors: [{{name: gone, resources: [{{name: cpu, nominalQuota: 1}}]}}]\n"
        )
    };
    let bad = file(&folder, "bad.yaml", &manifest(""));
    let report = |words: &[&str]| {
        let words = [
            &["diff"],
            words,
            &["--dump", DUMP, "--output", "json", "--fail-on", "never"],
        ];
        let report: Value = serde_json::from_str(&run(&words.concat(), 0)).unwrap();
        report
    };
    let bad = bad.to_str().unwrap();
    let added = report(&[bad]);
    let finding = &added["newFindings"][0];
    assert_eq!(finding["object"]["name"], "team-b", "{added:#}");
    assert!(
        finding["message"].as_str().unwrap().contains("gone"),
        "{added:#}"
    );
    let resolved = report(&[bad, CHANGE]);
    assert_eq!(resolved["resolvedFindings"][0], *finding, "{resolved:#}");
    assert_eq!(resolved["newFindings"].as_array().unwrap().len(), 0);
    // A suppression with a reason, as in a check.
    let rule = finding["rule"].as_str().unwrap();
    let ignored = manifest(&format!(
        "  annotations: {{lockkeeper.dev/ignore: '{rule}: it is created later'}}\n"
    ));
    let ignored = file(&folder, "ignored.yaml", &ignored);
    let none = report(&[ignored.to_str().unwrap()]);
    assert_eq!(none["newFindings"].as_array().unwrap().len(), 0, "{none:#}");
}

#[test]
fn diff_places_local_queues_in_a_namespace() {
    let folder = TempDir::new().unwrap();
    let text = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: main}\nspec: {clusterQueue: gone}\n";
    let path = file(&folder, "local-queue.yaml", text);
    let arguments = ["diff", path.to_str().unwrap(), "--dump", DUMP];
    let finding =
        "1 new finding\n  warning LQ001 of LocalQueue default/main: spec.clusterQueue: Not found";
    let unaffected = run(&arguments, 0);
    assert!(unaffected.starts_with(finding), "{unaffected}");
    let affected = run(&[&arguments[..], &["--namespace", "team-a"]].concat(), 1);
    assert!(
        affected.contains("1 workload is no longer queued"),
        "{affected}"
    );
}

#[test]
fn unknown_context_is_reported() {
    let folder = TempDir::new().unwrap();
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n\
                clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n";
    let path = file(&folder, "kubeconfig", text);
    let arguments = [
        "top",
        "--kubeconfig",
        path.to_str().unwrap(),
        "--context",
        "other",
    ];
    let message = run(&arguments, 2);
    assert!(message.contains("has no context \"other\""), "{message}");
}

#[test]
fn exit_code_of_doctor_depends_on_errors() {
    let webhook = "examples/doctor/webhook.yaml";
    let report = run(&["doctor", "--dump", webhook, "--output", "json"], 1);
    let report: Value = serde_json::from_str(&report).unwrap();
    let findings = report["findings"].as_array().unwrap().iter();
    let ids: Vec<&str> = findings.map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["DR001", "DR002", "DR022"]);
    for field in ["object", "field", "evidence", "risk", "fix", "source"] {
        assert!(report["findings"][0][field].is_string(), "{field}");
    }
    let folder = TempDir::new().unwrap();
    let text = fs::read_to_string(Path::new(ROOT).join(webhook)).unwrap();
    let text = text.replace("failurePolicy: Fail", "failurePolicy: Ignore");
    let path = file(&folder, "webhook.yaml", &text);
    let none = run(&["doctor", "--dump", path.to_str().unwrap()], 0);
    assert!(none.ends_with("0 errors, 0 warnings\n"), "{none}");
    run(&["doctor", "--dump", "no-such-file"], 2);
}

#[test]
fn doctor_reports_what_it_cannot_read() {
    let folder = TempDir::new().unwrap();
    let text = "apiVersion: v1\nkind: Service\nmetadata: {name: 5}\n";
    let path = file(&folder, "service.yaml", text);
    let report = run(&["doctor", "--dump", path.to_str().unwrap()], 0);
    assert!(report.contains("\n  Service/?: invalid type"), "{report}");
}

#[test]
fn doctor_leaves_out_resources_that_need_no_quota() {
    let folder = TempDir::new().unwrap();
    let text = fs::read_to_string(Path::new(ROOT).join(DUMP)).unwrap();
    // More than both ClusterQueues have.
    let text = text.replace("nvidia.com/gpu: \"1\"", "nvidia.com/gpu: \"100\"");
    let path = file(&folder, "dump.yaml", &text);
    let arguments = ["doctor", "--dump", path.to_str().unwrap()];
    let above = run(&arguments, 1);
    assert!(above.contains("error[DR043]"), "{above}");
    let config = file(
        &folder,
        "config.yaml",
        "resources: {excludePrefixes: [nvidia.com/]}\n",
    );
    let excluded = run(
        &[&arguments[..], &["--config", config.to_str().unwrap()]].concat(),
        0,
    );
    assert!(!excluded.contains("DR043"), "{excluded}");
}

#[cfg(unix)]
#[test]
fn plugin_of_kubectl_shows_the_command_as_it_is_typed() {
    let folder = TempDir::new().unwrap();
    let plugin = folder.path().join("kubectl-lockkeeper");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_lockkeeper"), &plugin).unwrap();
    let output = command(&plugin, &["explain"]).output().unwrap();
    let message = text_of(&output, 2);
    assert!(
        message.contains("Usage: kubectl lockkeeper explain"),
        "{message}"
    );
}
