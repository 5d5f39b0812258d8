//! The loop search on the queues of recorded preemption loops, and of loops that users of Kueue reported.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use insta::assert_snapshot;
use lockkeeper_api::{ClusterQueue, Cohort};
use lockkeeper_preemption::{Algorithm, Damping, FairStrategy, KueueBugs, Options};
use lockkeeper_simulate::loop_search::{LoopSearch, find_loop};
use lockkeeper_simulate::{SimulatedCluster, cohort_trees};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// More runs than the search needs for any recorded loop.
const DRAWS_MAX: u64 = 60_000;

fn scenario_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance/loops")
}

fn array_items<'a>(of: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    of[key].as_array().into_iter().flatten()
}

/// Converts a quota of a scenario file to the form of the API. Whole numbers in scenario files are milli-CPU.
fn quota_manifest(of: &Value) -> Value {
    let mut out = Map::from_iter([("name".to_owned(), of["resource"].clone())]);
    for (from, to) in [
        ("nominal", "nominalQuota"),
        ("borrowingLimit", "borrowingLimit"),
        ("lendingLimit", "lendingLimit"),
    ] {
        let amount = match &of[from] {
            Value::Number(number) => json!(format!("{number}m")),
            amount => amount.clone(),
        };
        if !amount.is_null() {
            out.insert(to.to_owned(), amount);
        }
    }
    Value::Object(out)
}

fn flavor(name: &Value, quotas: &[&Value]) -> Value {
    let resources: Vec<_> = quotas.iter().map(|it| quota_manifest(it)).collect();
    json!({"name": name, "resources": resources})
}

fn cluster_queue(of: &Value) -> ClusterQueue {
    let groups = array_items(of, "resourceGroups").map(|group| {
        let flavors = array_items(group, "flavors");
        let flavors =
            flavors.map(|it| flavor(&it["name"], &array_items(it, "quotas").collect::<Vec<_>>()));
        json!({"coveredResources": group["resources"], "flavors": flavors.collect::<Vec<_>>()})
    });
    let mut spec = json!({
        "cohortName": of["cohort"],
        "resourceGroups": groups.collect::<Vec<_>>(),
    });
    for key in ["preemption", "queueingStrategy", "flavorFungibility"] {
        spec[key] = of[key].clone();
    }
    let object = json!({"metadata": {"name": of["name"]}, "spec": spec});
    serde_json::from_value(object).unwrap()
}

fn cohort(of: &Value) -> Cohort {
    let groups = array_items(of, "quotas").map(|quota| {
        let flavors = [flavor(&quota["flavor"], &[quota])];
        json!({"coveredResources": [quota["resource"]], "flavors": flavors})
    });
    let groups: Vec<_> = groups.collect();
    let spec = json!({"parentName": of["parent"], "resourceGroups": groups});
    serde_json::from_value(json!({"metadata": {"name": of["name"]}, "spec": spec})).unwrap()
}

fn simulated_clusters(file: &str, kueue_bugs: KueueBugs) -> Vec<SimulatedCluster> {
    let text = std::fs::read_to_string(scenario_folder().join(file)).unwrap();
    let scenario: Value = serde_saphyr::from_str(&text).unwrap();
    let queues: Vec<_> = array_items(&scenario, "clusterQueues")
        .map(cluster_queue)
        .collect();
    let cohorts: Vec<_> = array_items(&scenario, "cohorts").map(cohort).collect();
    let strategies = array_items(&scenario["fairSharing"], "preemptionStrategies");
    let strategies = strategies.map(|strategy| match strategy.as_str().unwrap() {
        "LessThanInitialShare" => FairStrategy::LessThanInitialShare,
        _ => FairStrategy::LessThanOrEqualToFinalShare,
    });
    let algorithm = if scenario["algorithm"] == "fair" {
        Algorithm::FairSharing(strategies.collect())
    } else {
        Algorithm::Classical
    };
    let options = Options {
        algorithm,
        damping: Damping::Off,
        kueue_bugs,
        ..Options::default()
    };
    let trees = cohort_trees(&queues, &cohorts);
    let clusters = trees
        .iter()
        .map(|it| SimulatedCluster::new(it, options.clone()).unwrap());
    clusters.collect()
}

