//! Gangs and pods that preempt on nodes.

use crate::clusters::{GIB, Random};
use crate::measure::{allocations, bytes, median_us};
use lockkeeper_preemption::gang::{
    BudgetSpec, DisruptionMode, GangCluster, GangOptions, GangOutcome, GangTrace, GroupKey,
    GroupSpec, MemberSpec, PreemptionRequest, PreemptionUnitKind,
};
use lockkeeper_preemption::placement::{
    HostSpec, InterPodConstraints, LabelCondition, Labels, PodAffinityTerm, PodPreemption, PodSpec,
    Requirement, Selector, Shape, Strategy, TopologySpread,
};
use lockkeeper_preemption::{Amount, GroupId, PodId, ResourceId, ShapeId, SymbolId};

const PODS_A_NODE: usize = 10;
const GANG: usize = 256;
const CPU_MILLI: i64 = 32_000;
/// The priority of the preemptor; running pods have a lower one.
const PRIORITY: i32 = 100;

/// The running pods: the nodes are full, with ten priorities; a fifth of the pods are in replicas of eight that are preempted together.
struct FullNodes {
    cluster: GangCluster,
    cpu: ResourceId,
    memory: ResourceId,
    restriction: Restriction,
}

/// What the pods of a preemptor require of other pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Restriction {
    #[default]
    None,
    /// Each on a node without another one of them, and without the fourth of the running pods that have the label `a`.
    Apart,
    /// Evenly over three zones.
    Spread,
}

/// What is measured.
#[derive(Clone, Copy, Debug, Default)]
struct Setup {
    strategy: Strategy,
    is_protected: bool,
    is_mixed: bool,
    restriction: Restriction,
}

impl FullNodes {
    fn new(nodes: usize, setup: Setup) -> Self {
        let Setup {
            strategy,
            is_protected,
            ..
        } = setup;
        let mut gang_cluster = GangCluster::new(GangOptions {
            strategy,
            ..GangOptions::default()
        });
        let (cpu, memory) = (
            gang_cluster.resource("cpu"),
            gang_cluster.resource("memory"),
        );
        let mut full = Self {
            cluster: gang_cluster,
            cpu,
            memory,
            restriction: setup.restriction,
        };
        if is_protected {
            full.protect();
        }
        let mut random = Random(7);
        let shape = full.pod_template(CPU_MILLI / 10, InterPodConstraints::default());
        let app = full.cluster.symbol("app");
        let values = ["a", "b", "c", "d"].map(|it| full.cluster.symbol(it));
        let hosts: Vec<_> = (0..nodes).map(|at| full.host(at)).collect();
        for at in 0..nodes * PODS_A_NODE {
            let priority = i32::try_from(random.below(10)).unwrap();
            // Every fifth run of eight pods is a replica. They are spread over the nodes.
            let replica = at / 8;
            let group = (replica % 5 == 0).then(|| full.group(&format!("replica-{replica}"), 8, 5));
            let label = values[usize::try_from(random.below(4)).unwrap()];
            full.cluster.set_pod(MemberSpec {
                pod: PodSpec {
                    namespace: "default",
                    name: &format!("running-{at:07}"),
                    host: Some(hosts[(at * 7919) % nodes]),
                    shape,
                    labels: Labels::from_pairs([(app, label)]),
                    priority,
                    preemption: PodPreemption::LowerPriority,
                    started_at_ns: Some(i64::try_from(random.below(1_000_000)).unwrap()),
                    is_terminating: false,
                },
                group,
                nominated: None,
                is_preempted: false,
                has_budgets: true,
            });
        }
        full
    }

