//! `check`, the webhook and the API server report the same for the same objects.
//!
//! Each object is sent to a real API server as a dry run, without webhooks. If the API server rejects it for its
//! schema or CEL rules, `check` must report the same fields with the same types. If the API server accepts it, the
//! object with its defaults is sent to the webhook, and `check` must report for the original object what the webhook
//! reports: rule, field and type. All rules are on in both, and both use the same other objects.
//!
//! Intended differences are listed in `agreement/deviations.md`.

mod api;
mod objects;

pub use self::objects::folder;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;

use lockkeeper_api::config::Action;
use lockkeeper_policies::decode_error;
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::{Layer, RuleInfo};
use serde_json::{Value, json};

use self::api::{Api, DryRunOutcome};
use self::objects::TestObject;
use super::Scenario;
use crate::client::Client;
use crate::fixture::Fixture;
use crate::lockkeeper::{self, Lockkeeper, Protocol};

pub fn scenarios() -> Vec<Scenario> {
    let name = "check, the webhook and the API server agree";
    let run = |_: &mut Fixture, _| match (folder("crds"), folder("webhook")) {
        (Some(definitions), Some(_)) => compare_all(&definitions),
        _ => println!("skipped: no published cases; LOCKKEEPER_CONFORMANCE_DIR names their folder"),
    };
    vec![Scenario::new(name, run).only(Protocol::Http1).since(37)]
}

/// The side that reports a cause that the other side does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    ApiServer,
    Check,
    Webhook,
}

/// A cause that one side reports for an object. The API server names no rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ReportedCause {
    rule: String,
    field: String,
    kind: String,
}

impl fmt::Display for ReportedCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.rule.is_empty() {
            write!(f, "{} ", self.rule)?;
        }
        write!(f, "{} {}", self.field, self.kind)
    }
}

/// The causes, by object.
type CausesByObject = BTreeMap<String, Vec<ReportedCause>>;

#[derive(Default)]
struct Comparison {
    objects: usize,
    findings: usize,
    /// A line for each difference, with the objects that have it.
    differences: BTreeMap<String, BTreeSet<String>>,
}

impl Comparison {
    /// Compares the causes of two sides for one object. A repeated cause counts twice.
    fn compare(
        &mut self,
        id: &str,
        one: (Side, &[ReportedCause]),
        other: (Side, &[ReportedCause]),
    ) {
        self.objects += 1;
        self.findings += one.1.len();
        let mut left: Vec<&ReportedCause> = other.1.iter().collect();
        for cause in one.1 {
            match left.iter().position(|it| *it == cause) {
                Some(at) => drop(left.swap_remove(at)),
                None => self.add_difference(id, one.0, cause),
            }
        }
        for cause in left {
            self.add_difference(id, other.0, cause);
        }
    }

    fn add_difference(&mut self, id: &str, only: Side, cause: &ReportedCause) {
        let line = format!("{only:?} alone: {cause}");
        let ids = self.differences.entry(line).or_default();
        ids.insert(id.to_owned());
    }

    /// The differences that are not listed, and the listed ones that no longer occur.
    fn report(mut self, what: &str) -> String {
        println!(
            "{what}: {} objects, {} findings compared, {} differences",
            self.objects,
            self.findings,
            self.differences.len()
        );
        assert!(
            self.objects > 0 && self.findings > 0,
            "{what}: nothing was compared"
        );
        let listed = include_str!("agreement/deviations.md").lines();
        let listed = listed.filter_map(|line| line.strip_prefix("- `")?.strip_suffix('`'));
        let listed = listed.filter_map(|line| line.strip_prefix(what)?.strip_prefix(": "));
        let gone: Vec<&str> = listed
            .filter(|line| self.differences.remove(*line).is_none())
            .collect();
        let new = self.differences.iter();
        let new: Vec<String> = new
            .map(|(line, ids)| format!("{line}\n    {ids:?}"))
            .collect();
        let mut out = String::new();
        if !new.is_empty() {
            writeln!(out, "{what}: they differ:\n{}", new.join("\n")).unwrap();
        }
        if !gone.is_empty() {
            let gone = gone.join("\n");
            writeln!(
                out,
                "{what}: deviations.md lists differences that no longer exist:\n{gone}"
            )
            .unwrap();
        }
        out
    }
}

