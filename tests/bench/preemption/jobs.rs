//! Rounds of job preemption on many nodes.

use crate::measure::{allocations, median_us, us};
use crate::worlds::GIB;
use lockkeeper_preemption::job::{
    InFlight, JobId, Label, Limits, Outcome, PodTraits, QuotaId, Resources, Says, Step, Switches,
    World, plan,
};
use lockkeeper_preemption::placement::{HostSpec, Labels, PodPreemption, PodSpec, Shape};
use lockkeeper_preemption::{Amount, HostId, ResourceId, ShapeId, Trace};
use std::collections::BTreeSet;

const HOSTS: usize = 5_000;
const PODS_PER_HOST: usize = 10;
const JOB: usize = 256;
const ROUNDS: usize = 31;

/// Every node is full of pods of one cpu and one GiB. Half of them are of the job's own quota, all are
/// preemptible, and their priorities are 0 to 4.
struct Full {
    world: World,
    own: QuotaId,
    cpu: ResourceId,
    memory: ResourceId,
}

impl Full {
    fn new(hosts: usize) -> Self {
        let mut world = World::new(Switches::default());
        let [cpu, memory] = ["cpu", "memory"].map(|name| world.resource(name));
        let amounts = |units: usize| {
            let units = i64::try_from(units).unwrap();
            [
                (cpu, Amount::new(units * 1000)),
                (memory, Amount::new(units * GIB)),
            ]
        };
        let all = hosts * PODS_PER_HOST;
        // Half of what there is: already used to the last.
        let [own, other] = [all / 2, all].map(|most| {
            let limits = Limits {
                min: Resources::of(amounts(most)),
                max: Resources::of(amounts(most)),
            };
            world.add_quota(None, limits)
        });
        let mut full = Self {
            world,
            own,
            cpu,
            memory,
        };
        let one = full.shape(1);
        for at in 0..hosts {
            let name = format!("node-{at:04}");
            let host = full.world.set_host(HostSpec {
                name: &name,
                position: u32::try_from(at).unwrap(),
                allocatable: amounts(PODS_PER_HOST).to_vec(),
                labels: Labels::default(),
                taints: Vec::new(),
                is_unschedulable: false,
            });
            for pod in 0..PODS_PER_HOST {
                let quota = if pod % 2 == 0 { own } else { other };
                let priority = i32::try_from((at + pod) % 5).unwrap();
                let traits = PodTraits {
                    quota: Some(quota),
                    ..PodTraits::default()
                };
                full.pod(
                    &format!("pod-{at:04}-{pod}"),
                    Some(host),
                    one,
                    priority,
                    traits,
                );
            }
        }
        full
    }

    fn shape(&mut self, units: i64) -> ShapeId {
        self.world.shape(Shape {
            requests: vec![
                (self.cpu, Amount::new(units * 1000)),
                (self.memory, Amount::new(units * GIB)),
            ],
            ..Shape::default()
        })
    }

    fn pod(
        &mut self,
        name: &str,
        host: Option<HostId>,
        shape: ShapeId,
        priority: i32,
        traits: PodTraits,
    ) {
        let spec = PodSpec {
            namespace: "default",
            name,
            host,
            shape,
            labels: Labels::default(),
            priority,
            preemption: PodPreemption::default(),
            started_at_ns: None,
            is_terminating: false,
        };
        self.world.set_pod(spec, traits);
    }

    /// A job whose pods ask for so many units each, in turn.
    fn job(&mut self, name: &str, quota: Option<QuotaId>, label: Label, units: &[i64]) -> JobId {
        let word = self.world.word(name);
        let namespace = self.world.word("default");
        for at in 0..JOB {
            let shape = self.shape(units[at % units.len()]);
            let traits = PodTraits {
                quota,
                job: Some(word),
                says: Says {
                    preemptible: label,
                    ..Says::default()
                },
                ..PodTraits::default()
            };
            self.pod(&format!("{name}-{at:03}"), None, shape, 10, traits);
        }
        JobId::Group {
            namespace,
            name: word,
        }
    }

    fn plan(&self, job: JobId, trace: &mut Trace<Step>) -> Outcome {
        plan(
            &self.world,
            &InFlight::default(),
            job,
            &BTreeSet::new(),
            0,
            trace,
        )
    }
}

/// How many go; `None` if the job gets no places.
fn victims(outcome: &Outcome) -> Option<usize> {
    match outcome {
        Outcome::Preempt(plan) => Some(plan.victims.len()),
        Outcome::Refused(_) => None,
    }
}

pub fn print() {
    println!();
    println!(
        "{:34} {:>7} {:>10} {:>10} {:>8}",
        "a round for 256 pods", "victims", "core ms", "traced ms", "alloc"
    );
    let mut full = Full::new(HOSTS);
    let own = Some(full.own);
    let different: Vec<i64> = (1..=8).collect();
    let jobs = [
        (
            "room on nodes",
            full.job("room", None, Label::Missing, &[2]),
        ),
        (
            "room, of eight sizes",
            full.job("sizes", None, Label::Missing, &different),
        ),
        ("room and quota", full.job("quota", own, Label::No, &[2])),
        ("in vain", full.job("vain", None, Label::Missing, &[11])),
    ];
    for (what, job) in jobs {
        let found = victims(&full.plan(job, &mut Trace::off()));
        let ms = median_us(ROUNDS, || {
            assert_eq!(victims(&full.plan(job, &mut Trace::off())), found);
        }) / 1000.0;
        let traced = us(|| {
            full.plan(job, &mut Trace::on());
        }) / 1000.0;
        let count = allocations(|| {
            full.plan(job, &mut Trace::off());
        });
        let found = found.map_or("none".to_owned(), |it| it.to_string());
        println!("{what:34} {found:>7} {ms:10.2} {traced:10.2} {count:8}");
    }
}

/// Only plans, this many times: for a counter of instructions.
pub fn only(hosts: usize, times: usize) {
    let mut full = Full::new(hosts);
    let job = full.job("room", None, Label::Missing, &[2]);
    for _ in 0..times {
        assert!(victims(&full.plan(job, &mut Trace::off())).is_some());
    }
}