    fn protect(&mut self) {
        let key = self.cluster.symbol("app");
        for name in ["a", "b"] {
            let value = self.cluster.symbol(name);
            let condition = LabelCondition::In(Box::new([value]));
            self.cluster.set_budget(BudgetSpec {
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
        let labels = self.node_labels(at);
        self.cluster.set_host(HostSpec {
            name: &format!("node-{at:05}"),
            position: u32::try_from(at).unwrap(),
            allocatable,
            labels,
            taints: vec![],
            is_unschedulable: false,
        })
    }

    /// The name and one of three zones.
    fn node_labels(&mut self, at: usize) -> Labels {
        if self.restriction == Restriction::None {
            return Labels::default();
        }
        let cluster = &mut self.cluster;
        let host = (
            cluster.symbol("host"),
            cluster.symbol(&format!("node-{at}")),
        );
        let zone = (
            cluster.symbol("zone"),
            cluster.symbol(&format!("zone-{}", at % 3)),
        );
        Labels::from_pairs([host, zone])
    }

    /// The pods with this label.
    fn selector(&mut self, app: &str) -> Selector {
        let key = self.cluster.symbol("app");
        let value = self.cluster.symbol(app);
        let condition = LabelCondition::In(Box::new([value]));
        Selector(Box::new([Requirement { key, condition }]))
    }

    fn term(&mut self, app: &str, topology_key: SymbolId) -> PodAffinityTerm {
        PodAffinityTerm {
            topology_key,
            namespaces: Box::new([self.cluster.symbol("default")]),
            namespace_selector: None,
            selector: self.selector(app),
        }
    }

    /// What the pods of the preemptor require of other pods.
    fn inter_pod(&mut self) -> InterPodConstraints {
        let (host, zone) = (self.cluster.symbol("host"), self.cluster.symbol("zone"));
        match self.restriction {
            Restriction::None => InterPodConstraints::default(),
            Restriction::Apart => InterPodConstraints {
                anti_affinity: Box::new([self.term("train", host), self.term("a", host)]),
                ..InterPodConstraints::default()
            },
            Restriction::Spread => InterPodConstraints {
                spread: Box::new([TopologySpread {
                    topology_key: zone,
                    selector: self.selector("train"),
                    max_skew: 1,
                    min_domains: 1,
                    honors_node_affinity: true,
                    honors_node_taints: false,
                }]),
                ..InterPodConstraints::default()
            },
        }
    }

    fn pod_template(&mut self, cpu_milli: i64, inter_pod: InterPodConstraints) -> ShapeId {
        let requests = vec![
            (self.cpu, Amount::new(cpu_milli)),
            (self.memory, Amount::new(GIB)),
        ];
        self.cluster.shape(Shape {
            requests,
            inter_pod,
            ..Shape::default()
        })
    }

    fn group(&mut self, name: &str, count: u32, priority: i32) -> GroupId {
        let key = GroupKey {
            kind: PreemptionUnitKind::PodGroup,
            namespace: "default",
            name,
        };
        self.cluster.set_group(&GroupSpec {
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
        let inter_pod = self.inter_pod();
        let shape = self.pod_template(cpu_milli, inter_pod);
        let app = (self.cluster.symbol("app"), self.cluster.symbol("train"));
        self.cluster.set_pod(MemberSpec {
            pod: PodSpec {
                namespace: "default",
                name,
                host: None,
                shape,
                labels: Labels::from_pairs([app]),
                priority: PRIORITY,
                preemption: PodPreemption::LowerPriority,
                started_at_ns: None,
                is_terminating: false,
            },
            group,
            nominated: None,
            is_preempted: false,
            has_budgets: true,
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

fn decide(gang_cluster: &GangCluster, ask: &PreemptionRequest<'_>) -> usize {
    match gang_cluster.decide(ask, &mut GangTrace::off()).outcome {
        GangOutcome::Preempt(plan) => plan.victims.len(),
        outcome => panic!("{outcome:?}"),
    }
}

pub fn print_table() {
    println!();
    println!(
        "{:24} {:>7} {:>9} {:>10} {:>12} {:>8} {:>6}",
        "on nodes", "nodes", "running", "core us", "victims", "MB req", "alloc"
    );
    for nodes in [1_000, 5_000, 20_000] {
        gang("gang of 256", nodes, Setup::default());
    }
    let protected = Setup {
        is_protected: true,
        ..Setup::default()
    };
    gang("protected", 5_000, protected);
    let best_fit = Setup {
        strategy: Strategy::BestFit,
        ..Setup::default()
    };
    gang("best fit", 5_000, best_fit);
    let mixed = Setup {
        is_mixed: true,
        ..Setup::default()
    };
    gang("256 different pods", 5_000, mixed);
    let with = |restriction| Setup {
        restriction,
        ..Setup::default()
    };
    gang("anti-affinity", 5_000, with(Restriction::Apart));
    gang("topology spread", 5_000, with(Restriction::Spread));
    for nodes in [1_000, 5_000] {
        pods("a pod", nodes, Setup::default());
        pods("a pod, protected", nodes, protected);
        pods("a pod, anti-affinity", nodes, with(Restriction::Apart));
        pods("a pod, topology spread", nodes, with(Restriction::Spread));
    }
}

fn gang(what: &str, nodes: usize, setup: Setup) {
    let mut full = None;
    let memory = bytes(|| full = Some(FullNodes::new(nodes, setup)));
    let mut full = full.unwrap();
    let (group, pods) = full.gang(setup.is_mixed);
    let ask = PreemptionRequest {
        pods: &pods,
        group: Some(group),
        ..PreemptionRequest::default()
    };
    let gang_cluster = &full.cluster;
    let victims = decide(gang_cluster, &ask);
    let us = median_us(11, || {
        assert_eq!(decide(gang_cluster, &ask), victims);
    });
    let count = allocations(|| {
        decide(gang_cluster, &ask);
    });
    row(what, nodes, us, victims, memory, count);
}

/// A hundred single pods, one after another.
fn pods(what: &str, nodes: usize, setup: Setup) {
    const PREEMPTORS: usize = 100;
    let mut full = FullNodes::new(nodes, setup);
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
    let gang_cluster = &full.cluster;
    let each = |pods: &[PodId]| {
        let asks = pods.chunks(1).map(|pods| PreemptionRequest {
            pods,
            ..PreemptionRequest::default()
        });
        asks.map(|ask| decide(gang_cluster, &ask)).sum::<usize>()
    };
    let victims = each(&pods);
    let us = median_us(5, || {
        each(&pods);
    });
    let count = allocations(|| {
        each(&pods);
    });
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

/// Decides on a single pod this many times without output, for counting instructions.
pub fn run_pod_only(nodes: usize, times: usize) {
    let mut full = FullNodes::new(nodes, Setup::default());
    let pods = [full.pending("pod", 8_000, None)];
    let ask = PreemptionRequest {
        pods: &pods,
        ..PreemptionRequest::default()
    };
    for _ in 0..times {
        decide(&full.cluster, &ask);
    }
}

/// Decides on a gang this many times without output, for counting instructions.
pub fn run_only(nodes: usize, times: usize) {
    let mut full = FullNodes::new(nodes, Setup::default());
    let (group, pods) = full.gang(false);
    let ask = PreemptionRequest {
        pods: &pods,
        group: Some(group),
        ..PreemptionRequest::default()
    };
    for _ in 0..times {
        decide(&full.cluster, &ask);
    }
}
