//! A state built object by object, in any order and with intermediate versions, makes the same decisions as a state
//! built from the scenario.

use crate::{lockkeeper_object, object};
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_cluster_state::{ClusterState, Completeness};
use lockkeeper_preemption::requeue::RequeueSettings;
use lockkeeper_preemption::{
    Amount, Compatibility, Cycle, Damping, Decision, NodeId, Options, State,
};
use lockkeeper_scenario::explanation;
use lockkeeper_scenario::{Scenario, load};
use lockkeeper_testkit::Rng;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const CLUSTERS: u64 = 300;
const CYCLES: i64 = 6;
const TEAMS: [&str; 2] = ["red", "blue"];
const RESOURCES: [&str; 2] = ["cpu", "memory"];

/// The same cluster as objects and as a scenario.
#[derive(Default)]
struct TestCluster {
    scenario: Value,
    objects: Vec<Value>,
}

fn random_cluster(dice: &mut Rng) -> TestCluster {
    let mut out = TestCluster {
        scenario: json!({
            "now": 1000, "cohorts": [], "clusterQueues": [], "admitted": [], "pending": [],
            "damping": dice.one_in(2), "namespaces": {},
        }),
        objects: Vec::new(),
    };
    for (at, team) in TEAMS.iter().enumerate() {
        out.scenario["namespaces"][team] = json!({"team": team});
        let mut object = lockkeeper_object("Namespace", None, team, &json!({}));
        object["metadata"]["labels"] = json!({"team": team});
        out.objects.push(object);
        let name = format!("f{at}");
        // The flavor has a taint that only some pods tolerate.
        let spec = match at {
            0 => json!({}),
            _ => json!({"nodeTaints": [{"key": "rare", "effect": "NoSchedule"}]}),
        };
        out.objects
            .push(lockkeeper_object("ResourceFlavor", None, &name, &spec));
    }
    cohorts(dice, &mut out);
    let queues = 2 + dice.below(3);
    for at in 0..queues {
        queue(dice, &mut out, at);
    }
    for at in 0..4 + dice.below(12) {
        let queue = dice.below(queues);
        workload(dice, &mut out, at, queue);
    }
    out
}

fn amount(dice: &mut Rng, resource: &str, most: u64) -> u64 {
    let unit = if resource == "cpu" { 1000 } else { 1 << 30 };
    dice.below(most) * unit
}

fn text(resource: &str, amount: u64) -> String {
    if resource == "cpu" {
        format!("{amount}m")
    } else {
        amount.to_string()
    }
}

/// Quota of a flavor: in the form of the scenario, and of the object.
fn quotas(dice: &mut Rng, flavor: &str) -> (Vec<Value>, Vec<Value>) {
    let (mut scenario, mut object) = (Vec::new(), Vec::new());
    for resource in RESOURCES {
        let nominal = amount(dice, resource, 6);
        let mut one = json!({"flavor": flavor, "resource": resource, "nominal": nominal});
        let mut other = json!({"name": resource, "nominalQuota": text(resource, nominal)});
        if dice.one_in(3) {
            let limit = amount(dice, resource, 4);
            one["borrowingLimit"] = limit.into();
            other["borrowingLimit"] = text(resource, limit).into();
        }
        if dice.one_in(4) {
            let limit = amount(dice, resource, 4).min(nominal);
            one["lendingLimit"] = limit.into();
            other["lendingLimit"] = text(resource, limit).into();
        }
        scenario.push(one);
        object.push(other);
    }
    (scenario, object)
}

fn cohorts(dice: &mut Rng, out: &mut TestCluster) {
    for (name, parent) in [("c0", Some("root")), ("c1", Some("root")), ("root", None)] {
        let (scenario, object) = quotas(dice, "f0");
        let has_quota = dice.one_in(2);
        let mut spec = json!({});
        if let Some(parent) = parent {
            spec["parentName"] = parent.into();
        }
        if has_quota {
            spec["resourceGroups"] = json!([{"coveredResources": RESOURCES,
                "flavors": [{"name": "f0", "resources": object}]}]);
        }
        let quotas = if has_quota { scenario } else { vec![] };
        let cohort = json!({"name": name, "parent": parent, "quotas": quotas});
        out.scenario["cohorts"].as_array_mut().unwrap().push(cohort);
        out.objects
            .push(lockkeeper_object("Cohort", None, name, &spec));
    }
}

