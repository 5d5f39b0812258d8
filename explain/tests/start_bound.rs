//! No run of a random world starts its pending workload later than the bound.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::needless_pass_by_value,
    reason = "tests fail by panicking, and build objects from literals"
)]

use k8s_openapi::jiff::Timestamp;
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::{ClusterState, FlavorSearches};
use lockkeeper_explain::{StartBound, StartCondition, World, WorldBuilder, WorldSettings, explain};
use lockkeeper_preemption::{Algorithm, Decision, FairStrategy, Options};
use lockkeeper_testkit::Rng;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The pending workload of each world.
const SUBJECT: &str = "ns/subject";

/// The current time of each world, in seconds since 1970.
const NOW_S: i64 = 1_800_000_000;

/// The most seconds of a run.
const RUN_S_MAX: i64 = 3_000;

#[derive(Clone, Debug)]
struct RandomWorld {
    objects: Vec<Value>,
    is_fair: bool,
}

fn time(at_s: i64) -> String {
    Timestamp::from_second(at_s).unwrap().to_string()
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "lockkeeper.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

impl RandomWorld {
    fn new(rng: &mut Rng) -> Self {
        // The pending workload at the head of a queue with backfill, without a cohort.
        let is_head = rng.one_in(6);
        let queues = if is_head { 1 } else { 1 + rng.below(3) };
        let flavors = 1 + rng.below(2);
        let mut objects = Vec::new();
        for flavor in 0..flavors {
            objects.push(object("ResourceFlavor", &format!("f{flavor}"), json!({})));
        }
        for at in 0..queues {
            objects.push(queue(rng, at, flavors));
            let name = format!("q{at}");
            let mut local = object("LocalQueue", &name, json!({"clusterQueue": name}));
            local["metadata"]["namespace"] = json!("ns");
            objects.push(local);
        }
        for at in 0..=rng.below(4_u64) {
            let queue = rng.below(queues);
            objects.push(running(rng, &format!("r{at}"), queue, flavors));
        }
        for at in 0..rng.below(5) {
            let queue = rng.below(queues);
            let mut other = pending(rng, &format!("p{at}"), queue);
            if rng.one_in(8) {
                other["status"]["requeueState"] = json!({"count": 1,
                    "requeueAt": time(NOW_S + rng.below(20_i64))});
                other["status"]["conditions"] =
                    json!([condition("Evicted", "PodsReadyTimeout", NOW_S)]);
            }
            objects.push(other);
        }
        let mut subject = pending(rng, "subject", 0);
        subject["metadata"]["creationTimestamp"] = json!(time(NOW_S));
        if is_head {
            subject["status"]["priority"] = json!(2);
            let queue = objects
                .iter_mut()
                .find(|it| it["kind"] == "ClusterQueue")
                .unwrap();
            queue["spec"]["queueingStrategy"] = json!("StrictFIFO");
            queue["spec"]["backfill"]["policy"] = json!(*rng.pick(&["Easy", "Conservative"]));
            queue["spec"]["cohortName"] = Value::Null;
        }
        objects.push(subject);
        Self {
            objects,
            is_fair: rng.one_in(4),
        }
    }

    /// Whether the queue of the pending workload has backfill.
    fn has_backfill(&self) -> bool {
        let is_queue = |it: &&Value| it["kind"] == "ClusterQueue" && it["metadata"]["name"] == "q0";
        let queue = self.objects.iter().find(is_queue).unwrap();
        queue["spec"]["backfill"]["policy"] != "None"
    }

    fn build(&self) -> World {
        let mut builder = WorldBuilder::new();
        for object in &self.objects {
            builder.add(object.clone());
        }
        let mut options = Options::default();
        if self.is_fair {
            options.algorithm =
                Algorithm::FairSharing(vec![FairStrategy::LessThanOrEqualToFinalShare]);
        }
        let world = builder.build(WorldSettings {
            options,
            now_ms: Some(NOW_S * 1000),
            ..WorldSettings::default()
        });
        assert_eq!(world.unreadable(), [], "{self:?}");
        world
    }
}

fn queue(rng: &mut Rng, at: u64, flavors: u64) -> Value {
    let flavors: Vec<Value> = (0..flavors)
        .map(|flavor| {
            let mut resources = Vec::new();
            for resource in ["cpu", "gpu"] {
                let mut quota = json!({"name": resource, "nominalQuota": rng.below(8).to_string()});
                if rng.one_in(4) {
                    quota["borrowingLimit"] = json!(rng.below(4).to_string());
                }
                if rng.one_in(4) {
                    quota["lendingLimit"] = json!("0");
                }
                resources.push(quota);
            }
            json!({"name": format!("f{flavor}"), "resources": resources})
        })
        .collect();
    let strategies = ["StrictFIFO", "BestEffortFIFO"];
    let mut policy = json!({});
    if rng.one_in(2) {
        policy = json!({
            "withinClusterQueue": *rng.pick(&["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
            "reclaimWithinCohort": *rng.pick(&["Never", "LowerPriority", "Any"]),
        });
    }
    let search = ["TryNextFlavor", "MayStopSearch"];
    let fungibility =
        json!({"whenCanBorrow": *rng.pick(&search), "whenCanPreempt": *rng.pick(&search)});
    let backfill = *rng.pick(&["None", "None", "None", "Easy", "Conservative"]);
    object(
        "ClusterQueue",
        &format!("q{at}"),
        json!({
            "backfill": {"policy": backfill},
            "cohortName": "c", "namespaceSelector": {}, "preemption": policy,
            "flavorFungibility": fungibility,
            "queueingStrategy": *rng.pick(&strategies),
            "resourceGroups": [{"coveredResources": ["cpu", "gpu"], "flavors": flavors}],
        }),
    )
}

/// A workload with one pod set or two.
fn workload(rng: &mut Rng, name: &str, queue: u64) -> Value {
    let sets = 1 + u64::from(rng.one_in(6));
    let pod_sets: Vec<Value> = (0..sets)
        .map(|at| {
            let requests =
                json!({"cpu": (1 + rng.below(3)).to_string(), "gpu": rng.below(3).to_string()});
            let container = json!({"name": "c", "resources": {"requests": requests}});
            let mut set = json!({"name": format!("s{at}"), "count": 1 + rng.below(3),
                "template": {"spec": {"containers": [container]}}});
            if rng.one_in(10) {
                set["minCount"] = json!(1);
            }
            set
        })
        .collect();
    let mut spec = json!({"queueName": format!("q{queue}"), "podSets": pod_sets});
    if !rng.one_in(15) {
        spec["maximumExecutionTimeSeconds"] = json!(1 + rng.below(40));
    }
    let mut workload = object("Workload", name, spec);
    let created_s = NOW_S - 60 + rng.below(20_i64);
    workload["metadata"]["namespace"] = json!("ns");
    workload["metadata"]["uid"] = json!(name);
    workload["metadata"]["creationTimestamp"] = json!(time(created_s));
    workload["status"] = json!({"conditions": []});
    workload
}

fn condition(of: &str, reason: &str, at_s: i64) -> Value {
    json!({"type": of, "status": "True", "reason": reason, "message": "", "lastTransitionTime": time(at_s)})
}

fn pending(rng: &mut Rng, name: &str, queue: u64) -> Value {
    let mut workload = workload(rng, name, queue);
    workload["status"]["priority"] = json!(i64::from(rng.one_in(6)));
    workload
}

fn running(rng: &mut Rng, name: &str, queue: u64, flavors: u64) -> Value {
    let mut workload = workload(rng, name, queue);
    workload["status"]["priority"] = json!(i64::from(!rng.one_in(5)));
    let flavor = format!("f{}", rng.below(flavors));
    let sets = workload["spec"]["podSets"].as_array().unwrap().clone();
    let assignments: Vec<Value> = sets
        .iter()
        .map(|set| {
            let count = set["count"].as_i64().unwrap();
            let requests = &set["template"]["spec"]["containers"][0]["resources"]["requests"];
            let usage = |of: &str| {
                let each: i64 = requests[of].as_str().unwrap().parse().unwrap();
                (each * count).to_string()
            };
            json!({"name": set["name"], "count": count, "flavors": {"cpu": flavor, "gpu": flavor},
                "resourceUsage": {"cpu": usage("cpu"), "gpu": usage("gpu")}})
        })
        .collect();
    workload["status"]["admission"] =
        json!({"clusterQueue": format!("q{queue}"), "podSetAssignments": assignments});
    let admitted_s = NOW_S - rng.below(20_i64);
    let mut conditions = vec![condition("Admitted", "Admitted", admitted_s)];
    if rng.one_in(15) {
        conditions.push(condition("Evicted", "Preempted", NOW_S));
    }
    workload["status"]["conditions"] = json!(conditions);
    workload
}

/// A run of a world: workloads end at random times, at the latest at their maximum.
struct Run<'a> {
    world: &'a World,
    cluster: ClusterState,
    rng: Rng,
    now_s: i64,
    ends_s: BTreeMap<String, i64>,
    max_s: BTreeMap<String, Option<i64>>,
    /// Workloads with the times of their arrival.
    arrivals: Vec<(i64, Workload)>,
}

impl<'a> Run<'a> {
    fn new(world: &'a World, seed: u64) -> Self {
        let mut run = Self {
            world,
            cluster: world.cluster().clone(),
            rng: Rng::new(seed),
            now_s: NOW_S,
            ends_s: BTreeMap::new(),
            max_s: BTreeMap::new(),
            arrivals: Vec::new(),
        };
        let keys: Vec<String> = world.workload_keys().map(str::to_owned).collect();
        for key in keys {
            let workload = world.workload(&key).unwrap();
            let max_s = workload.spec.maximum_execution_time_seconds;
            run.max_s.insert(key.clone(), max_s.map(i64::from));
            let status = workload.status.as_ref().unwrap();
            if status.admission.is_some() {
                let mut conditions = status.conditions.iter();
                let admitted = conditions.find(|it| it.type_ == "Admitted").unwrap();
                let admitted_s = admitted.last_transition_time.0.as_second();
                let left_s = max_s.map(|it| admitted_s + i64::from(it) - NOW_S);
                // A workload without a limit, and one that exceeds it, may run for ever.
                let end_s = run.end_s(left_s.filter(|it| *it >= 0));
                run.ends_s.insert(key, end_s);
            }
        }
        run
    }

    /// Adds workloads of the subject's queue, and of its priority or a lower one.
    fn with_arrivals(mut self, priority: i32) -> Self {
        for at in 0..4 {
            let mut arrival = pending(&mut self.rng, &format!("late{at}"), 0);
            arrival["status"]["priority"] = json!(priority - i32::from(self.rng.one_in(2)));
            let at_s = NOW_S + 1 + self.rng.below(60_i64);
            arrival["metadata"]["creationTimestamp"] = json!(time(at_s));
            let arrival: Workload = serde_json::from_value(arrival).unwrap();
            let max_s = arrival.spec.maximum_execution_time_seconds;
            self.max_s
                .insert(format!("ns/late{at}"), max_s.map(i64::from));
            self.arrivals.push((at_s, arrival));
        }
        self
    }

    /// An end at random, often the latest one.
    fn end_s(&mut self, left_s: Option<i64>) -> i64 {
        let Some(left_s) = left_s else {
            return i64::MAX;
        };
        if self.rng.one_in(2) {
            return self.now_s + left_s;
        }
        let below = u64::try_from(left_s + 1).unwrap();
        self.now_s + i64::try_from(self.rng.below(below)).unwrap()
    }

    /// The start of the subject in seconds since 1970; the end of the run if it does not start.
    fn start_s(mut self) -> i64 {
        loop {
            if self.has_started() {
                return self.now_s;
            }
            let ends = self.ends_s.values().copied();
            // All backoffs end in the first seconds.
            let backoffs = (self.now_s + 1..NOW_S + 40).take(1);
            let arrivals = self.arrivals.iter().map(|(at_s, _)| *at_s);
            let next = ends.chain(backoffs).chain(arrivals);
            let next = next.filter(|it| *it > self.now_s).min();
            let Some(next) = next.filter(|it| *it < NOW_S + RUN_S_MAX) else {
                return NOW_S + RUN_S_MAX;
            };
            self.now_s = next;
        }
    }

    fn has_started(&mut self) -> bool {
        let now_s = self.now_s;
        let ended = self.ends_s.extract_if(.., |_, end_s| *end_s <= now_s);
        let ended: Vec<String> = ended.map(|(key, _)| key).collect();
        for key in ended {
            let was_evicted = self.is_evicted(&key);
            let workload = self.world.workload(&key).cloned();
            self.cluster.remove_workload(&key);
            // An evicted workload is pending again.
            if was_evicted {
                let mut workload = Workload::clone(&workload.unwrap());
                let status = workload.status.as_mut().unwrap();
                status.admission = None;
                status.conditions.clear();
                self.cluster.set_workload(Arc::new(workload)).unwrap();
            }
        }
        for (_, arrival) in self.arrivals.extract_if(.., |(at_s, _)| *at_s <= now_s) {
            self.cluster.set_workload(Arc::new(arrival)).unwrap();
        }
        self.decide()
    }

    fn is_evicted(&self, key: &str) -> bool {
        let state = self.cluster.state();
        let id = state.workload(key).unwrap();
        let reservation = state.workload_view(id).reservation();
        reservation.is_some_and(|it| it.is_evicted)
    }

    /// Runs cycles until nothing changes; whether the subject is admitted.
    fn decide(&mut self) -> bool {
        let mut searches = FlavorSearches::default();
        loop {
            let cycle = self.cluster.next_cycle(self.now_s * 1000, false);
            let mut has_progress = cycle.has_reactivated || !cycle.out_of_scope.is_empty();
            for entry in &cycle.entries {
                let key = self
                    .cluster
                    .state()
                    .workload_name(entry.workload)
                    .to_owned();
                match &entry.decision {
                    Decision::Preempt(_) => panic!("{key} preempts"),
                    Decision::Admit if key == SUBJECT => return true,
                    Decision::Admit => {
                        let end_s = self.end_s(self.max_s[&key]);
                        // It runs for a second at least: a cycle does not see an end at once.
                        self.ends_s.insert(key, end_s.max(self.now_s + 1));
                        has_progress = true;
                    }
                    _ => {}
                }
                has_progress |= searches.record(self.cluster.state(), entry);
            }
            has_progress |= searches.requeue(&mut self.cluster);
            if !has_progress {
                return false;
            }
        }
    }
}

fn seconds(bound: &StartBound) -> i64 {
    bound.time.parse::<Timestamp>().unwrap().as_second()
}

#[test]
fn no_run_starts_later_than_the_bound() {
    let (mut bounds, mut in_order, mut planned, mut exact, mut none) = (0, 0, 0, 0, 0);
    for seed in 0..5_000 {
        let random = RandomWorld::new(&mut Rng::new(seed));
        let world = random.build();
        let answer = explain(&world, SUBJECT).unwrap();
        let Some(bound) = &answer.starts_by else {
            none += 1;
            continue;
        };
        bounds += 1;
        let is_in_order = bound.unless == StartCondition::HigherPriorityArrives;
        in_order += usize::from(is_in_order);
        planned += usize::from(is_in_order && random.has_backfill());
        let mut latest_s = 0;
        for run_seed in 0..12 {
            let mut run = Run::new(&world, seed * 1000 + run_seed);
            if is_in_order {
                run = run.with_arrivals(answer.workload.priority);
            }
            let start_s = run.start_s();
            assert!(
                start_s <= seconds(bound),
                "seed {seed}, run {run_seed}: starts at {} after {bound:?}",
                time(start_s)
            );
            latest_s = latest_s.max(start_s);
        }
        exact += usize::from(latest_s == seconds(bound));
    }
    let seen = format!(
        "{bounds} bounds, {in_order} in order, {planned} planned, {exact} exact, {none} none"
    );
    assert!(bounds > 200 && in_order > 20 && exact > 100, "{seen}");
    assert!(planned > 10, "{seen}");
}
