//! The smallest changes are compared with an exhaustive search on small random worlds.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::needless_pass_by_value,
    reason = "tests fail by panicking, and build objects from literals"
)]

use lockkeeper_explain::{AmountChange, Answer, Change, WorldBuilder, WorldSettings, explain};
use lockkeeper_testkit::Rng;
use serde_json::{Value, json};

/// The pending workload of each world.
const SUBJECT: &str = "ns/subject";

/// A random world: two or three queues in a cohort, one flavor or two, and one resource.
#[derive(Clone, Debug)]
struct SmallWorld {
    queues: Vec<Value>,
    workloads: Vec<Value>,
}

impl SmallWorld {
    fn random(rng: &mut Rng) -> Self {
        let queue_count = 2 + rng.below(2);
        let flavors = 1 + rng.below(2);
        let queues = (0..queue_count).map(|at| queue(rng, at, flavors)).collect();
        let mut workloads: Vec<Value> = (0..=rng.below(4))
            .map(|at| {
                let queue = rng.below(queue_count);
                let flavor = rng.below(flavors);
                let gpus = 1 + rng.below(4);
                admitted(&format!("w{at}"), queue, flavor, gpus, rng.below(4))
            })
            .collect();
        let (count, each) = (1 + rng.below(4), 1 + rng.below(3));
        workloads.push(pending(count, each, rng.below(3)));
        Self { queues, workloads }
    }

    /// The answer about the pending workload.
    fn answer(&self) -> Answer {
        let mut builder = WorldBuilder::new();
        for flavor in 0..2 {
            builder.add(object("ResourceFlavor", &format!("f{flavor}"), json!({})));
        }
        for (at, queue) in self.queues.iter().enumerate() {
            builder.add(queue.clone());
            let spec = json!({"clusterQueue": format!("q{at}")});
            let mut local = object("LocalQueue", &format!("q{at}"), spec);
            local["metadata"]["namespace"] = json!("ns");
            builder.add(local);
        }
        for workload in &self.workloads {
            builder.add(workload.clone());
        }
        let world = builder.build(WorldSettings::default());
        assert_eq!(world.unreadable(), [], "{self:?}");
        explain(&world, SUBJECT).unwrap()
    }

    /// Whether the workload starts without preemption, if it is the only pending one: it is here.
    fn fits(&self) -> bool {
        let answer = self.answer();
        answer.summary == "is admitted in the next cycle"
    }

    /// Whether it starts, now or after preemption.
    fn starts(&self) -> bool {
        self.fits() || !self.answer().victims.is_empty()
    }

    /// The same world with more quota of the first queue.
    fn with_quota(&self, flavor: &str, field: &str, by: u64) -> Self {
        let mut changed = self.clone();
        let flavors = changed.queues[0]
            .pointer_mut("/spec/resourceGroups/0/flavors")
            .unwrap();
        for it in flavors.as_array_mut().unwrap() {
            if it["name"] == flavor {
                let value = &mut it["resources"][0][field];
                let before: u64 = value.as_str().unwrap().parse().unwrap();
                *value = json!((before + by).to_string());
            }
        }
        changed
    }

    fn with_subject(&self, edit: impl FnOnce(&mut Value)) -> Self {
        let mut changed = self.clone();
        edit(changed.workloads.last_mut().unwrap());
        changed
    }

    fn with_priority(&self, priority: i32) -> Self {
        self.with_subject(|it| it["status"]["priority"] = json!(priority))
    }

    /// The same world with other values of fields of the first queue's preemption policy.
    fn with_policy(&self, values: &[(&str, &str)]) -> Self {
        let mut changed = self.clone();
        let target = changed.queues[0].pointer_mut("/spec/preemption").unwrap();
        for (field, value) in values {
            match field.rsplit('.').next().unwrap() {
                "policy" => target["borrowWithinCohort"] = json!({"policy": value}),
                name => target[name] = json!(value),
            }
        }
        changed
    }
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "lockkeeper.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn queue(rng: &mut Rng, at: u64, flavors: u64) -> Value {
    let policies = ["Never", "LowerPriority"];
    let flavors: Vec<Value> = (0..flavors)
        .map(|flavor| {
            let mut quota = json!({"name": "gpu", "nominalQuota": rng.below(5).to_string()});
            if rng.below(3) == 0 {
                quota["borrowingLimit"] = json!(rng.below(3).to_string());
            }
            if rng.below(4) == 0 {
                quota["lendingLimit"] = json!("0");
            }
            json!({"name": format!("f{flavor}"), "resources": [quota]})
        })
        .collect();
    let spec = json!({
        "cohortName": "c",
        "namespaceSelector": {},
        "preemption": {
            "withinClusterQueue": policies[usize::try_from(rng.below(2)).unwrap()],
            "reclaimWithinCohort": policies[usize::try_from(rng.below(2)).unwrap()],
        },
        "resourceGroups": [{"coveredResources": ["gpu"], "flavors": flavors}],
    });
    object("ClusterQueue", &format!("q{at}"), spec)
}