fn queue(dice: &mut Rng, out: &mut TestCluster, at: u64) {
    let name = format!("q{at}");
    let cohort = dice.pick(&["c0", "c1", "root"]);
    let mut flavors = vec!["f0", "f1"];
    if dice.one_in(2) {
        flavors.reverse();
    }
    let (mut scenario, mut object) = (Vec::new(), Vec::new());
    for flavor in flavors {
        let (one, other) = quotas(dice, flavor);
        scenario.push(json!({"name": flavor, "quotas": one}));
        object.push(json!({"name": flavor, "resources": other}));
    }
    let preemption = json!({
        "withinClusterQueue": dice.pick(&["Never", "LowerPriority", "LowerPriority", "LowerOrNewerEqualPriority"]),
        "reclaimWithinCohort": dice.pick(&["Never", "LowerPriority", "Any"]),
        "borrowWithinCohort": {"policy": dice.pick(&["Never", "LowerPriority"])},
    });
    let fungibility = json!({
        "whenCanBorrow": dice.pick(&["MayStopSearch", "TryNextFlavor"]),
        "whenCanPreempt": dice.pick(&["MayStopSearch", "TryNextFlavor"]),
    });
    let selector = match dice.below(3) {
        0 if dice.one_in(2) => json!({"matchLabels": {"team": "red"}}),
        1 if dice.one_in(2) => {
            json!({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]})
        }
        _ => json!({}),
    };
    let strategy = dice.pick(&["StrictFIFO", "BestEffortFIFO"]);
    out.scenario["clusterQueues"].as_array_mut().unwrap().push(json!({
        "name": name, "cohort": cohort, "preemption": preemption, "flavorFungibility": fungibility,
        "queueingStrategy": strategy, "namespaceSelector": selector,
        "resourceGroups": [{"resources": RESOURCES, "flavors": scenario}],
    }));
    let spec = json!({
        "cohortName": cohort, "preemption": preemption, "flavorFungibility": fungibility,
        "queueingStrategy": strategy, "namespaceSelector": selector,
        "resourceGroups": [{"coveredResources": RESOURCES, "flavors": object}],
    });
    out.objects
        .push(lockkeeper_object("ClusterQueue", None, &name, &spec));
    for team in TEAMS {
        let spec = json!({"clusterQueue": name});
        out.objects
            .push(lockkeeper_object("LocalQueue", Some(team), &name, &spec));
    }
}

fn time(second: u64) -> String {
    format!("1970-01-01T00:00:{second:02}Z")
}

