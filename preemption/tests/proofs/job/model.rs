//! A small cluster as plain values, and the state built from it.

use crate::model::choices::Choices;
use lockkeeper_preemption::job::{
    ElasticDefaults, JobCluster, JobId, JobPodSpec, LabelValue, Preemptibility, PreemptionLabels,
    QuotaLimits, ResourceList,
};
use lockkeeper_preemption::placement::{HostSpec, Labels, PodPreemption, PodSpec, Shape};
use lockkeeper_preemption::{Amount, HostId, PodId, ResourceId};
use std::collections::BTreeSet;

/// cpu and memory.
pub const RESOURCES: usize = 2;

pub type Amounts = [i64; RESOURCES];

/// `None` means no limit.
pub type Limit = [Option<i64>; RESOURCES];

pub fn sum(all: impl Iterator<Item = Amounts>) -> Amounts {
    all.fold([0; RESOURCES], |sum, it| [sum[0] + it[0], sum[1] + it[1]])
}

pub fn fits(amounts: Amounts, limit: Limit) -> bool {
    (0..RESOURCES).all(|it| limit[it].is_none_or(|most| amounts[it] <= most))
}

#[derive(Clone, Debug)]
pub struct Quota {
    pub parent: Option<usize>,
    pub min: Limit,
    pub max: Limit,
}

#[derive(Clone, Debug)]
pub struct Host {
    pub name: String,
    pub allocatable: Amounts,
    pub is_excluded: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pod {
    pub namespace: &'static str,
    pub name: String,
    pub is_in_job: bool,
    pub quota: Option<usize>,
    pub host: Option<usize>,
    pub nominated: Option<usize>,
    pub priority: i32,
    pub preemption_labels: PreemptionLabels,
    pub request: Amounts,
    pub is_leaving: bool,
}

impl Pod {
    pub fn full_name(&self) -> String {
        format!("{} of {}", self.name, self.namespace)
    }
}

#[derive(Clone, Debug)]
pub struct Model {
    pub elastic_defaults: ElasticDefaults,
    pub quotas: Vec<Quota>,
    pub hosts: Vec<Host>,
    pub pods: Vec<Pod>,
}

fn limit(dice: &mut Choices<'_>, most: i64) -> Limit {
    let memory = dice.one_in(4).then(|| dice.amount(4, most));
    [dice.one_in(2).then(|| dice.amount(2, most)), memory]
}

fn label(dice: &mut Choices<'_>) -> LabelValue {
    dice.pick(&[LabelValue::Missing, LabelValue::Yes, LabelValue::No])
}

impl Model {
    pub fn random(dice: &mut Choices<'_>) -> Self {
        let switches = ElasticDefaults {
            disable_default_preemptible: dice.one_in(4),
            disable_default_trigger: dice.one_in(12),
            delete_victims: dice.one_in(2),
        };
        let quotas = (0..=dice.below(4)).map(|at| Quota {
            parent: (at > 0 && dice.one_in(2)).then(|| dice.below(at)),
            min: limit(dice, 18),
            max: limit(dice, 24),
        });
        let quotas: Vec<Quota> = quotas.collect();
        let hosts = (0..=dice.below(4)).map(|at| Host {
            name: format!("host{at}"),
            allocatable: [dice.amount(0, 8), dice.amount(2, 9)],
            is_excluded: dice.one_in(6),
        });
        let hosts: Vec<Host> = hosts.collect();
        let mut model = Self {
            elastic_defaults: switches,
            quotas,
            hosts,
            pods: Vec::new(),
        };
        for at in 0..dice.below(12) {
            let pod = model.random_pod(dice, at);
            model.pods.push(pod);
        }
        model.add_job(dice);
        model
    }

    fn random_pod(&self, dice: &mut Choices<'_>, at: usize) -> Pod {
        let host = (!dice.one_in(6)).then(|| dice.below(self.hosts.len()));
        let is_nominated = host.is_none() && dice.one_in(2);
        Pod {
            namespace: dice.pick(&["x", "y"]),
            name: format!("pod{}", dice.below(3) + at * 10),
            is_in_job: false,
            quota: (!dice.one_in(6)).then(|| dice.below(self.quotas.len())),
            host,
            nominated: is_nominated.then(|| dice.below(self.hosts.len())),
            priority: i32::try_from(dice.below(8)).unwrap(),
            preemption_labels: PreemptionLabels {
                preemptible: label(dice),
                ..PreemptionLabels::default()
            },
            request: [dice.amount(0, 4), dice.amount(0, 3)],
            is_leaving: host.is_some() && dice.one_in(8),
        }
    }

