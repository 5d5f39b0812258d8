//! Rounds of preemption on nodes.

use super::answer::CaseAnswer;
use super::case::{
    JobPod, JobPreemptionCase, Node, NodeStatus, QuotaPod, RunningPod, preemption_labels,
};
use super::explanation;
use super::resolve::{CaseError, NameResolver, QuotaIds, parse_case, quota_limits, unknown_name};
use crate::amount_text::AmountText;
use crate::error::ScenarioError;
use crate::validate::parse_amount;
use lockkeeper_preemption::job::{
    GangSize, JobCluster, JobId, JobPodSpec, PreemptionLabels, QuotaLimits, RoundLimits,
    RoundsInFlight, plan_round,
};
use lockkeeper_preemption::placement::{HostSpec, Labels, PodPreemption, PodSpec, Shape};
use lockkeeper_preemption::{Amount, HostId, PodId, ResourceId, ShapeId, Trace};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Whole cores in thousandths.
const CORE_MILLI: i64 = 1000;

/// What a case is made into.
struct JobClusterBuilder<'a> {
    door: NameResolver,
    quotas: QuotaIds,
    hosts: BTreeMap<&'a str, HostId>,
    excluded: BTreeSet<HostId>,
    case: &'a JobPreemptionCase,
}

/// A pod of the case.
struct PodToAdd<'a> {
    name: &'a str,
    host: Option<HostId>,
    shape: ShapeId,
    priority: i32,
    traits: JobPodSpec,
}

pub(super) fn decide(asked: &Value) -> Result<CaseAnswer, CaseError> {
    let case: JobPreemptionCase = parse_case(asked)?;
    let mut stage = JobClusterBuilder::new(&case)?;
    stage.add_nodes()?;
    for (at, pod) in case.running.iter().enumerate() {
        stage.add_running_pod(pod, &format!("running[{at}]"))?;
    }
    for (at, pod) in case.pending.iter().enumerate() {
        stage.add_pending_pod(pod, &format!("pending[{at}]"))?;
    }
    let (job, last) = stage.add_job()?;
    let mut rounds = RoundsInFlight::new(RoundLimits::default());
    if case.previous_round_in_flight {
        // Who its victims are is not said; anybody stands for them.
        rounds.begin(job, last, 0);
    }
    let JobClusterBuilder {
        door,
        quotas,
        excluded,
        ..
    } = stage;
    let world = &door.job_cluster;
    let mut trace = Trace::on();
    let outcome = plan_round(world, &rounds, job, &excluded, 0, &mut trace);
    let naming = explanation::NameLookup {
        cluster: world.cluster(),
        quotas: &quotas,
    };
    let tree = world.quotas();
    let class = world
        .elastic_defaults()
        .preemptibility(case.job.preemption_labels())
        .as_str();
    let who = format!(
        "job {} ({class}, priority {}, quota {})",
        case.job.name, case.job.priority, case.quota.name
    );
    let mut text = explanation::outcome_text(&naming, world, &outcome, &who);
    if !trace.steps().is_empty() {
        text.push_str("\nWhat was considered, in order\n");
    }
    for line in trace
        .steps()
        .iter()
        .flat_map(|it| explanation::step_lines(&naming, tree, it))
    {
        text.push_str("  ");
        text.push_str(&line);
        text.push('\n');
    }
    let steps = trace.steps().iter();
    Ok(CaseAnswer {
        decision: explanation::outcome_json(&naming, &outcome),
        trace: steps
            .map(|it| explanation::step_json(&naming, tree, it))
            .collect(),
        text,
    })
}

impl<'a> JobClusterBuilder<'a> {
    fn new(case: &'a JobPreemptionCase) -> Result<Self, CaseError> {
        check_unique("nodes", case.nodes.iter().map(|it| it.name.as_str()))?;
        let running = case.running.iter().map(|it| it.name.as_str());
        let pending = case.pending.iter().map(|it| it.name.as_str());
        let of_job = case.job.pods.iter().map(|it| it.name.as_str());
        check_unique(
            "running, pending, job.pods",
            running.chain(pending).chain(of_job),
        )?;
        let mut door = NameResolver::new(JobCluster::new(case.args.elastic_defaults()));
        let quotas = QuotaIds::from_quotas(&case.quota, &case.quotas, |parent, quota, at| {
            let limits = quota_limits(&mut door, quota, at)?;
            Ok(door.job_cluster.add_quota(parent, limits))
        })?;
        Ok(Self {
            door,
            quotas,
            hosts: BTreeMap::new(),
            excluded: BTreeSet::new(),
            case,
        })
    }