fn workload(name: &str, queue: u64, count: u64, each: u64, priority: u64) -> Value {
    let container = json!({"name": "c", "resources": {"requests": {"gpu": each.to_string()}}});
    let template = json!({"spec": {"containers": [container]}});
    json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Workload",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"queueName": format!("q{queue}"), "podSets": [{"name": "main", "count": count, "template": template}]},
        "status": {"priority": priority},
    })
}

fn admitted(name: &str, queue: u64, flavor: u64, gpus: u64, priority: u64) -> Value {
    let mut workload = workload(name, queue, gpus, 1, priority);
    workload["status"]["admission"] = json!({
        "clusterQueue": format!("q{queue}"),
        "podSetAssignments": [{"name": "main", "count": gpus, "flavors": {"gpu": format!("f{flavor}")},
            "resourceUsage": {"gpu": gpus.to_string()}}],
    });
    workload
}

fn pending(count: u64, each: u64, priority: u64) -> Value {
    let mut workload = workload("subject", 0, count, each, priority);
    workload["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z");
    workload
}

/// How often each kind of change occurred.
#[derive(Debug, Default)]
struct Seen {
    nominal: usize,
    borrowing: usize,
    priority: usize,
    policy: usize,
    policy_and_priority: usize,
    ends: usize,
    pods: usize,
}

#[test]
fn smallest_changes_are_sufficient_and_nothing_smaller_is() {
    let mut seen = Seen::default();
    for seed in 0..400 {
        let world = SmallWorld::random(&mut Rng::new(seed));
        let answer = world.answer();
        if world.fits() || !answer.victims.is_empty() {
            assert_eq!(answer.changes, [], "seed {seed}");
            continue;
        }
        for change in &answer.changes {
            check(&world, change, &mut seen, seed);
        }
        check_missing(&world, &answer, seed);
    }
    let Seen {
        nominal,
        borrowing,
        priority,
        policy,
        policy_and_priority,
        ends,
        pods,
    } = seen;
    let counts = [
        nominal,
        borrowing,
        priority,
        policy,
        policy_and_priority,
        ends,
        pods,
    ];
    assert!(
        counts.iter().min() > Some(&5),
        "too few of a kind: {counts:?}"
    );
}

fn check(world: &SmallWorld, change: &Change, counts: &mut Seen, seed: u64) {
    match change {
        Change::NominalQuota { amounts, .. } => {
            counts.nominal += 1;
            check_amount(world, "nominalQuota", &amounts[0], seed);
        }
        Change::BorrowingLimit { amounts, .. } => {
            counts.borrowing += 1;
            check_amount(world, "borrowingLimit", &amounts[0], seed);
        }
        Change::Priority { priority_min, .. } => {
            counts.priority += 1;
            let with = |priority: i32| world.with_priority(priority);
            assert!(with(*priority_min).starts(), "seed {seed}: {change:?}");
            let own: i32 = world.answer().workload.priority;
            for lower in own..*priority_min {
                assert!(
                    !with(lower).starts(),
                    "seed {seed}: priority {lower} is sufficient"
                );
            }
        }
        Change::PreemptionPolicy { fields, .. } => {
            counts.policy += 1;
            let fields: Vec<(&str, &str)> = fields.iter().map(|it| (it.field, it.value)).collect();
            check_policy(world, &fields, seed);
        }
        Change::PolicyAndPriority {
            fields,
            priority_min,
            ..
        } => {
            counts.policy_and_priority += 1;
            let fields: Vec<(&str, &str)> = fields.iter().map(|it| (it.field, it.value)).collect();
            check_policy_and_priority(world, &fields, *priority_min, seed);
        }
        Change::WorkloadEnds { workloads, total } => {
            counts.ends += 1;
            let sufficient = sufficient_ends(world);
            assert_eq!(sufficient.len(), *total, "seed {seed}: {sufficient:?}");
            assert!(
                workloads.iter().all(|it| sufficient.contains(it)),
                "seed {seed}"
            );
        }
        Change::ExcludedResources { .. } => panic!("seed {seed}: all resources are covered"),
        Change::FewerPods { count, of, .. } => {
            counts.pods += 1;
            let with = |count: i32| {
                world.with_subject(|it| it["spec"]["podSets"][0]["count"] = json!(count))
            };
            assert!(with(*count).fits(), "seed {seed}: {change:?}");
            for more in count + 1..*of {
                assert!(!with(more).fits(), "seed {seed}: {more} pods fit");
            }
        }
    }
}

