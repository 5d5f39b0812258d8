//! `--stored`: checks the objects of a cluster as if they were created now.

use super::cluster_list::{self, ListError, ListStatus};
use super::existing_objects::with_client;
use super::plan::Plan;
use super::printer::Printer;
use crate::Failure;
use crate::world_files::INDEXED_KINDS;
use anyhow::{Context, anyhow};
use kube::Client;
use lockkeeper_check::report::{self, CheckedFile, FileObjects, PolicyReports, Tally};
use lockkeeper_check::{
    Checker, Converter, Document, Identity, KindRegistry, ListTarget, LoopFinding, LoopFindings,
    LoopSearchInput, PriorityClassValues, YamlError, append_yaml, convert_value,
};
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::preemption_loops;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

/// The data to collect from all objects before any is checked.
#[derive(Default)]
struct ClusterContext {
    index: Index,
    loop_input: LoopSearchInput,
    classes: PriorityClassValues,
    /// The ClusterQueues, in the order of the lists.
    queues: Vec<String>,
    /// The kinds that may not be listed.
    unlisted: Vec<UnlistedKind>,
}

/// A kind that the user may not list.
struct UnlistedKind {
    group: String,
    kind: String,
    /// The error, for the report.
    file: CheckedFile,
}

/// Checks single objects.
struct Auditor {
    checker: Checker,
    converter: Converter,
    /// By ClusterQueue.
    loop_findings: BTreeMap<String, LoopFinding>,
}

/// Checks all objects, prints the report, and returns the exit code.
pub(super) fn run(plan: Plan<'_>, out: &mut (impl Write + Send)) -> Result<u8, Failure> {
    let Plan {
        arguments,
        config,
        settings,
        selection,
    } = plan;
    let report_path = arguments.existing.policy_report.as_deref();
    let format = report::format(arguments.output(), arguments.format_settings());
    let mut reports = PolicyReports::new();
    let mut printer = Printer::new(&*format, out, 0);
    let is_quiet = report_path == Some(Path::new("-"));
    if is_quiet && arguments.conversion.is_stdout() {
        return Err(Failure::Usage(anyhow!(
            "--policy-report and --converted cannot both be standard output; write one to a file"
        )));
    }
    if is_quiet || arguments.conversion.is_stdout() {
        printer.mute();
    }
    printer.write(&format.head());
    let mut yaml = Ok(String::new());
    with_client(&arguments.existing, async |client| {
        let registry = KindRegistry::new(&selection)?;
        let kinds = registry.list_targets();
        let mut converter = arguments.conversion.converter();
        let mut cluster = collect_cluster(&client, &kinds, &converter)
            .await
            .map_err(cluster_list::usage_failure)?;
        cluster.mark_complete();
        for UnlistedKind { file, .. } in &cluster.unlisted {
            printer.write_file(&format.file(file), Tally::from_checked_file(file));
        }
        converter.set_conflicts(&cluster.classes);
        let loop_findings = if selection.includes(preemption_loops::RULE) {
            findings_by_queue(
                cluster.loop_input.search(&config, arguments.kueue_version),
                &cluster.queues,
            )
        } else {
            BTreeMap::new()
        };
        let auditor = Auditor {
            checker: Checker::new(settings, cluster.index, selection, LoopFindings::new())?
                .with_release(arguments.kubernetes_version)
                .with_served_versions()
                .with_cel_cross_check(arguments.verify_cel)?,
            converter,
            loop_findings,
        };
        check_all(&client, &kinds, &auditor, |file, part| {
            reports.add(&file);
            printer.write_file(&format.file(&file), Tally::from_checked_file(&file));
            append_yaml(&mut yaml, part);
        })
        .await
        .map_err(cluster_list::usage_failure)?;
        printer.write_exceptions(auditor.checker.settings(), arguments.config.as_deref());
        Ok(())
    })?;
    let code = printer.finish()?.exit_code(arguments.fail_on());
    match report_path {
        None => {}
        Some(_) if is_quiet => {
            out.write_all(reports.yaml()?.as_bytes())?;
            out.flush()?;
        }
        Some(path) => write_file(path, &reports.yaml()?)?,
    }
    arguments.conversion.write(&yaml?, out)?;
    Ok(code)
}

fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text)
        .with_context(|| format!("cannot write {}", path.display()))
        .map_err(Failure::Usage)
}

/// Lists all objects, and collects what rules look up.
async fn collect_cluster(
    client: &Client,
    kinds: &[ListTarget<'_>],
    converter: &Converter,
) -> Result<ClusterContext, ListError> {
    let mut cluster = ClusterContext::default();
    let unlisted = visit_objects(client, kinds, |object| {
        let queue = cluster_queue_name(&object);
        let document = convert_value(converter, object);
        cluster.classes.add_document(&document);
        let Some(object) = document.object() else {
            return;
        };
        // An object that does not fit its type has no facts; its check reports why.
        let _ = facts::ingest(&mut cluster.index, object);
        // The position is the index of the queue: `findings_by_queue` maps it back to the name.
        let position = (0, cluster.queues.len());
        cluster.loop_input.add_object(position, object);
        cluster.queues.extend(queue);
    })
    .await?;
    cluster.unlisted = unlisted;
    Ok(cluster)
}

impl ClusterContext {
    /// Marks the listed kinds: objects that the index does not have do not exist.
    fn mark_complete(&mut self) {
        for (indexed, version, kind, _) in INDEXED_KINDS {
            let group = version.split_once('/').map_or("", |it| it.0);
            let mut unlisted = self.unlisted.iter();
            if !unlisted.any(|it| it.group == group && it.kind == kind) {
                self.index.mark_complete(indexed);
            }
        }
    }
}

/// Removes the fields that an API server sets. They are not part of a manifest, so their loss in a conversion is no
/// finding.
fn remove_server_fields(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    fields.remove("status");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in SERVER_METADATA {
            metadata.remove(name);
        }
        let annotations = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut);
        if let Some(annotations) = annotations {
            annotations.remove(LAST_APPLIED);
        }
    }
}

/// The fields of `metadata` that an API server sets.
const SERVER_METADATA: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The annotation in which `kubectl apply` keeps the manifest.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Group and name of a ClusterQueue; `None` for other kinds.
fn cluster_queue_name(object: &Value) -> Option<String> {
    let identity = Identity::from_object(object);
    let group = identity.api_version.split('/').next().unwrap_or_default();
    (identity.kind == "ClusterQueue").then(|| format!("{group}/{}", identity.name))
}

fn findings_by_queue(found: LoopFindings, queues: &[String]) -> BTreeMap<String, LoopFinding> {
    let found = found.into_iter().filter_map(|((_, number), finding)| {
        let name = queues.get(number)?;
        Some((name.clone(), finding))
    });
    found.collect()
}

