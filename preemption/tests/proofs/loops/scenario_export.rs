//! Writes a loop as a scenario file, as in `tests/conformance/loops`.

use super::run::{CycleEvents, EvictionPace, Loop};
use crate::model::cluster_model::{FLAVORS, Limits, Queue, RESOURCES, Workload};
use lockkeeper_preemption::{
    Algorithm, BorrowWithinCohort, Fungibility, Preference, QueueingStrategy,
};
use std::fmt::Write;

pub fn export_scenario(found: &Loop) -> String {
    let mut text = String::new();
    let cluster_model = &found.start;
    if let Algorithm::FairSharing(strategies) = &cluster_model.options.algorithm {
        let strategies = format!("{strategies:?}");
        let _ = writeln!(text, "algorithm: fair");
        let _ = writeln!(text, "fairSharing: {{preemptionStrategies: {strategies}}}");
    }
    let _ = writeln!(text, "now: 3000");
    if found.pace == EvictionPace::OnePerCycle {
        let _ = writeln!(text, "victimsGo: oneARound");
    }
    let _ = writeln!(text, "cohorts:");
    for cohort in cluster_model.cohorts.values() {
        let _ = writeln!(text, "- name: {}", cohort.name);
        if let Some(parent) = &cohort.parent {
            let _ = writeln!(text, "  parent: {parent}");
        }
        weight(&mut text, cohort.weight);
        if !cohort.quotas.is_empty() {
            let _ = writeln!(text, "  quotas:");
        }
        for ((flavor, resource), limits) in &cohort.quotas {
            let of = format!("flavor: {}, {}", FLAVORS[*flavor], quota(*resource, limits));
            let _ = writeln!(text, "  - {{{of}}}");
        }
    }
    let _ = writeln!(text, "clusterQueues:");
    cluster_model
        .queues
        .values()
        .for_each(|it| queue(&mut text, it));
    for (key, is_running) in [("admitted", true), ("pending", false)] {
        let all = cluster_model.workloads.values();
        let mut all = all
            .filter(|it| it.reservation.is_some() == is_running)
            .peekable();
        if all.peek().is_some() {
            let _ = writeln!(text, "{key}:");
        }
        all.for_each(|it| workload(&mut text, it));
    }
    let _ = writeln!(text, "rounds:");
    for cycle in found.lead_in.iter().chain(&found.cycles) {
        cycle_events(&mut text, cycle);
    }
    let _ = writeln!(text, "loopFrom: {}", found.lead_in.len() + 1);
    text
}

fn weight(text: &mut String, weight: f64) {
    if weight.to_bits() != 1.0_f64.to_bits() {
        let _ = writeln!(text, "  fairWeight: {weight}");
    }
}

fn quota(resource: usize, limits: &Limits) -> String {
    let mut quota = format!(
        "resource: {}, nominal: {}",
        RESOURCES[resource], limits.nominal
    );
    if let Some(limit) = limits.borrowing {
        let _ = write!(quota, ", borrowingLimit: {limit}");
    }
    if let Some(limit) = limits.lending {
        let _ = write!(quota, ", lendingLimit: {limit}");
    }
    quota
}

fn queue(text: &mut String, queue: &Queue) {
    let _ = writeln!(text, "- name: {}", queue.name);
    if let Some(cohort) = &queue.cohort {
        let _ = writeln!(text, "  cohort: {cohort}");
    }
    weight(text, queue.weight);
    if queue.strategy == QueueingStrategy::StrictFifo {
        let _ = writeln!(text, "  queueingStrategy: StrictFIFO");
    }
    let _ = writeln!(text, "  resourceGroups:");
    for group in &queue.groups {
        let names: Vec<&str> = group.resources.iter().map(|it| RESOURCES[*it]).collect();
        let _ = writeln!(text, "  - resources: [{}]", names.join(", "));
        let _ = writeln!(text, "    flavors:");
        for (flavor, limits) in &group.flavors {
            let _ = writeln!(text, "    - name: {}", FLAVORS[*flavor]);
            let _ = writeln!(text, "      quotas:");
            for (resource, limits) in group.resources.iter().zip(limits) {
                let _ = writeln!(text, "      - {{{}}}", quota(*resource, limits));
            }
        }
    }
    let policy = queue.preemption;
    let (within, reclaim) = (policy.within_cluster_queue, policy.reclaim_within_cohort);
    let _ = writeln!(text, "  preemption:");
    let _ = writeln!(text, "    withinClusterQueue: {within:?}");
    let _ = writeln!(text, "    reclaimWithinCohort: {reclaim:?}");
    if let BorrowWithinCohort::LowerPriority { threshold_max } = policy.borrow_within_cohort {
        let threshold = threshold_max.map(|it| format!(", maxPriorityThreshold: {it}"));
        let borrow = format!("policy: LowerPriority{}", threshold.unwrap_or_default());
        let _ = writeln!(text, "    borrowWithinCohort: {{{borrow}}}");
    }
    fungibility(text, queue);
}

