//! Scenario files: a valid scenario never causes a panic, neither in the decision on its incoming workload
//! nor over several cycles in which victims leave. Usage is never negative, and each decision can be printed.
//! Scenarios of pods on nodes are decided by both algorithms, for the whole group and pod by pod.

use lockkeeper_preemption::gang::SchedulerCompatibility;
use lockkeeper_preemption::{Amount, Cycle, Decision, State, WorkloadId};
use lockkeeper_scenario::job::Case;
use lockkeeper_scenario::{Scenario, compatibility, explanation, gang, load};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Enough cycles for victims to leave, their preemptor to be admitted, and the next workload to be considered.
const CYCLES: i64 = 6;

// Larger scenarios find nothing new and are slow: a search costs candidates × resources.
const OBJECTS_MAX: usize = 24;
const WORKLOADS_MAX: usize = 48;
const POD_SETS_MAX: usize = 8;
const RESOURCES_MAX: usize = 8;
const FLAVORS_MAX: usize = 8;
const CASE_BYTES_MAX: usize = 8_192;

pub fn run(text: &str) {
    if explain_case(text) {
        return;
    }
    if parse::<Value>(text).as_ref().is_some_and(gang::is_gang_scenario) {
        if let Some(scenario) = parse(text).filter(is_small_cluster) {
            decide_gangs(scenario);
        }
        return;
    }
    let Some(scenario) = parse::<Scenario>(text).filter(is_small) else {
        return;
    };
    let Ok(mut loaded) = load(&scenario, compatibility(&scenario)) else {
        return;
    };
    check_usage(&loaded.state);
    if let Some(nomination) = loaded.nominate(&scenario) {
        let state = &loaded.state;
        let name = scenario.incoming.as_ref().map_or("", |it| &it.name);
        let mut text_out = String::new();
        explanation::write_nomination(&mut text_out, state, name, &nomination).expect("a string takes all");
        text_out.push_str(&explanation::nomination_json(state, name, &nomination).to_string());
        assert!(text_out.contains("victims"));
    }
    let late: Vec<_> = loaded.late.values().cloned().collect();
    for turn in 0..CYCLES {
        let cycle = loaded.state.next_cycle(scenario.now.saturating_add(turn), true);
        check_usage(&loaded.state);
        explain(&loaded.state, &cycle);
        for victim in victims(&cycle) {
            loaded.state.mark_evicted(victim);
            loaded.state.release(victim);
            check_usage(&loaded.state);
        }
        if turn == 0 {
            for workload in &late {
                loaded.add_pending(workload);
            }
        }
    }
}

/// Decides a scenario of pods on nodes with each algorithm, and prints the answers.
fn decide_gangs(mut scenario: gang::GangScenario) {
    for compatibility in [None, Some(SchedulerCompatibility::Lockkeeper), Some(SchedulerCompatibility::KubeScheduler)] {
        for pod_by_pod in [scenario.pod_by_pod, true] {
            scenario.pod_by_pod = pod_by_pod;
            let Ok(loaded) = gang::load(&scenario, gang::options(&scenario, compatibility)) else {
                return;
            };
            let answer = gang::evaluate(&scenario, &loaded);
            let mut text_out = String::new();
            gang::write_text(&mut text_out, &loaded, &answer).expect("a string takes all");
            assert!(gang::to_json(&loaded, &answer).is_object());
        }
    }
}

fn is_small_cluster(scenario: &gang::GangScenario) -> bool {
    let waiting = scenario.preemptor.as_ref().map_or(0, |it| it.pods.len());
    let groups = scenario.pod_groups.len() + scenario.composite_pod_groups.len();
    scenario.nodes.len() + scenario.pdbs.len() + groups <= OBJECTS_MAX
        && scenario.pods.len() + waiting <= WORKLOADS_MAX
        && scenario.victims.iter().map(|it| it.pods.len()).sum::<usize>() <= WORKLOADS_MAX
}

/// Whether the text is a case of jobs under elastic quotas; if so, decides it.
fn explain_case(text: &str) -> bool {
    let Some(value) = parse::<Value>(text).filter(Case::is_job_case) else {
        return false;
    };
    if text.len() <= CASE_BYTES_MAX
        && let Ok(answer) = Case::parse(value).and_then(|it| it.decide())
    {
        assert!(!answer.text.is_empty());
    }
    true
}

/// Parses JSON or YAML like `lockkeeper explain`.
fn parse<T: DeserializeOwned>(text: &str) -> Option<T> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).ok();
    }
    serde_saphyr::from_str(text).ok()
}

fn is_small(scenario: &Scenario) -> bool {
    let queues = &scenario.cluster_queues;
    let workloads = || {
        let waiting = scenario.pending.iter().chain(&scenario.incoming);
        scenario.admitted.iter().chain(waiting)
    };
    let given = scenario.assignment.iter();
    queues.len() + scenario.cohorts.len() <= OBJECTS_MAX
        && scenario.cohorts.iter().all(|it| it.quotas.len() <= FLAVORS_MAX * RESOURCES_MAX)
        && queues.iter().flat_map(|it| &it.resource_groups).count() <= OBJECTS_MAX
        && queues.iter().all(|it| it.usage.len() <= FLAVORS_MAX * RESOURCES_MAX)
        && queues.iter().flat_map(|it| &it.resource_groups).all(|group| {
            group.resources.len() <= RESOURCES_MAX
                && group.flavors.len() <= FLAVORS_MAX
                && group.flavors.iter().all(|it| it.quotas.len() <= RESOURCES_MAX)
        })
        && workloads().count() <= WORKLOADS_MAX
        && workloads().all(|it| it.pod_sets.len() <= POD_SETS_MAX)
        && workloads().flat_map(|it| &it.pod_sets).all(|it| it.requests.len() <= RESOURCES_MAX)
        && given.flat_map(|it| &it.need_preemption).count() <= RESOURCES_MAX
}

fn check_usage(state: &State) {
    for (name, queue) in state.queues() {
        for (of, amount) in state.node_view(queue).usage() {
            assert!(amount >= Amount::ZERO, "{name} uses {amount} of {of:?}");
        }
    }
}

fn explain(state: &State, cycle: &Cycle) {
    for entry in &cycle.entries {
        let mut text_out = String::new();
        explanation::write_entry(&mut text_out, state, entry).expect("a string takes all");
        assert!(text_out.contains(state.workload_name(entry.workload)));
        let json = explanation::entry_json(state, entry);
        assert!(json["decision"].is_string(), "{json}");
    }
}

fn victims(cycle: &Cycle) -> Vec<WorkloadId> {
    let preempting = cycle.entries.iter().filter_map(|entry| match &entry.decision {
        Decision::Preempt(victims) => Some(victims),
        _ => None,
    });
    preempting.flatten().map(|it| it.workload).collect()
}