fn compare_all(definitions: &Path) {
    let mut stage = Fixture::default();
    let kubectl = stage.without_webhook_and_rules();
    super::kueue_objects::install(&kubectl, definitions);
    let given = objects::all();
    let mut api = Api::new(&kubectl, stage.cluster().client(), &given);

    let folder = stage.new_folder();
    let [rejected, taken, world] = ["rejected", "accepted", "world"].map(|name| folder.join(name));
    for folder in [&rejected, &taken, &world] {
        fs::create_dir_all(folder).unwrap();
    }
    let mut fates = CausesByObject::new();
    let mut filled: Vec<(&TestObject, Value)> = Vec::new();
    for item in &given {
        let file = item.file();
        match api.dry_run(&item.object) {
            // `check` has no schema for pods and jobs.
            DryRunOutcome::Rejected(_)
                if ["Pod", "Job"]
                    .iter()
                    .any(|kind| item.object["kind"] == *kind) => {}
            DryRunOutcome::Rejected(causes) => {
                write(&rejected, &file, &item.object);
                fates.insert(file, causes);
            }
            DryRunOutcome::Accepted(mut object) => {
                keep_priority(&item.object, &mut object);
                write(&taken, &file, &item.object);
                filled.push((item, object));
            }
            // It belongs to another project, and its CRDs are not in this repository.
            DryRunOutcome::UnknownKind if is_sent_to_webhook(&item.object) => {
                write(&taken, &file, &item.object);
                filled.push((item, item.object.clone()));
            }
            // Errors of the request, not of the object, are not compared.
            DryRunOutcome::UnknownKind | DryRunOutcome::NotValidated => {}
        }
    }
    assert!(!filled.is_empty());
    let config = folder.join("config.yaml");
    fs::write(&config, config_with_all_rules().to_string()).unwrap();

    let mut wrong = schemas(&check(&rejected, Some(&config)), &fates);
    let checked = check(&taken, Some(&config));
    for (it, object) in &filled {
        let causes = checked.get(&it.file()).into_iter().flatten();
        // The server does not start if it cannot decode the other objects.
        if causes.into_iter().all(|it| it.rule != decode_error::ID) {
            write(&world, &it.file(), object);
        }
    }
    wrong += &rules(&folder, &config, &world, &filled, &checked);
    stage.stop_all();
    assert!(wrong.is_empty(), "{wrong}");
}

/// The original priority of a pod: the API server sets it from its own classes.
fn keep_priority(written: &Value, filled: &mut Value) {
    if filled["kind"] == "Pod" {
        for key in ["priority", "preemptionPolicy"] {
            filled["spec"][key] = written["spec"][key].clone();
        }
    }
}

/// The schema errors of `check` for the objects that the API server rejects.
#[track_caller]
fn schemas(checked: &CausesByObject, rejected: &CausesByObject) -> String {
    let mut comparison = Comparison::default();
    let none = Vec::new();
    for (file, causes) in rejected {
        let by_check = checked.get(file).unwrap_or(&none).iter();
        let by_check: Vec<ReportedCause> = by_check
            .filter(|it| is_of_api_server(&it.rule))
            .map(|it| ReportedCause {
                rule: String::new(),
                ..it.clone()
            })
            .collect();
        comparison.compare(file, (Side::ApiServer, causes), (Side::Check, &by_check));
    }
    comparison.report("schemas")
}

/// Whether the API server itself reports the same as a rule: by a schema, or for a PriorityClass.
fn is_of_api_server(rule: &str) -> bool {
    let of_class = |it: RuleInfo| it.kind == "PriorityClass" && it.action == Action::Off;
    rule != UNKNOWN_FIELD && (rule.starts_with("SC") || registry::find(rule).is_some_and(of_class))
}

/// An unknown field is dropped with a warning, unless kubectl requests strict validation.
const UNKNOWN_FIELD: &str = "SC005";

