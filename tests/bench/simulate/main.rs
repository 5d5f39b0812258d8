//! The cost of a simulation: `cargo bench -p lockkeeper-simulate`.
//!
//! Each large trace is simulated several times; the CPU time of this thread is compared with that of Kueue for the same
//! decisions without an API server. `run ID TIMES` only runs a trace, for a profiler or valgrind;
//! `scale generator|contended JOBS` simulates a generated
//! trace of this size.
//!
//! `LOCKKEEPER_CONFORMANCE_DIR` names the folder with `simulate/`; without it `../shared/data`. tests/bench/timelines also
//! counts instructions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::arithmetic_side_effects,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a program for developers"
)]

mod scale;

use lockkeeper_simulate::timeline::{JobTrace, simulate};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::path::PathBuf;
use std::{env, fs};

// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The CPU seconds of Kueue's process for a trace, garbage collection included: Kueue at commit `ff69552e`, Go 1.26.8, two
/// cores of a virtual machine.
const KUEUE_CPU_S: [(&str, f64); 11] = [
    ("kueue-baseline", 27.0),
    ("gavel-5vc", 57.0),
    ("gavel-fair", 9.3),
    ("gavel-tree", 35.0),
    ("gavel-lab", 7.8),
    ("gavel-changes", 26.0),
    ("openb-classic", 82.0),
    ("openb-fair", 30.0),
    ("openb-strict", 6.2),
    ("lublin-site", 45.0),
    ("lublin-tree", 2.8),
];

/// The simulations of each trace; the fastest counts.
const RUNS: usize = 7;

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let ["run", id, times, ..] = words[..] {
        return run_only(id, times.parse().unwrap());
    }
    if let ["scale", pattern, jobs, ..] = words[..] {
        return scale::run(pattern, jobs.parse().unwrap());
    }
    println!(
        "{:16} {:>6} {:>7} {:>9} {:>9} {:>9} {:>6}",
        "trace", "jobs", "cycles", "ms", "us/cycle", "Kueue s", "ratio"
    );
    for trace in large_traces() {
        let mut cycles = 0;
        let times = (0..RUNS).map(|_| {
            let before = cpu_ns();
            cycles = black_box(simulate(&trace).unwrap()).cycles;
            cpu_ns() - before
        });
        let ms = times.min().unwrap() as f64 / 1e6;
        let known = KUEUE_CPU_S.iter().find(|(id, _)| *id == trace.id);
        let kueue_s = known.map_or(f64::NAN, |(_, seconds)| *seconds);
        println!(
            "{:16} {:6} {cycles:7} {ms:9.2} {:9.2} {kueue_s:9.1} {:6.0}",
            trace.id,
            trace.jobs.len(),
            ms * 1000.0 / cycles as f64,
            kueue_s * 1000.0 / ms
        );
    }
}

fn run_only(id: &str, times: usize) {
    let trace = large_traces().into_iter().find(|it| it.id == id);
    let trace = trace.expect("the id of a large trace");
    for _ in 0..times {
        black_box(simulate(&trace).unwrap());
    }
}

fn large_traces() -> Vec<JobTrace> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = env::var_os("LOCKKEEPER_CONFORMANCE_DIR");
    let folder = folder.map_or_else(|| here.join("../shared/data"), |it| here.join(it));
    let entries = fs::read_dir(folder.join("simulate")).expect("the folder with simulate/");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let is_large = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("large-")
    };
    let texts = paths.into_iter().filter(is_large);
    let texts = texts.map(|path| fs::read_to_string(path).unwrap());
    let parse = |text: String| -> Vec<JobTrace> {
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    texts.flat_map(parse).collect()
}

/// CPU time of this thread, in nanoseconds.
fn cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
