#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod job_kinds;
mod users;

use super::*;
use clap::Parser;
use clap::error::ErrorKind;
use serde_json::Value;
use std::io;
use tempfile::TempDir;

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    command: Option<Command>,
}

const SERVICE: &[&str] = &["webhooks", "--service", "lockkeeper-system/lockkeeper"];

fn parse(words: &[&str]) -> Result<Command, clap::Error> {
    let words = [&["crdgen"], words].concat();
    Line::try_parse_from(words).map(|line| line.command.unwrap_or_default())
}

#[track_caller]
fn printed(words: &[&str]) -> String {
    let mut out = Vec::new();
    run(parse(words).unwrap(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn kinds(yaml: &str) -> Vec<String> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    let kind = |object: &Value| object["kind"].as_str().unwrap().to_owned();
    objects.iter().map(kind).collect()
}

#[test]
fn default_command_emits_definitions() {
    let text = printed(&[]);
    assert_eq!(text, printed(&["definitions"]));
    assert_eq!(kinds(&text), ["CustomResourceDefinition"; 6]);
    assert_eq!(text.matches("\n---\n").count(), 5);
    let label = "app.kubernetes.io/part-of: lockkeeper\n";
    assert_eq!(text.matches(label).count(), 6, "{text}");
}

#[test]
fn webhooks_command_emits_both_configurations() {
    let text = printed(SERVICE);
    let expected = [
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
    ];
    assert_eq!(kinds(&text), expected);
    assert!(text.contains("port: 443\n"), "{text}");
    assert!(!text.contains("caBundle"), "{text}");
    assert!(!text.contains("null"), "{text}");
    let order: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once(':').map(|(key, _)| key))
        .filter(|key| !key.starts_with([' ', '-']))
        .collect();
    assert_eq!(
        order,
        ["apiVersion", "kind", "metadata", "webhooks"].repeat(2)
    );
}

#[test]
fn cert_manager_annotation_is_on_both_configurations() {
    let certificate = ["--cert-manager", "lockkeeper-system/lockkeeper"];
    let text = printed(&[SERVICE, &certificate].concat());
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    assert_eq!(objects.len(), 2);
    for object in objects {
        let annotation = &object["metadata"]["annotations"]["cert-manager.io/inject-ca-from"];
        assert_eq!(annotation, "lockkeeper-system/lockkeeper");
    }
    assert!(!text.contains("caBundle"), "{text}");
    assert!(!printed(SERVICE).contains("annotations"));
    for wrong in ["lockkeeper", "/a", "a/", "a/b/c", "A/b", "a/b..c"] {
        let error = parse(&[SERVICE, &["--cert-manager", wrong]].concat()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ValueValidation, "{wrong}");
    }
    let both = [SERVICE, &certificate, &["--ca-bundle", "ca.crt"]].concat();
    assert_eq!(
        parse(&both).unwrap_err().kind(),
        ErrorKind::ArgumentConflict
    );
}

#[test]
fn output_dir_files_equal_printed_output() {
    let folder = TempDir::new().unwrap();
    let directory = folder.path().join("new/crds");
    let shown = directory.to_str().unwrap();
    assert_eq!(printed(&["definitions", "--output-dir", shown]), "");
    assert_eq!(printed(&[SERVICE, &["--output-dir", shown]].concat()), "");

    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    let definitions = [
        "clusterqueues",
        "cohorts",
        "jobkinds",
        "localqueues",
        "resourceflavors",
        "workloads",
    ];
    let texts: Vec<String> = definitions
        .iter()
        .map(|plural| read(&format!("lockkeeper.dev_{plural}.yaml")))
        .collect();
    assert_eq!(texts.join("---\n"), printed(&[]));
    let webhooks = [
        read("validating-webhook.yaml"),
        read("mutating-webhook.yaml"),
    ];
    assert_eq!(webhooks.join("---\n"), printed(SERVICE));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 8);
}

