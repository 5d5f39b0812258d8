//! Where the policies are said to be safe, no state returns: in long random runs of the core.
//!
//! `LOCKKEEPER_STEPS` asks for more steps than the usual ones.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests fail by panicking, and count what they saw"
)]

use lockkeeper_api::{ClusterQueue, Cohort};
use lockkeeper_policies::preemption_loops::{
    CrossQueueScope, LoopVerdict, PreemptionRules, QueuePreemption, loop_verdict,
};
use lockkeeper_preemption::{Algorithm, Damping, FairStrategy, Options};
use lockkeeper_simulate::run::{SimWorkload, SimulationRun};
use lockkeeper_simulate::{SimulatedCluster, cohort_trees};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Steps without a wish from outside.
const STEPS_PER_RUN: usize = 250_000;

/// More than any of these small worlds needs to come to rest.
const CYCLES_MAX: usize = 2_000;

/// Numbers that are the same each time. Source: splitmix64, Steele and others 2014.
struct Rng(u64);

impl Rng {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((it ^ (it >> 31)) >> 33).unwrap() % count
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

struct ModelCluster {
    queues: Vec<ClusterQueue>,
    cohorts: Vec<Cohort>,
    preempting_queues: Vec<QueuePreemption>,
    is_nested: bool,
}

fn object_named<T: serde::de::DeserializeOwned>(name: &str, spec: &Value) -> T {
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

fn random_cluster(dice: &mut Rng) -> ModelCluster {
    let is_nested = dice.below(2) == 0;
    let flavors = 1 + dice.below(2);
    let mut world = ModelCluster {
        queues: Vec::new(),
        cohorts: Vec::new(),
        preempting_queues: Vec::new(),
        is_nested,
    };
    for name in ["left", "right"].iter().filter(|_| is_nested) {
        world
            .cohorts
            .push(object_named(name, &json!({"parentName": "all"})));
    }
    for name in ["a", "b", "c", "d"].iter().take(2 + dice.below(3)) {
        let within = dice.pick(&["Never", "LowerPriority", "LowerOrNewerEqualPriority"]);
        let reclaim = dice.pick(&["Never", "LowerPriority", "LowerPriority", "Any"]);
        let may_borrow = dice.below(3) == 0;
        let cohort = if is_nested {
            dice.pick(&["left", "right"])
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
            .map(|it| flavor(it, 1 + dice.below(5)))
            .collect();
        let fungibility = json!({
            "whenCanBorrow": dice.pick(&["MayStopSearch", "TryNextFlavor"]),
            "whenCanPreempt": dice.pick(&["MayStopSearch", "TryNextFlavor"]),
        });
        world.queues.push(object_named(
            name,
            &json!({
                "cohortName": cohort,
                "queueingStrategy": dice.pick(&["StrictFIFO", "BestEffortFIFO"]),
                "flavorFungibility": fungibility,
                "preemption": {"withinClusterQueue": within, "reclaimWithinCohort": reclaim},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
            }),
        ));
        world.preempting_queues.push(QueuePreemption {
            preempts_within_queue: within != "Never",
            cross_queue_scope: match reclaim {
                "Never" => CrossQueueScope::Never,
                "LowerPriority" => CrossQueueScope::LowerPriority,
                _ => CrossQueueScope::Any,
            },
            may_borrow,
        });
    }
    world
}

fn random_workloads(
    dice: &mut Rng,
    world: &ModelCluster,
    field: &mut SimulatedCluster,
) -> Vec<SimWorkload> {
    let cpu = field.resource("cpu");
    let count = 6 + dice.below(14);
    (0..count)
        .map(|_| SimWorkload {
            queue: world.queues[dice.below(world.queues.len())]
                .metadata
                .name
                .clone()
                .unwrap(),
            priority: i32::try_from(dice.below(4)).unwrap(),
            requests: BTreeMap::from([(cpu, i64::try_from(1 + dice.below(5)).unwrap() * 1000)]),
            arrives_when_idle: dice.below(2) == 0,
        })
        .collect()
}

#[test]
fn safe_policies_never_repeat_a_state() {
    let asked = std::env::var("LOCKKEEPER_STEPS").ok();
    let wanted = asked.map_or(STEPS_PER_RUN, |it| it.parse().unwrap());
    let mut dice = Rng(7);
    let (mut steps, mut preemptions) = (
        BTreeMap::<String, usize>::new(),
        BTreeMap::<String, usize>::new(),
    );
    while steps.values().sum::<usize>() < wanted {
        let rules = PreemptionRules {
            is_fair: dice.below(2) == 0,
            is_damped: dice.below(4) == 0,
        };
        let world = random_cluster(&mut dice);
        let said = loop_verdict(&world.preempting_queues, world.is_nested, rules);
        if matches!(said, LoopVerdict::Unknown | LoopVerdict::NoPreemption) {
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
        let trees = cohort_trees(&world.queues, &world.cohorts);
        let mut field = SimulatedCluster::new(&trees[0], options).unwrap();
        let guests = random_workloads(&mut dice, &world, &mut field);
        let mut run = SimulationRun::new(&field, &guests);
        let found = run.find_loop(CYCLES_MAX);
        let key = format!("{said:?}, fair {}", rules.is_fair);
        assert_eq!(found, None, "{key}: {:#?}", world.queues);
        assert!(
            run.cycles().len() < CYCLES_MAX,
            "{key}: it does not come to rest: {:#?}",
            world.queues
        );
        *steps.entry(key.clone()).or_default() += run.cycles().len();
        let rounds = run.cycles().iter();
        *preemptions.entry(key).or_default() += rounds.map(|it| it.preempted.len()).sum::<usize>();
    }
    println!("{steps:#?}\n{preemptions:#?}");
    assert_eq!(preemptions.len(), 4, "{preemptions:?}");
    assert!(preemptions.values().all(|it| *it > 50), "{preemptions:?}");
}