/// Returns the report of the first loop that the search finds, without priority classes.
fn find_report(file: &str, kueue_bugs: KueueBugs) -> Option<String> {
    let priorities = BTreeSet::new();
    let search = LoopSearch {
        priorities: &priorities,
        draws_max: DRAWS_MAX,
    };
    let clusters = simulated_clusters(file, kueue_bugs);
    let mut reports = clusters
        .iter()
        .filter_map(|cluster| Some(find_loop(cluster, &search)?.report(cluster)));
    Some(reports.next()?.join("\n"))
}

#[test]
fn find_loop_in_every_recorded_scenario_succeeds() {
    let files = std::fs::read_dir(scenario_folder())
        .unwrap()
        .map(|it| it.unwrap().path());
    let files = files.filter(|it| it.extension().is_some_and(|it| it == "yaml"));
    let names = files.map(|it| it.file_name().unwrap().to_str().unwrap().to_owned());
    let mut names: Vec<String> = names.collect();
    names.retain(|it| !it.starts_with("kueue-"));
    names.sort();
    assert_eq!(names.len(), 8, "{names:?}");
    for name in names {
        let report = find_report(&name, KueueBugs::default());
        let report = report.unwrap_or_else(|| panic!("{name}: no loop found"));
        assert_snapshot!(name.trim_end_matches(".yaml").to_owned(), report);
    }
}

#[test]
fn find_loop_finds_published_loops() {
    let none = KueueBugs::default();
    for (number, kueue_bugs) in [
        (
            2821,
            KueueBugs {
                ignores_priority_in_cycle: true,
                ..none
            },
        ),
        (
            3779,
            KueueBugs {
                borrows_under_fair_sharing: true,
                ..none
            },
        ),
        (
            6947,
            KueueBugs {
                forgets_preemptors: true,
                ..none
            },
        ),
        (14543, none),
    ] {
        let report = find_report(&format!("kueue-{number}.yaml"), kueue_bugs);
        let report = report.unwrap_or_else(|| panic!("{number}: no loop found"));
        assert_snapshot!(format!("kueue-{number}"), report);
    }
}

#[test]
fn find_loop_fixed_kueue_bugs_finds_none() {
    for number in [3779, 6947] {
        let report = find_report(&format!("kueue-{number}.yaml"), KueueBugs::default());
        assert_eq!(report, None, "{number}");
    }
}

/// Returns `count` queues with equal specs in one cohort.
fn equal_queues(count: usize) -> Vec<ClusterQueue> {
    let queue = |number: usize| {
        let flavor = json!({"name": "spot", "quotas": [{"resource": "cpu", "nominal": "4"}]});
        cluster_queue(&json!({
            "name": format!("q{number:04}"),
            "cohort": "all",
            "resourceGroups": [{"resources": ["cpu"], "flavors": [flavor]}],
            "preemption": {"reclaimWithinCohort": "Any", "borrowWithinCohort": {"policy": "LowerPriority"}},
        }))
    };
    (0..count).map(queue).collect()
}

#[test]
fn find_loop_equal_queues_are_sampled() {
    let queues = equal_queues(1_000);
    let trees = cohort_trees(&queues, &[]);
    assert_eq!(trees.len(), 1);
    assert_eq!(trees[0].queues.len(), 1_000);
    let options = Options {
        damping: Damping::Off,
        ..Options::default()
    };
    let cluster = SimulatedCluster::new(&trees[0], options).unwrap();
    let priorities = BTreeSet::new();
    let search = LoopSearch {
        priorities: &priorities,
        draws_max: DRAWS_MAX,
    };
    let report = find_loop(&cluster, &search).unwrap().report(&cluster);
    assert_snapshot!(report.join("\n"));
}
