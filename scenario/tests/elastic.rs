//! Elastic ClusterQueues: their explanations, and their conversion from objects.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use lockkeeper_api::{ClusterQueue, Workload};
use lockkeeper_cluster_state::pending_message;
use lockkeeper_cluster_state::{preemption_labels, queue_spec};
use lockkeeper_preemption::job::{ElasticDefaults, LabelValue, PreemptionLabels};
use lockkeeper_preemption::{
    Compatibility, Decision, ReclaimWithinCohort, State, WithinClusterQueue,
};
use lockkeeper_scenario::explanation;
use lockkeeper_scenario::{Scenario, load};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Write;

/// `owner` may use 4 and borrow 2 more; `guest` has no nominal quota and has borrowed the idle quota.
const ELASTIC_QUEUES: &str = r#"
clusterQueues:
- name: owner
  cohort: all
  elastic: {SWITCHES}
  resourceGroups: [{resources: [cpu], flavors: [{name: f, quotas: [{resource: cpu, nominal: "4", borrowingLimit: "2"}]}]}]
- name: guest
  cohort: all
  elastic: {}
  resourceGroups: [{resources: [cpu], flavors: [{name: f, quotas: [{resource: cpu, nominal: "4"}]}]}]
admitted:
- {name: steady, clusterQueue: guest, preemptible: "false", podSets: [{requests: {cpu: "2"}, flavors: {cpu: f}}]}
- {name: lent, clusterQueue: guest, preemptible: "false", podSets: [{requests: {cpu: "2"}, flavors: {cpu: f}}]}
- {name: borrowed, clusterQueue: guest, podSets: [{requests: {cpu: "3"}, flavors: {cpu: f}}]}
- {name: own, clusterQueue: owner, preemptible: "false", podSets: [{requests: {cpu: "1"}, flavors: {cpu: f}}]}
"#;

/// By a `Value`, whose decoders the crates contain: those of a YAML parser for pods take a minute to compile.
fn yaml<T: DeserializeOwned>(text: &str) -> T {
    let value: Value = serde_saphyr::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    serde_json::from_value(value).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn explain(switches: &str, pending: &str) -> String {
    let text = format!(
        "{}pending: [{pending}]",
        ELASTIC_QUEUES.replace("SWITCHES", switches)
    );
    let scenario: Scenario =
        serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let mut state = load(&scenario, Compatibility::Lockkeeper).unwrap().state;
    let cycle = state.next_cycle(scenario.now, true);
    let mut out = String::new();
    for entry in &cycle.entries {
        explanation::write_entry(&mut out, &state, entry).unwrap();
        let json = explanation::entry_json(&state, entry);
        assert!(!json["trace"].to_string().contains("\"other\""), "{json}");
        if entry.decision == Decision::NoFit {
            writeln!(out, "\nin a condition: {}", pending_message(&state, entry)).unwrap();
        }
    }
    out
}

fn pending(cpu: u32, more: &str) -> String {
    format!(
        "{{name: p, clusterQueue: owner, priority: 5, podSets: [{{requests: {{cpu: \"{cpu}\"}}}}]{more}}}"
    )
}

#[test]
fn explanation_names_elastic_queue_limits() {
    let fixed = ", preemptible: \"false\"";
    let waits = "{name: w, clusterQueue: owner, preemptible: \"false\", \
                 podSets: [{requests: {cpu: \"3\"}}]}";
    let mut out = String::new();
    for (what, switches, pending) in [
        ("takes back what was lent", "", pending(3, fixed)),
        ("beyond min", "", pending(4, fixed)),
        (
            "beyond max with what is kept",
            "",
            format!("{}, {waits}", pending(3, "")),
        ),
        (
            "may not trigger",
            "disableDefaultTriggerPreemption: true",
            pending(3, fixed),
        ),
        (
            "its policy is Never",
            "",
            pending(3, ", preemptionPolicy: Never"),
        ),
        (
            "says that it may",
            "disableDefaultTriggerPreemption: true",
            pending(3, ", canPreempt: \"true\""),
        ),
    ] {
        writeln!(out, "# {what}\n{}", explain(switches, &pending)).unwrap();
    }
    insta::assert_snapshot!("elastic", out);
}

#[test]
fn queue_spec_reads_elastic_switches() {
    let queue: ClusterQueue = yaml(
        "{metadata: {name: q}, spec: {elastic: {disableDefaultPreemptiable: true, podShouldBeDeletedWhenPreempted: true}}}",
    );
    let spec = queue_spec(&queue, &mut State::default(), true).unwrap();
    let expected = ElasticDefaults {
        disable_default_preemptible: true,
        disable_default_trigger: false,
        delete_victims: true,
    };
    assert_eq!(spec.elastic, Some(expected));
    assert_eq!(
        (
            spec.preemption.within_cluster_queue,
            spec.preemption.reclaim_within_cohort
        ),
        (
            WithinClusterQueue::LowerPriority,
            ReclaimWithinCohort::LowerPriority
        )
    );
    let plain: ClusterQueue = yaml("{metadata: {name: q}, spec: {}}");
    let spec = queue_spec(&plain, &mut State::default(), true).unwrap();
    assert_eq!(spec.elastic, None);
}

#[test]
fn preemption_labels_strictest_template_wins() {
    let template = |labels: &str, policy: &str| {
        format!(
            "{{template: {{metadata: {{labels: {{{labels}}}}}, spec: {{containers: [], preemptionPolicy: {policy}}}}}}}"
        )
    };
    let of = |sets: &[String]| {
        let text = format!(
            "{{metadata: {{}}, spec: {{podSets: [{}]}}}}",
            sets.join(", ")
        );
        let workload: Workload = yaml(&text);
        preemption_labels(&workload)
    };
    let preemptible = |it: &str| format!("quota.scheduling.koordinator.sh/preemptible: \"{it}\"");
    let can = |it: &str| format!("quota.scheduling.koordinator.sh/can-preempt: \"{it}\"");
    let default = PreemptionLabels::default();
    let (no, yes) = (
        template(&preemptible("false"), "null"),
        template(&preemptible("x"), "null"),
    );
    let nothing = template("", "null");
    for (sets, expected) in [
        (vec![], default),
        (vec![nothing.clone()], default),
        (
            vec![yes.clone()],
            PreemptionLabels {
                preemptible: LabelValue::Yes,
                ..default
            },
        ),
        (
            vec![yes.clone(), no],
            PreemptionLabels {
                preemptible: LabelValue::No,
                ..default
            },
        ),
        (vec![yes, nothing], default),
        (
            vec![template(&can("true"), "PreemptLowerPriority")],
            PreemptionLabels {
                can_preempt: LabelValue::Yes,
                ..default
            },
        ),
        (
            vec![
                template(&can("false"), "null"),
                template(&can("true"), "Never"),
            ],
            PreemptionLabels {
                can_preempt: LabelValue::No,
                never_preempts: true,
                ..default
            },
        ),
    ] {
        assert_eq!(of(&sets), expected, "{sets:?}");
    }
}
