//! Small clusters, written down plainly.

use crate::model::dice::Dice;
use lockkeeper_preemption::gang::{
    Ask, BudgetSpec, Compatibility, Decision, DisruptionMode, GroupKey, GroupSpec, Kind,
    MemberSpec, Options, Trace, World,
};
use lockkeeper_preemption::placement::{
    Condition, Effect, HostSpec, Labels, PodPreemption, PodSpec, Requirement, Selector, Shape,
    Taint, Toleration, TolerationCondition,
};
use lockkeeper_preemption::{Amount, BudgetId, GroupId, HostId, PodId, UnitId};

/// Of cpu and of memory.
pub type Asks = [i64; 2];

#[derive(Clone, Debug)]
pub struct Town {
    pub hosts: Vec<Host>,
    pub jobs: Vec<Job>,
    /// The label that is protected, and how many pods with it may go.
    pub budgets: Vec<(usize, i32)>,
}

#[derive(Clone, Debug)]
pub struct Host {
    pub has: Asks,
    pub is_tainted: bool,
}

/// A pod alone, or a group.
#[derive(Clone, Debug)]
pub struct Job {
    /// `None` is a pod alone.
    pub mode: Option<DisruptionMode>,
    pub priority: i32,
    pub preemption_priority: i32,
    pub count_min: usize,
    pub started_at_ns: i64,
    pub label: Option<usize>,
    pub is_tolerant: bool,
    pub is_going: bool,
    pub pods: Vec<Pod>,
}

#[derive(Clone, Debug)]
pub struct Pod {
    pub asks: Asks,
    pub host: Option<usize>,
    pub nominated: Option<usize>,
}

/// How large towns are.
#[derive(Clone, Copy)]
pub struct Size {
    pub hosts: usize,
    pub jobs: usize,
    pub pods: usize,
    pub has_budgets: bool,
}

pub const SMALL: Size = Size {
    hosts: 4,
    jobs: 9,
    pods: 4,
    has_budgets: true,
};

impl Town {
    /// One node of one cpu, and these jobs.
    pub fn of(jobs: Vec<Job>) -> Self {
        let host = Host {
            has: [1, 0],
            is_tainted: false,
        };
        Self {
            hosts: vec![host],
            jobs,
            budgets: vec![],
        }
    }

    /// Jobs that fit one after the other run, the others wait.
    pub fn roll(dice: &mut Dice<'_>, size: Size) -> Self {
        let hosts = 1 + dice.below(size.hosts);
        let hosts = (0..hosts).map(|_| Host {
            has: [dice.amount(2, 8), dice.amount(4, 9)],
            is_tainted: dice.one_in(6),
        });
        let mut town = Self {
            hosts: hosts.collect(),
            jobs: Vec::new(),
            budgets: Vec::new(),
        };
        for _ in 0..=dice.below(size.jobs) {
            let job = Job::roll(dice, size);
            town.start(job);
        }
        if size.has_budgets {
            let budgets = dice.below(3);
            let roll = |_| (dice.below(2), i32::try_from(dice.below(3)).unwrap());
            town.budgets = (0..budgets).map(roll).collect();
        }
        town
    }

    /// Puts the pods of a job where they fit, or lets all of them wait.
    fn start(&mut self, mut job: Job) {
        for at in 0..job.pods.len() {
            let asks = job.pods[at].asks;
            let taken = |host: usize| {
                let own = job.pods.iter().filter(|it| it.host == Some(host));
                own.fold([0, 0], |sum, it| plus(sum, it.asks))
            };
            let fits = |host: &usize| {
                let free = minus(self.free(*host), taken(*host));
                self.admits(*host, &job) && is_within(asks, free)
            };
            job.pods[at].host = (0..self.hosts.len()).find(fits);
        }
        if job.pods.iter().any(|it| it.host.is_none()) {
            job.pods.iter_mut().for_each(|it| it.host = None);
        }
        self.jobs.push(job);
    }

    pub fn admits(&self, host: usize, job: &Job) -> bool {
        job.is_tolerant || !self.hosts[host].is_tainted
    }

    /// What is free on a node; less than nothing where too much runs.
    pub fn free(&self, host: usize) -> Asks {
        let pods = self.jobs.iter().flat_map(|it| &it.pods);
        let here = pods.filter(|it| it.host == Some(host));
        here.fold(self.hosts[host].has, |free, it| minus(free, it.asks))
    }

