//! Gangs and pods that preempt on nodes.

use crate::measure::{allocations, bytes, median_us};
use crate::worlds::{GIB, Random};
use lockkeeper_preemption::gang::{
    Ask, BudgetSpec, DisruptionMode, GroupKey, GroupSpec, Kind, MemberSpec, Options, Outcome,
    Trace, World,
};
use lockkeeper_preemption::placement::{
    Condition, HostSpec, Labels, PodPreemption, PodSpec, Requirement, Selector, Shape, Strategy,
};
use lockkeeper_preemption::{Amount, GroupId, PodId, ResourceId, ShapeId};

const PODS_A_NODE: usize = 10;
const GANG: usize = 256;
const CPU_MILLI: i64 = 32_000;
/// The priority of who preempts; running pods have less.
const PRIORITY: i32 = 100;

/// What runs: the nodes are full, of pods of ten priorities; a fifth are in replicas of eight that go together.
struct Full {
    world: World,
    cpu: ResourceId,
    memory: ResourceId,
}

impl Full {
    fn new(nodes: usize, strategy: Strategy, is_protected: bool) -> Self {
        let mut world = World::new(Options {
            strategy,
            ..Options::default()
        });
        let (cpu, memory) = (world.resource("cpu"), world.resource("memory"));
        let mut full = Self { world, cpu, memory };
        if is_protected {
            full.protect();
        }
        let mut random = Random(7);
        let shape = full.shape(CPU_MILLI / 10);
        let app = full.world.word("app");
        let values = ["a", "b", "c", "d"].map(|it| full.world.word(it));
        let hosts: Vec<_> = (0..nodes).map(|at| full.host(at)).collect();
        for at in 0..nodes * PODS_A_NODE {
            let priority = i32::try_from(random.below(10)).unwrap();
            // Every fifth run of eight pods is a replica. They are spread over the nodes.
            let replica = at / 8;
            let group = (replica % 5 == 0).then(|| full.group(&format!("replica-{replica}"), 8, 5));
            let label = values[usize::try_from(random.below(4)).unwrap()];
            full.world.set_pod(MemberSpec {
                pod: PodSpec {
                    namespace: "default",
                    name: &format!("running-{at:07}"),
                    host: Some(hosts[(at * 7919) % nodes]),
                    shape,
                    labels: Labels::of([(app, label)]),
                    priority,
                    preemption: PodPreemption::LowerPriority,
                    started_at_ns: Some(i64::try_from(random.below(1_000_000)).unwrap()),
                    is_terminating: false,
                },
                group,
                nominated: None,
                is_preempted: false,
            });
        }
        full
    }

    fn protect(&mut self) {
        let key = self.world.word("app");
        for name in ["a", "b"] {
            let value = self.world.word(name);
            let condition = Condition::In(Box::new([value]));
            self.world.set_budget(BudgetSpec {
                namespace: "default",
                name,
                selector: Selector(Box::new([Requirement { key, condition }])),
                allowed: 50,
                disrupted: vec![],
            });
        }
    }

    fn host(&mut self, at: usize) -> lockkeeper_preemption::HostId {
        let allocatable = vec![
            (self.cpu, Amount::new(CPU_MILLI)),
            (self.memory, Amount::new(128 * GIB)),
            (ResourceId::PODS, Amount::new(110)),
        ];
        self.world.set_host(HostSpec {
            name: &format!("node-{at:05}"),
            position: u32::try_from(at).unwrap(),
            allocatable,
            labels: Labels::default(),
            taints: vec![],
            is_unschedulable: false,
        })
    }

    fn shape(&mut self, cpu_milli: i64) -> ShapeId {
        let requests = vec![
            (self.cpu, Amount::new(cpu_milli)),
            (self.memory, Amount::new(GIB)),
        ];
        self.world.shape(Shape {
            requests,
            ..Shape::default()
        })
    }

    fn group(&mut self, name: &str, count: u32, priority: i32) -> GroupId {
        let key = GroupKey {
            kind: Kind::PodGroup,
            namespace: "default",
            name,
        };
        self.world.set_group(&GroupSpec {
            key,
            parent: None,
            mode: DisruptionMode::PodGroup,
            priority: Some(priority),
            preemption_priority: None,
            preemption: None,
            count_min: Some(count),
        })
    }

