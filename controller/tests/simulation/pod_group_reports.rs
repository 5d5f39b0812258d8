//! How often the controller reports on the pods of a group why they do not start.

use crate::fixture::Fixture;
use crate::objects::NAMESPACE;
use crate::pod_groups::{pod, reason};
use crate::queued_pods::POD;
use lockkeeper_api::labels;
use lockkeeper_controller::{ObjectKey, Settings};
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::json;

/// The reports in a second, and of how many seconds they are saved up.
const PER_SECOND: u32 = 5;
const BURST_SECONDS: u32 = 10;

/// One pod decides what all others report: these writes are limited, so that its user cannot keep the API server busy.
#[test]
fn reports_of_groups_are_limited_in_a_second() {
    let limited = |settings: &mut Settings| {
        settings.job_kinds = vec![0, 1, 2];
        settings.pending_reason_writes_per_second = PER_SECOND;
    };
    let mut stage = Fixture::with_settings(RequeueSettings::default(), 2, limited);
    let names: Vec<String> = (0..50).map(|it| format!("p-{it:02}")).collect();
    for name in &names {
        stage.api.create(POD, pod(name, 60, &json!({}))).unwrap();
    }
    stage.advance(60_000);
    let all_wait = |stage: &Fixture| {
        let mut names = names.iter();
        names.all(|it| reason(stage, it) == "PodGroupIncomplete")
    };
    assert!(all_wait(&stage));
    let mut reports = 0;
    // Two seconds.
    for total in (0..20).map(|it| 60 + (it + 1) % 2) {
        let total = json!({labels::POD_GROUP_TOTAL_COUNT: total.to_string()});
        stage.change(POD, "p-00", &json!({"metadata": {"annotations": total}}));
        let lines = stage.advance(100);
        let of_groups = lines
            .iter()
            .filter(|it| it.starts_with("pod_group_problem"));
        reports += of_groups.count();
    }
    let most = usize::try_from((BURST_SECONDS + 2) * PER_SECOND).unwrap();
    assert!((1..=most).contains(&reports), "{reports}");
    // They are written in the end.
    stage.advance(60_000);
    assert!(all_wait(&stage));
}

/// A pod that lost its label is read until it has ended, and is forgotten with its group.
#[test]
fn ended_pod_without_label_is_not_read_again() {
    let pods = |settings: &mut Settings| settings.job_kinds = vec![0, 1, 2];
    let mut stage = Fixture::with_settings(RequeueSettings::default(), 2, pods);
    for name in ["a", "b"] {
        stage.api.create(POD, pod(name, 2, &json!({}))).unwrap();
    }
    stage.settle();
    let unlabel = json!({"metadata": {"labels": {labels::QUEUE_NAME: null}}});
    stage.change(POD, "a", &unlabel);
    stage.status(POD, "a", &json!({"phase": "Succeeded"}));
    stage.advance(10_000);
    let reads = |lines: Vec<String>| lines.iter().filter(|it| it.starts_with("read_pod")).count();
    assert_eq!(reads(stage.advance(60_000)), 0);
    stage.status(POD, "b", &json!({"phase": "Succeeded"}));
    stage.advance(120_000);
    for name in ["a", "b"] {
        let key = ObjectKey::new(NAMESPACE, name);
        stage.api.delete(POD, &key, None, false).unwrap();
    }
    stage.advance(120_000);
    assert_eq!(reads(stage.advance(60_000)), 0);
}