    /// All nodes. What no node names, and pods ask for, is not limited.
    fn add_nodes(&mut self) -> Result<(), CaseError> {
        let case = self.case;
        let mut named = BTreeMap::new();
        let mut all = Vec::with_capacity(case.nodes.len());
        for (at, node) in case.nodes.iter().enumerate() {
            let allocatable = self.allocatable(node, &format!("nodes[{at}]"))?;
            named.extend(allocatable.iter().map(|(it, _)| (*it, Amount::ZERO)));
            all.push(allocatable);
        }
        let mut unlimited = BTreeMap::new();
        let place = |list: &'static str| move |(at, it)| (format!("{list}[{at}].req"), it);
        let running = case.running.iter().map(|it| &it.req).enumerate();
        let pending = case.pending.iter().map(|it| &it.req).enumerate();
        let of_job = case.job.pods.iter().map(|it| &it.req).enumerate();
        let requests = running.map(place("running"));
        let requests = requests.chain(pending.map(place("pending")));
        for (at, request) in requests.chain(of_job.map(place("job.pods"))) {
            for (resource, _) in self.door.limit(request, &at)?.iter() {
                if !named.contains_key(&resource) {
                    unlimited.insert(resource, Amount::UNLIMITED);
                }
            }
        }
        for (at, (node, mut allocatable)) in case.nodes.iter().zip(all).enumerate() {
            allocatable.extend(unlimited.iter().map(|(it, amount)| (*it, *amount)));
            let host = self.door.job_cluster.set_host(HostSpec {
                name: &node.name,
                position: u32::try_from(at).unwrap_or(u32::MAX),
                allocatable,
                labels: Labels::default(),
                taints: Vec::new(),
                is_unschedulable: false,
            });
            self.hosts.insert(&node.name, host);
            if node.status == NodeStatus::UnschedulableAndUnresolvable {
                self.excluded.insert(host);
            }
        }
        Ok(())
    }

    fn allocatable(
        &mut self,
        node: &Node,
        at: &str,
    ) -> Result<Vec<(ResourceId, Amount)>, CaseError> {
        let mut allocatable: Vec<_> = self
            .door
            .limit(&node.allocatable, &format!("{at}.allocatable"))?
            .iter()
            .collect();
        if let Some(cpu) = node.cpu {
            let at = || format!("{at}.cpu");
            let milli = match cpu {
                AmountText::Number(cores) => cores
                    .checked_mul(CORE_MILLI)
                    .ok_or_else(|| ScenarioError::TooLarge { at: at() })?,
                AmountText::Quantity(_) => parse_amount(cpu, "cpu", at)?,
            };
            let milli = parse_amount(AmountText::Number(milli), "cpu", at)?;
            let cpu = self.door.job_cluster.resource("cpu");
            if allocatable.iter().any(|(it, _)| *it == cpu) {
                return Err(CaseError::Duplicate {
                    at: at(),
                    name: "cpu".to_owned(),
                });
            }
            allocatable.push((cpu, Amount::new(milli)));
        }
        Ok(allocatable)
    }

    fn host(&self, name: &str, at: &str) -> Result<HostId, CaseError> {
        let known = self.hosts.get(name).copied();
        known.ok_or_else(|| unknown_name(&format!("{at}.node"), name, self.hosts.keys()))
    }

    fn shape(&mut self, request: &super::case::Amounts, at: &str) -> Result<ShapeId, CaseError> {
        let request = self.door.resources(request, &format!("{at}.req"))?;
        let requests = request.iter().collect();
        Ok(self.door.job_cluster.shape(Shape {
            requests,
            ..Shape::default()
        }))
    }

