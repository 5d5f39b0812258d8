//! The time and the size of reports, and the time of views in a terminal: `cargo bench --package lockkeeper-report --bench report`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and fails by panicking"
)]

use lockkeeper_report::{Key, Next, Simulation, TerminalReport, render};
use lockkeeper_simulate::timeline::{JobTrace, simulate};
use lockkeeper_testkit::Rng;
use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;
use serde_json::{Value, json};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The views of a terminal, and the draws whose mean is the time of a draw.
const VIEWS: &str = "1234567";
const DRAWS: u32 = 200;

fn main() {
    println!(
        "{:>9} {:>12} {:>12} {:>10}  views: first draw ms / each draw µs",
        "workloads", "simulate ms", "report ms", "report kB"
    );
    for jobs in [500, 10_000, 100_000] {
        let trace: JobTrace = serde_json::from_value(trace(jobs)).unwrap();
        let start = Instant::now();
        let timeline = simulate(&trace).unwrap();
        let simulated = start.elapsed();
        let start = Instant::now();
        let simulation = Simulation {
            id: "report",
            config: None,
            trace: &trace,
            timeline: &timeline,
        };
        let report = render(&[simulation]);
        println!(
            "{jobs:>9} {:>12} {:>12} {:>10}  {}",
            simulated.as_millis(),
            start.elapsed().as_millis(),
            report.len() / 1_000,
            terminal_times(simulation)
        );
    }
}

/// The times of the first draw and of later ones while a view is scrolled, by view.
fn terminal_times(simulation: Simulation<'_>) -> String {
    let mut report = TerminalReport::new(&[simulation]);
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    let mut press = |key: Key| {
        assert_eq!(report.handle(key), Next::Continue);
        terminal.draw(|frame| report.draw(frame)).unwrap();
    };
    let times = VIEWS.chars().map(|view| {
        let start = Instant::now();
        press(Key::Char(view));
        let first = start.elapsed();
        let start = Instant::now();
        for _ in 0..DRAWS {
            press(Key::PageDown);
            press(Key::Up);
        }
        let each = start.elapsed() / (2 * DRAWS);
        format!("{}/{}", first.as_millis(), each.as_micros())
    });
    times.collect::<Vec<String>>().join(" ")
}

/// Ten ClusterQueues in one cohort, with two flavors and three resources.
fn trace(jobs: u64) -> Value {
    let mut rng = Rng::new(1);
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let flavor = |name: &str| {
        json!({"name": name, "quotas": [
            {"resource": "cpu", "nominal": "64"},
            {"resource": "memory", "nominal": "512Gi"},
            {"resource": "nvidia.com/gpu", "nominal": 8},
        ]})
    };
    let queues = names.iter().map(|name| {
        json!({
            "name": name, "cohort": "all",
            "resourceGroups": [{
                "resources": ["cpu", "memory", "nvidia.com/gpu"],
                "flavors": [flavor("reserved"), flavor("spot")],
            }],
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "LowerPriority"},
        })
    });
    let queues: Vec<Value> = queues.collect();
    let mut arrival = 0;
    let jobs = (0..jobs).map(|number| {
        // Nine tenths of the 160 GPUs on average: 4.75 GPUs for 2,120 seconds every 70 seconds.
        arrival += rng.below(140_u64);
        let gpus = *rng.pick(&[1_u64, 2, 4, 12]);
        json!({
            "name": format!("training-{number}"), "clusterQueue": rng.pick(&names), "arrival": arrival,
            "runSeconds": 120 + rng.below(4_000_u64), "priority": rng.below(3_u64),
            "podSets": [{"count": gpus, "requests": {
                "cpu": gpus * 6_000, "memory": format!("{}Gi", gpus * 48), "nvidia.com/gpu": gpus,
            }}],
        })
    });
    let jobs: Vec<Value> = jobs.collect();
    json!({"clusterQueues": queues, "gracePeriodSeconds": 30, "jobs": jobs})
}