    fn add_job(&mut self, dice: &mut Choices<'_>) {
        let says = PreemptionLabels {
            preemptible: label(dice),
            can_preempt: if dice.one_in(16) {
                LabelValue::No
            } else {
                dice.pick(&[LabelValue::Missing, LabelValue::Yes])
            },
            never_preempts: dice.one_in(16),
        };
        let quota = (!dice.one_in(12)).then(|| dice.below(self.quotas.len()));
        let request = [dice.amount(1, 4), dice.amount(0, 3)];
        for at in 0..=dice.below(3) {
            let host = dice.one_in(6).then(|| dice.below(self.hosts.len()));
            let is_other = dice.one_in(32);
            self.pods.push(Pod {
                namespace: "x",
                name: format!("ours{at}"),
                is_in_job: true,
                quota,
                host,
                nominated: (host.is_none() && dice.one_in(8)).then(|| dice.below(self.hosts.len())),
                priority: if is_other { 5 } else { 6 },
                preemption_labels: says,
                request: if dice.one_in(4) { [1, 1] } else { request },
                is_leaving: false,
            });
        }
    }

    pub fn class(&self, pod: &Pod) -> Preemptibility {
        self.elastic_defaults.preemptibility(pod.preemption_labels)
    }

    /// The job's pods, by name.
    pub fn job(&self) -> Vec<&Pod> {
        let mut job: Vec<&Pod> = self.pods.iter().filter(|it| it.is_in_job).collect();
        job.sort_by_key(|it| &it.name);
        job
    }

    /// A quota and its ancestors.
    pub fn path(&self, quota: Option<usize>) -> Vec<usize> {
        std::iter::successors(quota, |it| self.quotas[*it].parent).collect()
    }

    pub fn counts_at(&self, pod: &Pod, quota: usize) -> bool {
        self.path(pod.quota).contains(&quota)
    }

    /// The usage of a quota by the pods of a class, or by all pods: pods with a node, or with a held place.
    pub fn used(&self, quota: usize, class: Option<Preemptibility>) -> Amounts {
        let has_place = |it: &&Pod| it.host.is_some() || it.nominated.is_some();
        let counted = self.pods.iter().filter(has_place);
        let counted = counted.filter(|it| self.counts_at(it, quota));
        let counted = counted.filter(|it| class.is_none_or(|class| self.class(it) == class));
        sum(counted.map(|it| it.request))
    }

    pub fn build(&self) -> Built {
        let mut job_cluster = JobCluster::new(self.elastic_defaults);
        let [cpu, memory] = ["cpu", "memory"].map(|name| job_cluster.resource(name));
        let resources = |limit: Limit| {
            let pairs = [(cpu, limit[0]), (memory, limit[1])].into_iter();
            ResourceList::from_pairs(pairs.filter_map(|(of, most)| Some((of, Amount::new(most?)))))
        };
        let mut quotas = Vec::new();
        for quota in &self.quotas {
            let limits = QuotaLimits {
                min: resources(quota.min),
                max: resources(quota.max),
            };
            quotas.push(job_cluster.add_quota(quota.parent.map(|at| quotas[at]), limits));
        }
        let mut excluded = BTreeSet::new();
        let pair = |amounts: Amounts| -> Vec<(ResourceId, Amount)> {
            vec![
                (cpu, Amount::new(amounts[0])),
                (memory, Amount::new(amounts[1])),
            ]
        };
        let mut hosts = Vec::new();
        for (at, host) in self.hosts.iter().enumerate() {
            let id = job_cluster.set_host(HostSpec {
                name: &host.name,
                position: u32::try_from(at).unwrap(),
                allocatable: pair(host.allocatable),
                labels: Labels::default(),
                taints: Vec::new(),
                is_unschedulable: false,
            });
            hosts.push(id);
            excluded.extend(host.is_excluded.then_some(id));
        }
        let name = job_cluster.symbol("ours");
        for pod in &self.pods {
            let shape = job_cluster.shape(Shape {
                requests: pair(pod.request),
                ..Shape::default()
            });
            let spec = PodSpec {
                namespace: pod.namespace,
                name: &pod.name,
                host: pod.host.map(|at| hosts[at]),
                shape,
                labels: Labels::default(),
                priority: pod.priority,
                preemption: PodPreemption::default(),
                started_at_ns: None,
                is_terminating: false,
            };
            let traits = JobPodSpec {
                quota: pod.quota.map(|at| quotas[at]),
                job: pod.is_in_job.then_some(name),
                preemption_labels: pod.preemption_labels,
                nominated: pod.nominated.map(|at| hosts[at]),
                is_evicted: pod.is_leaving,
            };
            job_cluster.set_pod(spec, traits);
        }
        let namespace = job_cluster.symbol("x");
        Built {
            cluster: job_cluster,
            job: JobId::Group { namespace, name },
            excluded,
        }
    }
}

/// The state built from a model.
pub struct Built {
    pub cluster: JobCluster,
    pub job: JobId,
    pub excluded: BTreeSet<HostId>,
}

impl Built {
    pub fn pod(&self, pod: PodId) -> String {
        let known = self.cluster.cluster().pod(pod).unwrap();
        let namespace = self.cluster.cluster().symbols().text(known.namespace());
        format!("{} of {namespace}", known.name())
    }

    pub fn host(&self, host: HostId) -> String {
        self.cluster.cluster().host_name(host).to_owned()
    }
}
