//! Files of jobs in other formats: no input causes a panic, an error has a line of the text, and an imported trace is
//! simulated or rejected. The first line selects the format, the text up to a line `---` is the mapping.

use lockkeeper_scenario::ClusterQueue;
use lockkeeper_simulate::timeline::{JobTrace, metrics, simulate};
use lockkeeper_trace_import::{GeneratorFile, ImportError, ImportedTrace, Mapping, generator_trace, parse_csv, parse_swf};
use std::collections::BTreeSet;

/// Larger traces find nothing new and are slow.
const JOBS_MAX: usize = 64;
const CYCLES_MAX: u64 = 200;

pub fn run(text: &str) {
    let (format, rest) = text.split_once('\n').unwrap_or((text, ""));
    if format == "generator" {
        if let Ok(file) = serde_saphyr::from_str::<GeneratorFile>(rest)
            && rest.len() < 4_096
            && !rest.contains("00000")
            && let Ok(trace) = generator_trace(&file)
        {
            check(trace);
        }
        return;
    }
    let (mapping, jobs) = rest.split_once("\n---\n").unwrap_or(("{}", rest));
    let Ok(mapping) = serde_saphyr::from_str::<Mapping>(mapping) else {
        return;
    };
    let imported = if format == "csv" {
        parse_csv(jobs, &mapping)
    } else {
        parse_swf(jobs, &mapping)
    };
    match imported {
        Ok(ImportedTrace { trace, lines }) => {
            assert_eq!(trace.jobs.len(), lines.len());
            assert!(trace.jobs.is_sorted_by_key(|it| it.arrival));
            assert!(trace.jobs.iter().all(|it| it.arrival >= 0));
            check(trace);
        }
        Err(ImportError { line, problem }) => {
            // The CSV reader counts the line after the last one, too.
            let lines = u64::try_from(jobs.split(['\n', '\r']).count()).unwrap_or(u64::MAX);
            assert!(line.is_none_or(|line| line <= lines + 1), "{line:?}: {problem}");
            assert!(!problem.to_string().is_empty());
        }
    }
}

/// Simulates a trace. Jobs without a ClusterQueue get one.
fn check(mut trace: JobTrace) {
    if trace.jobs.len() > JOBS_MAX || trace.cluster_queues.len() > JOBS_MAX {
        return;
    }
    if trace.cluster_queues.is_empty() {
        let names: BTreeSet<&str> = trace.jobs.iter().map(|it| &*it.cluster_queue).collect();
        trace.cluster_queues = names.into_iter().map(queue).collect();
    }
    trace.max_cycles_per_instant = CYCLES_MAX;
    trace.max_preemptions_per_job = 4;
    if let Ok(timeline) = simulate(&trace) {
        let metrics = metrics(&trace, &timeline);
        assert!(serde_json::to_string(&metrics).is_ok());
    }
}

fn queue(name: &str) -> ClusterQueue {
    let text = r#"{"name": "", "resourceGroups": [{"resources": ["cpu"], "flavors": [
        {"name": "f", "quotas": [{"resource": "cpu", "nominal": "64"}]}]}],
        "preemption": {"withinClusterQueue": "LowerPriority"}}"#;
    let mut queue: ClusterQueue = serde_json::from_str(text).expect("a valid queue");
    name.clone_into(&mut queue.name);
    queue
}
