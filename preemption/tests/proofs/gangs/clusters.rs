//! Small clusters in a plain representation.

use super::inter_pod::{ModelConstraints, TopologyKey, is_permitted, topology_key};
use crate::model::choices::Choices;
use lockkeeper_preemption::gang::{
    BudgetSpec, DisruptionMode, GangCluster, GangDecision, GangOptions, GangTrace, GroupKey,
    GroupSpec, MemberSpec, PreemptionRequest, PreemptionUnitKind, SchedulerCompatibility,
};
use lockkeeper_preemption::placement::{
    HostSpec, LabelCondition, Labels, PodPreemption, PodSpec, Requirement, Selector, Shape, Taint,
    TaintEffect, Toleration, TolerationCondition,
};
use lockkeeper_preemption::{
    Amount, BudgetId, GroupId, HostId, PodId, PortProtocol, ResourceId, UnitId,
};

/// Amounts of cpu and memory, and of the host port 80, of which each node has one.
pub type Requests = [i64; 3];

#[derive(Clone, Debug)]
pub struct ModelCluster {
    pub hosts: Vec<ModelHost>,
    pub jobs: Vec<ModelJob>,
    /// The protected label, and how many pods with it may be disrupted.
    pub budgets: Vec<(usize, i32)>,
}

#[derive(Clone, Debug)]
pub struct ModelHost {
    pub allocatable: Requests,
    pub is_tainted: bool,
    pub zone: Option<usize>,
}

/// A single pod or a group.
#[derive(Clone, Debug)]
pub struct ModelJob {
    /// `None` means a single pod.
    pub mode: Option<DisruptionMode>,
    pub priority: i32,
    pub preemption_priority: i32,
    pub count_min: usize,
    pub started_at_ns: i64,
    pub label: Option<usize>,
    pub is_tolerant: bool,
    pub is_terminating: bool,
    pub constraints: ModelConstraints,
    pub pods: Vec<ModelPod>,
}

#[derive(Clone, Debug)]
pub struct ModelPod {
    pub requests: Requests,
    pub host: Option<usize>,
    pub nominated: Option<usize>,
}

/// The size of random clusters.
#[derive(Clone, Copy)]
pub struct ClusterSize {
    pub hosts: usize,
    pub jobs: usize,
    pub pods: usize,
    pub has_budgets: bool,
    /// Whether pods restrict each other.
    pub has_constraints: bool,
}

pub const SMALL: ClusterSize = ClusterSize {
    hosts: 4,
    jobs: 9,
    pods: 4,
    has_budgets: true,
    has_constraints: false,
};

/// With pods that restrict each other.
pub const RESTRICTED: ClusterSize = ClusterSize {
    has_constraints: true,
    ..SMALL
};

impl ModelCluster {
    /// One node with one cpu, and these jobs.
    pub fn with_jobs(jobs: Vec<ModelJob>) -> Self {
        let host = ModelHost {
            allocatable: [1, 0, 1],
            is_tainted: false,
            zone: None,
        };
        Self {
            hosts: vec![host],
            jobs,
            budgets: vec![],
        }
    }

    /// Starts the jobs that fit, in order; the others are pending.
    pub fn random(dice: &mut Choices<'_>, size: ClusterSize) -> Self {
        let hosts = 1 + dice.below(size.hosts);
        let hosts = (0..hosts).map(|_| ModelHost {
            allocatable: [dice.amount(2, 8), dice.amount(4, 9), 1],
            is_tainted: dice.one_in(6),
            zone: size
                .has_constraints
                .then(|| dice.pick(&[Some(0), Some(1), Some(2), None]))
                .flatten(),
        });
        let mut town = Self {
            hosts: hosts.collect(),
            jobs: Vec::new(),
            budgets: Vec::new(),
        };
        for _ in 0..=dice.below(size.jobs) {
            let job = ModelJob::random(dice, size);
            town.start_or_queue(job);
        }
        if size.has_budgets {
            let budgets = dice.below(3);
            let roll = |_| (dice.below(2), i32::try_from(dice.below(3)).unwrap());
            town.budgets = (0..budgets).map(roll).collect();
        }
        town
    }

    /// Places all pods of a job, or leaves all of them pending.
    fn start_or_queue(&mut self, job: ModelJob) {
        let at = self.jobs.len();
        self.jobs.push(job);
        for pod in 0..self.jobs[at].pods.len() {
            let asks = self.jobs[at].pods[pod].requests;
            let fits = |host: &usize| {
                self.admits(*host, &self.jobs[at])
                    && is_within(asks, self.free(*host))
                    && is_permitted(self, at, *host)
            };
            self.jobs[at].pods[pod].host = (0..self.hosts.len()).find(fits);
        }
        let pods = &mut self.jobs[at].pods;
        if pods.iter().any(|it| it.host.is_none()) {
            for pod in pods {
                pod.host = None;
            }
        }
    }

    pub fn admits(&self, host: usize, job: &ModelJob) -> bool {
        job.is_tolerant || !self.hosts[host].is_tainted
    }