fn workload(dice: &mut Rng, out: &mut TestCluster, at: u64, queue: u64) {
    let (team, queue) = (dice.pick(&TEAMS), format!("q{queue}"));
    let (name, created) = (format!("w{at}"), dice.below(20));
    let runs = dice.one_in(2);
    // Pending workloads have a higher priority, so that there is something to decide.
    let priority = dice.below(3) + if runs { 0 } else { 2 };
    let count = 1 + dice.below(3);
    let each = RESOURCES.map(|it| (it, amount(dice, it, 3)));
    let all = |text: bool| -> BTreeMap<&str, Value> {
        let all = each.iter().map(|(it, each)| (*it, each * count));
        all.map(|(it, all)| {
            if text {
                (it, json!(crate::event_order::text(it, all)))
            } else {
                (it, all.into())
            }
        })
        .collect()
    };
    let requests: BTreeMap<&str, String> = each.iter().map(|(it, n)| (*it, text(it, *n))).collect();
    let mut pod_set = json!({"name": "main", "count": count, "requests": all(false)});
    let mut wanted = json!({"name": "main", "count": count, "template": {"spec": {"containers": [
        {"name": "a", "resources": {"requests": requests}}]}}});
    if dice.one_in(3) {
        pod_set["minCount"] = 1.into();
        wanted["minCount"] = 1.into();
    }
    if dice.one_in(2) {
        pod_set["ineligibleFlavors"] = json!(["f1"]);
    } else {
        wanted["template"]["spec"]["tolerations"] = json!([{"key": "rare", "operator": "Exists"}]);
    }
    let spec = json!({"queueName": queue, "podSets": [wanted]});
    let mut object = lockkeeper_object("Workload", Some(team), &name, &spec);
    object["metadata"]["uid"] = name.clone().into();
    object["metadata"]["creationTimestamp"] = time(created).into();
    object["status"] = json!({"priority": priority, "conditions": []});
    let mut scenario = json!({
        "name": format!("{team}/{name}"), "namespace": team, "uid": name, "clusterQueue": queue,
        "priority": priority, "queueOrderTime": created,
    });
    let mut list = "pending";
    if runs {
        list = "admitted";
        let (flavor, reserved) = (*dice.pick(&["f0", "f1"]), created + dice.below(9));
        let flavors: BTreeMap<&str, &str> = RESOURCES.iter().map(|it| (*it, flavor)).collect();
        pod_set["flavors"] = json!(flavors);
        scenario["quotaReservedTime"] = reserved.into();
        object["status"]["admission"] = json!({"clusterQueue": queue, "podSetAssignments": [
            {"name": "main", "count": count, "flavors": flavors, "resourceUsage": all(true)}]});
        let mut condition = |type_: &str, reason: &str| {
            let list = object["status"]["conditions"].as_array_mut().unwrap();
            list.push(
                json!({"type": type_, "status": "True", "reason": reason, "message": "",
                "lastTransitionTime": time(reserved)}),
            );
        };
        condition("QuotaReserved", "QuotaReserved");
        if dice.one_in(4) {
            scenario["evicted"] = true.into();
            condition("Evicted", "Preempted");
        }
    }
    scenario["podSets"] = json!([pod_set]);
    out.scenario[list].as_array_mut().unwrap().push(scenario);
    out.objects.push(object);
}

fn apply(objects: &mut ClusterState, value: &Value) {
    match value["kind"].as_str().unwrap() {
        "ClusterQueue" => {
            let queue: ClusterQueue = object(value);
            objects.set_cluster_queue(Arc::new(queue)).unwrap();
        }
        "Cohort" => objects.set_cohort(&object::<Cohort>(value)).unwrap(),
        "ResourceFlavor" => objects.set_resource_flavor(&object::<ResourceFlavor>(value)),
        "LocalQueue" => objects.set_local_queue(&object::<LocalQueue>(value)),
        "Workload" => {
            let workload: Workload = object(value);
            objects.set_workload(Arc::new(workload)).unwrap();
        }
        _ => {
            let labels: BTreeMap<String, String> = object(&value["metadata"]["labels"]);
            objects.set_namespace(value["metadata"]["name"].as_str().unwrap(), labels);
        }
    }
}

fn remove(objects: &mut ClusterState, value: &Value) {
    let name = value["metadata"]["name"].as_str().unwrap();
    let namespace = value["metadata"]["namespace"].as_str().unwrap_or_default();
    match value["kind"].as_str().unwrap() {
        "ClusterQueue" => objects.remove_cluster_queue(name),
        "Cohort" => objects.remove_cohort(name),
        "ResourceFlavor" => objects.remove_resource_flavor(name),
        "LocalQueue" => objects.remove_local_queue(namespace, name),
        "Workload" => objects.remove_workload(&format!("{namespace}/{name}")),
        _ => objects.remove_namespace(name),
    }
}

/// A possible earlier version of the same object.
fn earlier_version(dice: &mut Rng, value: &Value, cluster: &TestCluster) -> Value {
    let mut value = value.clone();
    match value["kind"].as_str().unwrap() {
        "ClusterQueue" => {
            value["spec"]["cohortName"] = (*dice.pick(&["c0", "c1", "other"])).into();
            value["spec"]["stopPolicy"] = "Hold".into();
            if dice.one_in(2) {
                value["spec"]["resourceGroups"] = json!([]);
            }
        }
        "Cohort" => value["spec"]["parentName"] = (*dice.pick(&["c0", "c1", "other"])).into(),
        "LocalQueue" => value["spec"]["clusterQueue"] = "q0".into(),
        "ResourceFlavor" if dice.one_in(2) => value["spec"] = json!({}),
        "ResourceFlavor" => {
            value["spec"] = json!({"nodeTaints": [{"key": "all", "effect": "NoExecute"}]});
        }
        "Workload" => {
            value["status"] = json!({"priority": 9});
            value["spec"]["queueName"] = "q1".into();
            // With the spec or status of another workload.
            let others = cluster.objects.iter().filter(|it| it["kind"] == "Workload");
            let others: Vec<&Value> = others.collect();
            let other = dice.pick(&others);
            value["spec"]["podSets"] = other["spec"]["podSets"].clone();
            value["status"]["admission"] = other["status"]["admission"].clone();
        }
        _ => value["metadata"]["labels"] = json!({"team": "grey"}),
    }
    value
}

