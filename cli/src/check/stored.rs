//! `--stored`: what a cluster holds now, judged as if it were made anew.

use super::choice::Choice;
use super::circles::Found;
use super::cluster::{self, ListError, Listed, Listing};
use super::judge::Judge;
use super::kinds::Known;
use super::outside::with_client;
use super::policy_report::Reports;
use super::report::{Judged, Objects, Tally};
use super::source::{Document, Identity};
use super::{Arguments, Printer, printing, report};
use crate::{Failure, world};
use anyhow::{Context, anyhow};
use kube::Client;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::settings::Settings;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Judges, and prints what was found. The exit code says whether there was anything.
pub(super) fn run(
    arguments: &Arguments,
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
    if is_quiet {
        printer.mute();
    }
    printer.write(&format.head());
    with_client(kubeconfig, &arguments.outside, async |client| {
        let known = Known::new(&choice)?;
        let kinds = known.listings();
        let mut index = facts_in(&client, &kinds).await.map_err(cluster::failure)?;
        world::close(&mut index);
        let all = Judge::new(settings, index, choice, Found::new())?;
        judge(&client, &kinds, &all, |judged| {
            reports.add(&judged);
            printer.file(&format.file(&judged), Tally::of(&judged));
        })
        .await
        .map_err(cluster::failure)?;
        printer.exceptions(all.settings(), arguments.config.as_deref());
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
    Ok(code)
}

/// The facts of everything that is known of on the cluster.
async fn facts_in(client: &Client, kinds: &[Listing<'_>]) -> Result<Index, ListError> {
    let mut index = Index::default();
    visit(client, kinds, |object| {
        // What does not fit its type is told where it is judged.
        let _ = facts::observe(&mut index, &object);
    })
    .await?;
    Ok(index)
}

/// Judges every object of these kinds, and hands over what is said of each. No more than a page of objects is in
/// memory.
async fn judge(
    client: &Client,
    kinds: &[Listing<'_>],
    judge: &Judge,
    mut take: impl FnMut(Judged),
) -> Result<(), ListError> {
    visit(client, kinds, |object| take(judged(judge, object))).await
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

fn judged(judge: &Judge, object: Value) -> Judged {
    let document = Document {
        number: 0,
        pointer: String::new(),
        value: object,
    };
    let name = Identity::of(&document.value).full_name().into_owned();
    let mut objects = Objects::default();
    match judge.document(document, None) {
        None => objects.skipped = 1,
        Some(said) => {
            objects.excuses.take(&said.excused);
            objects.checked.push(said.object);
        }
    }
    Judged {
        name,
        outcome: Ok(objects),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cluster::tests::api;
    use super::{Choice, Found, Judge, Known, Reports, facts_in, judge};
    use crate::check::kinds;
    use lockkeeper_api::config::Config;
    use serde_json::json;
    use std::sync::Arc;

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
        let choice = Choice::default();
        let settings = kinds::settings(Config::default(), Arc::default(), &choice).unwrap();
        let (Ok(known), mut reports) = (Known::new(&choice), Reports::new()) else {
            panic!("the schemas can be read");
        };
        let listings = known.listings();
        let index = facts_in(&client, &listings).await.unwrap();
        let Ok(all) = Judge::new(settings, index, choice, Found::new()) else {
            panic!("the schemas can be read");
        };
        let mut names = Vec::new();
        let take = |it: crate::check::report::Judged| {
            reports.add(&it);
            names.push(it.name);
        };
        judge(&client, &listings, &all, take).await.unwrap();
        assert_eq!(names, ["a", "b", "research/main"]);
        insta::assert_snapshot!(reports.yaml().unwrap());
        let asked = asked.lock().unwrap();
        assert!(
            !asked.iter().any(|it| it.contains("v1beta1/clusterqueues")),
            "{asked:?}"
        );
    }
}
