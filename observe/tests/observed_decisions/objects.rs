//! Objects of random worlds.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use lockkeeper_api::{ClusterQueue, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_explain::{KueueObject, ReadKueueObject};
use lockkeeper_observe::Change;
use serde_json::{Value, json};
use std::sync::Arc;

/// The time at which a world begins, in milliseconds since 1970.
pub const BEGIN_MS: i64 = 1_700_000_000_000;

/// A small generator (`SplitMix64`), so that a failure names one number.
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to `end`, without it.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn ms(&mut self, end: u64) -> i64 {
        i64::try_from(self.below(end)).unwrap()
    }
}

fn decoded<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

pub fn applied(object: KueueObject) -> Change {
    Change::Applied(ReadKueueObject {
        object,
        not_considered: Vec::new(),
    })
}

/// Six queues, in two cohorts or in none, with one or two flavors, and a LocalQueue for each.
pub fn queues(rng: &mut Rng, has_cohorts: bool) -> Vec<KueueObject> {
    let mut objects = Vec::new();
    for name in ["a", "b"] {
        let flavor: ResourceFlavor = decoded(json!({"metadata": {"name": name}, "spec": {}}));
        objects.push(KueueObject::ResourceFlavor(Box::new(flavor)));
    }
    objects.push(KueueObject::Namespace(Box::new(decoded(
        json!({"metadata": {"name": "n"}}),
    ))));
    for at in 0..6 {
        let quota = |flavor: &str, rng: &mut Rng| {
            let nominal = 2 + rng.below(6);
            json!({"name": flavor, "resources": [{"name": "cpu", "nominalQuota": nominal}]})
        };
        let mut flavors = vec![quota("a", rng)];
        if rng.below(2) == 0 {
            flavors.push(quota("b", rng));
        }
        let pick = |rng: &mut Rng, of: &[&str]| {
            of[usize::try_from(rng.below(of.len() as u64)).unwrap()].to_owned()
        };
        let queue: ClusterQueue = decoded(json!({
            "metadata": {"name": format!("q{at}")},
            "spec": {
                "cohortName": has_cohorts.then(|| format!("c{}", at % 2)),
                "queueingStrategy": pick(rng, &["BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"]),
                "namespaceSelector": {},
                "preemption": {
                    "withinClusterQueue": pick(rng, &["Never", "LowerPriority"]),
                    "reclaimWithinCohort": pick(rng, &["Never", "Any", "LowerPriority"]),
                },
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
            },
        }));
        objects.push(KueueObject::ClusterQueue(Arc::new(queue)));
        let local: LocalQueue = decoded(json!({
            "metadata": {"name": format!("q{at}"), "namespace": "n"},
            "spec": {"clusterQueue": format!("q{at}")},
        }));
        objects.push(KueueObject::LocalQueue(Box::new(local)));
    }
    objects
}

/// A pending workload that was created at `now_ms`.
pub fn workload(name: &str, queue: u64, cpu: u64, priority: u64, now_ms: i64) -> Workload {
    decoded(json!({
        "metadata": {
            "name": name, "namespace": "n", "uid": format!("uid-{name}"),
            "creationTimestamp": time(now_ms).0.to_string(),
        },
        "spec": {
            "queueName": format!("q{queue}"),
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [
                {"name": "c", "resources": {"requests": {"cpu": cpu.to_string()}}},
            ]}}}],
        },
        "status": {"priority": priority},
    }))
}

/// A time as in objects: without milliseconds.
pub fn time(now_ms: i64) -> Time {
    Time(Timestamp::from_second(now_ms.div_euclid(1000)).unwrap())
}

/// Sets a condition of a workload.
pub fn set_condition(workload: &mut Workload, of: &str, status: bool, reason: &str, now_ms: i64) {
    let condition = Condition {
        type_: of.to_owned(),
        status: if status { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message: String::new(),
        last_transition_time: time(now_ms),
        observed_generation: None,
    };
    replace_condition(workload, condition);
}

/// Sets a condition of a workload.
pub fn replace_condition(workload: &mut Workload, condition: Condition) {
    let conditions = &mut workload.status.as_mut().unwrap().conditions;
    conditions.retain(|it| it.type_ != condition.type_);
    conditions.push(condition);
}
