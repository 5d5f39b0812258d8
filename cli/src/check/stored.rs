//! `--stored`: what a cluster holds now, judged as if it were made anew.

use super::choice::Choice;
use super::circles::{Circling, Found, Herd};
use super::cluster::{self, ListError, Listed, Listing};
use super::conversion::{self, Classes, Converter};
use super::judge::Judge;
use super::kinds::Known;
use super::outside::with_client;
use super::policy_report::Reports;
use super::report::{Judged, Objects, Tally};
use super::source::{Document, Identity};
use super::{Arguments, Printer, printing, report};
use crate::{Failure, world};
use anyhow::{Context, Error, anyhow};
use kube::Client;
use lockkeeper_api::config::Config;
use lockkeeper_policies::endless;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::settings::Settings;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

/// What has to be known of all objects before the first one is judged.
#[derive(Default)]
struct Seen {
    index: Index,
    herd: Herd,
    classes: Classes,
    /// The ClusterQueues, in the order in which they were seen.
    queues: Vec<String>,
}

/// How an object is judged.
struct Bench {
    judge: Judge,
    converter: Converter,
    /// By queue.
    circles: BTreeMap<String, Circling>,
}

/// Judges, and prints what was found. The exit code says whether there was anything.
pub(super) fn run(
    arguments: &Arguments,
    config: &Config,
    choice: Choice,
    settings: Settings,
    out: &mut (impl Write + Send),
) -> Result<u8, Failure> {
    let Some(kubeconfig) = &arguments.outside.kubeconfig else {
        return Err(Failure::Usage(anyhow!("--stored needs --kubeconfig")));
    };
    let reported = arguments.outside.policy_report.as_deref();
    let format = report::format(arguments.output, printing(arguments));
    let mut reports = Reports::new();
    let mut printer = Printer::new(&*format, out, 0);
    let is_quiet = reported == Some(Path::new("-"));
    if is_quiet && arguments.conversion.is_all() {
        let both =
            "--policy-report and --converted cannot both be standard output; write one to a file";
        return Err(Failure::Usage(anyhow!(both)));
    }
    if is_quiet || arguments.conversion.is_all() {
        printer.mute();
    }
    printer.write(&format.head());
    let mut yaml = Ok(String::new());
    with_client(kubeconfig, &arguments.outside, async |client| {
        let known = Known::new(&choice)?;
        let kinds = known.listings();
        let mut converter = arguments.conversion.converter();
        let seen = see(&client, &kinds, &converter).await;
        let mut seen = seen.map_err(cluster::failure)?;
        world::close(&mut seen.index);
        converter.take(&seen.classes);
        let circles = if choice.takes(endless::RULE) {
            by_queue(
                seen.herd.search(config, arguments.kueue_version),
                &seen.queues,
            )
        } else {
            BTreeMap::new()
        };
        let bench = Bench {
            judge: Judge::new(settings, seen.index, choice, Found::new())?
                .verifying(arguments.verify_cel)?,
            converter,
            circles,
        };
        judge(&client, &kinds, &bench, |judged, part| {
            reports.add(&judged);
            printer.file(&format.file(&judged), Tally::of(&judged));
            conversion::collect(&mut yaml, part);
        })
        .await
        .map_err(cluster::failure)?;
        printer.exceptions(bench.judge.settings(), arguments.config.as_deref());
        Ok(())
    })?;
    let code = printer.finish()?.code(arguments.fail_on);
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
async fn see(
    client: &Client,
    kinds: &[Listing<'_>],
    converter: &Converter,
) -> Result<Seen, ListError> {
    let mut seen = Seen::default();
    visit(client, kinds, |object| {
        let queue = queue(&object);
        let document = conversion::document(converter, object);
        seen.classes.take(&document);
        let Some(object) = document.object() else {
            return;
        };
        // What does not fit its type is told where it is judged.
        let _ = facts::observe(&mut seen.index, object);
        seen.herd.take((0, seen.queues.len()), object);
        seen.queues.extend(queue);
    })
    .await?;
    Ok(seen)
}

/// What names an object, if it is a ClusterQueue.
fn queue(object: &Value) -> Option<String> {
    let identity = Identity::of(object);
    let group = identity.api_version.split('/').next().unwrap_or_default();
    (identity.kind == "ClusterQueue").then(|| format!("{group}/{}", identity.name))
}

fn by_queue(found: Found, queues: &[String]) -> BTreeMap<String, Circling> {
    let found = found.into_iter().filter_map(|((_, number), circling)| {
        let name = queues.get(number)?;
        Some((name.clone(), circling))
    });
    found.collect()
}

/// Judges every object of these kinds, and hands over what is said of each, with what it was converted to. No more than
/// a page of objects is in memory.
async fn judge(
    client: &Client,
    kinds: &[Listing<'_>],
    bench: &Bench,
    mut take: impl FnMut(Judged, Result<String, Error>),
) -> Result<(), ListError> {
    visit(client, kinds, |object| {
        let (judged, yaml) = bench.judged(object);
        take(judged, yaml);
    })
    .await
}

/// Goes through all objects. Of a kind that the cluster has in several versions, which are the same objects, the first
/// one counts.
async fn visit(
    client: &Client,
    kinds: &[Listing<'_>],
    mut take: impl FnMut(Value),
) -> Result<(), ListError> {
    let mut seen: Option<(&str, &str)> = None;
    for listing in kinds {
        let group = listing.version.rsplit_once('/').map_or("", |it| it.0);
        if seen == Some((group, listing.kind)) {
            continue;
        }
        if cluster::each(client, listing, &mut take).await? == Listed::Whole {
            seen = Some((group, listing.kind));
        }
    }
    Ok(())
}

impl Bench {
    fn judged(&self, object: Value) -> (Judged, Result<String, Error>) {
        let name = Identity::of(&object).full_name().into_owned();
        let circling = queue(&object).and_then(|it| self.circles.get(&it));
        let mut document: Document = conversion::document(&self.converter, object);
        self.converter.settle(&mut document);
        let yaml = self.converter.document_yaml(&document);
        let mut objects = Objects::default();
        match self.judge.document(document, circling) {
            None => objects.skipped = 1,
            Some(said) => {
                objects.excuses.take(&said.excused);
                objects.checked.push(said.object);
            }
        }
        let judged = Judged {
            name,
            outcome: Ok(objects),
        };
        (judged, yaml)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cluster::tests::api;
    use super::{
        Bench, Choice, Client, Converter, Found, Judge, Known, Listing, Reports, by_queue, judge,
        see,
    };
    use crate::check::kinds;
    use lockkeeper_api::config::Config;
    use serde_json::json;
    use std::sync::Arc;

    /// What a cluster is judged with, once it is seen.
    async fn prepared(client: &Client, listings: &[Listing<'_>]) -> Bench {
        let choice = Choice::default();
        let settings = kinds::settings(Config::default(), Arc::default(), &choice).unwrap();
        let converter = Converter::default();
        let seen = see(client, listings, &converter).await.unwrap();
        let circles = by_queue(seen.herd.search(&Config::default(), None), &seen.queues);
        let Ok(judge) = Judge::new(settings, seen.index, choice, Found::new()) else {
            panic!("the schemas can be read");
        };
        Bench {
            judge,
            converter,
            circles,
        }
    }

    #[tokio::test]
    async fn what_is_stored_is_judged_and_reported() {
        let queue = |name: &str, weight: i64| {
            json!({"metadata": {"name": name, "uid": "1", "resourceVersion": "7"},
                   "spec": {"fairSharing": {"weight": weight}}, "status": {}})
        };
        let local = |name: &str| {
            json!({"metadata": {"name": name, "namespace": "research",
                                "annotations": {"lockkeeper.dev/ignore": "SC002: it is repaired tomorrow"}},
                   "spec": {"clusterQueue": "No Name"}})
        };
        let (client, asked) = api(&[
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
        let (Ok(known), mut reports) = (Known::new(&Choice::default()), Reports::new()) else {
            panic!("the schemas can be read");
        };
        let listings = known.listings();
        let bench = prepared(&client, &listings).await;
        let mut names = Vec::new();
        let take = |it: crate::check::report::Judged, _| {
            reports.add(&it);
            names.push(it.name);
        };
        judge(&client, &listings, &bench, take).await.unwrap();
        assert_eq!(names, ["a", "b", "research/main"]);
        insta::assert_snapshot!(reports.yaml().unwrap());
        let asked = asked.lock().unwrap();
        assert!(
            !asked.iter().any(|it| it.contains("v1beta1/clusterqueues")),
            "{asked:?}"
        );
    }

    #[tokio::test]
    async fn queues_whose_workloads_go_in_circles_are_told() {
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
        let (client, _) = api(&[("/apis/kueue.x-k8s.io/v1beta2/clusterqueues", vec![queues])]);
        let Ok(known) = Known::new(&Choice::default()) else {
            panic!("the schemas can be read");
        };
        let listings = known.listings();
        let bench = prepared(&client, &listings).await;
        let mut told = Vec::new();
        let take = |it: crate::check::report::Judged, _| {
            let objects = it.outcome.unwrap_or_default().checked;
            let all = objects.into_iter().flat_map(|it| it.told);
            let circling = all.filter(|it| it.finding.rule == "CQ024");
            told.extend(circling.map(|told| (it.name.clone(), told.notes.len() > 3)));
        };
        judge(&client, &listings, &bench, take).await.unwrap();
        assert_eq!(told, [("eager".to_owned(), true)]);
    }
}
