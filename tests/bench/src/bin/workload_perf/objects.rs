//! The objects of the test.

use crate::generator::{Generator, WorkloadClass};
use crate::workload_status;
use anyhow::Error;
use futures_util::stream::{FuturesUnordered, StreamExt};
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::Request;
use kube::{Api, Client, Resource};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The namespace of all of them.
pub const NAMESPACE: &str = "default";

/// Creations under way at once, where there is no pace.
const PARALLEL: usize = 32;

pub fn resource(kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: "lockkeeper.dev".to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: "lockkeeper.dev/v1alpha1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

pub fn workloads(client: &Client) -> Api<DynamicObject> {
    Api::namespaced_with(
        client.clone(),
        NAMESPACE,
        &resource("Workload", "workloads"),
    )
}

async fn create(api: &Api<DynamicObject>, object: Value) -> Result<(), Error> {
    let object: DynamicObject = serde_json::from_value(object)?;
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}

/// Makes the queues, the flavor and the classes.
pub async fn queues(client: &Client, generator: &Generator, unbounded: bool) -> Result<(), Error> {
    let own = "lockkeeper.dev/v1alpha1";
    let all = |kind: &str, plural: &str| {
        Api::<DynamicObject>::all_with(client.clone(), &resource(kind, plural))
    };
    let flavor = json!({"apiVersion": own, "kind": "ResourceFlavor", "metadata": {"name": "rf"}, "spec": {}});
    create(&all("ResourceFlavor", "resourceflavors"), flavor).await?;
    let classes = ApiResource {
        group: "scheduling.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "scheduling.k8s.io/v1".to_owned(),
        kind: "PriorityClass".to_owned(),
        plural: "priorityclasses".to_owned(),
    };
    let classes: Api<DynamicObject> = Api::all_with(client.clone(), &classes);
    for class in generator.classes() {
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": class.class_name}, "value": class.priority});
        create(&classes, class).await?;
    }
    let doors: Api<DynamicObject> = Api::namespaced_with(
        client.clone(),
        NAMESPACE,
        &resource("LocalQueue", "localqueues"),
    );
    for queue in generator.queues() {
        let nominal = if unbounded {
            1_000_000
        } else {
            queue.spec.nominal_quota
        };
        let quota = json!({"name": "cpu", "nominalQuota": nominal.to_string(),
            "borrowingLimit": queue.spec.borrowing_limit.to_string()});
        let spec = json!({
            "cohortName": queue.cohort,
            "namespaceSelector": {},
            "preemption": {
                "reclaimWithinCohort": queue.spec.reclaim_within_cohort,
                "withinClusterQueue": queue.spec.within_cluster_queue,
            },
            "resourceGroups": [{"coveredResources": ["cpu"],
                "flavors": [{"name": "rf", "resources": [quota]}]}],
        });
        let metadata = json!({"name": queue.name});
        let object =
            json!({"apiVersion": own, "kind": "ClusterQueue", "metadata": metadata, "spec": spec});
        create(&all("ClusterQueue", "clusterqueues"), object).await?;
        let door = json!({"apiVersion": own, "kind": "LocalQueue",
            "metadata": {"name": queue.name, "namespace": NAMESPACE},
            "spec": {"clusterQueue": queue.name}});
        create(&doors, door).await?;
    }
    Ok(())
}

pub fn workload(queue: &str, name: &str, class: &WorkloadClass) -> Value {
    json!({
        "apiVersion": "lockkeeper.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"class": class.class_name, "runtime-ms": class.runtime_ms.to_string()},
        },
        "spec": {
            "queueName": queue,
            "priorityClassName": class.class_name,
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "example.com/main:1",
                    "resources": {"requests": {"cpu": class.request.to_string()}}}],
            }}}],
        },
    })
}

async fn create_workload(client: &Client, place: &str, object: Value) -> Result<(), Error> {
    let by = PostParams::default();
    let request = Request::new(place).create(&by, serde_json::to_vec(&object)?)?;
    client
        .request::<workload_status::WorkloadStatusView>(request)
        .await?;
    Ok(())
}

/// Makes all workloads, each set of each queue at its own pace, or all as fast as it goes.
pub async fn create_all(
    client: &Client,
    generator: &Generator,
    at_once: bool,
) -> Result<usize, Error> {
    let place = workload_status::WorkloadStatusView::url_path(&(), Some(NAMESPACE));
    let begun = Instant::now();
    let mut due = Vec::new();
    for queue in generator.queues() {
        for (set, of) in queue.spec.workloads_sets.iter().enumerate() {
            for number in 0..of.count {
                for class in &of.classes {
                    let at_ms = of.creation_interval_ms * u64::try_from(number)?;
                    let name = format!("{}-{set}-{}-{number}", queue.name, class.class_name);
                    due.push((at_ms, workload(&queue.name, &name, class)));
                }
            }
        }
    }
    due.sort_by_key(|(at_ms, _)| *at_ms);
    let total = due.len();
    let mut under_way = FuturesUnordered::new();
    for (at_ms, object) in due {
        if !at_once {
            sleep_until(begun + Duration::from_millis(at_ms)).await;
        }
        while under_way.len() >= PARALLEL {
            let done: Option<Result<(), Error>> = under_way.next().await;
            done.transpose()?;
        }
        under_way.push(create_workload(client, &place, object));
        // Those under way go on while the next one waits for its time.
        if !at_once {
            while let Some(done) = futures_util::FutureExt::now_or_never(under_way.next()) {
                match done {
                    Some(done) => done?,
                    None => break,
                }
            }
        }
    }
    while let Some(done) = under_way.next().await {
        done?;
    }
    Ok(total)
}
