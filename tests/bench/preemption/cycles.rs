//! Whole cycles: thirty queues in six flat cohorts, two flavors of cpu and memory.

use crate::worlds::{GIB, Random, uid};
use crate::{cpu_ns, median_us};
use lockkeeper_preemption::{
    Amount, Decision, FlavorFungibility, FlavorQuotas, FlavorResource, Options, PodSet, Preemption,
    QueueSpec, QueueingStrategy, Quota, ReclaimWithinCohort, Reservation, ResourceGroup, State,
    WithinClusterQueue, WorkloadId, WorkloadSpec,
};

const QUEUES: usize = 30;
const COHORTS: usize = 6;

/// What the heads meet.
#[derive(Clone, Copy)]
pub enum Heads {
    Admitted,
    Blocked,
    Preempting,
}

/// A state in which `running` workloads use up the quota exactly, and a head in each queue.
pub fn world(running: usize, heads: Heads) -> State {
    let mut state = State::new(Options::default());
    let each = running / QUEUES / 2;
    // Room for one more of one cpu and one GiB in each queue.
    let spare = usize::from(matches!(heads, Heads::Admitted));
    for at in 0..QUEUES {
        set_queue(&mut state, at, [each + spare, each]);
    }
    let mut random = Random(11);
    for at in 0..each * 2 * QUEUES {
        let queue = at % QUEUES;
        let flavor = if (at / QUEUES).is_multiple_of(2) {
            "a"
        } else {
            "b"
        };
        let of = ["cpu", "memory"].map(|name| FlavorResource {
            flavor: state.flavor(flavor),
            resource: state.resource(name),
        });
        let held = Reservation {
            usage: vec![(of[0], Amount::new(1000)), (of[1], Amount::new(GIB))],
            reserved_at_s: i64::try_from(random.below(1_000_000)).unwrap(),
            is_evicted: false,
        };
        let priority = i32::try_from(random.below(3)).unwrap();
        let spec = spec(queue, priority, Vec::new());
        let (name, uid) = (format!("default/running-{at:07}"), uid(&mut random));
        let spec = WorkloadSpec {
            name: &name,
            uid: &uid,
            ..spec
        };
        state.add_running(spec, &held);
    }
    for queue in 0..QUEUES {
        let (priority, units) = match heads {
            Heads::Admitted | Heads::Blocked => (0, 1),
            Heads::Preempting => (10, 3),
        };
        push(&mut state, queue, priority, units, &format!("head-{queue}"));
    }
    state
}

/// A state with this many workloads waiting, and room for all.
pub fn full_queues(pending: usize) -> State {
    let mut state = State::new(Options::default());
    for at in 0..QUEUES {
        set_queue(&mut state, at, [pending, pending]);
    }
    for at in 0..pending {
        push(
            &mut state,
            at % QUEUES,
            0,
            1,
            &format!("default/pending-{at:06}"),
        );
    }
    state
}

pub fn print() {
    println!();
    println!(
        "{:32} {:>17} {:>12}",
        "a cycle of 30 heads", "running", "CPU us"
    );
    for running in [0, 2_040, 20_040] {
        cycle("all admitted", running, Heads::Admitted);
        if running > 0 {
            cycle("all blocked", running, Heads::Blocked);
            cycle("each preempts three", running, Heads::Preempting);
        }
    }
    drain(50_000);
    events(100_000);
}

fn cycle(what: &str, running: usize, heads: Heads) {
    let state = world(running, heads);
    let mut times: Vec<i64> = Vec::new();
    for _ in 0..21 {
        let mut state = state.clone();
        let before = cpu_ns();
        let cycle = state.next_cycle(2_000_000, false);
        times.push(cpu_ns() - before);
        assert_eq!(cycle.entries.len(), QUEUES);
        assert!(cycle.entries.iter().all(|entry| match heads {
            Heads::Admitted => entry.decision == Decision::Admit,
            Heads::Blocked => entry.decision == Decision::NoCandidates,
            Heads::Preempting =>
                matches!(&entry.decision, Decision::Preempt(victims) if victims.len() == 3),
        }));
    }
    times.sort_unstable();
    println!("{what:32} {running:17} {:12.1}", times[10] as f64 / 1000.0);
}

