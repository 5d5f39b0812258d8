//! The throughput of a plain client: no scheduling decisions, and only the necessary writes of each object.

use crate::generator::WorkloadClass;
use crate::objects::{NAMESPACE, workload, workloads};
use anyhow::Error;
use futures_util::{StreamExt, TryStreamExt, stream};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::Config;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::pin::pin;
use std::time::Instant;

/// Watches of all workloads during the run: one for a controller and one for the client that finishes them.
const WATCHES: usize = 2;

/// Status patches, as many as there are objects.
pub async fn run(client: &Client, objects: usize, parallel: usize) -> Result<(), Error> {
    let api = workloads(client);
    let names = names(objects);
    stream::iter(&names)
        .map(|name| create(&api, name))
        .buffer_unordered(parallel)
        .try_collect::<()>()
        .await?;
    let begun = Instant::now();
    stream::iter(&names)
        .map(|name| patch(&api, name, admitted_status()))
        .buffer_unordered(parallel)
        .try_collect::<()>()
        .await?;
    let rate = rate(objects, begun);
    println!("bare_patches_per_s {rate:.1} ({objects} by {parallel} at once in {NAMESPACE})");
    delete_all(&api).await
}

/// Workloads that are made, admitted and ended, and watched by two.
pub async fn run_lifecycles(client: &Client, objects: usize, parallel: usize) -> Result<(), Error> {
    let api = workloads(client);
    let watches: Vec<_> = (0..WATCHES)
        .map(|_| {
            let api = api.clone();
            tokio::spawn(async move {
                let mut events = pin!(watcher(api, Config::default()).default_backoff());
                while events.next().await.is_some() {}
            })
        })
        .collect();
    let names = names(objects);
    let begun = Instant::now();
    stream::iter(&names)
        .map(async |name| {
            create(&api, name).await?;
            patch(&api, name, admitted_status()).await?;
            patch(&api, name, finished_status()).await
        })
        .buffer_unordered(parallel)
        .try_collect::<()>()
        .await?;
    let rate = rate(objects, begun);
    let wall = begun.elapsed().as_secs_f64();
    println!(
        "bare_lives_per_s {rate:.1} ({objects} in {wall:.1} s, {parallel} at once in {NAMESPACE})"
    );
    for watch in watches {
        watch.abort();
    }
    delete_all(&api).await
}

fn names(objects: usize) -> Vec<String> {
    (0..objects).map(|at| format!("bare-{at}")).collect()
}

#[allow(clippy::cast_precision_loss, reason = "a rate")]
fn rate(objects: usize, begun: Instant) -> f64 {
    objects as f64 / begun.elapsed().as_secs_f64()
}

async fn create(api: &Api<DynamicObject>, name: &str) -> Result<(), Error> {
    let class = WorkloadClass {
        class_name: "bare".to_owned(),
        runtime_ms: 0,
        priority: 0,
        request: 1,
    };
    let mut object = workload("unused", name, &class);
    let spec = object.get_mut("spec");
    if let Some(spec) = spec.and_then(|it| it.as_object_mut()) {
        spec.remove("priorityClassName");
        spec.remove("queueName");
    }
    let object = serde_json::from_value(object)?;
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}

async fn patch(api: &Api<DynamicObject>, name: &str, status: Value) -> Result<(), Error> {
    let patch = json!({"status": status});
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    Ok(())
}

async fn delete_all(api: &Api<DynamicObject>) -> Result<(), Error> {
    api.delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    Ok(())
}

fn condition(of: &str) -> Value {
    json!({"type": of, "status": "True", "reason": of, "observedGeneration": 1,
        "message": "Quota reserved in ClusterQueue cohort-0-cq-0, 0 s after creation",
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn admitted_status() -> Value {
    json!({
        "priority": 50, "preemptionPriority": 50,
        "admission": {"clusterQueue": "cohort-0-cq-0", "podSetAssignments": [
            {"name": "main", "count": 1, "flavors": {"cpu": "rf"}, "resourceUsage": {"cpu": "1"}}]},
        "conditions": [condition("QuotaReserved"), condition("Admitted")],
    })
}

fn finished_status() -> Value {
    json!({"conditions":
        [condition("QuotaReserved"), condition("Admitted"), condition("Finished")]})
}
