//! Jobs with large pod templates, which no two of them share, and gated pods, which all are equal.

use crate::objects::NAMESPACE;
use anyhow::Error;
use futures_util::stream::{self, TryStreamExt};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;

/// Creations under way at once.
const PARALLEL: usize = 16;

/// Creates suspended Jobs of this queue, with about so many bytes each.
pub async fn create_jobs(
    client: &Client,
    queue: &str,
    jobs: usize,
    bytes: usize,
) -> Result<(), Error> {
    let api: Api<Job> = Api::namespaced(client.clone(), NAMESPACE);
    create_all(&api, (0..jobs).map(|number| job(queue, number, bytes))).await
}

/// Creates pods of this queue with the gate.
pub async fn create_pods(client: &Client, queue: &str, pods: usize) -> Result<(), Error> {
    let api: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    create_all(&api, (0..pods).map(|number| pod(queue, number))).await
}

/// Creates these objects, several at once.
pub async fn create_all<K>(api: &Api<K>, objects: impl Iterator<Item = Value>) -> Result<(), Error>
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    stream::iter(objects.map(Ok))
        .try_for_each_concurrent(PARALLEL, |object| async move {
            let object = serde_json::from_value(object)?;
            let made = api.create(&PostParams::default(), &object).await;
            made.map(drop).map_err(Error::from)
        })
        .await
}

fn job(queue: &str, number: usize, bytes: usize) -> Value {
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

/// A pod as a `ReplicaSet` creates it.
fn pod(queue: &str, number: usize) -> Value {
    json!({
        "metadata": {
            "name": format!("serve-6f9d8c7b5-{number:05}"),
            "labels": {
                "lockkeeper.dev/queue-name": queue,
                "app.kubernetes.io/name": "serve",
                "pod-template-hash": "6f9d8c7b5",
            },
        },
        "spec": {
            "schedulingGates": [{"name": "lockkeeper.dev/admission"}],
            "containers": [{"name": "main", "image": "example.com/serve:1",
                "env": [{"name": "MODEL", "value": "large"}],
                "ports": [{"containerPort": 8080}],
                "resources": {"requests": {"cpu": "1"}}}],
        },
    })
}
