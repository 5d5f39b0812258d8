#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use super::{DecisionLog, DecisionLogTarget};
use crate::EventBatch;
use flate2::read::GzDecoder;
use lockkeeper_api::config::Config;
use lockkeeper_cluster_state::journal::{ClusterEvent, CycleRecord, DecisionRecord};
use lockkeeper_decision_log::LogHeader;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

fn target(file: PathBuf) -> DecisionLogTarget {
    DecisionLogTarget {
        file: Some(file),
        file_bytes_max: 1_000,
        files_max: 3,
        header: LogHeader::new("1.2.3", "process", &Config::default()),
    }
}

fn batch(is_start: bool, decisions: usize) -> EventBatch {
    let decision = DecisionRecord {
        workload: "team/w".into(),
        decision: "NoFit".into(),
        ..DecisionRecord::default()
    };
    let cycle = CycleRecord {
        decisions: vec![decision; decisions],
    };
    EventBatch {
        is_start,
        events: vec![ClusterEvent::Cycle(cycle)],
    }
}

fn read(path: &Path) -> String {
    let mut text = String::new();
    let mut file = File::open(path).unwrap();
    if path.to_string_lossy().contains(".gz") {
        GzDecoder::new(file).read_to_string(&mut text).unwrap();
    } else {
        file.read_to_string(&mut text).unwrap();
    }
    text
}

#[test]
fn each_start_begins_a_file_and_the_oldest_is_deleted() {
    for name in ["log.jsonl", "log.jsonl.gz"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let mut log = DecisionLog::start(target(path.clone())).unwrap();
        for decisions in 1..=5 {
            log.send(vec![batch(true, decisions)]);
        }
        // Before a start nothing is written, and dropping the log ends its file.
        drop(log);
        let decisions = |file: &str| {
            let text = read(&folder.path().join(file));
            assert!(text.starts_with("{\"event\":\"header\""), "{text}");
            text.matches("NoFit").count()
        };
        assert_eq!(decisions(name), 5);
        assert_eq!(decisions(&format!("{name}.1")), 4);
        assert_eq!(decisions(&format!("{name}.2")), 3);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        // A later process keeps the files of this one.
        let mut log = DecisionLog::start(target(path)).unwrap();
        log.send(vec![batch(false, 9), batch(true, 6)]);
        drop(log);
        assert_eq!(decisions(name), 6);
        assert_eq!(decisions(&format!("{name}.1")), 5);
    }
}

#[test]
fn a_full_file_asks_for_a_start_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = DecisionLog::start(target(folder.path().join("log.jsonl"))).unwrap();
    let shared = std::sync::Arc::clone(&log.shared);
    log.send(vec![batch(true, 1), batch(false, 1_000), batch(false, 1)]);
    drop(log);
    assert!(
        shared
            .wants_start
            .load(std::sync::atomic::Ordering::Relaxed)
    );
    assert_eq!(shared.gaps.load(std::sync::atomic::Ordering::Relaxed), 0);
    assert!(
        shared
            .written_bytes
            .load(std::sync::atomic::Ordering::Relaxed)
            > 1_000
    );
}

#[test]
fn a_log_that_cannot_be_written_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(folder.path().join("absent/log.jsonl"));
    assert!(DecisionLog::start(target).is_err());
}

#[test]
fn batches_that_do_not_fit_into_memory_are_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = DecisionLog::start(target(folder.path().join("log.jsonl"))).unwrap();
    // As if the thread were stuck: its channel is closed.
    log.batches = Some(std::sync::mpsc::sync_channel(0).0);
    log.send(vec![batch(true, 1), batch(false, 1), batch(false, 1)]);
    assert_eq!(log.gaps(), 1);
    assert!(log.take_wants_start());
    assert!(!log.take_wants_start());
}

#[test]
fn only_owner_and_group_may_read_a_log() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let mut log = DecisionLog::start(target(path.clone())).unwrap();
    log.send(vec![batch(true, 1), batch(true, 1)]);
    drop(log);
    for name in ["log.jsonl", "log.jsonl.1"] {
        let metadata = fs::metadata(folder.path().join(name)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o027, 0, "{name}");
    }
}

#[test]
fn a_file_after_a_gap_does_not_continue_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let mut log = DecisionLog::start(target(path.clone())).unwrap();
    log.send(vec![batch(true, 1), batch(true, 1)]);
    log.has_gap = true;
    log.send(vec![batch(false, 1), batch(true, 1)]);
    assert!(!log.has_gap);
    drop(log);
    let continues = |name: &str| {
        let text = read(&folder.path().join(name));
        let header = text.lines().next().unwrap();
        header.contains("\"continues\"")
    };
    assert!(continues("log.jsonl.1"));
    assert!(!continues("log.jsonl"));
    assert!(!continues("log.jsonl.2"));
}
