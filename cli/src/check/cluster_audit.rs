//! `--stored`: what a cluster holds now, judged as if it were made anew.

use super::checker::Checker;
use super::cluster_list::{self, ListError, ListStatus, ListTarget};
use super::conversion::{self, Converter, PriorityClassValues};
use super::existing_objects::with_client;
use super::kinds::KindRegistry;
use super::policy_report::PolicyReports;
use super::preemption_loops::{LoopFinding, LoopFindings, LoopSearchInput};
use super::report::{CheckedFile, FileObjects, Tally};
use super::rule_selection::RuleSelection;
use super::source::{Document, Identity};
use super::{Arguments, Printer, report, report_settings};
use crate::{Failure, world_files};
use anyhow::{Context, Error, anyhow};
use kube::Client;
use lockkeeper_api::config::Config;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::preemption_loops;
use lockkeeper_policies::settings::Settings;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

/// What has to be known of all objects before the first one is judged.
#[derive(Default)]
struct ClusterContext {
    index: Index,
    loop_input: LoopSearchInput,
    classes: PriorityClassValues,
    /// The ClusterQueues, in the order in which they were seen.
    queues: Vec<String>,
}

/// How an object is judged.
struct Auditor {
    checker: Checker,
    converter: Converter,
    /// By queue.
    loop_findings: BTreeMap<String, LoopFinding>,
}

/// Judges, and prints what was found. The exit code says whether there was anything.
pub(super) fn run(
    arguments: &Arguments,
    config: &Config,
    choice: RuleSelection,
    settings: Settings,
    out: &mut (impl Write + Send),
) -> Result<u8, Failure> {
    let Some(kubeconfig) = &arguments.existing.kubeconfig else {
        return Err(Failure::Usage(anyhow!("--stored needs --kubeconfig")));
    };
    let reported = arguments.existing.policy_report.as_deref();
    let format = report::format(arguments.output, report_settings(arguments));
    let mut reports = PolicyReports::new();
    let mut printer = Printer::new(&*format, out, 0);
    let is_quiet = reported == Some(Path::new("-"));
    if is_quiet && arguments.conversion.is_stdout() {
        let both =
            "--policy-report and --converted cannot both be standard output; write one to a file";
        return Err(Failure::Usage(anyhow!(both)));
    }
    if is_quiet || arguments.conversion.is_stdout() {
        printer.mute();
    }
    printer.write(&format.head());
    let mut yaml = Ok(String::new());
    with_client(kubeconfig, &arguments.existing, async |client| {
        let known = KindRegistry::new(&choice)?;
        let kinds = known.list_targets();
        let mut converter = arguments.conversion.converter();
        let seen = collect_cluster(&client, &kinds, &converter).await;
        let mut seen = seen.map_err(cluster_list::usage_failure)?;
        world_files::declare_all_known(&mut seen.index);
        converter.set_conflicts(&seen.classes);
        let circles = if choice.includes(preemption_loops::RULE) {
            findings_by_queue(
                seen.loop_input.search(config, arguments.kueue_version),
                &seen.queues,
            )
        } else {
            BTreeMap::new()
        };
        let bench = Auditor {
            checker: Checker::new(settings, seen.index, choice, LoopFindings::new())?
                .with_cel_cross_check(arguments.verify_cel)?,
            converter,
            loop_findings: circles,
        };
        check_all(&client, &kinds, &bench, |judged, part| {
            reports.add(&judged);
            printer.write_file(&format.file(&judged), Tally::from_checked_file(&judged));
            conversion::append_yaml(&mut yaml, part);
        })
        .await
        .map_err(cluster_list::usage_failure)?;
        printer.write_exceptions(bench.checker.settings(), arguments.config.as_deref());
        Ok(())
    })?;
    let code = printer.finish()?.exit_code(arguments.fail_on);
    match reported {
        None => {}
        Some(_) if is_quiet => {
            out.write_all(reports.yaml()?.as_bytes())?;
            out.flush()?;
        }
        Some(path) => fs::write(path, reports.yaml()?)
            .with_context(|| format!("cannot write {}", path.display()))
            .map_err(Failure::Usage)?,
    }
    arguments.conversion.write(&yaml?, out)?;
    Ok(code)
}

