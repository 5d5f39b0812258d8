//! What a plain client reaches: status patches of workloads, nothing decided and nothing watched.

use crate::generator::Workload;
use crate::objects::{NAMESPACE, workload, workloads};
use anyhow::Error;
use futures_util::{StreamExt, TryStreamExt, stream};
use kube::Client;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use std::time::Instant;

pub async fn run(client: &Client, objects: usize, parallel: usize) -> Result<(), Error> {
    let api = workloads(client);
    let class = Workload {
        class_name: "bare".to_owned(),
        runtime_ms: 0,
        priority: 0,
        request: 1,
    };
    let names: Vec<String> = (0..objects).map(|at| format!("bare-{at}")).collect();
    stream::iter(&names)
        .map(|name| {
            let mut object = workload("nobody", name, &class);
            let spec = object.get_mut("spec");
            if let Some(spec) = spec.and_then(|it| it.as_object_mut()) {
                spec.remove("priorityClassName");
                spec.remove("queueName");
            }
            let api = api.clone();
            async move {
                let object = serde_json::from_value(object)?;
                api.create(&PostParams::default(), &object).await?;
                Ok::<_, Error>(())
            }
        })
        .buffer_unordered(parallel)
        .try_collect::<()>()
        .await?;
    let begun = Instant::now();
    stream::iter(&names)
        .map(|name| {
            let api = api.clone();
            async move {
                let condition = |of: &str| {
                    json!({"type": of, "status": "True", "reason": of, "observedGeneration": 1,
                        "message": "Quota reserved in ClusterQueue cohort-0-cq-0, 0 s after it was made",
                        "lastTransitionTime": "2026-01-01T00:00:00Z"})
                };
                let patch = json!({"status": {
                    "priority": 50, "preemptionPriority": 50,
                    "admission": {"clusterQueue": "cohort-0-cq-0", "podSetAssignments": [
                        {"name": "main", "count": 1, "flavors": {"cpu": "rf"}, "resourceUsage": {"cpu": "1"}}]},
                    "conditions": [condition("QuotaReserved"), condition("Admitted")],
                }});
                let by = PatchParams::default();
                api.patch_status(name, &by, &Patch::Merge(&patch)).await?;
                Ok::<_, Error>(())
            }
        })
        .buffer_unordered(parallel)
        .try_collect::<()>()
        .await?;
    let took = begun.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "a rate")]
    let rate = objects as f64 / took;
    println!("bare_patches_per_s {rate:.1} ({objects} by {parallel} at once in {NAMESPACE})");
    api.delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    Ok(())
}