/// The findings of rules for the objects that the API server accepts.
#[track_caller]
fn rules(
    folder: &Path,
    config: &Path,
    world: &Path,
    filled: &[(&TestObject, Value)],
    checked: &CausesByObject,
) -> String {
    let tls = folder.join("tls");
    let [config, world, tls] = [config, world, &tls].map(|path| path.to_str().unwrap());
    let flags = ["--config", config, "--world", world, "--tls-dir", tls];
    let server =
        Lockkeeper::start_without_cluster(folder, &flags).unwrap_or_else(|e| panic!("{e}"));
    let mut client = Client::new(server.port(), server.ca().to_owned(), "");
    let mut comparison = Comparison::default();
    let none = Vec::new();
    let by_check_alone = check_only_rules();
    for (it, object) in filled
        .iter()
        .filter(|(it, _)| is_sent_to_webhook(&it.object))
    {
        let by_check = checked.get(&it.file()).unwrap_or(&none).iter();
        let by_check =
            by_check.filter(|it| it.rule != UNKNOWN_FIELD && !by_check_alone.contains(&it.rule));
        let by_check: Vec<ReportedCause> = by_check.cloned().collect();
        let found = webhook_causes(&mut client, object);
        comparison.compare(
            &it.file(),
            (Side::Webhook, &found),
            (Side::Check, &by_check),
        );
    }
    server.stop().unwrap();
    comparison.report("rules")
}

/// The rule that compares with a definition: the webhook reads it from a cluster, which this server does not have. The trial
/// "a declaration is compared with its definition" has one.
const NEEDS_CLUSTER: &str = "JK002";

/// The rules that only `check` evaluates here.
fn check_only_rules() -> BTreeSet<String> {
    let all = registry::all().into_iter();
    let alone =
        all.filter(|rule| matches!(rule.layers, [Layer::Check]) || rule.id == NEEDS_CLUSTER);
    alone.map(|it| it.id.to_owned()).collect()
}

/// Whether the API server would send objects of this kind and version.
fn is_sent_to_webhook(object: &Value) -> bool {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let all = registry::known_registrations();
    all.iter()
        .any(|it| it.group == group && it.version == version && object["kind"] == it.kind)
}

fn config_with_all_rules() -> Value {
    let ids = registry::all().into_iter();
    let actions: BTreeMap<&str, &str> = ids.map(|it| (it.id, "enforce")).collect();
    json!({"rules": {"actions": actions}})
}

fn write(folder: &Path, file: &str, object: &Value) {
    fs::write(folder.join(file), object.to_string()).unwrap();
}

/// The result of `check` for the objects in a folder; other objects of the cluster do not exist for it.
#[track_caller]
fn check(folder: &Path, config: Option<&Path>) -> CausesByObject {
    let path = folder.to_str().unwrap();
    let mut arguments = vec!["check", path, "--closed", "--output", "json"];
    if let Some(config) = config {
        arguments.extend(["--config", config.to_str().unwrap()]);
    }
    let output = lockkeeper::run(&arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let output: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {stderr}"));
    let mut out = CausesByObject::new();
    for finding in output["findings"].as_array().unwrap() {
        let file = finding["file"].as_str().unwrap();
        let file = Path::new(file).file_name().unwrap().to_str().unwrap();
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        out.entry(file.to_owned()).or_default().push(ReportedCause {
            rule: text("rule"),
            field: text("field"),
            kind: text("type"),
        });
    }
    out
}

/// The result of the webhook for a created object.
#[track_caller]
fn webhook_causes(client: &mut Client, object: &Value) -> Vec<ReportedCause> {
    let version = object["apiVersion"].as_str().unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1558e8ba-a313-4ed0-9697-0899f0b1ffb9",
            "kind": {"group": group, "version": version, "kind": object["kind"]},
            "resource": {"group": group, "version": version, "resource": "any"},
            "name": text("name"),
            "namespace": text("namespace"),
            "operation": "CREATE",
            "userInfo": {"username": "jane@example.com"},
            "object": object,
        },
    });
    let answer = client.create("/validate", &review).unwrap();
    assert_eq!(answer.status, 200, "{answer:#?}");
    let response = &answer.body["response"];
    let causes = response["status"]["details"]["causes"].as_array();
    assert_eq!(response["allowed"], causes.is_none(), "{answer:#?}");
    let causes = causes.into_iter().flatten();
    causes
        .map(|cause| {
            let message = cause["message"].as_str().unwrap();
            let (_, rule) = message.rsplit_once(" [").unwrap();
            ReportedCause {
                rule: rule.trim_end_matches(']').to_owned(),
                ..api::reported_cause(cause)
            }
        })
        .collect()
}