#[test]
fn invalid_command_lines_are_rejected() {
    let cases: &[(&[&str], ErrorKind)] = &[
        (&["webhook"], ErrorKind::InvalidSubcommand),
        (&["webhooks"], ErrorKind::MissingRequiredArgument),
        (
            &["webhooks", "--service", "lockkeeper"],
            ErrorKind::ValueValidation,
        ),
        (
            &["webhooks", "--service", "a/b/c"],
            ErrorKind::ValueValidation,
        ),
        (
            &["webhooks", "--service", "A/b"],
            ErrorKind::ValueValidation,
        ),
        (&["webhooks", "--service", "a/"], ErrorKind::ValueValidation),
        (
            &["webhooks", "--service", "a/b", "--url", "https://c"],
            ErrorKind::ArgumentConflict,
        ),
        (
            &["webhooks", "--service", "a/b", "--port", "0"],
            ErrorKind::ValueValidation,
        ),
        (
            &["webhooks", "--url", "https://c", "--port", "1"],
            ErrorKind::ArgumentConflict,
        ),
        (
            &["webhooks", "--url", "http://c"],
            ErrorKind::ValueValidation,
        ),
        (
            &["webhooks", "--url", "https://"],
            ErrorKind::ValueValidation,
        ),
        (
            &["webhooks", "--url", "https:///a"],
            ErrorKind::ValueValidation,
        ),
        (
            &["webhooks", "--url", "https://a@c"],
            ErrorKind::ValueValidation,
        ),
        (
            &["webhooks", "--url", "https://c/?a=b"],
            ErrorKind::ValueValidation,
        ),
        (
            &["webhooks", "--url", "https://c#d"],
            ErrorKind::ValueValidation,
        ),
    ];
    for (words, kind) in cases {
        let error = parse(words).unwrap_err();
        assert_eq!(error.kind(), *kind, "{words:?}: {error}");
    }
}

/// Reads a CA bundle with this content.
#[track_caller]
fn bundle(content: &str) -> Result<String, String> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ca.crt");
    fs::write(&path, content).unwrap();
    let words = [SERVICE, &["--ca-bundle", path.to_str().unwrap()]].concat();
    let mut out = Vec::new();
    match run(parse(&words).unwrap(), &mut out) {
        Ok(()) => Ok(String::from_utf8(out).unwrap()),
        Err(error) => Err(error.to_string().replace(path.to_str().unwrap(), "PATH")),
    }
}

#[test]
fn ca_bundle_with_private_key_is_rejected() {
    let text = bundle("-----BEGIN CERTIFICATE-----\n").unwrap();
    assert_eq!(
        text.matches("caBundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==\n")
            .count(),
        16
    );
    assert_eq!(
        bundle("lockkeeper\n").unwrap_err(),
        "the CA bundle PATH holds no certificate; give a PEM file with \
         \"-----BEGIN CERTIFICATE-----\" in it"
    );
    assert_eq!(
        bundle("-----BEGIN CERTIFICATE-----\n-----BEGIN EC PRIVATE KEY-----\n").unwrap_err(),
        "the CA bundle PATH holds a private key; give a PEM file with certificates alone"
    );
}

/// The plurals of other projects' kinds that are sent, with these flags and a configuration file with this content.
#[track_caller]
fn foreign(flags: &[&str], config: &str) -> Result<Vec<String>, String> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("config.yaml");
    fs::write(&path, config).unwrap();
    let path = path.to_str().unwrap();
    let words = [SERVICE, &["--config", path], flags].concat();
    let mut out = Vec::new();
    let done = run(parse(&words).unwrap(), &mut out);
    done.map_err(|error| error.to_string().replace(path, "PATH"))?;
    let objects: Vec<Value> =
        serde_saphyr::from_multiple(std::str::from_utf8(&out).unwrap()).unwrap();
    let webhooks = objects
        .iter()
        .flat_map(|it| it["webhooks"].as_array().unwrap());
    let rules = webhooks.map(|it| &it["rules"][0]);
    let foreign = rules.filter(|rule| {
        let group = rule["apiGroups"][0].as_str().unwrap();
        group == "kueue.x-k8s.io" || group == "scheduling.sigs.k8s.io"
    });
    let plural = |it: &Value| it["resources"][0].as_str().unwrap().to_owned();
    Ok(foreign.map(plural).collect())
}

