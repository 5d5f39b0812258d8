//! The cost of the preemption core: `cargo bench -p lockkeeper-preemption`.
//!
//! The figures are CPU time of this thread, which is reliable on a busy machine, and allocations, which are the same
//! on every machine. The speed of the machine is printed before and after. Searches are compared with a plain
//! reference implementation that must find the same victims.
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

mod clusters;
mod cycles;
mod events;
mod gangs;
mod jobs;
mod measure;
mod reference;
mod searches;

use measure::{calibration_ms, load_average};

/// `preemption [searches|growth|cycles|events|gangs|jobs]`, or `preemption decide RUNNING TIMES`,
/// `preemption gang|pod|round NODES TIMES`, which print nothing.
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let ["decide", running, times, ..] = words[..] {
        return searches::run_only(running.parse().unwrap(), times.parse().unwrap());
    }
    if let ["gang", nodes, times, ..] = words[..] {
        return gangs::run_only(nodes.parse().unwrap(), times.parse().unwrap());
    }
    if let ["pod", nodes, times, ..] = words[..] {
        return gangs::run_pod_only(nodes.parse().unwrap(), times.parse().unwrap());
    }
    if let ["round", nodes, times, ..] = words[..] {
        return jobs::run_only(nodes.parse().unwrap(), times.parse().unwrap());
    }
    let parts: [(&str, fn()); 6] = [
        ("searches", searches::print),
        ("growth", searches::print_growth),
        ("cycles", cycles::print),
        ("events", events::print),
        ("gangs", gangs::print_table),
        ("jobs", jobs::print),
    ];
    let named = |name| words.contains(&name);
    let all = !parts.iter().any(|(name, _)| named(name));
    print_machine_info();
    for (_, print) in parts.iter().filter(|(name, _)| all || named(name)) {
        print();
    }
    println!();
    print_machine_info();
}

fn print_machine_info() {
    println!(
        "a million numbers are sorted in {:.1} ms; load average {}",
        calibration_ms(),
        load_average()
    );
}