    /// The jobs of which some pod waits.
    pub fn waiting(&self) -> Vec<usize> {
        let waits = |at: &usize| self.jobs[*at].pods.iter().any(|it| it.host.is_none());
        (0..self.jobs.len()).filter(waits).collect()
    }

    pub fn told(&self, compatibility: Compatibility) -> Told {
        self.told_in(compatibility, &(0..self.jobs.len()).collect::<Vec<_>>())
    }

    /// A world with the jobs told in this order.
    pub fn told_in(&self, compatibility: Compatibility, order: &[usize]) -> Told {
        let options = Options {
            compatibility,
            ..Options::default()
        };
        self.told_with(options, order)
    }

    pub fn told_with(&self, options: Options, order: &[usize]) -> Told {
        let mut world = World::new(options);
        let mut hosts = Vec::new();
        for (at, host) in self.hosts.iter().enumerate() {
            hosts.push(set_host(&mut world, at, host));
        }
        for (at, (label, allowed)) in self.budgets.iter().enumerate() {
            set_budget(&mut world, at, *label, *allowed);
        }
        let mut told = Told {
            world,
            hosts,
            groups: vec![None; self.jobs.len()],
            pods: vec![Vec::new(); self.jobs.len()],
        };
        for at in order {
            told.add(*at, &self.jobs[*at]);
        }
        told
    }
}

impl Job {
    /// A group of so many pods of one cpu each, on a node or waiting.
    pub fn of(mode: DisruptionMode, pods: usize, host: Option<usize>) -> Self {
        let pod = Pod {
            asks: [1, 0],
            host,
            nominated: None,
        };
        Self {
            mode: Some(mode),
            priority: 0,
            preemption_priority: 0,
            count_min: pods,
            started_at_ns: 0,
            label: None,
            is_tolerant: false,
            is_going: false,
            pods: vec![pod; pods],
        }
    }

    fn roll(dice: &mut Dice<'_>, size: Size) -> Self {
        let mode = dice.pick(&[
            None,
            Some(DisruptionMode::PodGroup),
            Some(DisruptionMode::Pod),
        ]);
        let count = match mode {
            None => 1,
            Some(_) => 1 + dice.below(size.pods),
        };
        let priority = i32::try_from(dice.below(5)).unwrap();
        let is_mixed = dice.one_in(3);
        let asks = [dice.amount(1, 4), dice.amount(0, 4)];
        let pods = (0..count).map(|_| Pod {
            asks: if is_mixed {
                [dice.amount(1, 4), dice.amount(0, 4)]
            } else {
                asks
            },
            host: None,
            nominated: None,
        });
        let pods = pods.collect();
        Self {
            mode,
            priority,
            // A pod alone has one priority.
            preemption_priority: match mode {
                None => priority,
                Some(_) => priority + i32::try_from(dice.below(3)).unwrap(),
            },
            count_min: count - dice.below(count.min(2)),
            started_at_ns: i64::try_from(dice.below(3)).unwrap(),
            label: dice.pick(&[None, Some(0), Some(1)]),
            is_tolerant: dice.one_in(2),
            is_going: false,
            pods,
        }
    }
}

pub fn plus(a: Asks, b: Asks) -> Asks {
    [a[0] + b[0], a[1] + b[1]]
}

pub fn minus(a: Asks, b: Asks) -> Asks {
    [a[0] - b[0], a[1] - b[1]]
}

/// Whether there is enough; what is not asked for may be short.
pub fn is_within(asks: Asks, free: Asks) -> bool {
    (0..2).all(|at| asks[at] == 0 || asks[at] <= free[at])
}

pub fn set_host(world: &mut World, at: usize, host: &Host) -> HostId {
    let cpu = world.resource("cpu");
    let memory = world.resource("memory");
    let mut taints = Vec::new();
    if host.is_tainted {
        taints.push(Taint {
            key: world.word("dedicated"),
            value: world.word(""),
            effect: Effect::NoSchedule,
        });
    }
    world.set_host(HostSpec {
        name: &format!("h{at}"),
        position: u32::try_from(at).unwrap(),
        allocatable: vec![
            (cpu, Amount::new(host.has[0])),
            (memory, Amount::new(host.has[1])),
        ],
        labels: Labels::default(),
        taints,
        is_unschedulable: false,
    })
}