/// Looks at everything that is known of on the cluster.
async fn collect_cluster(
    client: &Client,
    kinds: &[ListTarget<'_>],
    converter: &Converter,
) -> Result<ClusterContext, ListError> {
    let mut seen = ClusterContext::default();
    visit_objects(client, kinds, |object| {
        let queue = cluster_queue_name(&object);
        let document = conversion::convert_value(converter, object);
        seen.classes.add_document(&document);
        let Some(object) = document.object() else {
            return;
        };
        // What does not fit its type is told where it is judged.
        let _ = facts::ingest(&mut seen.index, object);
        seen.loop_input.add_object((0, seen.queues.len()), object);
        seen.queues.extend(queue);
    })
    .await?;
    Ok(seen)
}

/// What names an object, if it is a ClusterQueue.
fn cluster_queue_name(object: &Value) -> Option<String> {
    let identity = Identity::from_object(object);
    let group = identity.api_version.split('/').next().unwrap_or_default();
    (identity.kind == "ClusterQueue").then(|| format!("{group}/{}", identity.name))
}

fn findings_by_queue(found: LoopFindings, queues: &[String]) -> BTreeMap<String, LoopFinding> {
    let found = found.into_iter().filter_map(|((_, number), circling)| {
        let name = queues.get(number)?;
        Some((name.clone(), circling))
    });
    found.collect()
}

/// Judges every object of these kinds, and hands over what is said of each, with what it was converted to. No more than
/// a page of objects is in memory.
async fn check_all(
    client: &Client,
    kinds: &[ListTarget<'_>],
    bench: &Auditor,
    mut take: impl FnMut(CheckedFile, Result<String, Error>),
) -> Result<(), ListError> {
    visit_objects(client, kinds, |object| {
        let (judged, yaml) = bench.check_object(object);
        take(judged, yaml);
    })
    .await
}

/// Goes through all objects. Of a kind that the cluster has in several versions, which are the same objects, the first
/// one counts.
async fn visit_objects(
    client: &Client,
    kinds: &[ListTarget<'_>],
    mut take: impl FnMut(Value),
) -> Result<(), ListError> {
    let mut seen: Option<(&str, &str)> = None;
    for listing in kinds {
        let group = listing.version.rsplit_once('/').map_or("", |it| it.0);
        if seen == Some((group, listing.kind)) {
            continue;
        }
        if cluster_list::for_each_object(client, listing, &mut take).await? == ListStatus::Complete
        {
            seen = Some((group, listing.kind));
        }
    }
    Ok(())
}

impl Auditor {
    fn check_object(&self, object: Value) -> (CheckedFile, Result<String, Error>) {
        let name = Identity::from_object(&object).full_name().into_owned();
        let circling = cluster_queue_name(&object).and_then(|it| self.loop_findings.get(&it));
        let mut document: Document = conversion::convert_value(&self.converter, object);
        self.converter.drop_if_conflicting(&mut document);
        let yaml = self.converter.document_yaml(&document);
        let mut objects = FileObjects::default();
        match self.checker.check_document(document, circling) {
            None => objects.skipped = 1,
            Some(said) => {
                objects.exception_usage.count(&said.exempted);
                objects.objects.push(said.object);
            }
        }
        let judged = CheckedFile {
            name,
            outcome: Ok(objects),
        };
        (judged, yaml)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cluster_list::tests::fake_api_server;
    use super::{
        Auditor, Checker, Client, Converter, KindRegistry, ListTarget, LoopFindings, PolicyReports,
        RuleSelection, check_all, collect_cluster, findings_by_queue,
    };
    use crate::check::kinds;
    use lockkeeper_api::config::Config;
    use serde_json::json;
    use std::sync::Arc;

    /// What a cluster is judged with, once it is seen.
    async fn new_auditor(client: &Client, listings: &[ListTarget<'_>]) -> Auditor {
        let choice = RuleSelection::default();
        let settings = kinds::settings(Config::default(), Arc::default(), &choice).unwrap();
        let converter = Converter::default();
        let seen = collect_cluster(client, listings, &converter).await.unwrap();
        let circles = findings_by_queue(
            seen.loop_input.search(&Config::default(), None),
            &seen.queues,
        );
        let Ok(judge) = Checker::new(settings, seen.index, choice, LoopFindings::new()) else {
            panic!("the schemas can be read");
        };
        Auditor {
            checker: judge,
            converter,
            loop_findings: circles,
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
        let (client, asked) = fake_api_server(&[
            (
                "/apis/kueue.x-k8s.io/v1beta2/clusterqueues",
                vec![vec![queue("a", 1)], vec![queue("b", -1)]],
            ),
            // The same objects as an older version has them are not asked for.
            (
                "/apis/kueue.x-k8s.io/v1beta1/clusterqueues",
                vec![vec![queue("b", -1)]],
            ),
            (
                "/apis/kueue.x-k8s.io/v1beta1/localqueues",
                vec![vec![local("main")]],
            ),
        ]);
        let (Ok(known), mut reports) = (
            KindRegistry::new(&RuleSelection::default()),
            PolicyReports::new(),
        ) else {
            panic!("the schemas can be read");
        };
        let listings = known.list_targets();
        let bench = new_auditor(&client, &listings).await;
        let mut names = Vec::new();
        let take = |it: crate::check::report::CheckedFile, _| {
            reports.add(&it);
            names.push(it.name);
        };
        check_all(&client, &listings, &bench, take).await.unwrap();
        assert_eq!(names, ["a", "b", "research/main"]);
        insta::assert_snapshot!(reports.yaml().unwrap());
        let asked = asked.lock().unwrap();
        assert!(
            !asked.iter().any(|it| it.contains("v1beta1/clusterqueues")),
            "{asked:?}"
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
        let Ok(known) = KindRegistry::new(&RuleSelection::default()) else {
            panic!("the schemas can be read");
        };
        let listings = known.list_targets();
        let bench = new_auditor(&client, &listings).await;
        let mut told = Vec::new();
        let take = |it: crate::check::report::CheckedFile, _| {
            let objects = it.outcome.unwrap_or_default().objects;
            let all = objects.into_iter().flat_map(|it| it.findings);
            let circling = all.filter(|it| it.finding.rule == "CQ024");
            told.extend(circling.map(|told| (it.name.clone(), told.notes.len() > 3)));
        };
        check_all(&client, &listings, &bench, take).await.unwrap();
        assert_eq!(told, [("eager".to_owned(), true)]);
    }
}
