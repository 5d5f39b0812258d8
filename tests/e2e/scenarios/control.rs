//! The controller on a real cluster: a Job is queued, started, preempted and requeued.

mod adopt;
mod backfill;
mod bad_input;
mod borrowing;
mod connection_faults;
mod decision_log;
mod elastic;
mod elastic_nodes;
mod explain;
mod faults;
mod fixture;
mod held_writes;
mod inter_pod;
mod invariants;
mod job_kinds;
mod jobs;
mod limits;
mod many_queues;
mod placement;
mod pod_defaults;
mod pod_groups;
mod pods;
mod pods_ready;
mod preemption;
mod preemption_loops;
mod previews;
mod probes;
mod proxy_faults;
mod quota_use;
mod render;
mod statistics;
mod tenant;
mod upgrades;

use super::Scenario;
use crate::fixture::Fixture;
use crate::lockkeeper::{Program, Protocol};

pub fn scenarios() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    // The first minor release of Kubernetes that has what the trials need, if not all supported ones have it.
    let mut add_since = |since: Option<u32>, of: &str, all: &[Trial]| {
        scenarios.extend(all.iter().map(|&(name, run)| {
            let name = format!("control: {of}: {name}");
            // The controller does not depend on the protocol of the webhook.
            let trial = Scenario::new(name, move |stage, _| run(stage)).only(Protocol::Http1);
            Scenario { since, ..trial }
        }));
    };
    add_since(Some(37), "pod groups", &pod_groups::KUBERNETES_TRIALS);
    add_since(Some(36), "job kinds", &job_kinds::POLICY_TRIALS);
    let mut add = |of: &str, all: &[Trial]| add_since(None, of, all);
    add("preemption", &preemption::TRIALS);
    add("borrowing", &borrowing::TRIALS);
    add("preemption", &preemption_loops::TRIALS);
    add("elastic", &elastic::TRIALS);
    add("limits", &limits::TRIALS);
    add("backfill", &backfill::TRIALS);
    add("pods", &pods::TRIALS);
    add("pod groups", &pod_groups::TRIALS);
    add("placement", &placement::TRIALS);
    add("inter-pod", &inter_pod::TRIALS);
    add("pod defaults", &pod_defaults::TRIALS);
    add("elastic nodes", &elastic_nodes::TRIALS);
    add("pods ready", &pods_ready::TRIALS);
    add("jobs", &jobs::TRIALS);
    add("job kinds", &job_kinds::TRIALS);
    add("adopt", &adopt::TRIALS);
    add("explain", &explain::TRIALS);
    add("previews", &previews::TRIALS);
    add("decision log", &decision_log::TRIALS);
    add("statistics", &statistics::TRIALS);
    add("bad input", &bad_input::TRIALS);
    add("tenant", &tenant::TRIALS);
    add("faults", &faults::TRIALS);
    add("faults", &proxy_faults::TRIALS);
    add("faults", &connection_faults::TRIALS);
    add("faults", &held_writes::TRIALS);
    add("scale", &many_queues::TRIALS);
    // They start from an earlier version, which tests/upgrade builds.
    if Program::earlier().is_some() {
        add("upgrades", &upgrades::TRIALS);
    }
    scenarios
}

/// A trial: its name and its function.
type Trial = (&'static str, fn(&mut Fixture));
