//! Jobs with large pod templates, which no two of them share.

use crate::objects::NAMESPACE;
use anyhow::Error;
use futures_util::stream::{self, TryStreamExt};
use k8s_openapi::api::batch::v1::Job;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

/// Creations under way at once.
const PARALLEL: usize = 16;

/// Creates suspended Jobs of this queue, with about so many bytes each.
pub async fn create_all(
    client: &Client,
    queue: &str,
    jobs: usize,
    bytes: usize,
) -> Result<(), Error> {
    let api: Api<Job> = Api::namespaced(client.clone(), NAMESPACE);
    let numbers = stream::iter((0..jobs).map(Ok));
    numbers
        .try_for_each_concurrent(PARALLEL, |number| {
            let api = api.clone();
            async move {
                let job = serde_json::from_value(job(queue, number, bytes))?;
                let made = api.create(&PostParams::default(), &job).await;
                made.map(drop).map_err(Error::from)
            }
        })
        .await
}

fn job(queue: &str, number: usize, bytes: usize) -> serde_json::Value {
    // Begins with the number, so that no prefix is shared.
    let padding = format!("{number:08}{}", "x".repeat(bytes));
    json!({
        "metadata": {
            "name": format!("job-{number}"),
            "labels": {"lockkeeper.dev/queue-name": queue},
        },
        "spec": {"suspend": true, "template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "example.com/main:1",
                "env": [{"name": "DATA", "value": padding}],
                "resources": {"requests": {"cpu": "1"}}}],
        }}},
    })
}
