//! Policies that `loop_verdict` reports as safe never repeat a state in long random runs of the core.
//!
//! The environment variable `LOCKKEEPER_STEPS` sets the number of simulated cycles.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests fail by panicking, and print statistics"
)]

use lockkeeper_api::{ClusterQueue, Cohort};
use lockkeeper_policies::preemption_loops::{
    CrossQueueScope, LoopVerdict, PreemptionRules, QueuePreemption, loop_verdict,
};
use lockkeeper_preemption::{Algorithm, Damping, FairStrategy, Options};
use lockkeeper_simulate::run::{SimWorkload, SimulationRun};
use lockkeeper_simulate::{SimulatedCluster, cohort_trees};
use lockkeeper_testkit::Rng;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The total number of simulated cycles, unless `LOCKKEEPER_STEPS` is set.
const STEPS_PER_RUN: usize = 250_000;

/// More cycles than any of these small clusters needs until it is quiescent.
const CYCLES_MAX: usize = 2_000;

struct ModelCluster {
    queues: Vec<ClusterQueue>,
    cohorts: Vec<Cohort>,
    preempting_queues: Vec<QueuePreemption>,
    is_nested: bool,
}

fn object_named<T: serde::de::DeserializeOwned>(name: &str, spec: &Value) -> T {
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

fn random_cluster(rng: &mut Rng) -> ModelCluster {
    let is_nested = rng.below(2) == 0;
    let flavors = 1 + rng.below(2);
    let mut model = ModelCluster {
        queues: Vec::new(),
        cohorts: Vec::new(),
        preempting_queues: Vec::new(),
        is_nested,
    };
    for name in ["left", "right"].iter().filter(|_| is_nested) {
        model
            .cohorts
            .push(object_named(name, &json!({"parentName": "all"})));
    }
    for name in ["a", "b", "c", "d"].iter().take(2 + rng.below(3)) {
        let within = *rng.pick(&["Never", "LowerPriority", "LowerOrNewerEqualPriority"]);
        let reclaim = *rng.pick(&["Never", "LowerPriority", "LowerPriority", "Any"]);
        let may_borrow = rng.below(3) == 0;
        let cohort = if is_nested {
            rng.pick(&["left", "right"])
        } else {
            "all"
        };
        let flavor = |number: usize, nominal: usize| {
            let mut quota = json!({"name": "cpu", "nominalQuota": nominal});
            if !may_borrow {
                quota["borrowingLimit"] = json!(0);
            }
            json!({"name": format!("f{number}"), "resources": [quota]})
        };
        let flavors: Vec<_> = (0..flavors)
            .map(|it| flavor(it, 1 + rng.below(5)))
            .collect();
        let fungibility = json!({
            "whenCanBorrow": rng.pick(&["MayStopSearch", "TryNextFlavor"]),
            "whenCanPreempt": rng.pick(&["MayStopSearch", "TryNextFlavor"]),
        });
        model.queues.push(object_named(
            name,
            &json!({
                "cohortName": cohort,
                "queueingStrategy": rng.pick(&["StrictFIFO", "BestEffortFIFO"]),
                "flavorFungibility": fungibility,
                "preemption": {"withinClusterQueue": within, "reclaimWithinCohort": reclaim},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
            }),
        ));
        model.preempting_queues.push(QueuePreemption {
            preempts_within_queue: within != "Never",
            cross_queue_scope: match reclaim {
                "Never" => CrossQueueScope::Never,
                "LowerPriority" => CrossQueueScope::LowerPriority,
                _ => CrossQueueScope::Any,
            },
            may_borrow,
        });
    }
    model
}

fn random_workloads(
    rng: &mut Rng,
    model: &ModelCluster,
    cluster: &mut SimulatedCluster,
) -> Vec<SimWorkload> {
    let cpu = cluster.resource("cpu");
    let count = 6 + rng.below(14);
    (0..count)
        .map(|_| SimWorkload {
            queue: model.queues[rng.below(model.queues.len())]
                .metadata
                .name
                .clone()
                .unwrap(),
            priority: rng.below(4),
            requests: BTreeMap::from([(cpu, (1 + rng.below(5)) * 1000)]),
            arrives_when_idle: rng.below(2) == 0,
        })
        .collect()
}

#[test]
fn safe_policies_never_repeat_a_state() {
    let requested = std::env::var("LOCKKEEPER_STEPS").ok();
    let steps_min = requested.map_or(STEPS_PER_RUN, |it| it.parse().unwrap());
    let mut rng = Rng::new(7);
    let (mut steps, mut preemptions) = (
        BTreeMap::<String, usize>::new(),
        BTreeMap::<String, usize>::new(),
    );
    while steps.values().sum::<usize>() < steps_min {
        let rules = PreemptionRules {
            is_fair: rng.below(2) == 0,
            is_damped: rng.below(4) == 0,
        };
        let model = random_cluster(&mut rng);
        let verdict = loop_verdict(&model.preempting_queues, model.is_nested, rules);
        if matches!(verdict, LoopVerdict::Unknown | LoopVerdict::NoPreemption) {
            continue;
        }
        let strategies = vec![
            FairStrategy::LessThanOrEqualToFinalShare,
            FairStrategy::LessThanInitialShare,
        ];
        let options = Options {
            algorithm: if rules.is_fair {
                Algorithm::FairSharing(strategies)
            } else {
                Algorithm::Classical
            },
            damping: if rules.is_damped {
                Damping::On
            } else {
                Damping::Off
            },
            ..Options::default()
        };
        let trees = cohort_trees(&model.queues, &model.cohorts);
        let mut cluster = SimulatedCluster::new(&trees[0], options).unwrap();
        let workloads = random_workloads(&mut rng, &model, &mut cluster);
        let mut run = SimulationRun::new(&cluster, &workloads);
        let found = run.find_loop(CYCLES_MAX);
        let key = format!("{verdict:?}, fair {}", rules.is_fair);
        assert_eq!(found, None, "{key}: {:#?}", model.queues);
        assert!(
            run.cycles().len() < CYCLES_MAX,
            "{key}: not quiescent within the limit: {:#?}",
            model.queues
        );
        *steps.entry(key.clone()).or_default() += run.cycles().len();
        let cycles = run.cycles().iter();
        *preemptions.entry(key).or_default() += cycles.map(|it| it.preempted.len()).sum::<usize>();
    }
    println!("{steps:#?}\n{preemptions:#?}");
    assert_eq!(preemptions.len(), 4, "{preemptions:?}");
    assert!(preemptions.values().all(|it| *it > 50), "{preemptions:?}");
}