#[test]
fn foreign_kinds_come_from_flag_or_configuration() {
    let kueue = ["clusterqueues", "cohorts", "resourceflavors", "localqueues"];
    let both = [&kueue[..], &["elasticquotas"]].concat();
    let config = "webhook: {foreignKinds: [kueue]}\n";
    assert_eq!(foreign(&[], "").unwrap(), [""; 0]);
    assert_eq!(foreign(&[], config).unwrap(), kueue);
    assert_eq!(foreign(&["--foreign", "kueue"], "").unwrap(), kueue);
    assert_eq!(
        foreign(&["--foreign", "koordinator"], config).unwrap(),
        both
    );
    assert_eq!(
        foreign(&["--foreign", "koordinator,kueue"], "").unwrap(),
        both
    );
    let on = format!("{config}rules: {{actions: {{KL001: warn}}}}\n");
    assert_eq!(
        foreign(&[], &on).unwrap(),
        [&kueue[..], &["workloads"]].concat()
    );
}

#[test]
fn invalid_configuration_error_names_file() {
    for (config, reason) in [
        (
            "webhook: {foreignKinds: [volcano]}\n",
            "unknown project \"volcano\"",
        ),
        (
            "rules: {actions: {XX001: warn}}\n",
            "rules.actions: there is no rule \"XX001\"",
        ),
        ("webhook: [\n", "1:10: "),
    ] {
        let error = foreign(&[], config).unwrap_err();
        assert!(
            error.starts_with("the configuration PATH is invalid: "),
            "{error}"
        );
        assert!(error.contains(reason) && !error.contains('\n'), "{error}");
    }
    let unknown = parse(&[SERVICE, &["--foreign", "volcano"]].concat()).unwrap_err();
    let message = unknown.to_string();
    assert!(
        message.contains("give one of kueue, koordinator"),
        "{message}"
    );
}

#[test]
fn io_error_names_path() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let file = file.to_str().unwrap();
    let error = |words: &[&str]| run(parse(words).unwrap(), &mut Vec::new()).unwrap_err();

    let failure = error(&["definitions", "--output-dir", file]);
    assert!(matches!(&failure, Error::Directory { path, .. } if path == Path::new(file)));
    assert!(failure.to_string().contains(file), "{failure}");

    let missing = format!("{file}.pem");
    let failure = error(&[SERVICE, &["--ca-bundle", &missing]].concat());
    assert!(matches!(&failure, Error::ReadBundle { .. }), "{failure}");
    assert!(failure.to_string().contains(&missing), "{failure}");

    let missing = format!("{file}.yaml");
    let failure = error(&[SERVICE, &["--config", &missing]].concat());
    assert!(matches!(&failure, Error::ReadConfig { .. }), "{failure}");
    assert!(failure.to_string().contains(&missing), "{failure}");

    let blocked = folder.path().join("lockkeeper.dev_cohorts.yaml");
    fs::create_dir(&blocked).unwrap();
    let failure = error(&[
        "definitions",
        "--output-dir",
        folder.path().to_str().unwrap(),
    ]);
    assert!(
        matches!(&failure, Error::File { path, .. } if *path == blocked),
        "{failure}"
    );
}

/// Fails with this kind of error.
struct Broken(io::ErrorKind);

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn broken_pipe_is_ignored_and_full_disk_fails() {
    run(Command::default(), &mut Broken(io::ErrorKind::BrokenPipe)).unwrap();
    let error = run(Command::default(), &mut Broken(io::ErrorKind::StorageFull)).unwrap_err();
    assert!(matches!(error, Error::Output(_)), "{error}");
}

#[test]
fn chart_command_writes_files() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("new");
    let text = printed(&["chart", "--output-dir", path.to_str().unwrap()]);
    assert_eq!(text, "");
    for file in chart::files().unwrap() {
        let written = fs::read_to_string(path.join(&file.path)).unwrap();
        assert_eq!(written, file.text, "{}", file.path);
    }
    let error = parse(&["chart"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MissingRequiredArgument);
}