    /// The free resources of a node; negative if overcommitted.
    pub fn free(&self, host: usize) -> Requests {
        let pods = self.jobs.iter().flat_map(|it| &it.pods);
        let here = pods.filter(|it| it.host == Some(host));
        here.fold(self.hosts[host].allocatable, |free, pod| {
            minus(free, pod.requests)
        })
    }

    /// The jobs with pending pods.
    pub fn waiting(&self) -> Vec<usize> {
        let waits = |at: &usize| self.jobs[*at].pods.iter().any(|it| it.host.is_none());
        (0..self.jobs.len()).filter(waits).collect()
    }

    pub fn build(&self, compatibility: SchedulerCompatibility) -> BuiltCluster {
        self.build_in_order(compatibility, &(0..self.jobs.len()).collect::<Vec<_>>())
    }

    /// A `GangCluster` with the jobs added in this order.
    pub fn build_in_order(
        &self,
        compatibility: SchedulerCompatibility,
        order: &[usize],
    ) -> BuiltCluster {
        let options = GangOptions {
            compatibility,
            ..GangOptions::default()
        };
        self.build_with(options, order)
    }

    pub fn build_with(&self, options: GangOptions, order: &[usize]) -> BuiltCluster {
        let mut gang_cluster = GangCluster::new(options);
        let mut hosts = Vec::new();
        for (at, host) in self.hosts.iter().enumerate() {
            hosts.push(set_host(&mut gang_cluster, at, host));
        }
        for (at, (label, allowed)) in self.budgets.iter().enumerate() {
            set_budget(&mut gang_cluster, at, *label, *allowed);
        }
        let mut built = BuiltCluster {
            cluster: gang_cluster,
            hosts,
            groups: vec![None; self.jobs.len()],
            pods: vec![Vec::new(); self.jobs.len()],
        };
        for at in order {
            built.set_job(*at, &self.jobs[*at]);
        }
        built
    }
}

impl ModelJob {
    /// A group of pods with one cpu each, on a node or pending.
    pub fn gang(mode: DisruptionMode, pods: usize, host: Option<usize>) -> Self {
        let pod = ModelPod {
            requests: [1, 0, 0],
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
            is_terminating: false,
            constraints: ModelConstraints::default(),
            pods: vec![pod; pods],
        }
    }

