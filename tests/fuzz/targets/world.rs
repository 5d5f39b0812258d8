//! Dumps of a cluster: no objects cause a panic in the answers about each workload, in the lists of queues and quota, in a
//! reduced dump, in a comparison, in a trace for simulations, or in the checks of webhooks and CRDs. Answers can be printed.

use lockkeeper_doctor::{Kind, Snapshot, diagnose};
use lockkeeper_explain::{
    NameReplacer, Project, WorldBuilder, WorldSettings, compare, explain, for_each_item, pending_pod_sets, pending_workloads,
    quota_rows, reduce_object, write_answer,
};
use lockkeeper_trace_import::{DumpSettings, dump_trace};
use serde_json::Value;

// Larger dumps find nothing new and are slow.
const OBJECTS_MAX: usize = 24;
const WORKLOADS_MAX: usize = 4;
const TEXT_BYTES_MAX: usize = 16_384;

/// 2026-01-01T00:00:00Z.
const NOW_S: i64 = 1_767_225_600;

pub fn run(text: &str) {
    if text.len() > TEXT_BYTES_MAX {
        return;
    }
    let Ok(documents) = serde_saphyr::from_multiple::<Value>(text) else {
        return;
    };
    let mut objects: Vec<Value> = Vec::new();
    for document in documents {
        for_each_item(document, &mut |object| objects.push(object));
    }
    if objects.len() > OBJECTS_MAX {
        return;
    }
    check_answers(&objects);
    let mut snapshot = Snapshot::new();
    for object in &objects {
        snapshot.add(object.clone());
    }
    for kind in [Kind::Service, Kind::EndpointSlice, Kind::PodDisruptionBudget] {
        snapshot.mark_complete(kind);
    }
    for endpoint in snapshot.endpoints() {
        let _ = (snapshot.addresses(&endpoint), endpoint.host());
    }
    let diagnosis = diagnose(&snapshot, &WorldSettings::default(), &[], NOW_S);
    assert!(serde_json::to_string(&diagnosis).is_ok());
}

fn check_answers(objects: &[Value]) {
    let mut builder = WorldBuilder::new();
    let mut changed = WorldBuilder::new();
    let mut replacer = NameReplacer::new();
    for (at, object) in objects.iter().enumerate() {
        builder.add(object.clone());
        if at % 2 == 0 {
            changed.add(object.clone());
        }
        let mut reduced = object.clone();
        reduce_object(&mut reduced);
        replacer.replace(&mut reduced);
    }
    for project in [Project::Lockkeeper, Project::Kueue] {
        let settings = WorldSettings {
            project: Some(project),
            ..WorldSettings::default()
        };
        let world = builder.clone().build(settings.clone());
        let other = changed.clone().build(settings);
        let _ = (pending_workloads(&world), quota_rows(&world), pending_pod_sets(&world));
        let _ = compare(&world, &other);
        let settings = DumpSettings { assumed_run_s: Some(60) };
        if let Ok(trace) = dump_trace(&world, settings) {
            assert!(!trace.jobs.is_empty());
        }
        for key in world.workload_keys().take(WORKLOADS_MAX) {
            if let Some(answer) = explain(&world, key) {
                let mut text = String::new();
                let _ = write_answer(&mut text, &answer);
            }
        }
    }
}
