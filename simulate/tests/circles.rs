//! What the search finds in the queues of the loops that are kept, and of those that Kueue's users reported.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use insta::assert_snapshot;
use lockkeeper_api::{ClusterQueue, Cohort};
use lockkeeper_preemption::{Algorithm, Damping, FairStrategy, FormerKueue, Options};
use lockkeeper_simulate::circles::{Search, find};
use lockkeeper_simulate::{Field, trees};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// More than any of the kept loops needs.
const DRAWS_MAX: u64 = 60_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance/loops")
}

fn list<'a>(of: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    of[key].as_array().into_iter().flatten()
}

/// A scenario's quota as an object has it. Whole numbers are milli-CPU there.
fn quota(of: &Value) -> Value {
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
    let resources: Vec<_> = quotas.iter().map(|it| quota(it)).collect();
    json!({"name": name, "resources": resources})
}

fn cluster_queue(of: &Value) -> ClusterQueue {
    let groups = list(of, "resourceGroups").map(|group| {
        let flavors = list(group, "flavors");
        let flavors =
            flavors.map(|it| flavor(&it["name"], &list(it, "quotas").collect::<Vec<_>>()));
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
    let groups = list(of, "quotas").map(|it| {
        let flavors = [flavor(&it["flavor"], &[it])];
        json!({"coveredResources": [it["resource"]], "flavors": flavors})
    });
    let groups: Vec<_> = groups.collect();
    let spec = json!({"parentName": of["parent"], "resourceGroups": groups});
    serde_json::from_value(json!({"metadata": {"name": of["name"]}, "spec": spec})).unwrap()
}

fn fields(file: &str, former: FormerKueue) -> Vec<Field> {
    let text = std::fs::read_to_string(folder().join(file)).unwrap();
    let scenario: Value = serde_saphyr::from_str(&text).unwrap();
    let queues: Vec<_> = list(&scenario, "clusterQueues")
        .map(cluster_queue)
        .collect();
    let cohorts: Vec<_> = list(&scenario, "cohorts").map(cohort).collect();
    let strategies = list(&scenario["fairSharing"], "preemptionStrategies");
    let strategies = strategies.map(|it| match it.as_str().unwrap() {
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
        former,
        ..Options::default()
    };
    let trees = trees(&queues, &cohorts);
    let fields = trees
        .iter()
        .map(|it| Field::new(it, options.clone()).unwrap());
    fields.collect()
}

/// The story of what is found, without any priority classes.
fn found(file: &str, former: FormerKueue) -> Option<String> {
    let priorities = BTreeSet::new();
    let search = Search {
        priorities: &priorities,
        draws_max: DRAWS_MAX,
    };
    let fields = fields(file, former);
    let mut stories = fields
        .iter()
        .filter_map(|field| Some(find(field, &search)?.story(field)));
    Some(stories.next()?.join("\n"))
}

#[test]
fn a_circle_is_found_in_the_queues_of_every_kept_loop() {
    let files = std::fs::read_dir(folder())
        .unwrap()
        .map(|it| it.unwrap().path());
    let files = files.filter(|it| it.extension().is_some_and(|it| it == "yaml"));
    let names = files.map(|it| it.file_name().unwrap().to_str().unwrap().to_owned());
    let mut names: Vec<String> = names.collect();
    names.retain(|it| !it.starts_with("kueue-"));
    names.sort();
    assert_eq!(names.len(), 8, "{names:?}");
    for name in names {
        let story = found(&name, FormerKueue::default());
        let story = story.unwrap_or_else(|| panic!("{name}: nothing is found"));
        assert_snapshot!(name.trim_end_matches(".yaml").to_owned(), story);
    }
}

#[test]
fn the_published_loops_are_found() {
    let none = FormerKueue::default();
    for (number, former) in [
        (
            2821,
            FormerKueue {
                ignores_priority_in_cycle: true,
                ..none
            },
        ),
        (
            3779,
            FormerKueue {
                borrows_under_fair_sharing: true,
                ..none
            },
        ),
        (
            6947,
            FormerKueue {
                forgets_preemptors: true,
                ..none
            },
        ),
        (14543, none),
    ] {
        let story = found(&format!("kueue-{number}.yaml"), former);
        let story = story.unwrap_or_else(|| panic!("{number}: nothing is found"));
        assert_snapshot!(format!("kueue-{number}"), story);
    }
}

#[test]
fn what_kueue_has_mended_is_found_no_more() {
    for number in [3779, 6947] {
        let story = found(&format!("kueue-{number}.yaml"), FormerKueue::default());
        assert_eq!(story, None, "{number}");
    }
}

/// `count` queues that are all alike, in one cohort.
fn alike(count: usize) -> Vec<ClusterQueue> {
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
fn of_many_queues_a_few_stand_for_all() {
    let queues = alike(1_000);
    let trees = trees(&queues, &[]);
    assert_eq!(trees.len(), 1);
    assert_eq!(trees[0].queues.len(), 1_000);
    let options = Options {
        damping: Damping::Off,
        ..Options::default()
    };
    let field = Field::new(&trees[0], options).unwrap();
    let priorities = BTreeSet::new();
    let search = Search {
        priorities: &priorities,
        draws_max: DRAWS_MAX,
    };
    let story = find(&field, &search).unwrap().story(&field);
    assert_snapshot!(story.join("\n"));
}
