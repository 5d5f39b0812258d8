//! Nodes with running pods, and gangs of pods that wait for room on them.

use crate::objects::NAMESPACE;
use crate::queued::create_all;
use anyhow::{Error, bail};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::watcher::Config;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::pin::pin;
use std::time::{Duration, Instant};

/// Creates nodes of 64 CPUs, and this many pods of 6 CPUs on them, all with the class `low`.
pub async fn create(client: &Client, nodes: usize, pods: usize) -> Result<(), Error> {
    let all: Api<Node> = Api::all(client.clone());
    create_all(&all, (0..nodes).map(node)).await?;
    let all: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let nodes = nodes.max(1);
    let pods = (0..pods).map(|number| bound_pod(number, &node_name(number % nodes)));
    create_all(&all, pods).await
}

/// A gang of equal pods.
#[derive(clap::Args)]
pub struct Gang {
    /// Its name
    #[arg(long)]
    name: String,
    /// Its pods
    #[arg(long)]
    pods: usize,
    /// CPUs of each
    #[arg(long)]
    cpu: u32,
    /// Its LocalQueue; without one kube-scheduler alone binds the pods
    #[arg(long)]
    queue: Option<String>,
}

/// Creates a gang, and returns the time from its last pod until all are bound.
pub async fn bind(client: &Client, gang: &Gang) -> Result<Duration, Error> {
    let all: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    create_all(&all, (0..gang.pods).map(|number| gang.pod(number))).await?;
    let begun = Instant::now();
    let of_gang = Config::default().labels(&format!("gang={}", gang.name));
    let mut pods = pin!(watcher(all, of_gang).default_backoff().applied_objects());
    let mut bound = BTreeSet::new();
    while let Some(pod) = pods.next().await {
        let pod = pod?;
        if pod.spec.as_ref().is_some_and(|it| it.node_name.is_some()) {
            bound.insert(pod.name_any());
        }
        if bound.len() == gang.pods {
            return Ok(begun.elapsed());
        }
    }
    bail!("the watch of the pods has ended")
}

impl Gang {
    fn pod(&self, number: usize) -> Value {
        let name = &self.name;
        let (labels, annotations, gates) = match &self.queue {
            None => (json!({"gang": name}), json!({}), json!([])),
            Some(queue) => (
                json!({
                    "gang": name,
                    "lockkeeper.dev/queue-name": queue,
                    "lockkeeper.dev/pod-group-name": name,
                }),
                json!({"lockkeeper.dev/pod-group-total-count": self.pods.to_string()}),
                json!([{"name": "lockkeeper.dev/admission"}]),
            ),
        };
        json!({
            "metadata": {
                "name": format!("{name}-{number}"), "labels": labels, "annotations": annotations,
            },
            "spec": {
                "schedulingGates": gates,
                "priorityClassName": "high",
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "main", "image": "example.com/train:1",
                    "resources": {"requests": {"cpu": self.cpu.to_string()}}}],
            },
        })
    }
}

fn node_name(number: usize) -> String {
    format!("node-{number}")
}

fn node(number: usize) -> Value {
    let name = node_name(number);
    let room = json!({"cpu": "64", "memory": "256Gi", "pods": "110"});
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": room, "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn bound_pod(number: usize, node: &str) -> Value {
    json!({
        "metadata": {"name": format!("serve-{number}"), "labels": {"app": "serve"}},
        "spec": {
            "nodeName": node,
            "priorityClassName": "low",
            // Without a kubelet a pod that is evicted is gone at once.
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "example.com/serve:1",
                "resources": {"requests": {"cpu": "6"}}}],
        },
    })
}
