//! Victim searches, compared with the plain reference.

use crate::clusters::{BorrowingCluster, PREEMPTOR, pending};
use crate::measure::{allocations, bytes, median_us, resident, us};
use crate::reference::ReferenceSearch;
use lockkeeper_preemption::{
    Algorithm, FairStrategy, FlavorResource, State, Trace, WhatIf, WorkloadId,
};

const SIZES: [(usize, usize); 4] = [
    (100, 1_000),
    (100, 10_000),
    (1_000, 100_000),
    (1_000, 1_000_000),
];

pub fn print() {
    println!();
    println!(
        "{:24} {:>7} {:>9} {:>10} {:>12} {:>8} {:>6}",
        "search", "queues", "running", "core us", "plain us", "ratio", "alloc"
    );
    for (queues, running) in SIZES {
        let cluster = BorrowingCluster::new(queues, running);
        let mut state = cluster.empty_state();
        let before = resident();
        let allocated = bytes(|| cluster.fill(&mut state)) / cluster.jobs.len();
        let resident = (resident() - before) / cluster.jobs.len();
        let mut plain = cluster.reference_search();
        let at = format!("{queues:7} {running:9}");
        for (what, request) in [
            ("50 victims", PREEMPTOR),
            ("no victims suffice", cluster.infeasible_preemptor()),
        ] {
            let id = pending(&mut state, what, request);
            let (core_us, count) = search(&mut state, &mut plain, id, request);
            let plain_us = median_us(3, || {
                plain.search(request.0, request.1);
            });
            let ratio = plain_us / core_us;
            println!("{what:24} {at} {core_us:10.1} {plain_us:12.1} {ratio:8.1} {count:6}");
        }
        let id = pending(&mut state, "preemptor", PREEMPTOR);
        nominate(&mut state, id, &at);
        fair(&cluster, &at);
        print!("{:24} {at} {allocated:10} B requested", "memory a workload");
        if running < 100_000 {
            // Too small to separate from the memory that the process already had.
            println!();
        } else {
            println!(", {resident} B resident");
        }
    }
}

/// Fair sharing in the same states. The request fits into nominal quota, so every tournament of
/// the shares has all queues in it.
fn fair(cluster: &BorrowingCluster, at: &str) {
    let strategies = vec![
        FairStrategy::LessThanOrEqualToFinalShare,
        FairStrategy::LessThanInitialShare,
    ];
    let mut state = cluster.empty_state_with(Algorithm::FairSharing(strategies));
    cluster.fill(&mut state);
    let id = pending(&mut state, "preemptor", PREEMPTOR);
    let assignment = WhatIf::new(&mut state)
        .assign(id, &mut Trace::off())
        .unwrap();
    let (needs, request) = (assignment.needs(), assignment.usage);
    let mut search = || {
        let victims = WhatIf::new(&mut state).search(id, &needs, &request, &mut Trace::off());
        assert_eq!(victims.len(), 50);
    };
    let us = median_us(11, &mut search);
    let count = allocations(search);
    println!(
        "{:24} {at} {us:10.1} {:12} {:8} {count:6}",
        "50 victims by shares", "", ""
    );
}

/// CPU time and allocations of the core, once its victims are those of the reference.
fn search(
    state: &mut State,
    plain: &mut ReferenceSearch<'_>,
    id: WorkloadId,
    (priority, units): (i32, i64),
) -> (f64, usize) {
    let assignment = WhatIf::new(state).assign(id, &mut Trace::off()).unwrap();
    let (needs, request) = (assignment.needs(), assignment.usage);
    let victims = WhatIf::new(state).search(id, &needs, &request, &mut Trace::off());
    let mut names: Vec<&str> = victims
        .iter()
        .map(|it| state.workload_name(it.workload))
        .collect();
    names.sort_unstable();
    assert_eq!(names, plain.search(priority, units));
    let found = names.len();
    let us = median_us(101, || {
        let victims = WhatIf::new(state).search(id, &needs, &request, &mut Trace::off());
        assert_eq!(victims.len(), found);
    });
    let count = allocations(|| {
        WhatIf::new(state).search(id, &needs, &request, &mut Trace::off());
    });
    (us, count)
}

/// Flavors and victims, which takes a search for each resource and one for both; traced and not, in
/// turn.
fn nominate(state: &mut State, id: WorkloadId, at: &str) {
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..82 {
        let is_traced = round % 2 == 1;
        let trace = if is_traced { Trace::on() } else { Trace::off() };
        times[usize::from(is_traced)].push(us(|| {
            assert_eq!(
                WhatIf::new(state)
                    .nominate(id, trace)
                    .unwrap()
                    .victims
                    .len(),
                50
            );
        }));
    }
    let [off, on] = times.map(crate::measure::median);
    let count = allocations(|| {
        WhatIf::new(state).nominate(id, Trace::off());
    });
    println!(
        "{:24} {at} {off:10.1} {:>12} {:8} {count:6}",
        "flavors and 50 victims", "", ""
    );
    let ratio = on / off;
    println!(
        "{:24} {at} {on:10.1} {ratio:12.2} x untraced",
        "the same, traced"
    );
}

/// How one decision grows with what runs, with as many queues and the same number of victims.
pub fn print_growth() {
    println!();
    println!(
        "{:24} {:>7} {:>9} {:>10} {:>12} {:>8} {:>6}",
        "growth", "queues", "running", "core us", "", "", "alloc"
    );
    for running in [1_000, 10_000, 100_000, 1_000_000] {
        let (mut state, id, needs) = state_with_running(running);
        let (needs, request) = needs;
        let search = |state: &mut State| {
            let victims = WhatIf::new(state).search(id, &needs, &request, &mut Trace::off());
            assert_eq!(victims.len(), 50);
        };
        let us = median_us(101, || search(&mut state));
        let count = allocations(|| search(&mut state));
        println!(
            "{:24} {:7} {running:9} {us:10.1} {:12} {:8} {count:6}",
            "50 victims", 100, "", ""
        );
    }
}

type SearchInput = (
    Vec<FlavorResource>,
    Vec<(FlavorResource, lockkeeper_preemption::Amount)>,
);

fn state_with_running(running: usize) -> (State, WorkloadId, SearchInput) {
    let cluster = BorrowingCluster::new(100, running);
    let mut state = cluster.empty_state();
    cluster.fill(&mut state);
    let id = pending(&mut state, "preemptor", PREEMPTOR);
    let assignment = WhatIf::new(&mut state)
        .assign(id, &mut Trace::off())
        .unwrap();
    let input = (assignment.needs(), assignment.usage);
    (state, id, input)
}

/// Decides this many times without output, for counting instructions.
pub fn run_only(running: usize, times: usize) {
    let (mut state, id, (needs, request)) = state_with_running(running);
    for _ in 0..times {
        let victims = WhatIf::new(&mut state).search(id, &needs, &request, &mut Trace::off());
        assert_eq!(victims.len(), 50);
    }
}
