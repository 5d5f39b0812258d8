//! The message of the condition of a pending workload, for states in which quota is held for a preemptor and for
//! others in which it is not.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use lockkeeper_cluster_state::pending_message;
use lockkeeper_preemption::{Compatibility, Decision, State};
use lockkeeper_scenario::{Scenario, load};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A queue of a cohort; `more` is what else its YAML says.
fn queue(name: &str, cohort: &str, cpu: u32, more: &str) -> String {
    format!(
        "- {{name: {name}, cohort: {cohort}, {more} resourceGroups: [{{resources: [cpu], flavors: [\
         {{name: f, quotas: [{{resource: cpu, nominal: \"{cpu}\"}}]}}]}}]}}\n"
    )
}

fn admitted(name: &str, queue: &str, cpu: u32) -> String {
    format!(
        "- {{name: ns/{name}, clusterQueue: {queue}, podSets: [{{requests: {{cpu: \"{cpu}\"}}, \
         flavors: {{cpu: f}}}}]}}\n"
    )
}

/// One that waits. The lower the number, the earlier it came.
fn pending(name: &str, queue: &str, cpu: u32, at: i64, priority: i32) -> String {
    format!(
        "- {{name: ns/{name}, clusterQueue: {queue}, queueOrderTime: {at}, priority: {priority}, \
         podSets: [{{name: main, requests: {{cpu: \"{cpu}\"}}}}]}}\n"
    )
}

fn scenario(top: &str, queues: &[String], admitted: &[String], pending: &[String]) -> String {
    let mut out = format!("damping: true\nnow: 100\n{top}clusterQueues:\n");
    out.push_str(&queues.concat());
    let _ = write!(out, "admitted:\n{}", admitted.concat());
    let _ = write!(out, "pending:\n{}", pending.concat());
    out
}

/// Runs a cycle, removes `gone`, and runs another cycle. Returns the pending reason of `who` in the last cycle.
fn pending_message_after(text: &str, gone: &[&str], who: &str) -> String {
    let scenario: Scenario = serde_saphyr::from_str(text).unwrap();
    let mut state = load(&scenario, Compatibility::Lockkeeper).unwrap().state;
    let mut message = cycle_message(&mut state, 101, who);
    if !gone.is_empty() {
        for name in gone {
            let victim = state.workload(name).unwrap();
            state.remove(victim);
        }
        message = cycle_message(&mut state, 102, who).or(message);
    }
    message.unwrap_or_else(|| panic!("no cycle considered {who}"))
}

fn cycle_message(state: &mut State, now_s: i64, who: &str) -> Option<String> {
    let cycle = state.next_cycle(now_s, true);
    let mut entries = cycle.entries.iter();
    let entry = entries.find(|it| state.workload_name(it.workload) == who)?;
    Some(pending_message(state, entry))
}

/// It takes back what others have borrowed, whatever their priority.
const RECLAIMS: &str = "preemption: {reclaimWithinCohort: Any},";

/// It takes from the lower ones, also in order to borrow.
const BORROWS: &str = "preemption: {reclaimWithinCohort: LowerPriority, \
                       borrowWithinCohort: {policy: LowerPriority}},";

/// `owner` takes back what `guest` has borrowed; of the victims `two` goes first. Of 5 CPUs 2 are used then, and
/// 2 are held.
fn one_victim_left(policy: &str, asks: u32, priority: i32) -> String {
    scenario(
        "",
        &[
            queue("owner", "all", 4, RECLAIMS),
            queue("guest", "all", 0, ""),
            queue("other", "all", 1, policy),
        ],
        &[admitted("one", "guest", 2), admitted("two", "guest", 3)],
        &[
            pending("big", "owner", 4, 1, 0),
            pending("waits", "other", asks, 2, priority),
        ],
    )
}

/// As many queues that take 2 CPUs back, one from each of two guests.
fn reclaiming_queues(number: u32) -> State {
    let mut queues = vec![
        queue("guest", "all", 0, ""),
        queue("other", "all", 0, BORROWS),
    ];
    let mut running = Vec::new();
    let mut waiting = vec![pending("waits", "other", 2, 99, 0)];
    for at in 1..=number {
        let owner = format!("owner-{at}");
        queues.push(queue(&owner, "all", 2, RECLAIMS));
        running.push(admitted(&format!("one-{at}"), "guest", 1));
        running.push(admitted(&format!("two-{at}"), "guest", 1));
        waiting.push(pending(&format!("big-{at}"), &owner, 2, at.into(), 0));
    }
    let text = scenario("", &queues, &running, &waiting);
    let scenario: Scenario = serde_saphyr::from_str(&text).unwrap();
    load(&scenario, Compatibility::Lockkeeper).unwrap().state
}

