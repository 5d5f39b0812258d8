#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use crate::{Encoder, History, LogError, LogHeader, Replay};
use lockkeeper_api::config::Config;
use lockkeeper_api::{ClusterQueue, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_cluster_state::journal::{ClusterEvent, restart_journal, take_events};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;

const NOW_MS: i64 = 1_700_000_000_000;

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn header() -> LogHeader {
    LogHeader::new("1.2.3", "process", &Config::default())
}

fn workload(name: &str, cpu: u32) -> Arc<Workload> {
    Arc::new(object(json!({
        "metadata": {"name": name, "namespace": "team", "uid": name, "resourceVersion": "7", "generation": 1,
            "creationTimestamp": "2023-11-14T22:00:00Z"},
        "spec": {"queueName": "q", "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [
            {"name": "c", "image": "train", "env": [{"name": "TOKEN", "value": "secret"}],
                "resources": {"requests": {"cpu": cpu.to_string()}}}]}}}]},
    })))
}

/// A cluster with 4 cpu, and a journal that has begun.
fn cluster() -> ClusterState {
    let mut cluster = header().empty_cluster();
    cluster.set_now(NOW_MS);
    cluster.set_namespace("team", [("team".to_owned(), "a".to_owned())].into());
    let flavor: ResourceFlavor = object(json!({"metadata": {"name": "f"}, "spec": {}}));
    cluster.set_resource_flavor(&flavor);
    let queue: ClusterQueue = object(json!({
        "metadata": {"name": "q"},
        "spec": {"namespaceSelector": {"matchLabels": {"team": "a"}}, "resourceGroups": [{"coveredResources": ["cpu"],
            "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 4}]}]}]},
    }));
    cluster.set_cluster_queue(Arc::new(queue)).unwrap();
    let local: LocalQueue = object(
        json!({"metadata": {"name": "q", "namespace": "team"}, "spec": {"clusterQueue": "q"}}),
    );
    cluster.set_local_queue(&local);
    restart_journal(&mut cluster, header().empty_cluster());
    cluster
}

/// Runs cycles with two workloads, of which one fits.
fn run(cluster: &mut ClusterState) {
    for name in ["first", "second"] {
        cluster.set_workload(workload(name, 3)).unwrap();
        cluster.next_cycle(NOW_MS + 1_000, true);
    }
    cluster.remove_workload("team/first");
    cluster.next_cycle(NOW_MS + 2_000, true);
}

fn encoder() -> Encoder {
    Encoder::new(header())
}

fn encode(encoder: &mut Encoder, continues: bool, events: &[ClusterEvent]) -> String {
    let mut out = String::new();
    encoder.begin_file(continues, &mut out).unwrap();
    for event in events {
        encoder.encode(event, &mut out).unwrap();
    }
    out
}

fn log() -> String {
    let mut cluster = cluster();
    run(&mut cluster);
    encode(&mut encoder(), false, &take_events(&mut cluster))
}

/// The error at a line, from 1.
fn error_of(log: &str) -> Option<(usize, LogError)> {
    let mut replay = Replay::new();
    log.lines().enumerate().find_map(|(at, line)| {
        let read = replay.read_line(line);
        read.err().map(|error| (at + 1, error))
    })
}

#[test]
fn a_log_is_decided_again() {
    let mut replay = Replay::new();
    for line in log().lines() {
        assert_eq!(replay.read_line(line).unwrap(), None, "{line}");
    }
    let summary = replay.summary();
    assert_eq!((summary.cycles, summary.decisions), (3, 3));
    assert_eq!(summary.from_ms, Some(NOW_MS));
    assert_eq!(summary.to_ms, Some(NOW_MS + 2_000));
}

#[test]
fn a_log_has_no_templates_and_equal_specs_once() {
    let log = log();
    assert!(!log.contains("secret") && !log.contains("image"), "{log}");
    assert_eq!(log.matches("\"event\":\"spec\"").count(), 1, "{log}");
    assert_eq!(log.matches("\"event\":\"workload\"").count(), 2, "{log}");
}

#[test]
fn other_decisions_are_a_difference() {
    let log = log();
    for (from, to, replayed) in [
        ("\"nominalQuota\":\"4\"", "\"nominalQuota\":\"2\"", "NoFit"),
        ("\"labels\":{\"team\"", "\"labels\":{\"tram\"", "OutOfScope"),
    ] {
        let changed = log.replacen(from, to, 1);
        assert_ne!(changed, log);
        // As if an earlier version had decided otherwise: with the hashes of its own lines.
        let unhashed = changed.lines().map(|line| match line.find(",\"hash\"") {
            Some(end) => format!("{}}}", &line[..end]),
            None => line.to_owned(),
        });
        let mut replay = Replay::new();
        let mut found = unhashed.filter_map(|line| replay.read_line(&line).unwrap());
        let difference = found.next().unwrap();
        assert_eq!(difference.version, "1.2.3");
        assert_eq!(difference.recorded.unwrap().decision, "Admit");
        assert_eq!(difference.replayed.unwrap().decision, replayed);
    }
}

#[test]
fn changes_of_a_log_are_found() {
    let log = log();
    let without = |at: usize| -> String {
        let lines = log.lines().enumerate();
        let kept = lines.filter(|(line, _)| *line != at);
        let mut text = kept.map(|(_, line)| line).collect::<Vec<_>>().join("\n");
        text.push('\n');
        text
    };
    let header = log.lines().next().unwrap();
    let first_cycle = log.lines().position(|it| it.contains("\"hash\"")).unwrap();
    for (changed, expected) in [
        (log.replacen("\"cpu\":\"3\"", "\"cpu\":\"1\"", 1), "hash"),
        (
            log.replacen("\"labels\":{\"team\"", "\"labels\":{\"tram\"", 1),
            "hash",
        ),
        (without(1), "hash"),
        (without(first_cycle), "hash"),
        (without(0), "begins with"),
        (log.replacen("\"format\":1", "\"format\":9", 1), "format 9"),
        (
            log.replacen("\"data\":{\"id\":0", "\"data\":{\"id\":5", 1),
            "spec 0",
        ),
        (format!("{header}\nnot a line\n"), "not a line"),
        (format!("{header}\n{{\"other\":1}}\n"), "not a line"),
    ] {
        let (_, error) = error_of(&changed).unwrap();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_file_can_be_read_alone_or_after_the_one_before() {
    let mut cluster = cluster();
    let mut encoder = encoder();
    run(&mut cluster);
    let first = encode(&mut encoder, false, &take_events(&mut cluster));
    // An assumed admission is not in the objects: it ends first, as when the watch shows it.
    cluster.revert_admission("team/second");
    restart_journal(&mut cluster, header().empty_cluster());
    cluster.next_cycle(NOW_MS + 3_000, true);
    let second = encode(&mut encoder, true, &take_events(&mut cluster));
    let third = encode(&mut encoder, true, &[]);
    for files in [
        vec![&first, &second, &third],
        vec![&second, &third],
        vec![&third],
    ] {
        let all: String = files.into_iter().map(String::as_str).collect();
        assert!(error_of(&all).is_none());
    }
    let (line, error) = error_of(&format!("{first}{third}")).unwrap();
    assert_eq!(line, first.lines().count() + 1);
    assert!(matches!(error, LogError::NotContinued), "{error}");
}

#[test]
fn a_history_has_the_events_of_one_workload() {
    let texts = |workload: &str| -> Vec<String> {
        let mut replay = Replay::with_observer(History::of(workload));
        for line in log().lines() {
            replay.read_line(line).unwrap();
        }
        let history = replay.into_observer();
        let events = history.events().iter();
        events
            .map(|it| format!("{} {} {}", it.at_ms - NOW_MS, it.event, it.message))
            .collect()
    };
    assert_eq!(
        texts("team/first"),
        [
            "0 Created LocalQueue q, 1 pod",
            "1000 Admitted 1 pod: cpu of flavor f",
            "1000 Deleted ",
        ]
    );
    let second = texts("team/second");
    assert_eq!(second.len(), 3, "{second:?}");
    assert_eq!(second[0], "1000 Created LocalQueue q, 1 pod");
    assert!(
        second[1].starts_with("1000 Pending Waiting for quota: "),
        "{second:?}"
    );
    assert_eq!(second[2], "2000 Admitted 1 pod: cpu of flavor f");
    assert_eq!(texts("team/other"), [""; 0]);
}

#[test]
fn an_admission_that_its_object_shows_is_not_withdrawn() {
    let events_after = |shows_admission: bool| -> Vec<&'static str> {
        let mut cluster = cluster();
        cluster.set_workload(workload("first", 3)).unwrap();
        cluster.next_cycle(NOW_MS + 1_000, true);
        cluster.revert_admission("team/first");
        let mut object = Workload::clone(&workload("first", 3));
        object.metadata.resource_version = Some("8".to_owned());
        if shows_admission {
            object.status = self::object(
                json!({"admission": {"clusterQueue": "q", "podSetAssignments": [
                {"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "3"}}]},
                "conditions": [{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "",
                    "lastTransitionTime": "2023-11-14T22:00:00Z"}]}),
            );
        }
        cluster.set_workload(Arc::new(object)).unwrap();
        let log = encode(&mut encoder(), false, &take_events(&mut cluster));
        let mut replay = Replay::with_observer(History::of("team/first"));
        for line in log.lines() {
            replay.read_line(line).unwrap();
        }
        let history = replay.into_observer();
        history.events().iter().map(|it| it.event).collect()
    };
    assert_eq!(events_after(true), ["Created", "Admitted"]);
    assert_eq!(
        events_after(false),
        ["Created", "Admitted", "AdmissionWithdrawn"]
    );
}

/// The controller keeps no pod sets of a finished workload. A user may clear its status, and then it is decided again.
#[test]
fn a_workload_that_was_finished_has_its_pod_sets_again() {
    let mut cluster = cluster();
    let whole = workload("w", 3);
    let mut finished = (*whole).clone();
    finished.spec.pod_sets.clear();
    finished.status = Some(object(json!({"conditions": [{
        "type": "Finished", "status": "True", "reason": "Succeeded", "message": "",
        "lastTransitionTime": "2023-11-14T22:00:00Z",
    }]})));
    for version in [Arc::clone(&whole), Arc::new(finished), whole] {
        cluster.set_workload(version).unwrap();
        cluster.next_cycle(NOW_MS + 1_000, true);
    }
    let log = encode(&mut encoder(), false, &take_events(&mut cluster));
    assert_eq!(log.matches("\"decision\":\"Admit\"").count(), 2, "{log}");
    let mut replay = Replay::new();
    for line in log.lines() {
        assert_eq!(replay.read_line(line).unwrap(), None, "{line}");
    }
}