/// The repository that this is in.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn committed_files_are_current() {
    let mut out = Vec::new();
    let checked = check(repository(), &mut out);
    let difference = String::from_utf8(out).unwrap();
    assert!(
        checked.is_ok(),
        "cargo run -p lockkeeper-crdgen --bin crdgen -- all --output-dir . regenerates them\n{difference}"
    );
}

#[test]
fn check_prints_and_counts_differences() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let to = path.to_str().unwrap();
    assert_eq!(printed(&["all", "--output-dir", to]), "");
    assert_eq!(printed(&["all", "--check", to]), "");
    fs::write(path.join("schemas/catalog.json"), "{}\n").unwrap();
    fs::remove_file(path.join("schemas/openapi.json")).unwrap();
    fs::write(path.join("schemas/stale.json"), "old\n").unwrap();
    let mut out = Vec::new();
    let error = run(parse(&["all", "--check", to]).unwrap(), &mut out).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("out of date: 3 of the files in "),
        "{error}"
    );
    let shown = String::from_utf8(out).unwrap();
    for line in ["-{}\n", "+  \"version\": 1\n", "-old\n", "--- /dev/null\n"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

#[test]
fn policies_command_emits_policies_and_bindings() {
    let text = printed(&["policies", "--foreign", "koordinator"]);
    let kinds = kinds(&text);
    let count = |kind: &str| kinds.iter().filter(|it| *it == kind).count();
    assert_eq!(
        count("ValidatingAdmissionPolicy"),
        count("ValidatingAdmissionPolicyBinding")
    );
    assert_eq!(count("MutatingAdmissionPolicy"), 6);
    assert_eq!(count("MutatingAdmissionPolicyBinding"), 6);
}

#[test]
fn objects_for_older_kubernetes_omit_what_it_lacks() {
    let of = |command, version| printed(&[command, "--kubernetes-version", version]);
    // Its API server rejects expressions about the quantities of quotas as too expensive.
    let oldest = of("definitions", "1.33");
    assert!(!oldest.contains("[CQ007]") && !oldest.contains("[CQ008]"));
    assert!(oldest.contains("[CQ013]") && oldest.contains("[CQ001]"));
    assert_eq!(of("definitions", "v1.34.2"), printed(&["definitions"]));

    let with_defaults = printed(&["policies"]);
    assert_eq!(of("policies", "1.36"), with_defaults);
    let validating: Vec<String> = kinds(&with_defaults)
        .into_iter()
        .filter(|it| it.starts_with("Validating"))
        .collect();
    assert_eq!(kinds(&of("policies", "1.35")), validating);
    let default_queue = [
        "policies",
        "--kubernetes-version=1.35",
        "--default-queue=main",
        "--default-queue-namespaces=team=a",
    ];
    let error = run(parse(&default_queue).unwrap(), &mut Vec::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--default-queue needs Kubernetes 1.36, not 1.35; use --queue-required, which rejects jobs without a queue"
    );
}

#[test]
fn softened_rules_move_from_schema_to_policy() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("lockkeeper.yaml");
    fs::write(&file, "rules: {actions: {CQ007: warn}}\n").unwrap();
    let with = ["--config", file.to_str().unwrap()];
    let of = |command| printed(&[&[command][..], &with].concat());
    assert!(printed(&["definitions"]).contains("[CQ007]"));
    assert!(!of("definitions").contains("[CQ007]"));
    assert!(of("definitions").contains("[CQ008]"));
    assert!(!printed(&["policies"]).contains("[CQ007]"));
    let policies: Vec<Value> = serde_saphyr::from_multiple(&of("policies")).unwrap();
    let holds = |it: &&Value| it.to_string().contains("[CQ007]");
    let names: Vec<&str> = policies
        .iter()
        .filter(holds)
        .map(|it| it["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["clusterqueues.warn.lockkeeper.dev"]);
}
