#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use super::{SimWorkload, SimulationRun};
use crate::queue_tree::{SimulatedCluster, cohort_trees};
use lockkeeper_api::ClusterQueue;
use lockkeeper_preemption::{Damping, Options};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// More cycles than any of these runs needs until it is quiescent.
const CYCLES_MAX: usize = 200;

/// More cycles than are needed to try all flavors twice.
const CYCLES_AFTER_QUIESCENCE: usize = 12;

fn queue() -> impl Strategy<Value = Value> {
    let policies = (
        select(&["Never", "LowerPriority", "LowerOrNewerEqualPriority"][..]),
        select(&["Never", "LowerPriority", "Any"][..]),
        select(&["Never", "LowerPriority"][..]),
    );
    let fungibility = (
        select(&["MayStopSearch", "TryNextFlavor"][..]),
        select(&["MayStopSearch", "TryNextFlavor"][..]),
    );
    let strategy = select(&["StrictFIFO", "BestEffortFIFO"][..]);
    let quotas = prop::collection::vec((1..4_u8, prop::option::of(0..2_u8)), 3);
    (policies, fungibility, strategy, quotas).prop_map(
        |((within, reclaim, borrow), (borrowing, preempting), strategy, quotas)| {
            let flavors = quotas.iter().enumerate().map(|(number, (nominal, limit))| {
                let mut quota = json!({"name": "cpu", "nominalQuota": nominal});
                if let Some(limit) = limit {
                    quota["borrowingLimit"] = json!(limit);
                }
                json!({"name": format!("f{number}"), "resources": [quota]})
            });
            let flavors: Vec<_> = flavors.collect();
            let borrow = if reclaim == "Never" { "Never" } else { borrow };
            json!({
                "cohortName": "all",
                "queueingStrategy": strategy,
                "flavorFungibility": {"whenCanBorrow": borrowing, "whenCanPreempt": preempting},
                "preemption": {
                    "withinClusterQueue": within,
                    "reclaimWithinCohort": reclaim,
                    "borrowWithinCohort": {"policy": borrow},
                },
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// After a run is reported as quiescent, further cycles neither admit nor preempt a workload.
    #[test]
    fn quiescent_run_has_no_further_events(
        specs in prop::collection::vec(queue(), 1..3),
        workload_specs in prop::collection::vec((0..4_usize, 0..3_i32, 1..7_i64, any::<bool>()), 1..9),
    ) {
        let queues: Vec<ClusterQueue> = specs
            .iter()
            .enumerate()
            .map(|(number, spec)| {
                let name = json!({"name": format!("q{number}")});
                serde_json::from_value(json!({"metadata": name, "spec": spec})).unwrap()
            })
            .collect();
        let trees = cohort_trees(&queues, &[]);
        let options = Options { damping: Damping::Off, ..Options::default() };
        let mut cluster = SimulatedCluster::new(&trees[0], options).unwrap();
        let cpu = cluster.resource("cpu");
        let workloads: Vec<SimWorkload> = workload_specs
            .iter()
            .map(|(queue, priority, half_cpus, is_late)| SimWorkload {
                queue: format!("q{}", queue % queues.len()),
                priority: *priority,
                requests: [(cpu, half_cpus * 500)].into(),
                arrives_when_idle: *is_late,
            })
            .collect();
        let mut run = SimulationRun::new(&cluster, &workloads);
        let found = run.find_loop(CYCLES_MAX);
        prop_assume!(found.is_none() && run.ids.len() == workloads.len());
        prop_assert!(run.cycles.len() < CYCLES_MAX);
        let quiescent_at = run.cycles.len();
        for _ in 0..CYCLES_AFTER_QUIESCENCE {
            let now = run.snapshot();
            run.run_cycle(now);
        }
        for events in &run.cycles[quiescent_at..] {
            prop_assert!(events.admitted.is_empty() && events.preempted.is_empty(), "{events:?}");
        }
    }
}