fn decisions_json(state: &State, cycle: &Cycle) -> Vec<Value> {
    let entries = cycle.entries.iter().map(|entry| {
        let mut entry_json = explanation::entry_json(state, entry);
        // The trace refers to flavors and resources by number, and depends on their order.
        entry_json.as_object_mut().unwrap().remove("trace");
        entry_json
    });
    entries.collect()
}

fn release_victims(state: &mut State, cycle: &Cycle) {
    for entry in &cycle.entries {
        if let Decision::Preempt(victims) = &entry.decision {
            for victim in victims {
                state.release(victim.workload);
            }
        }
    }
}

/// The usage of a queue by flavor and resource, amounts of 0 left out.
fn named_usage(state: &State, queue: NodeId) -> Vec<(String, String, Amount)> {
    let usage = state.node_view(queue).usage().into_iter();
    let used = usage.filter(|(_, amount)| amount.get() != 0);
    let mut named: Vec<_> = used
        .map(|(of, amount)| {
            let flavor = state.flavor_name(of.flavor).to_owned();
            (flavor, state.resource_name(of.resource).to_owned(), amount)
        })
        .collect();
    named.sort();
    named
}

#[track_caller]
fn assert_same_usage(got: &State, expected: &State, seed: u64) {
    for (name, id) in expected.queues() {
        let queue = got.queue(name).unwrap();
        assert_eq!(
            named_usage(got, queue),
            named_usage(expected, id),
            "seed {seed}, {name}"
        );
    }
}

#[test]
fn cluster_state_event_order_does_not_change_decisions() {
    let (mut preempted, mut admitted) = (0, 0);
    for seed in 0..CLUSTERS {
        let mut dice = Rng::new(seed);
        let mut cluster = random_cluster(&mut dice);
        let scenario: Scenario = object(&cluster.scenario);
        let mut expected = load(&scenario, Compatibility::Lockkeeper).unwrap();
        let options = Options {
            damping: match scenario.damping {
                Some(true) => Damping::On,
                _ => Damping::Off,
            },
            ..Options::default()
        };
        let mut got =
            ClusterState::new(options, RequeueSettings::default(), Completeness::Complete);
        got.set_now(1_000_000);
        let mut objects = std::mem::take(&mut cluster.objects);
        dice.shuffle(&mut objects);
        cluster.objects = objects;
        for at in 0..cluster.objects.len() {
            let value = &cluster.objects[at];
            if dice.one_in(3) {
                apply(&mut got, &earlier_version(&mut dice, value, &cluster));
            }
            if dice.one_in(4) {
                remove(&mut got, value);
            }
            apply(&mut got, value);
            // An object that is delivered again, and one that exists only temporarily.
            let other = *dice.pick(&cluster.objects.iter().collect::<Vec<_>>()[..=at]);
            if dice.one_in(4) {
                remove(&mut got, other);
            }
            apply(&mut got, other);
        }
        let got = got.state_mut();
        for turn in 0..CYCLES {
            let now = scenario.now + turn;
            let one = expected.state.next_cycle(now, false);
            let other = got.next_cycle(now, false);
            let told_one = decisions_json(&expected.state, &one);
            assert_eq!(
                decisions_json(got, &other),
                told_one,
                "cluster {seed}, cycle {turn}"
            );
            let decisions = one.entries.iter().map(|it| &it.decision);
            preempted += decisions
                .clone()
                .filter(|it| matches!(it, Decision::Preempt(_)))
                .count();
            admitted += decisions.filter(|it| **it == Decision::Admit).count();
            release_victims(&mut expected.state, &one);
            release_victims(got, &other);
        }
        assert_same_usage(got, &expected.state, seed);
    }
    assert!(preempted > 100, "{preempted} preempted");
    assert!(admitted > 300, "{admitted} admitted");
}
