//! Measurements: CPU time, allocations, bytes, and the current speed of the machine.
#![allow(
    clippy::disallowed_methods,
    reason = "the core is pure, its bench is not"
)]

use crate::clusters::Random;
use rustix::time::{ClockId, clock_gettime};
use stats_alloc::{INSTRUMENTED_SYSTEM, Stats, StatsAlloc};
use std::alloc::System;
use std::fs;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// CPU time of this thread, in nanoseconds.
pub fn cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// CPU time of something, in microseconds.
pub fn us(run: impl FnOnce()) -> f64 {
    let before = cpu_ns();
    run();
    (cpu_ns() - before) as f64 / 1000.0
}

/// The median of some runs, in microseconds.
pub fn median_us(runs: usize, mut run: impl FnMut()) -> f64 {
    run();
    median((0..runs).map(|_| us(&mut run)).collect())
}

pub fn median(mut all: Vec<f64>) -> f64 {
    all.sort_unstable_by(f64::total_cmp);
    all[all.len() / 2]
}

fn stats(run: impl FnOnce()) -> Stats {
    let before = INSTRUMENTED_SYSTEM.stats();
    run();
    INSTRUMENTED_SYSTEM.stats() - before
}

/// Number of allocations and reallocations of a function.
pub fn allocations(run: impl FnOnce()) -> usize {
    let stats = stats(run);
    stats.allocations + stats.reallocations
}

/// Bytes that a function allocates and does not free.
pub fn bytes(run: impl FnOnce()) -> usize {
    let stats = stats(run);
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Resident memory of the process in bytes.
pub fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// How fast the machine is now: the time to sort the same million numbers, in milliseconds.
pub fn calibration_ms() -> f64 {
    let mut random = Random(1);
    let numbers: Vec<u64> = (0..1_000_000).map(|_| random.next()).collect();
    let runs = (0..5).map(|_| {
        let mut numbers = numbers.clone();
        us(|| numbers.sort_unstable())
    });
    median(runs.collect()) / 1000.0
}

/// The load average of the machine.
pub fn load_average() -> String {
    let all = fs::read_to_string("/proc/loadavg").unwrap();
    all.split(' ').next().unwrap().to_owned()
}