fn fungibility(text: &mut String, queue: &Queue) {
    let mut all = Vec::new();
    if queue.fungibility.when_can_borrow == Fungibility::TryNextFlavor {
        all.push("whenCanBorrow: TryNextFlavor");
    }
    if queue.fungibility.when_can_preempt == Fungibility::MayStopSearch {
        all.push("whenCanPreempt: MayStopSearch");
    }
    if queue.fungibility.preference == Preference::PreemptionOverBorrowing {
        all.push("preference: PreemptionOverBorrowing");
    }
    if !all.is_empty() {
        let _ = writeln!(text, "  flavorFungibility: {{{}}}", all.join(", "));
    }
}

fn workload(text: &mut String, workload: &Workload) {
    let _ = writeln!(text, "- name: {}", workload.name);
    if workload.uid != workload.name {
        let _ = writeln!(text, "  uid: {}", workload.uid);
    }
    let _ = writeln!(text, "  clusterQueue: {}", workload.queue);
    if workload.priority != 0 {
        let _ = writeln!(text, "  priority: {}", workload.priority);
    }
    if workload.candidate_priority() != workload.priority {
        let priority = workload.candidate_priority();
        let _ = writeln!(text, "  preemptionPriority: {priority}");
    }
    let _ = writeln!(text, "  queueOrderTime: {}", workload.order_time);
    let pods = &workload.pods[0];
    let requests = pods.requests.iter();
    let requests = requests.map(|(resource, amount)| format!("{}: {amount}", RESOURCES[*resource]));
    let mut set = format!("requests: {{{}}}", requests.collect::<Vec<_>>().join(", "));
    if let Some(held) = &workload.reservation {
        let _ = writeln!(text, "  quotaReservedTime: {}", held.reserved_at_s);
        if held.is_evicted {
            let _ = writeln!(text, "  evicted: true");
        }
        let flavors = held.usage.keys();
        let flavors = flavors
            .map(|(flavor, resource)| format!("{}: {}", RESOURCES[*resource], FLAVORS[*flavor]));
        let flavors = flavors.collect::<Vec<_>>().join(", ");
        let _ = write!(set, ", flavors: {{{flavors}}}");
    }
    let _ = writeln!(text, "  podSets: [{{{set}}}]");
}

fn cycle_events(text: &mut String, round: &CycleEvents) {
    let mut parts = Vec::new();
    if !round.released.is_empty() {
        parts.push(format!("left: [{}]", round.released.join(", ")));
    }
    if !round.admitted.is_empty() {
        parts.push(format!("admitted: [{}]", round.admitted.join(", ")));
    }
    let preempted = round.preempted.iter().map(|(preemptor, victims)| {
        let mut victims = victims.clone();
        victims.sort();
        let victims = victims
            .iter()
            .map(|(name, reason)| format!("{{workload: {name}, reason: {}}}", reason.as_str()));
        format!("{preemptor}: [{}]", victims.collect::<Vec<_>>().join(", "))
    });
    let preempted: Vec<String> = preempted.collect();
    if !preempted.is_empty() {
        parts.push(format!("preempted: {{{}}}", preempted.join(", ")));
    }
    let _ = writeln!(text, "- {{{}}}", parts.join(", "));
}