/// Checks every object of these kinds, and calls `consume` with its findings and its converted form. At most one page of
/// objects is in memory.
async fn check_all(
    client: &Client,
    kinds: &[ListTarget<'_>],
    auditor: &Auditor,
    mut consume: impl FnMut(CheckedFile, Result<String, YamlError>),
) -> Result<(), ListError> {
    // The unlisted kinds are those of the first list.
    visit_objects(client, kinds, |object| {
        let (file, yaml) = auditor.check_object(object);
        consume(file, yaml);
    })
    .await
    .map(drop)
}

/// Lists all objects, each kind in the first version that the cluster serves. Returns the kinds that may not be listed.
async fn visit_objects(
    client: &Client,
    kinds: &[ListTarget<'_>],
    mut consume: impl FnMut(Value),
) -> Result<Vec<UnlistedKind>, ListError> {
    let mut unlisted = Vec::new();
    let mut listed: Option<(&str, &str)> = None;
    for target in kinds {
        let kind = (target.group(), target.kind);
        // Every version of a kind has the same objects.
        if listed == Some(kind) {
            continue;
        }
        match cluster_list::for_each_object(client, target, &mut consume).await {
            Ok(ListStatus::Complete) => listed = Some(kind),
            Ok(_) => {}
            Err(error) => {
                listed = Some(kind);
                unlisted.push(UnlistedKind {
                    group: kind.0.to_owned(),
                    kind: kind.1.to_owned(),
                    file: cluster_list::unreadable_kind(target, error)?,
                });
            }
        }
    }
    Ok(unlisted)
}

impl Auditor {
    fn check_object(&self, mut object: Value) -> (CheckedFile, Result<String, YamlError>) {
        if self.converter.is_on() {
            remove_server_fields(&mut object);
        }
        let name = Identity::from_object(&object).full_name().into_owned();
        let queue = cluster_queue_name(&object);
        let loop_finding = queue.and_then(|it| self.loop_findings.get(&it));
        let mut document: Document = convert_value(&self.converter, object);
        self.converter.drop_if_conflicting(&mut document);
        let yaml = self.converter.document_yaml(&document);
        let mut objects = FileObjects::default();
        match self.checker.check_document(document, loop_finding) {
            None => {}
            Some(checked) => {
                objects.exception_usage.count(&checked.exempted);
                objects.objects.push(checked.object);
            }
        }
        let file = CheckedFile {
            name,
            outcome: Ok(objects),
        };
        (file, yaml)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cluster_list::tests::{fake_api_server, serve_responses, status};
    use super::{
        Auditor, CheckedFile, Checker, Client, Converter, KindRegistry, ListTarget, LoopFindings,
        PolicyReports, check_all, collect_cluster, findings_by_queue, remove_server_fields,
    };
    use lockkeeper_api::config::Config;
    use lockkeeper_check::{RuleSelection, offline_settings};
    use serde_json::json;
    use std::sync::Arc;

    /// An auditor with everything collected from the cluster.
    async fn new_auditor(client: &Client, kinds: &[ListTarget<'_>]) -> Auditor {
        let selection = RuleSelection::default();
        let settings = offline_settings(Config::default(), Arc::default(), &selection, 0).unwrap();
        let converter = Converter::default();
        let cluster = collect_cluster(client, kinds, &converter).await.unwrap();
        let loop_findings = findings_by_queue(
            cluster.loop_input.search(&Config::default(), None),
            &cluster.queues,
        );
        let Ok(checker) = Checker::new(settings, cluster.index, selection, LoopFindings::new())
        else {
            panic!("a schema is invalid");
        };
        Auditor {
            checker,
            converter,
            loop_findings,
        }
    }

    #[tokio::test]
    async fn cluster_audit_reports_stored_objects() {
        let queue = |name: &str, weight: i64| {
            json!({"metadata": {"name": name, "uid": "1", "resourceVersion": "7"},
                   "spec": {"fairSharing": {"weight": weight}}, "status": {}})
        };
        let local = |name: &str| {
            json!({"metadata": {"name": name, "namespace": "research",
                                "annotations": {"lockkeeper.dev/ignore": "SC002: it is repaired tomorrow"}},
                   "spec": {"clusterQueue": "No Name"}})
        };
        let (client, requests) = fake_api_server(&[
            (
                "/apis/kueue.x-k8s.io/v1beta2/clusterqueues",
                vec![vec![queue("a", 1)], vec![queue("b", -1)]],
            ),
            // The older version has the same objects, and is not listed.
            (
                "/apis/kueue.x-k8s.io/v1beta1/clusterqueues",
                vec![vec![queue("b", -1)]],
            ),
            (
                "/apis/kueue.x-k8s.io/v1beta1/localqueues",
                vec![vec![local("main")]],
            ),
        ]);
        let (Ok(registry), mut reports) = (
            KindRegistry::new(&RuleSelection::default()),
            PolicyReports::new(),
        ) else {
            panic!("a schema is invalid");
        };
        let kinds = registry.list_targets();
        let auditor = new_auditor(&client, &kinds).await;
        let mut names = Vec::new();
        let consume = |file: CheckedFile, _| {
            reports.add(&file);
            names.push(file.name);
        };
        check_all(&client, &kinds, &auditor, consume).await.unwrap();
        assert_eq!(names, ["a", "b", "research/main"]);
        insta::assert_snapshot!(reports.yaml().unwrap());
        let requests = requests.lock().unwrap();
        assert!(
            !requests
                .iter()
                .any(|it| it.contains("v1beta1/clusterqueues")),
            "{requests:?}"
        );
    }

    #[tokio::test]
    async fn cluster_audit_reports_preemption_loops() {
        let queue = |name: &str, more: (&str, serde_json::Value)| {
            let quota = json!({"name": "cpu", "nominalQuota": 4});
            let mut preemption = json!({"reclaimWithinCohort": "Any"});
            preemption[more.0] = more.1;
            json!({"metadata": {"name": name}, "spec": {"cohortName": "all", "namespaceSelector": {}, "preemption": preemption,
                   "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "spot", "resources": [quota]}]}]}})
        };
        let queues = vec![
            queue(
                "eager",
                ("borrowWithinCohort", json!({"policy": "LowerPriority"})),
            ),
            queue("other", ("withinClusterQueue", json!("LowerPriority"))),
        ];
        let (client, _) =
            fake_api_server(&[("/apis/kueue.x-k8s.io/v1beta2/clusterqueues", vec![queues])]);
        let Ok(registry) = KindRegistry::new(&RuleSelection::default()) else {
            panic!("a schema is invalid");
        };
        let kinds = registry.list_targets();
        let auditor = new_auditor(&client, &kinds).await;
        let mut found = Vec::new();
        let consume = |file: CheckedFile, _| {
            let objects = file.outcome.unwrap_or_default().objects;
            let all = objects.into_iter().flat_map(|it| it.findings);
            let loops = all.filter(|it| it.finding.rule == "CQ024");
            found.extend(loops.map(|finding| (file.name.clone(), finding.notes.len() > 3)));
        };
        check_all(&client, &kinds, &auditor, consume).await.unwrap();
        assert_eq!(found, [("eager".to_owned(), true)]);
    }

    #[tokio::test]
    async fn cluster_audit_continues_after_forbidden_kind() {
        let (client, _) = serve_responses(|path, _| match path {
            "/api/v1/pods" => (403, status(403, "pods is forbidden")),
            "/apis/kueue.x-k8s.io/v1beta2/clusterqueues" => (
                200,
                json!({"items": [{"metadata": {"name": "a"}, "spec": {}}]}),
            ),
            _ => (404, status(404, "not found")),
        });
        let Ok(registry) = KindRegistry::new(&RuleSelection::default()) else {
            panic!("a schema is invalid");
        };
        let kinds = registry.list_targets();
        let converter = Converter::default();
        let cluster = collect_cluster(&client, &kinds, &converter);
        let cluster = cluster.await.unwrap();
        assert_eq!(cluster.queues, ["kueue.x-k8s.io/a"]);
        let unlisted = cluster.unlisted.iter();
        let unlisted: Vec<_> = unlisted
            .map(|it| (it.kind.as_str(), it.file.name.as_str()))
            .collect();
        assert_eq!(unlisted, [("Pod", "pods (v1)")]);
    }

    #[test]
    fn remove_server_fields_keeps_manifest() {
        let last = "kubectl.kubernetes.io/last-applied-configuration";
        let mut stored = json!({
            "kind": "Job", "spec": {"suspend": true}, "status": {"active": 1},
            "metadata": {
                "name": "a", "labels": {"b": "c"}, "uid": "1", "resourceVersion": "7", "managedFields": [],
                "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {last: "{}", "d": "e"},
            },
        });
        remove_server_fields(&mut stored);
        let manifest = json!({
            "kind": "Job", "spec": {"suspend": true},
            "metadata": {"name": "a", "labels": {"b": "c"}, "annotations": {"d": "e"}},
        });
        assert_eq!(stored, manifest);
    }
}
