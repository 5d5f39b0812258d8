//! Rounds of job preemption on many nodes.

use crate::clusters::GIB;
use crate::measure::{allocations, median_us, us};
use lockkeeper_preemption::job::{
    ElasticDefaults, JobCluster, JobId, JobOutcome, JobPodSpec, JobStep, LabelValue,
    PreemptionLabels, QuotaId, QuotaLimits, ResourceList, RoundsInFlight, plan_round,
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
struct FullHosts {
    cluster: JobCluster,
    own: QuotaId,
    cpu: ResourceId,
    memory: ResourceId,
}

impl FullHosts {
    fn new(hosts: usize) -> Self {
        let mut job_cluster = JobCluster::new(ElasticDefaults::default());
        let [cpu, memory] = ["cpu", "memory"].map(|name| job_cluster.resource(name));
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
            let limits = QuotaLimits {
                min: ResourceList::from_pairs(amounts(most)),
                max: ResourceList::from_pairs(amounts(most)),
            };
            job_cluster.add_quota(None, limits)
        });
        let mut full = Self {
            cluster: job_cluster,
            own,
            cpu,
            memory,
        };
        let one = full.pod_template(1);
        for at in 0..hosts {
            let name = format!("node-{at:04}");
            let host = full.cluster.set_host(HostSpec {
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
                let traits = JobPodSpec {
                    quota: Some(quota),
                    ..JobPodSpec::default()
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

    fn pod_template(&mut self, units: i64) -> ShapeId {
        self.cluster.shape(Shape {
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
        traits: JobPodSpec,
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
        self.cluster.set_pod(spec, traits);
    }

    /// A job whose pods ask for so many units each, in turn.
    fn job(
        &mut self,
        name: &str,
        quota: Option<QuotaId>,
        label: LabelValue,
        units: &[i64],
    ) -> JobId {
        let word = self.cluster.symbol(name);
        let namespace = self.cluster.symbol("default");
        for at in 0..JOB {
            let shape = self.pod_template(units[at % units.len()]);
            let traits = JobPodSpec {
                quota,
                job: Some(word),
                preemption_labels: PreemptionLabels {
                    preemptible: label,
                    ..PreemptionLabels::default()
                },
                ..JobPodSpec::default()
            };
            self.pod(&format!("{name}-{at:03}"), None, shape, 10, traits);
        }
        JobId::Group {
            namespace,
            name: word,
        }
    }

    fn plan(&self, job: JobId, trace: &mut Trace<JobStep>) -> JobOutcome {
        plan_round(
            &self.cluster,
            &RoundsInFlight::default(),
            job,
            &BTreeSet::new(),
            0,
            trace,
        )
    }
}

/// Number of victims; `None` if the job cannot be placed.
fn victims(outcome: &JobOutcome) -> Option<usize> {
    match outcome {
        JobOutcome::Preempt(plan) => Some(plan.victims.len()),
        JobOutcome::Rejected(_) => None,
    }
}

pub fn print() {
    println!();
    println!(
        "{:34} {:>7} {:>10} {:>10} {:>8}",
        "a round for 256 pods", "victims", "core ms", "traced ms", "alloc"
    );
    let mut full = FullHosts::new(HOSTS);
    let own = Some(full.own);
    let different: Vec<i64> = (1..=8).collect();
    let jobs = [
        (
            "room on nodes",
            full.job("room", None, LabelValue::Missing, &[2]),
        ),
        (
            "room, of eight sizes",
            full.job("sizes", None, LabelValue::Missing, &different),
        ),
        (
            "room and quota",
            full.job("quota", own, LabelValue::No, &[2]),
        ),
        (
            "no victims suffice",
            full.job("vain", None, LabelValue::Missing, &[11]),
        ),
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

/// Plans this many times without output, for counting instructions.
pub fn run_only(hosts: usize, times: usize) {
    let mut full = FullHosts::new(hosts);
    let job = full.job("room", None, LabelValue::Missing, &[2]);
    for _ in 0..times {
        assert!(victims(&full.plan(job, &mut Trace::off())).is_some());
    }
}