    fn traits(&mut self, quota: Option<&str>, says: PreemptionLabels) -> JobPodSpec {
        let world = &mut self.door.job_cluster;
        let quotas = &mut self.quotas;
        let quota = quota.map(|it| quotas.id(it, || world.add_quota(None, QuotaLimits::default())));
        JobPodSpec {
            quota,
            preemption_labels: says,
            ..JobPodSpec::default()
        }
    }

    fn add_pod(&mut self, pod: &PodToAdd<'_>) -> PodId {
        let spec = PodSpec {
            namespace: "",
            name: pod.name,
            host: pod.host,
            shape: pod.shape,
            labels: Labels::default(),
            priority: pod.priority,
            preemption: PodPreemption::default(),
            started_at_ns: None,
            is_terminating: false,
        };
        self.door.job_cluster.set_pod(spec, pod.traits)
    }

    fn add_running_pod(&mut self, pod: &RunningPod, at: &str) -> Result<(), CaseError> {
        let says = preemption_labels(pod.preemptible.as_deref(), None, None);
        let mut traits = self.traits(pod.quota.as_deref(), says);
        traits.is_evicted = pod.leaving;
        let put = PodToAdd {
            name: &pod.name,
            host: Some(self.host(&pod.node, at)?),
            shape: self.shape(&pod.req, at)?,
            priority: pod.priority,
            traits,
        };
        self.add_pod(&put);
        Ok(())
    }

    fn add_pending_pod(&mut self, pod: &QuotaPod, at: &str) -> Result<(), CaseError> {
        let says = preemption_labels(pod.preemptible.as_deref(), None, None);
        let own = self.case.quota.name.as_str();
        let put = PodToAdd {
            name: &pod.name,
            host: None,
            shape: self.shape(&pod.req, at)?,
            priority: 0,
            traits: self.traits(Some(pod.quota.as_deref().unwrap_or(own)), says),
        };
        self.add_pod(&put);
        Ok(())
    }

    /// The job, and one of its pods.
    fn add_job(&mut self) -> Result<(JobId, Option<PodId>), CaseError> {
        let case = self.case;
        let (namespace, name) = (
            self.door.job_cluster.symbol(""),
            self.door.job_cluster.symbol(&case.job.name),
        );
        let job = JobId::Group { namespace, name };
        for (at, assumed) in case.assumed_pods.iter().enumerate() {
            let names: Vec<&str> = case.job.pods.iter().map(|it| it.name.as_str()).collect();
            if !names.contains(&assumed.as_str()) {
                return Err(unknown_name(
                    &format!("assumed_pods[{at}]"),
                    assumed,
                    &names,
                ));
            }
        }
        let mut last = None;
        for (at, pod) in case.job.pods.iter().enumerate() {
            let at = format!("job.pods[{at}]");
            let host = self.current_host(pod, &at)?;
            let mut traits = self.traits(Some(&case.quota.name), case.job.preemption_labels());
            traits.job = Some(name);
            let put = PodToAdd {
                name: &pod.name,
                host,
                shape: self.shape(&pod.req, &at)?,
                priority: case.job.priority,
                traits,
            };
            last = Some(self.add_pod(&put));
        }
        if case.job.minimum.is_some() || case.job.total.is_some() {
            let there = u32::try_from(case.job.pods.len()).unwrap_or(u32::MAX);
            let total = case.job.total.unwrap_or(there);
            let minimum = case.job.minimum.unwrap_or(total);
            self.door
                .job_cluster
                .set_gang(job, GangSize { minimum, total });
        }
        Ok((job, last))
    }

    /// Where a pod of the job is. One that is assumed on a node that nobody knows is somewhere else.
    fn current_host(&mut self, pod: &JobPod, at: &str) -> Result<Option<HostId>, CaseError> {
        let is_assumed = self.case.assumed_pods.contains(&pod.name);
        match &pod.node {
            Some(node) => self.host(node, at).map(Some),
            None if is_assumed => Ok(Some(self.door.job_cluster.host_id(""))),
            None => Ok(None),
        }
    }
}

fn check_unique<'a>(at: &str, names: impl Iterator<Item = &'a str>) -> Result<(), CaseError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(CaseError::Duplicate {
                at: at.to_owned(),
                name: name.to_owned(),
            });
        }
    }
    Ok(())
}