/// A queue with room for one of the two CPUs that are asked for.
fn single_queue() -> String {
    scenario(
        "",
        &[queue("q", "all", 2, "")],
        &[admitted("one", "q", 1)],
        &[pending("waits", "q", 2, 1, 0)],
    )
}

/// Two would have to go, one may.
fn over_victim_limit() -> String {
    scenario(
        "maxVictimsPerCycle: 1\n",
        &[
            queue("owner", "all", 2, RECLAIMS),
            queue("guest", "all", 0, ""),
        ],
        &[admitted("one", "guest", 1), admitted("two", "guest", 1)],
        &[pending("waits", "owner", 2, 1, 0)],
    )
}

/// Quota that is held in another cohort tree is not reported.
fn separate_cohorts() -> String {
    one_victim_left(BORROWS, 2, 0)
        .replace("other, cohort: all", "other, cohort: apart")
        .replace("nominal: \"1\"", "nominal: \"2\"")
        .replace(
            "admitted:\n",
            &format!("admitted:\n{}", admitted("own", "other", 1)),
        )
}

#[test]
fn pending_message_names_preemptors_holding_quota() {
    let two = &["ns/two"] as &[&str];
    let no_candidates = "; there are no candidate workloads for preemption";
    let short = |numbers: &str| format!("Waiting for quota: requests {numbers}{no_candidates}");
    let held = ", 2 cpu held for preemptor ns/big";
    let all: [(&str, String, &[&str], String); 7] = [
        (
            "nothing is held",
            single_queue(),
            &[],
            short("2 cpu of flavor f, 1 cpu free"),
        ),
        (
            "no candidates",
            one_victim_left(BORROWS, 2, 0),
            two,
            short(&format!("2 cpu of flavor f, 1 cpu free{held}")),
        ),
        (
            "preemption is no help",
            one_victim_left("", 2, 0),
            two,
            format!(
                "Couldn't assign flavors; main on flavor f: requests 2 cpu, 1 cpu is free{held}, and preemption \
                 cannot help (WaitingForQuota)"
            ),
        ),
        (
            "it may not borrow what is held for a weaker one",
            one_victim_left(BORROWS, 5, 1),
            two,
            short(&format!("5 cpu of flavor f, 1 cpu free{held}")),
        ),
        (
            "it is held in another tree",
            separate_cohorts(),
            two,
            short("2 cpu of flavor f, 1 cpu free"),
        ),
        (
            "not before its victims begin to go",
            one_victim_left(BORROWS, 2, 0),
            &[],
            short("2 cpu of flavor f, 0 cpu free"),
        ),
        (
            "more would have to go than may",
            over_victim_limit(),
            &[],
            "Waiting for quota: requests 2 cpu of flavor f, 0 cpu free; 2 preemptions are \
             needed, and the limit per cycle is 1 (maxVictimsPerCycle)"
                .to_owned(),
        ),
    ];
    for (name, text, gone, expected) in all {
        assert_eq!(
            pending_message_after(&text, gone, "ns/waits"),
            expected,
            "{name}"
        );
    }
}

#[test]
fn pending_message_names_at_most_three_holders() {
    let each = |at: u32| format!(", 1 cpu held for preemptor ns/big-{at}");
    let three: String = (1..=3).map(each).collect();
    for (number, held) in [
        (2, (1..=2).map(each).collect()),
        (3, three.clone()),
        (4, format!("{three}, and more for 1 other")),
        (5, format!("{three}, and more for 2 others")),
    ] {
        let mut state = reclaiming_queues(number);
        let mut taken = BTreeMap::new();
        for now_s in 101..111 {
            let cycle = state.next_cycle(now_s, true);
            for entry in &cycle.entries {
                if let Decision::Preempt(victims) = &entry.decision {
                    let victims: Vec<_> = victims.iter().map(|it| it.workload).collect();
                    assert_eq!(victims.len(), 2);
                    taken.insert(entry.workload, victims);
                }
            }
        }
        assert_eq!(taken.len(), number as usize);
        for victims in taken.values() {
            state.remove(victims[0]);
        }
        let expected = format!(
            "Waiting for quota: requests 2 cpu of flavor f, 0 cpu free{held}; there are no candidate workloads for preemption"
        );
        let message = cycle_message(&mut state, 111, "ns/waits");
        assert_eq!(message, Some(expected), "{number}");
    }
}