fn drain(pending: usize) {
    let mut state = full_queues(pending);
    let before = cpu_ns();
    let mut admitted = 0;
    while admitted < pending {
        admitted += state.next_cycle(0, false).entries.len();
    }
    let seconds = (cpu_ns() - before) as f64 / 1e9;
    let rate = admitted as f64 / seconds;
    println!("{:32} {pending:17} {rate:12.0} decisions/s", "draining");
}

/// Admit, evict and finish, at this many running workloads.
fn events(running: usize) {
    let mut state = full_queues(running);
    while !state.next_cycle(0, false).entries.is_empty() {}
    let of = ["cpu", "memory"].map(|name| FlavorResource {
        flavor: state.flavor("a"),
        resource: state.resource(name),
    });
    let held = Reservation {
        usage: vec![(of[0], Amount::new(1000)), (of[1], Amount::new(GIB))],
        reserved_at_s: 5,
        is_evicted: false,
    };
    let ids: Vec<WorkloadId> = (0..running)
        .step_by(97)
        .filter_map(|at| state.workload(&format!("default/pending-{at:06}")))
        .collect();
    let mut next = 0;
    let us = median_us(11, || {
        for id in ids.iter().skip(next).take(20) {
            state.release(*id);
            state.reserve(*id, &held);
        }
        next += 20;
    });
    println!(
        "{:32} {running:17} {:12.2} an event",
        "evict, admit",
        us / 40.0
    );
    let us = median_us(11, || {
        for id in ids.iter().skip(next).take(20) {
            state.remove(*id);
        }
        next += 20;
    });
    println!("{:32} {running:17} {:12.2} an event", "finish", us / 20.0);
}

fn set_queue(state: &mut State, at: usize, nominal: [usize; 2]) {
    let (cpu, memory) = (state.resource("cpu"), state.resource("memory"));
    let flavors = ["a", "b"].iter().zip(nominal).map(|(name, nominal)| {
        let quota = |unit: i64| Quota {
            nominal: Amount::new(i64::try_from(nominal).unwrap() * unit),
            borrowing_limit: None,
            lending_limit: None,
        };
        FlavorQuotas {
            flavor: state.flavor(name),
            quotas: vec![(cpu, quota(1000)), (memory, quota(GIB))],
        }
    });
    let flavors = flavors.collect();
    state.set_queue(QueueSpec {
        name: &format!("queue-{at:02}"),
        cohort: Some(&format!("cohort-{}", at % COHORTS)),
        groups: vec![ResourceGroup {
            resources: vec![cpu, memory],
            flavors,
        }],
        preemption: Preemption {
            within_cluster_queue: WithinClusterQueue::LowerPriority,
            reclaim_within_cohort: ReclaimWithinCohort::Any,
            ..Preemption::default()
        },
        fungibility: FlavorFungibility::default(),
        strategy: QueueingStrategy::BestEffortFifo,
        weight: 1.0,
        is_active: true,
    });
}

fn push(state: &mut State, queue: usize, priority: i32, units: i64, name: &str) {
    let requests = [("cpu", 1000), ("memory", GIB)];
    let requests = requests
        .map(|(name, unit)| (state.resource(name), Amount::new(units * unit)))
        .into();
    let pod_set = PodSet {
        name: "main".into(),
        count: 1,
        count_min: None,
        requests,
        ineligible: Box::new([]),
        shape: 0,
    };
    let queue = format!("queue-{queue:02}");
    state.add_pending(WorkloadSpec {
        name,
        uid: name,
        queue: &queue,
        ..spec(0, priority, vec![pod_set])
    });
}

fn spec(queue: usize, priority: i32, pod_sets: Vec<PodSet>) -> WorkloadSpec<'static> {
    const NAMES: [&str; QUEUES] = [
        "queue-00", "queue-01", "queue-02", "queue-03", "queue-04", "queue-05", "queue-06",
        "queue-07", "queue-08", "queue-09", "queue-10", "queue-11", "queue-12", "queue-13",
        "queue-14", "queue-15", "queue-16", "queue-17", "queue-18", "queue-19", "queue-20",
        "queue-21", "queue-22", "queue-23", "queue-24", "queue-25", "queue-26", "queue-27",
        "queue-28", "queue-29",
    ];
    WorkloadSpec {
        name: "",
        uid: "",
        queue: NAMES[queue],
        priority,
        order_time_s: 0,
        pod_sets,
        is_in_scope: true,
    }
}
