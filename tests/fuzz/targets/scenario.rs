//! A scenario that is a state is decided on without a panic: the incoming one alone, and cycle after
//! cycle while victims go. Nobody ever holds less than nothing, and all of it can be told. One of pods on
//! nodes is answered as both algorithms have it, whole and pod by pod.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockkeeper_preemption::gang::Compatibility as Whose;
use lockkeeper_preemption::{Amount, Cycle, Decision, State, WorkloadId};
use lockkeeper_snapshot::gang;
use lockkeeper_snapshot::job::Case;
use lockkeeper_snapshot::scenario::{Scenario, compatibility, load};
use lockkeeper_snapshot::story;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Enough for victims to go, their preemptor to come, and the next one to be looked at.
const CYCLES: i64 = 6;

// What is larger is only slower: a search costs the candidates times what each is asked about.
const OBJECTS_MAX: usize = 24;
const WORKLOADS_MAX: usize = 48;
const POD_SETS_MAX: usize = 8;
const RESOURCES_MAX: usize = 8;
const FLAVORS_MAX: usize = 8;
const CASE_BYTES_MAX: usize = 8_192;

fuzz_target!(|text: &str| {
    if tell_case(text) {
        return;
    }
    if parse::<Value>(text).as_ref().is_some_and(gang::is_gang) {
        if let Some(scenario) = parse(text).filter(is_small_cluster) {
            gangs(scenario);
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
        let mut told = String::new();
        story::tell_nomination(&mut told, state, name, &nomination).expect("a string takes all");
        told.push_str(&story::nomination(state, name, &nomination).to_string());
        assert!(told.contains("victims"));
    }
    let late: Vec<_> = loaded.late.values().cloned().collect();
    for turn in 0..CYCLES {
        let cycle = loaded.state.next_cycle(scenario.now.saturating_add(turn), true);
        check_usage(&loaded.state);
        tell(&loaded.state, &cycle);
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
});

/// Pods on nodes: every way to ask is answered, and told.
fn gangs(mut scenario: gang::Scenario) {
    for whose in [None, Some(Whose::Lockkeeper), Some(Whose::KubeScheduler)] {
        for pod_by_pod in [scenario.pod_by_pod, true] {
            scenario.pod_by_pod = pod_by_pod;
            let Ok(loaded) = gang::load(&scenario, gang::options(&scenario, whose)) else {
                return;
            };
            let answer = gang::answer(&scenario, &loaded);
            let mut told = String::new();
            gang::tell(&mut told, &loaded, &answer).expect("a string takes all");
            assert!(gang::told(&loaded, &answer).is_object());
        }
    }
}

fn is_small_cluster(scenario: &gang::Scenario) -> bool {
    let waiting = scenario.preemptor.as_ref().map_or(0, |it| it.pods.len());
    let groups = scenario.pod_groups.len() + scenario.composite_pod_groups.len();
    scenario.nodes.len() + scenario.pdbs.len() + groups <= OBJECTS_MAX
        && scenario.pods.len() + waiting <= WORKLOADS_MAX
        && scenario.victims.iter().map(|it| it.pods.len()).sum::<usize>() <= WORKLOADS_MAX
}

/// Whether it is a case of jobs under elastic quotas. Then it is decided, or refused.
fn tell_case(text: &str) -> bool {
    let Some(value) = parse::<Value>(text).filter(Case::is_one) else {
        return false;
    };
    if text.len() <= CASE_BYTES_MAX
        && let Ok(told) = Case::of(value).and_then(|it| it.decide())
    {
        assert!(!told.text.is_empty());
    }
    true
}

/// As `lockkeeper explain` does it.
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
        for (of, amount) in state.usage(queue) {
            assert!(amount >= Amount::ZERO, "{name} holds {amount} of {of:?}");
        }
    }
}

fn tell(state: &State, cycle: &Cycle) {
    for entry in &cycle.entries {
        let mut told = String::new();
        story::tell_entry(&mut told, state, entry).expect("a string takes all");
        assert!(told.contains(state.workload_name(entry.workload)));
        let json = story::entry(state, entry);
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