fn check_policy(world: &SmallWorld, fields: &[(&str, &str)], seed: u64) {
    let with = |values: &[(&str, &str)]| world.with_policy(values).starts();
    assert!(with(fields), "seed {seed}: {fields:?}");
    // No part of the change is sufficient, and no weaker value.
    for fewer in 1..fields.len() {
        assert!(!with(&fields[..fewer]), "seed {seed}: {fields:?}");
    }
    let weaker: Vec<(&str, &str)> = fields
        .iter()
        .map(|(field, _)| (*field, "LowerPriority"))
        .collect();
    assert!(
        weaker == fields || !with(&weaker),
        "seed {seed}: {fields:?}"
    );
}

fn check_policy_and_priority(
    world: &SmallWorld,
    fields: &[(&str, &str)],
    priority_min: i32,
    seed: u64,
) {
    let alone = world.with_priority(priority_min);
    check_policy(&alone, fields, seed);
    assert!(
        !alone.starts(),
        "seed {seed}: the priority alone is sufficient"
    );
    let own = world.answer().workload.priority;
    for lower in own..priority_min {
        let lower = world.with_priority(lower).with_policy(fields);
        assert!(
            !lower.starts(),
            "seed {seed}: a lower priority is sufficient"
        );
    }
}

fn check_amount(world: &SmallWorld, field: &str, amount: &AmountChange, seed: u64) {
    let (flavor, by): (_, u64) = (&amount.flavor, amount.by.parse().unwrap());
    assert!(
        world.with_quota(flavor, field, by).fits(),
        "seed {seed}: {field} {by} is not sufficient"
    );
    for less in 0..by {
        assert!(
            !world.with_quota(flavor, field, less).fits(),
            "seed {seed}: {field} {less} is sufficient"
        );
    }
}

/// The workloads after whose end the subject fits.
fn sufficient_ends(world: &SmallWorld) -> Vec<String> {
    let others = world.workloads.len() - 1;
    let ends = (0..others).filter(|at| {
        let mut changed = world.clone();
        changed.workloads.remove(*at);
        changed.fits()
    });
    ends.map(|at| {
        format!(
            "ns/{}",
            world.workloads[at]["metadata"]["name"].as_str().unwrap()
        )
    })
    .collect()
}

/// A kind of change that the answer lacks is not possible within the range of these worlds.
fn check_missing(world: &SmallWorld, answer: &Answer, seed: u64) {
    let has = |is: fn(&Change) -> bool| answer.changes.iter().any(is);
    if !has(|it| matches!(it, Change::NominalQuota { .. })) {
        for flavor in ["f0", "f1"] {
            let more = world.with_quota(flavor, "nominalQuota", 12);
            assert!(
                !more.fits(),
                "seed {seed}: more nominal quota of {flavor} is sufficient"
            );
        }
    }
    if !has(|it| matches!(it, Change::WorkloadEnds { .. })) {
        assert_eq!(sufficient_ends(world), Vec::<String>::new(), "seed {seed}");
    }
    if !has(|it| matches!(it, Change::Priority { .. })) {
        for priority in 0..10 {
            let higher = world.with_priority(priority);
            let own = answer.workload.priority;
            assert!(
                priority <= own || !higher.starts(),
                "seed {seed}: priority {priority} is sufficient"
            );
        }
    }
    if !has(|it| matches!(it, Change::FewerPods { .. })) {
        for count in 1..4 {
            let fewer = world.with_subject(|it| {
                let before = it["spec"]["podSets"][0]["count"].as_i64().unwrap();
                it["spec"]["podSets"][0]["count"] = json!(before.min(count));
            });
            let is_fewer = world.workloads.last().unwrap()["spec"]["podSets"][0]["count"]
                .as_i64()
                .unwrap()
                > count;
            assert!(!is_fewer || !fewer.fits(), "seed {seed}: {count} pods fit");
        }
    }
    let has_policy = |is: fn(&str) -> bool| {
        answer.changes.iter().any(|it| match it {
            Change::PreemptionPolicy { fields, .. } | Change::PolicyAndPriority { fields, .. } => {
                fields.iter().any(|it| is(it.field))
            }
            _ => false,
        })
    };
    let has_priority = has(|it| matches!(it, Change::Priority { .. }));
    for (is, policy) in POLICIES {
        for priority in [answer.workload.priority, 9] {
            let changed = world.with_policy(policy);
            let is_sufficient = changed.with_priority(priority).starts();
            assert!(
                has_policy(is) || has_priority || !is_sufficient,
                "seed {seed}: {policy:?} with priority {priority} is sufficient"
            );
        }
    }
}

/// The strongest policies, and which fields they change.
type StrongestPolicy = (fn(&str) -> bool, &'static [(&'static str, &'static str)]);
const POLICIES: [StrongestPolicy; 2] = [
    (
        |field| field.ends_with("withinClusterQueue"),
        &[("withinClusterQueue", "LowerOrNewerEqualPriority")],
    ),
    (
        |field| field.contains("WithinCohort"),
        &[
            ("reclaimWithinCohort", "Any"),
            ("borrowWithinCohort.policy", "LowerPriority"),
        ],
    ),
];
