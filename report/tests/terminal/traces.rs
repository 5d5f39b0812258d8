//! Traces and their simulations.

use lockkeeper_report::Simulation;
use lockkeeper_simulate::timeline::{Assumption, JobTrace, Timeline, simulate};
use serde_json::{Value, json};
use std::sync::Arc;

/// Traces with their results.
pub(crate) struct Simulated {
    pub(crate) trace: JobTrace,
    pub(crate) timeline: Timeline,
    pub(crate) config: Option<String>,
}

impl Simulated {
    pub(crate) fn new(trace: JobTrace, config: Option<&str>) -> Self {
        let timeline = simulate(&trace).unwrap();
        Self {
            trace,
            timeline,
            config: config.map(str::to_owned),
        }
    }

    pub(crate) fn simulation(&self) -> Simulation<'_> {
        Simulation {
            id: &self.trace.id,
            config: self.config.as_deref(),
            trace: &self.trace,
            timeline: &self.timeline,
        }
    }
}

/// Two configurations of the example.
pub(crate) fn two_configurations() -> [Simulated; 2] {
    let first = example(str::to_owned);
    let mut second = first.clone();
    second.grace_period_seconds = 0;
    [
        Simulated::new(first, Some("grace.yaml")),
        Simulated::new(second, Some("none.yaml")),
    ]
}

/// Three ClusterQueues in two cohorts with two resources, preemptions within a queue and in a cohort, a workload that is
/// never admitted, and a change of quota.
pub(crate) fn example(name: impl Fn(&str) -> String) -> JobTrace {
    let queue = |queue: &str, nominal: u64, more: Value| {
        let mut quota = json!({"resource": "cpu", "nominal": nominal});
        quota
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let mut other = quota.clone();
        other["nominal"] = json!(500);
        let gpu = json!({"resource": "example.com/gpu", "nominal": 4});
        json!({
            "name": name(queue), "cohort": name("research"),
            "resourceGroups": [{"resources": ["cpu", "example.com/gpu"], "flavors": [
                {"name": name("spot"), "quotas": [quota, gpu]},
                {"name": name("on-demand"), "quotas": [
                    other, {"resource": "example.com/gpu", "nominal": 0},
                ]},
            ]}],
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        })
    };
    let job = |job: &str, queue: &str, arrival: u64, priority: i32, cpu: &str| {
        json!({
            "name": name(job), "clusterQueue": name(queue), "arrival": arrival, "runSeconds": 100 + arrival,
            "priority": priority, "podSets": [{"requests": {"cpu": cpu, "example.com/gpu": 1}}],
        })
    };
    let queues = [
        queue("team-a", 6_000, json!({"borrowingLimit": 1_000})),
        queue("team-b", 4_000, json!({"lendingLimit": 1_000})),
        queue("team-c", 2_000, json!({})),
    ];
    let mut changed = queues[1]["resourceGroups"].clone();
    changed[0]["flavors"][0]["quotas"][0]["nominal"] = json!(3_000);
    let mut trace: JobTrace = serde_json::from_value(json!({
        "id": name("example"),
        "cohorts": [
            {"name": name("all"), "quotas": [{"flavor": name("spot"), "resource": "cpu", "nominal": 1_000}]},
            {"name": name("research"), "parent": name("all")},
        ],
        "clusterQueues": queues,
        "gracePeriodSeconds": 20,
        "jobs": [
            job("low", "team-a", 0, 0, "5"),
            job("other", "team-b", 10, 0, "2"),
            job("borrower", "team-c", 20, 0, "5"),
            job("high", "team-a", 40, 7, "5"),
            job("huge", "team-b", 50, -3, "100"),
            job("reclaimer", "team-b", 70, 0, "2"),
            job("later", "team-a", 300, 0, "1"),
        ],
        "changes": [{"at": 150, "clusterQueue": name("team-b"), "resourceGroups": changed}],
    }))
    .unwrap();
    trace.assumptions = vec![Assumption {
        text: name("run time unknown: 300 s"),
        count: 3,
    }];
    trace
}

/// The example with so many copies of its first workload.
pub(crate) fn with_workloads(count: usize) -> JobTrace {
    let mut trace = example(str::to_owned);
    let job = trace.jobs[0].clone();
    let queues = ["team-a", "team-b", "team-c"];
    let jobs = (0..count).map(|at| {
        let mut job = job.clone();
        job.name = format!("job-{at}").into();
        job.cluster_queue = queues[at % queues.len()].into();
        job.run_seconds = 1;
        job
    });
    trace.jobs = Arc::new(jobs.collect());
    trace
}
