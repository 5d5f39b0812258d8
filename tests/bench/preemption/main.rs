//! What the preemption core costs: `cargo bench -p lockkeeper-preemption`.
//!
//! The figures are CPU time of this thread, which holds on a busy machine. Each row has a plain
//! reference beside it where one makes sense: collect all candidates, sort, remove, fill back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::arithmetic_side_effects,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a program for developers"
)]

mod cycles;
mod worlds;

use lockkeeper_preemption::{State, Trace, WorkloadId};
use rustix::time::{ClockId, clock_gettime};
use worlds::{Borrowing, borrowing};

/// CPU time of this thread, in nanoseconds.
fn cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The median of some runs, in microseconds.
fn median_us(runs: usize, mut run: impl FnMut()) -> f64 {
    run();
    let mut times: Vec<i64> = (0..runs)
        .map(|_| {
            let before = cpu_ns();
            run();
            cpu_ns() - before
        })
        .collect();
    times.sort_unstable();
    times[runs / 2] as f64 / 1000.0
}

fn main() {
    if std::env::args().any(|it| it == "cycles") {
        return cycles::print();
    }
    let sizes = [
        (100, 1_000),
        (100, 10_000),
        (1_000, 100_000),
        (1_000, 1_000_000),
    ];
    println!(
        "{:32} {:>7} {:>9} {:>12}",
        "search", "queues", "running", "CPU us"
    );
    for (queues, running) in sizes {
        let Borrowing {
            mut state,
            preemptor,
            in_vain,
        } = borrowing(queues, running);
        row(&mut state, "50 victims", queues, running, preemptor, 50);
        row(&mut state, "in vain", queues, running, in_vain, 0);
        let us = median_us(21, || {
            state.nominate(preemptor, Trace::off()).unwrap();
        });
        println!(
            "{:32} {queues:7} {running:9} {us:12.1}",
            "flavors and 50 victims"
        );
        let us = median_us(21, || {
            let found = state.nominate(preemptor, Trace::on()).unwrap();
            assert_eq!(found.victims.len(), 50);
        });
        println!("{:32} {queues:7} {running:9} {us:12.1}", "the same, traced");
    }
    cycles::print();
}

fn row(
    state: &mut State,
    what: &str,
    queues: usize,
    running: usize,
    id: WorkloadId,
    victims: usize,
) {
    let assignment = state.assign(id, &mut Trace::off()).unwrap();
    let (needs, request) = (assignment.needs(), assignment.usage);
    let us = median_us(101, || {
        let found = state.search(id, &needs, &request, &mut Trace::off());
        assert_eq!(found.len(), victims);
    });
    println!("{what:32} {queues:7} {running:9} {us:12.1}");
}
