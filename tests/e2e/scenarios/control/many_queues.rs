//! A cohort of 1,000 ClusterQueues: long decisions delay neither the Lease nor the probes.

use std::thread;

use serde_json::{Value, json};

use super::faults::is_leading;
use super::fixture::{self, ControllerFixture};
use super::{Trial, probes, quota_use};
use crate::client::Client;
use crate::fixture::{DEFAULTS, Fixture};
use crate::objects::collection;

pub const TRIALS: [Trial; 1] = [(
    "a controller of 1,000 ClusterQueues keeps its Lease",
    lease_is_kept,
)];

/// ClusterQueues in the cohort, each with a LocalQueue of the same name.
const QUEUES: usize = 1_000;

/// Admitted workloads of each ClusterQueue, which use its whole quota.
const ADMITTED: usize = 2;

/// Connections that create the objects.
const CLIENTS: usize = 4;

/// One preemptor in every tenth queue, and then one with a higher priority in another queue.
fn lease_is_kept(stage: &mut Fixture) {
    stage.without_webhook();
    let mut site = ControllerFixture::without_controller(stage);
    site.flavor("default");
    site.classes();
    let mut clients: Vec<Client> = (0..CLIENTS)
        .map(|_| site.stage.cluster().client())
        .collect();
    fill_queues(&mut clients);
    site.start_controller(DEFAULTS, &[]);
    let controller = site.controller.as_ref().unwrap();
    is_leading(controller);
    let lease = lease_holder(&site);
    let last = format!("q-{}", QUEUES - 1);
    let probes = probes::count_while(controller, || {
        site.wait_for_counts("ClusterQueue", &last, 1, 2);
        in_parallel(&mut clients, QUEUES / 10, |client, number| {
            let queue = format!("q-{}", number * 10);
            create(client, &workload(&format!("mid-{number}"), &queue, "mid"));
        });
        site.objects.create(&workload("high", &last, "high"));
        site.objects
            .wait_until("Workload", "high", quota_use::holds_quota);
    });
    println!("  {probes} probes answered");
    assert!(probes > 0);
    assert_eq!(lease_holder(&site), lease, "holder and transitions");
    assert_eq!(site.controller().metric("leading"), Some(1));
    site.stop();
}

/// Fills the quota of every ClusterQueue, and adds one workload that waits for it.
#[track_caller]
fn fill_queues(clients: &mut [Client]) {
    let preemption = json!({"cohortName": "lab", "preemption": {
        "reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority",
    }});
    in_parallel(clients, QUEUES, |client, number| {
        let name = format!("q-{number}");
        create(client, &fixture::cluster_queue(&name, 2, &preemption));
        create(client, &fixture::local_queue(&name, &name));
        for of in 0..ADMITTED {
            let workload = workload(&format!("run-{number}-{of}"), &name, "low");
            let created = create(client, &workload);
            admit(client, &created, &name);
        }
        create(client, &workload(&format!("wait-{number}"), &name, "low"));
    });
}

/// A Workload of one cpu, with a priority class.
fn workload(name: &str, queue: &str, class: &str) -> Value {
    let mut workload = fixture::workload(name, queue, 1);
    workload["spec"]["priorityClassName"] = class.into();
    workload
}

/// Calls `create` for each number below `count`, on all connections.
#[track_caller]
fn in_parallel(clients: &mut [Client], count: usize, create: impl Fn(&mut Client, usize) + Sync) {
    let (step, create) = (clients.len(), &create);
    thread::scope(|scope| {
        for (part, client) in clients.iter_mut().enumerate() {
            scope.spawn(move || {
                for number in (part..count).step_by(step) {
                    create(client, number);
                }
            });
        }
    });
}

#[track_caller]
fn create(client: &mut Client, object: &Value) -> Value {
    let path = collection(object["kind"].as_str().unwrap());
    let answer = client.create(&path, object).unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.body
}

/// Writes the admission of a Workload of one cpu.
#[track_caller]
fn admit(client: &mut Client, workload: &Value, queue: &str) {
    let metadata = &workload["metadata"];
    let name = metadata["name"].as_str().unwrap();
    let path = format!("{}/{name}/status", collection("Workload"));
    let change = quota_use::admission(queue, 1, 1, &metadata["creationTimestamp"]);
    let answer = client.patch(&path, &change).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// The holder of the Lease, and how often it has changed.
fn lease_holder(site: &ControllerFixture<'_>) -> [Value; 2] {
    let lease = &site.objects.list("Lease")[0]["spec"];
    ["holderIdentity", "leaseTransitions"].map(|field| lease[field].clone())
}