    fn pending(&mut self, name: &str, cpu_milli: i64, group: Option<GroupId>) -> PodId {
        let shape = self.shape(cpu_milli);
        self.world.set_pod(MemberSpec {
            pod: PodSpec {
                namespace: "default",
                name,
                host: None,
                shape,
                labels: Labels::default(),
                priority: PRIORITY,
                preemption: PodPreemption::LowerPriority,
                started_at_ns: None,
                is_terminating: false,
            },
            group,
            nominated: None,
            is_preempted: false,
        })
    }

    /// A gang of pods that all ask for as much, or each for a little more than the one before.
    fn gang(&mut self, is_mixed: bool) -> (GroupId, Vec<PodId>) {
        let group = self.group("gang", u32::try_from(GANG).unwrap(), PRIORITY);
        let each = |at: usize| 8_000 + i64::from(is_mixed) * i64::try_from(at).unwrap();
        let pods = (0..GANG).map(|at| self.pending(&format!("gang-{at}"), each(at), Some(group)));
        let pods = pods.collect();
        (group, pods)
    }
}

fn decide(world: &World, ask: &Ask<'_>) -> usize {
    match world.decide(ask, &mut Trace::off()).outcome {
        Outcome::Preempt(plan) => plan.victims.len(),
        outcome => panic!("{outcome:?}"),
    }
}

pub fn print() {
    println!();
    println!(
        "{:24} {:>7} {:>9} {:>10} {:>12} {:>8} {:>6}",
        "on nodes", "nodes", "running", "core us", "victims", "MB asked", "alloc"
    );
    for nodes in [1_000, 5_000, 20_000] {
        gang("gang of 256", nodes, Strategy::FirstFit, false, false);
    }
    gang("protected", 5_000, Strategy::FirstFit, true, false);
    gang("best fit", 5_000, Strategy::BestFit, false, false);
    gang("256 different pods", 5_000, Strategy::FirstFit, false, true);
    for nodes in [1_000, 5_000] {
        pods(nodes, false);
        pods(nodes, true);
    }
}

fn gang(what: &str, nodes: usize, strategy: Strategy, is_protected: bool, is_mixed: bool) {
    let mut full = None;
    let memory = bytes(|| full = Some(Full::new(nodes, strategy, is_protected)));
    let mut full = full.unwrap();
    let (group, pods) = full.gang(is_mixed);
    let ask = Ask {
        pods: &pods,
        group: Some(group),
        ..Ask::default()
    };
    let world = &full.world;
    let victims = decide(world, &ask);
    let us = median_us(11, || {
        assert_eq!(decide(world, &ask), victims);
    });
    let count = allocations(|| {
        decide(world, &ask);
    });
    row(what, nodes, us, victims, memory, count);
}

/// A hundred pods, one after the other, each for itself.
fn pods(nodes: usize, is_protected: bool) {
    const PREEMPTORS: usize = 100;
    let mut full = Full::new(nodes, Strategy::FirstFit, is_protected);
    let memory = 0;
    let pods: Vec<PodId> = (0..PREEMPTORS)
        .map(|at| {
            full.pending(
                &format!("pod-{at}"),
                5_000 + 50 * i64::try_from(at).unwrap(),
                None,
            )
        })
        .collect();
    let world = &full.world;
    let each = |pods: &[PodId]| {
        let asks = pods.chunks(1).map(|pods| Ask {
            pods,
            ..Ask::default()
        });
        asks.map(|ask| decide(world, &ask)).sum::<usize>()
    };
    let victims = each(&pods);
    let us = median_us(5, || {
        each(&pods);
    });
    let count = allocations(|| {
        each(&pods);
    });
    let what = if is_protected {
        "a pod, protected"
    } else {
        "a pod"
    };
    let each = |all: usize| all / PREEMPTORS;
    row(
        what,
        nodes,
        us / PREEMPTORS as f64,
        each(victims),
        memory,
        each(count),
    );
}

fn row(what: &str, nodes: usize, us: f64, victims: usize, memory: usize, count: usize) {
    let running = nodes * PODS_A_NODE;
    let mb = memory as f64 / 1e6;
    println!("{what:24} {nodes:7} {running:9} {us:10.1} {victims:12} {mb:8.1} {count:6}");
}

/// Only decides on a gang, this many times: for a counter of instructions.
pub fn only(nodes: usize, times: usize) {
    let mut full = Full::new(nodes, Strategy::FirstFit, false);
    let (group, pods) = full.gang(false);
    let ask = Ask {
        pods: &pods,
        group: Some(group),
        ..Ask::default()
    };
    for _ in 0..times {
        decide(&full.world, &ask);
    }
}
