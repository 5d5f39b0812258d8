//! The most that one controller decides: `cargo bench -p lockkeeper-controller --bench scale -- [COHORTSxQUEUES...]`.
//!
//! The pattern of Kueue's scheduler performance test (`tests/bench/generator.yaml`) with more cohorts and queues: 500 workloads in
//! each queue, which arrive and end in virtual time. An API server in memory applies each write at once and reports it as a watch
//! event, so only the controller takes time: decoding of events, decisions, and the bodies of writes. TLS, HTTP and the text of
//! JSON are not counted; `tests/bench/control` measures the whole process.
//!
//! Prints the seconds of one core, and how many workloads and watch events a second of it handles.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a program for developers"
)]

#[path = "../controller_settings.rs"]
mod controller_settings;

use controller_settings::settings;
use k8s_openapi::jiff::Timestamp;
use lockkeeper_controller::{
    Input, Kind, ObjectKey, ObjectRef, Reconciler, WriteOp, WriteRequest, WriteResult,
};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::{Duration, Instant};

const BEGIN_MS: i64 = 1_700_000_000_000;
const GROUP: &str = "lockkeeper.dev/v1alpha1";
const NAMESPACE: &str = "batch";
/// The sizes of Kueue's test: cohorts, and queues in each. Then ten times as many, and both in one cohort.
const SIZES_DEFAULT: [(usize, usize); 4] = [(5, 6), (50, 6), (1, 30), (1, 300)];

/// A kind of workloads in each queue.
struct Class {
    name: &'static str,
    count: usize,
    interval_ms: i64,
    runtime_ms: i64,
    cpu: u32,
}

const CLASSES: [Class; 3] = [
    Class {
        name: "small",
        count: 350,
        interval_ms: 100,
        runtime_ms: 200,
        cpu: 1,
    },
    Class {
        name: "medium",
        count: 100,
        interval_ms: 500,
        runtime_ms: 500,
        cpu: 5,
    },
    Class {
        name: "large",
        count: 50,
        interval_ms: 1_200,
        runtime_ms: 1_000,
        cpu: 20,
    },
];

fn main() {
    let sizes: Vec<(usize, usize)> = std::env::args()
        .skip(1)
        // cargo adds --bench.
        .filter(|it| it != "--bench")
        .map(|it| {
            let (cohorts, queues) = it
                .split_once('x')
                .unwrap_or_else(|| panic!("{it} is not like 5x6"));
            (cohorts.parse().unwrap(), queues.parse().unwrap())
        })
        .collect();
    let sizes = if sizes.is_empty() {
        SIZES_DEFAULT.to_vec()
    } else {
        sizes
    };
    println!(
        "cohorts  queues  workloads  evictions  events per workload  writes per workload  decoding s  deciding s  workloads/s   events/s"
    );
    for (cohorts, queues) in sizes {
        let mut run = Run::new(cohorts, queues);
        run.until_all_ended();
        report(cohorts, queues, &run);
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn report(cohorts: usize, queues: usize, run: &Run) {
    let count = run.ended as f64;
    let seconds = (run.decoding + run.deciding).as_secs_f64();
    println!(
        "{cohorts:>7} {:>7} {:>10} {:>10} {:>20.2} {:>20.2} {:>11.2} {:>11.2} {:>12.0} {:>10.0}",
        cohorts * queues,
        run.ended,
        run.evictions,
        run.events as f64 / count,
        run.writes as f64 / count,
        run.decoding.as_secs_f64(),
        run.deciding.as_secs_f64(),
        count / seconds,
        run.events as f64 / seconds,
    );
}

/// What happens at a time: a workload arrives, or ends if it still runs since then.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Arrival {
        queue: usize,
        class: usize,
        number: usize,
    },
    End {
        workload: usize,
        started_ms: i64,
    },
}

/// A controller, and the objects of its API server.
struct Run {
    reconciler: Reconciler,
    now_ms: i64,
    version: u64,
    objects: BTreeMap<(Kind, ObjectKey), Value>,
    due: BinaryHeap<Reverse<(i64, Due)>>,
    /// The name and the run time of each workload that has arrived.
    workloads: Vec<(ObjectKey, i64)>,
    numbers: BTreeMap<ObjectKey, usize>,
    /// When each running workload started.
    started_ms: BTreeMap<usize, i64>,
    expected: usize,
    ended: usize,
    events: usize,
    writes: usize,
    evictions: usize,
    decoding: Duration,
    deciding: Duration,
}

