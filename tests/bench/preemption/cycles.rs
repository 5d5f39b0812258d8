//! Whole cycles: thirty queues in six flat cohorts, two flavors of cpu and memory.

use crate::clusters::{GIB, Random, pod_set, uid};
use crate::measure::{allocations, median, us};
use lockkeeper_preemption::{
    Amount, Cycle, Decision, FlavorFungibility, FlavorQuotas, FlavorResource, Options, PodSet,
    Preemption, QueueSpec, QueueingStrategy, Quota, ReclaimWithinCohort, Reservation,
    ResourceGroup, State, WithinClusterQueue, WorkloadSpec,
};

const QUEUES: usize = 30;
const COHORTS: usize = 6;

/// The situation of the heads.
#[derive(Clone, Copy)]
pub enum Heads {
    Admitted,
    Blocked,
    Preempting,
    /// The heads preempted in the previous cycle, and their victims still run.
    WaitingForVictims,
}

/// A state in which `running` workloads use up the quota exactly, and a head in each queue.
pub fn cluster_state(running: usize, heads: Heads) -> State {
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
        let mut held = reservation(&mut state, flavor);
        held.reserved_at_s = i64::try_from(random.below(1_000_000)).unwrap();
        let priority = i32::try_from(random.below(3)).unwrap();
        let spec = spec(queue, priority, vec![pod_set(&mut state, 1)]);
        let (name, uid) = (format!("default/running-{at:07}"), uid(&mut random));
        let spec = WorkloadSpec {
            name: &name,
            uid: &uid,
            ..spec
        };
        state.add_admitted(spec, &held);
    }
    for queue in 0..QUEUES {
        let (priority, units) = match heads {
            Heads::Admitted | Heads::Blocked => (0, 1),
            Heads::Preempting | Heads::WaitingForVictims => (10, 3),
        };
        let name = format!("head-{queue}");
        push(&mut state, queue, priority, units, &name, 0);
    }
    state
}

/// A state with this many workloads waiting, and room for all. So many of them came in each second.
pub fn full_queues(pending: usize, a_second: usize) -> State {
    let mut state = State::new(Options::default());
    for at in 0..QUEUES {
        set_queue(&mut state, at, [pending, pending]);
    }
    for at in 0..pending {
        let (name, time) = (format!("default/pending-{at:06}"), at / a_second);
        push(&mut state, at % QUEUES, 0, 1, &name, time);
    }
    state
}

/// The usage of a workload of one cpu and one GiB.
pub fn reservation(state: &mut State, flavor: &str) -> Reservation {
    let flavor = state.flavor(flavor);
    let units = [("cpu", 1000), ("memory", GIB)];
    let usage = units.map(|(name, unit)| {
        let resource = state.resource(name);
        (FlavorResource { flavor, resource }, Amount::new(unit))
    });
    Reservation {
        usage: usage.into(),
        reserved_at_s: 0,
        is_evicted: false,
    }
}

pub fn print() {
    println!();
    println!(
        "{:24} {:>9} {:>10} {:>8} {:>12} {:>6}",
        "a cycle of 30 heads", "running", "core us", "alloc", "traced us", "ratio"
    );
    for running in [0, 2_040, 20_040] {
        cycle("all admitted", running, Heads::Admitted);
        if running > 0 {
            cycle("all blocked", running, Heads::Blocked);
            cycle("each preempts three", running, Heads::Preempting);
            cycle(
                "each waits for its three",
                running,
                Heads::WaitingForVictims,
            );
        }
    }
    drain(50_000);
}

fn cycle(what: &str, running: usize, heads: Heads) {
    let state = cluster_state(running, heads);
    let mut times = [Vec::new(), Vec::new()];
    let mut count = 0;
    // Alternately with and without a trace.
    for round in 0..42 {
        let is_traced = round % 2 == 1;
        let mut state = state.clone();
        if matches!(heads, Heads::WaitingForVictims) {
            state.next_cycle(2_000_000, false);
        }
        let mut cycle = Cycle::default();
        let allocated = allocations(|| {
            let time = us(|| cycle = state.next_cycle(2_000_000, is_traced));
            times[usize::from(is_traced)].push(time);
        });
        if !is_traced {
            count = allocated;
        }
        assert_eq!(cycle.entries.len(), QUEUES);
        assert!(cycle.entries.iter().all(|entry| match heads {
            Heads::Admitted => entry.decision == Decision::Admit,
            Heads::Blocked => entry.decision == Decision::NoCandidates,
            Heads::Preempting | Heads::WaitingForVictims =>
                matches!(&entry.decision, Decision::Preempt(victims) if victims.len() == 3),
        }));
    }
    let [off, on] = times.map(median);
    let ratio = on / off;
    println!("{what:24} {running:9} {off:10.1} {count:8} {on:12.1} {ratio:6.2}");
}

fn drain(pending: usize) {
    let mut state = full_queues(pending, 100);
    let (mut admitted, mut time) = (0, 0.0);
    let count = allocations(|| {
        time = us(|| {
            while admitted < pending {
                admitted += state.next_cycle(0, false).entries.len();
            }
        });
    });
    let rate = admitted as f64 / time * 1e6;
    let count = count as f64 / admitted as f64;
    println!("draining {pending} pending: {rate:.0} decisions/s, {count:.1} allocations each");
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
        backfill: None,
        weight: 1.0,
        elastic: None,
        is_active: true,
    });
}

fn push(state: &mut State, queue: usize, priority: i32, units: i64, name: &str, time: usize) {
    let pod_set = pod_set(state, units);
    let queue = format!("queue-{queue:02}");
    let seed = name.bytes().fold(1, |sum: u64, byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    });
    state.add_pending(WorkloadSpec {
        name,
        uid: &uid(&mut Random(seed)),
        queue: &queue,
        order_time: i64::try_from(time).unwrap(),
        waiting_since_s: 0,
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
        preemption_priority: None,
        order_time: 0,
        waiting_since_s: 0,
        pod_sets,
        is_in_scope: true,
        preemption_labels: lockkeeper_preemption::job::PreemptionLabels::default(),
    }
}