pub fn set_budget(world: &mut World, at: usize, label: usize, allowed: i32) -> BudgetId {
    let (key, value) = (world.word("app"), world.word(&label.to_string()));
    let condition = Condition::In(Box::new([value]));
    world.set_budget(BudgetSpec {
        namespace: "",
        name: &at.to_string(),
        selector: Selector(Box::new([Requirement { key, condition }])),
        allowed,
        disrupted: vec![],
    })
}

/// A world, and which numbers things have there.
pub struct Told {
    pub world: World,
    pub hosts: Vec<HostId>,
    pub groups: Vec<Option<GroupId>>,
    pub pods: Vec<Vec<PodId>>,
}

impl Told {
    /// Tells of a job, or what it is now.
    pub fn add(&mut self, at: usize, job: &Job) {
        self.pods[at].clear();
        let world = &mut self.world;
        let name = format!("job{at}");
        self.groups[at] = job.mode.map(|mode| {
            world.set_group(&GroupSpec {
                key: GroupKey {
                    kind: Kind::PodGroup,
                    namespace: "",
                    name: &name,
                },
                parent: None,
                mode,
                priority: Some(job.priority),
                preemption_priority: Some(job.preemption_priority),
                preemption: None,
                count_min: Some(u32::try_from(job.count_min).unwrap()),
            })
        });
        let (cpu, memory) = (world.resource("cpu"), world.resource("memory"));
        let app = world.word("app");
        let label = job.label.map(|it| (app, world.word(&it.to_string())));
        for (pod_at, pod) in job.pods.iter().enumerate() {
            let mut shape = Shape {
                requests: vec![
                    (cpu, Amount::new(pod.asks[0])),
                    (memory, Amount::new(pod.asks[1])),
                ],
                ..Shape::default()
            };
            if job.is_tolerant {
                shape.tolerations.push(Toleration {
                    key: None,
                    condition: TolerationCondition::Exists,
                    effect: None,
                });
            }
            let shape = world.shape(shape);
            let id = world.set_pod(MemberSpec {
                pod: PodSpec {
                    namespace: "",
                    name: &format!("{name}-{pod_at}"),
                    host: pod.host.map(|it| self.hosts[it]),
                    shape,
                    labels: Labels::of(label),
                    priority: job.priority,
                    preemption: PodPreemption::LowerPriority,
                    started_at_ns: Some(job.started_at_ns),
                    is_terminating: job.is_going,
                },
                group: self.groups[at],
                nominated: pod.nominated.map(|it| self.hosts[it]),
                is_preempted: job.is_going,
            });
            self.pods[at].push(id);
        }
    }

    /// What is decided on the pods of a job that wait.
    pub fn decide(&self, town: &Town, job: usize) -> Decision {
        let pods = self.waiting(town, job);
        self.world.decide(&self.ask(job, &pods), &mut Trace::off())
    }

    pub fn ask<'a>(&self, job: usize, pods: &'a [PodId]) -> Ask<'a> {
        Ask {
            pods,
            group: self.groups[job],
            ..Ask::default()
        }
    }

    pub fn waiting(&self, town: &Town, job: usize) -> Vec<PodId> {
        let pods = town.jobs[job].pods.iter().zip(&self.pods[job]);
        let waiting = pods.filter(|(pod, _)| pod.host.is_none());
        waiting.map(|(_, id)| *id).collect()
    }

    /// Which pods of the town a unit has: job and pod.
    pub fn pods_of(&self, unit: UnitId) -> Vec<(usize, usize)> {
        let pods = self.world.unit(unit).unwrap().pods();
        pods.iter().map(|it| self.place_of(*it)).collect()
    }

    pub fn place_of(&self, pod: PodId) -> (usize, usize) {
        let mut all = self.pods.iter().enumerate();
        all.find_map(|(job, pods)| Some((job, pods.iter().position(|it| *it == pod)?)))
            .unwrap()
    }

    pub fn host_of(&self, host: HostId) -> usize {
        self.hosts.iter().position(|it| *it == host).unwrap()
    }

    /// Where the pods of a decision go, as the town has them.
    pub fn seats(&self, placement: &[(PodId, Option<HostId>)]) -> Vec<((usize, usize), usize)> {
        let placed = placement
            .iter()
            .filter_map(|(pod, host)| Some((*pod, (*host)?)));
        placed
            .map(|(pod, host)| (self.place_of(pod), self.host_of(host)))
            .collect()
    }
}