    fn random(dice: &mut Choices<'_>, size: ClusterSize) -> Self {
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
        let port = i64::from(dice.one_in(4));
        let asks = [dice.amount(1, 4), dice.amount(0, 4), port];
        let pods = (0..count).map(|_| ModelPod {
            requests: if is_mixed {
                [dice.amount(1, 4), dice.amount(0, 4), port]
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
            // A single pod has one priority.
            preemption_priority: match mode {
                None => priority,
                Some(_) => priority + i32::try_from(dice.below(3)).unwrap(),
            },
            count_min: count - dice.below(count.min(2)),
            started_at_ns: i64::try_from(dice.below(3)).unwrap(),
            label: dice.pick(&[None, Some(0), Some(1)]),
            is_tolerant: dice.one_in(2),
            is_terminating: false,
            constraints: if size.has_constraints {
                ModelConstraints::random(dice)
            } else {
                ModelConstraints::default()
            },
            pods,
        }
    }
}

pub fn plus(a: Requests, b: Requests) -> Requests {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub fn minus(a: Requests, b: Requests) -> Requests {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// Whether the requests fit; resources without a request may be negative.
pub fn is_within(asks: Requests, free: Requests) -> bool {
    (0..3).all(|at| asks[at] == 0 || asks[at] <= free[at])
}

pub fn set_host(gang_cluster: &mut GangCluster, at: usize, host: &ModelHost) -> HostId {
    let cpu = gang_cluster.resource("cpu");
    let memory = gang_cluster.resource("memory");
    let mut taints = Vec::new();
    if host.is_tainted {
        taints.push(Taint {
            key: gang_cluster.symbol("dedicated"),
            value: gang_cluster.symbol(""),
            effect: TaintEffect::NoSchedule,
        });
    }
    let name = format!("h{at}");
    let key = topology_key(gang_cluster, TopologyKey::Host);
    let mut labels = vec![(key, gang_cluster.symbol(&name))];
    if let Some(zone) = host.zone {
        let key = topology_key(gang_cluster, TopologyKey::Zone);
        labels.push((key, gang_cluster.symbol(&format!("zone-{zone}"))));
    }
    gang_cluster.set_host(HostSpec {
        name: &name,
        position: u32::try_from(at).unwrap(),
        allocatable: vec![
            (cpu, Amount::new(host.allocatable[0])),
            (memory, Amount::new(host.allocatable[1])),
        ],
        labels: Labels::from_pairs(labels),
        taints,
        is_unschedulable: false,
    })
}

pub fn set_budget(
    gang_cluster: &mut GangCluster,
    at: usize,
    label: usize,
    allowed: i32,
) -> BudgetId {
    let (key, value) = (
        gang_cluster.symbol("app"),
        gang_cluster.symbol(&label.to_string()),
    );
    let condition = LabelCondition::In(Box::new([value]));
    gang_cluster.set_budget(BudgetSpec {
        namespace: "",
        name: &at.to_string(),
        selector: Selector(Box::new([Requirement { key, condition }])),
        allowed,
        disrupted: vec![],
    })
}

/// A `GangCluster` with the ids of its objects.
pub struct BuiltCluster {
    pub cluster: GangCluster,
    pub hosts: Vec<HostId>,
    pub groups: Vec<Option<GroupId>>,
    pub pods: Vec<Vec<PodId>>,
}

impl BuiltCluster {
    /// Adds or updates a job.
    pub fn set_job(&mut self, at: usize, job: &ModelJob) {
        self.pods[at].clear();
        let gang_cluster = &mut self.cluster;
        let name = format!("job{at}");
        self.groups[at] = job.mode.map(|mode| {
            gang_cluster.set_group(&GroupSpec {
                key: GroupKey {
                    kind: PreemptionUnitKind::PodGroup,
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
        let (cpu, memory) = (
            gang_cluster.resource("cpu"),
            gang_cluster.resource("memory"),
        );
        let app = gang_cluster.symbol("app");
        let label = job
            .label
            .map(|it| (app, gang_cluster.symbol(&it.to_string())));
        for (pod_at, pod) in job.pods.iter().enumerate() {
            let mut shape = Shape {
                inter_pod: job.constraints.build(gang_cluster),
                requests: vec![
                    (cpu, Amount::new(pod.requests[0])),
                    (memory, Amount::new(pod.requests[1])),
                ],
                ..Shape::default()
            };
            if pod.requests[2] > 0 {
                let port = ResourceId::host_port(PortProtocol::Tcp, 80);
                shape.requests.push((port, Amount::new(1)));
            }
            if job.is_tolerant {
                shape.tolerations.push(Toleration {
                    key: None,
                    condition: TolerationCondition::Exists,
                    effect: None,
                });
            }
            let shape = gang_cluster.shape(shape);
            let id = gang_cluster.set_pod(MemberSpec {
                pod: PodSpec {
                    namespace: "",
                    name: &format!("{name}-{pod_at}"),
                    host: pod.host.map(|it| self.hosts[it]),
                    shape,
                    labels: Labels::from_pairs(label),
                    priority: job.priority,
                    preemption: PodPreemption::LowerPriority,
                    started_at_ns: Some(job.started_at_ns),
                    is_terminating: job.is_terminating,
                },
                group: self.groups[at],
                nominated: pod.nominated.map(|it| self.hosts[it]),
                is_preempted: job.is_terminating,
                has_budgets: true,
            });
            self.pods[at].push(id);
        }
    }

    /// The decision on the pending pods of a job.
    pub fn decide(&self, town: &ModelCluster, job: usize) -> GangDecision {
        self.decide_with(town, job, &mut GangTrace::off())
    }

    pub fn decide_with(
        &self,
        town: &ModelCluster,
        job: usize,
        trace: &mut GangTrace,
    ) -> GangDecision {
        let pods = self.waiting(town, job);
        self.cluster.decide(&self.request(job, &pods), trace)
    }

    pub fn request<'a>(&self, job: usize, pods: &'a [PodId]) -> PreemptionRequest<'a> {
        PreemptionRequest {
            pods,
            group: self.groups[job],
            ..PreemptionRequest::default()
        }
    }

    pub fn waiting(&self, town: &ModelCluster, job: usize) -> Vec<PodId> {
        let pods = town.jobs[job].pods.iter().zip(&self.pods[job]);
        let waiting = pods.filter(|(pod, _)| pod.host.is_none());
        waiting.map(|(_, id)| *id).collect()
    }

    /// The pods of a unit as pairs of job and pod.
    pub fn pods_of(&self, unit: UnitId) -> Vec<(usize, usize)> {
        let pods = self.cluster.units().get(unit).unwrap().pods();
        pods.iter().map(|it| self.job_and_pod_of(*it)).collect()
    }

    pub fn job_and_pod_of(&self, pod: PodId) -> (usize, usize) {
        let mut all = self.pods.iter().enumerate();
        all.find_map(|(job, pods)| Some((job, pods.iter().position(|it| *it == pod)?)))
            .unwrap()
    }

    pub fn host_of(&self, host: HostId) -> usize {
        self.hosts.iter().position(|it| *it == host).unwrap()
    }

    /// The placement of a decision in the plain representation.
    pub fn placements(
        &self,
        placement: &[(PodId, Option<HostId>)],
    ) -> Vec<((usize, usize), usize)> {
        let placed = placement
            .iter()
            .filter_map(|(pod, host)| Some((*pod, (*host)?)));
        placed
            .map(|(pod, host)| (self.job_and_pod_of(pod), self.host_of(host)))
            .collect()
    }
}