impl Run {
    /// A controller that leads, with queues and without workloads.
    fn new(cohorts: usize, queues: usize) -> Self {
        let all_queues = cohorts * queues;
        let per_queue: usize = CLASSES.iter().map(|it| it.count).sum();
        let mut run = Self {
            reconciler: Reconciler::new(settings()),
            now_ms: BEGIN_MS,
            version: 1,
            objects: BTreeMap::new(),
            due: BinaryHeap::new(),
            workloads: Vec::new(),
            numbers: BTreeMap::new(),
            started_ms: BTreeMap::new(),
            expected: all_queues * per_queue,
            ended: 0,
            events: 0,
            writes: 0,
            evictions: 0,
            decoding: Duration::ZERO,
            deciding: Duration::ZERO,
        };
        run.input(Input::Leadership(true));
        for kind in Kind::FIXED {
            run.input(Input::Listed(kind));
        }
        run.create_queues(cohorts, queues);
        for queue in 0..all_queues {
            for class in 0..CLASSES.len() {
                run.schedule_arrival(queue, class, 0);
            }
        }
        run
    }

    fn create_queues(&mut self, cohorts: usize, queues: usize) {
        let own = |kind: &str, name: &str, spec: Value| json!({"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "spec": spec});
        self.store(
            Kind::Namespace,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        );
        self.store(
            Kind::ResourceFlavor,
            own("ResourceFlavor", "default", json!({})),
        );
        for queue in 0..cohorts * queues {
            let quota = json!({"name": "cpu", "nominalQuota": 20, "borrowingLimit": 100});
            let spec = json!({
                "namespaceSelector": {}, "cohortName": format!("cohort-{}", queue / queues),
                "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": [quota]}]}],
            });
            let name = format!("queue-{queue}");
            self.store(Kind::ClusterQueue, own("ClusterQueue", &name, spec));
            let mut local = own("LocalQueue", &name, json!({"clusterQueue": name}));
            local["metadata"]["namespace"] = json!(NAMESPACE);
            self.store(Kind::LocalQueue, local);
        }
        for (name, value) in [("small", 50), ("medium", 100), ("large", 200)] {
            let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value});
            self.store(Kind::PriorityClass, class);
        }
    }

    fn schedule_arrival(&mut self, queue: usize, class: usize, number: usize) {
        let at_ms = BEGIN_MS + CLASSES[class].interval_ms * i64::try_from(number).unwrap();
        let arrival = Due::Arrival {
            queue,
            class,
            number,
        };
        self.due.push(Reverse((at_ms, arrival)));
    }

    fn until_all_ended(&mut self) {
        while self.ended < self.expected {
            let begun = Instant::now();
            let output = self.reconciler.poll(self.now_ms);
            self.deciding += begun.elapsed();
            if output.writes.is_empty() {
                let next = self.due.peek().map(|it| it.0.0);
                let next = next.into_iter().chain(output.wake_at_ms).min();
                let next =
                    next.unwrap_or_else(|| panic!("{} of {} ended", self.ended, self.expected));
                self.now_ms = next.max(self.now_ms + 1);
                self.happen();
            }
            for write in output.writes {
                self.write(write);
            }
        }
    }

    /// Lets all happen that is due.
    fn happen(&mut self) {
        while let Some(Reverse((at_ms, due))) = self.due.peek().copied()
            && at_ms <= self.now_ms
        {
            self.due.pop();
            match due {
                Due::Arrival {
                    queue,
                    class,
                    number,
                } => self.arrive(queue, class, number),
                Due::End {
                    workload,
                    started_ms,
                } => self.end(workload, started_ms),
            }
        }
    }

    fn arrive(&mut self, queue: usize, class: usize, number: usize) {
        let of = &CLASSES[class];
        let name = format!("{}-{queue}-{number}", of.name);
        let requests = json!({"cpu": of.cpu});
        let container = json!({"name": "main", "image": "registry.example.com/train:1", "resources": {"requests": requests}});
        let workload = self.workloads.len();
        let object = json!({
            "apiVersion": GROUP, "kind": "Workload",
            "metadata": {
                "name": name, "namespace": NAMESPACE, "generation": 1, "creationTimestamp": time(self.now_ms),
                "uid": format!("6665ed6f-f38d-455a-8a46-{workload:012x}"),
            },
            "spec": {
                "queueName": format!("queue-{queue}"), "priorityClassName": of.name,
                "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}],
            },
        });
        let key = ObjectKey::new(NAMESPACE, &name);
        self.workloads.push((key.clone(), of.runtime_ms));
        self.numbers.insert(key, workload);
        self.store(Kind::Workload, object);
        if number + 1 < of.count {
            self.schedule_arrival(queue, class, number + 1);
        }
    }

    /// Ends a workload, unless it was evicted since.
    fn end(&mut self, workload: usize, started_ms: i64) {
        if self.started_ms.get(&workload) != Some(&started_ms) {
            return;
        }
        self.started_ms.remove(&workload);
        self.ended += 1;
        let (key, _) = self.workloads[workload].clone();
        let mut object = self.objects[&(Kind::Workload, key)].clone();
        let finished = json!({"type": "Finished", "status": "True", "reason": "Succeeded", "message": "",
            "lastTransitionTime": time(self.now_ms)});
        object["status"]["conditions"]
            .as_array_mut()
            .unwrap()
            .push(finished);
        self.store(Kind::Workload, object);
    }

    fn write(&mut self, write: WriteRequest) {
        self.writes += 1;
        let place = match &write.object {
            ObjectRef::Workload(key) => Some((Kind::Workload, key.clone())),
            ObjectRef::LocalQueue(key) => Some((Kind::LocalQueue, key.clone())),
            ObjectRef::ClusterQueue(name) => Some((Kind::ClusterQueue, ObjectKey::new("", name))),
            ObjectRef::Cohort(name) => Some((Kind::Cohort, ObjectKey::new("", name))),
            ObjectRef::ResourceFlavor(name) => {
                Some((Kind::ResourceFlavor, ObjectKey::new("", name)))
            }
            // Events.
            _ => None,
        };
        if let Some(place) = place
            && let WriteOp::Patch(mut patch) | WriteOp::PatchStatus(mut patch) = write.op
        {
            let mut object = self.objects[&place].clone();
            // The precondition holds: no other writer changes these objects meanwhile.
            if let Some(metadata) = patch["metadata"].as_object_mut() {
                metadata.retain(|field, _| {
                    matches!(field.as_str(), "finalizers" | "annotations" | "labels")
                });
            }
            json_patch::merge(&mut object, &patch);
            if place.0 == Kind::Workload {
                self.start_or_stop(&place.1, &object);
            }
            self.store(place.0, object);
        }
        let done = WriteResult::Done(self.version);
        self.input(Input::WriteFinished(write.id, done));
    }

    /// Notes that a workload was admitted or evicted.
    fn start_or_stop(&mut self, key: &ObjectKey, object: &Value) {
        let workload = self.numbers[key];
        let is_admitted = has_status(object, "Admitted");
        if is_admitted && !self.started_ms.contains_key(&workload) {
            self.started_ms.insert(workload, self.now_ms);
            let ends_ms = self.now_ms + self.workloads[workload].1;
            let end = Due::End {
                workload,
                started_ms: self.now_ms,
            };
            self.due.push(Reverse((ends_ms, end)));
        } else if !is_admitted && self.started_ms.remove(&workload).is_some() {
            self.evictions += 1;
        }
    }

    /// Stores an object, and reports it to the controller.
    fn store(&mut self, kind: Kind, mut object: Value) {
        self.version += 1;
        self.events += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
        let namespace = text("/metadata/namespace").unwrap_or_default();
        let key = ObjectKey::new(namespace, text("/metadata/name").unwrap());
        self.objects.insert((kind, key.clone()), object.clone());
        let begun = Instant::now();
        let input = Input::applied_with(self.reconciler.job_kinds(), kind, key, object);
        self.decoding += begun.elapsed();
        self.input(input);
    }

    fn input(&mut self, input: Input) {
        let begun = Instant::now();
        self.reconciler.handle_input(self.now_ms, input);
        self.deciding += begun.elapsed();
    }
}

fn has_status(object: &Value, condition: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == condition && it["status"] == "True")
}

fn time(ms: i64) -> String {
    let at = Timestamp::from_second(ms.div_euclid(1_000)).unwrap();
    at.to_string()
}
