//! The API server is restarted with its stored data.

use std::time::Instant;

use serde_json::json;

use super::fixture::DrillFixture;
use crate::client::{Client, Response};
use crate::fixture::{DEFAULTS, Fixture};
use crate::kubectl::Kubectl;
use crate::load;
use crate::lockkeeper::{Lockkeeper, Protocol};
use crate::manifests;
use crate::wait;

const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

/// The webhook stays ready, restarts its watches, and returns correct results for objects
/// that changed before its watches were restored.
pub fn restarted(stage: &mut Fixture, protocol: Protocol) {
    let mut site = DrillFixture::open(stage, protocol, DEFAULTS, 1);
    class(&mut site.stage.cluster().client(), "early");
    let listed = || Ok((stored_classes(&site.replicas[0]) == BEFORE).then_some(()));
    wait::until(listed, || "the class is not listed".to_owned()).unwrap();

    let load = site.load();
    load.wait_for_requests();
    load.unavailable_while(|| {
        let cluster = site.stage.cluster_mut();
        cluster.stop_api_server().unwrap_or_else(|e| panic!("{e}"));
        wait_for_broken_watches(&site.replicas[0]);
        load.wait_for_unavailable();
        assert_ready(&mut site.replicas[0]);
        let cluster = site.stage.cluster_mut();
        cluster.start_api_server().unwrap_or_else(|e| panic!("{e}"));
    });
    let returned = Instant::now();
    let mut client = site.stage.cluster().client();
    reviewed_immediately(&mut client);
    let was_behind = stored_classes(&site.replicas[0]) == BEFORE;
    load.wait_for_requests();
    cache_catches_up(&site.kubectl, &mut client);
    let caught_up_s = returned.elapsed().as_secs_f64();
    assert_ready(&mut site.replicas[0]);

    let counts = load.finish(&site.title("the API server restarted"));
    println!(
        "  the stores were behind at first: {was_behind}; up to date after {caught_up_s:.1} s"
    );
    assert_eq!((counts.unexpected, counts.without_response), (0, 0));
    assert!(counts.unavailable > 0);
}

/// The classes while the API server is down: two of Kubernetes, those of the load, and `early`.
const BEFORE: u64 = 5;

fn stored_classes(server: &Lockkeeper) -> u64 {
    server.metric(r#"store_objects{store="priorityclasses"}"#)
}

/// Waits until every store has noticed that its watch is broken.
#[track_caller]
fn wait_for_broken_watches(server: &Lockkeeper) {
    let broken = || {
        let log = server.log();
        let lines = log.lines().filter(|line| line.contains("watch failed"));
        let lines: Vec<&str> = lines.collect();
        let is_reported = |store| lines.iter().any(|line| line.contains(store));
        let all = [
            "priorityclasses",
            "workloads",
            "pods",
            "clusterqueues",
            "cohorts",
            "resourceflavors",
            "localqueues",
        ]
        .into_iter()
        .all(is_reported);
        Ok(all.then_some(()))
    };
    wait::until(broken, || "the watches did not break".to_owned()).unwrap();
}

/// The same process is still ready: its stores have listed everything once.
#[track_caller]
fn assert_ready(server: &mut Lockkeeper) {
    assert!(server.is_running());
    let answer = server.endpoint().get("/readyz");
    assert_eq!(answer, Some((200, "ok\n".to_owned())));
}

/// Right after the restart, before a watch has delivered an event: a new class is looked up.
#[track_caller]
fn reviewed_immediately(client: &mut Client) {
    class(client, "late");
    let answer = attempt(client, "late");
    assert_eq!(answer.status, 201, "{answer:?}");
    let preemption = &answer.body["spec"]["preemptionPriorityClassName"];
    assert_eq!(preemption, "late");
    let answer = attempt(client, "never-made");
    assert_eq!(answer.status, 422, "{answer:?}");
}

/// Waits until each of the three watches has delivered a change from after the restart.
#[track_caller]
fn cache_catches_up(kubectl: &Kubectl, client: &mut Client) {
    let deleted = client.delete(&format!("{CLASSES}/early")).unwrap();
    assert_eq!(deleted.status, 200, "{deleted:?}");
    let user = manifests::workload_of_class("team", "user-of-late", "late");
    kubectl.apply(&user, &[]).expect_accepted_without_warning();
    let first = manifests::pod("first", true);
    kubectl.apply(&first, &[]).expect_accepted_without_warning();

    let rejected = || Ok((attempt(client, "early").status == 422).then_some(()));
    wait::until(rejected, || "the classes stay as they were".to_owned()).unwrap();
    let delete = ["delete", "priorityclass", "late", "--dry-run=server"];
    let warned = || {
        let reply = kubectl.run(&delete).expect_accepted();
        Ok(reply.stderr.contains("PC002").then_some(()))
    };
    wait::until(warned, || "the workloads stay as they were".to_owned()).unwrap();
    let second = manifests::pod("second", false);
    let rejected = || {
        let reply = kubectl.apply(&second, &["--dry-run=server"]);
        Ok(reply.stderr.contains("PO001").then_some(()))
    };
    wait::until(rejected, || "the pods stay as they were".to_owned()).unwrap();
}

#[track_caller]
fn class(client: &mut Client, name: &str) {
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": 200,
    });
    let answer = client.create(CLASSES, &class).unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
}

/// The result for a workload of this class.
#[track_caller]
fn attempt(client: &mut Client, class: &str) -> Response {
    let path = format!("{}?dryRun=All", load::WORKLOADS);
    client
        .create(&path, &load::workload("attempt", class, ""))
        .unwrap()
}
