//! Decides a round of job preemption on nodes.

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

/// Milli-CPU in one core.
const CORE_MILLI: i64 = 1000;

/// Builds the job cluster of a case.
struct JobClusterBuilder<'a> {
    resolver: NameResolver,
    quotas: QuotaIds,
    hosts: BTreeMap<&'a str, HostId>,
    excluded: BTreeSet<HostId>,
    case: &'a JobPreemptionCase,
}

/// A pod to add to the cluster.
struct PodToAdd<'a> {
    name: &'a str,
    host: Option<HostId>,
    shape: ShapeId,
    priority: i32,
    traits: JobPodSpec,
}

pub(super) fn decide(fields: &Value) -> Result<CaseAnswer, CaseError> {
    let case: JobPreemptionCase = parse_case(fields)?;
    let mut builder = JobClusterBuilder::new(&case)?;
    builder.add_nodes()?;
    for (at, pod) in case.running.iter().enumerate() {
        builder.add_running_pod(pod, &format!("running[{at}]"))?;
    }
    for (at, pod) in case.pending.iter().enumerate() {
        builder.add_pending_pod(pod, &format!("pending[{at}]"))?;
    }
    let (job, last) = builder.add_job()?;
    let mut rounds = RoundsInFlight::new(RoundLimits::default());
    if case.previous_round_in_flight {
        // The case does not list the victims of the earlier round; any pod makes the round unfinished.
        rounds.begin(job, last, 0);
    }
    let JobClusterBuilder {
        resolver,
        quotas,
        excluded,
        ..
    } = builder;
    let cluster = &resolver.job_cluster;
    let mut trace = Trace::on();
    let outcome = plan_round(cluster, &rounds, job, &excluded, 0, &mut trace);
    let names = explanation::NameLookup {
        cluster: cluster.cluster(),
        quotas: &quotas,
    };
    let tree = cluster.quotas();
    let class = cluster
        .elastic_defaults()
        .preemptibility(case.job.preemption_labels())
        .as_str();
    let job_label = format!(
        "job {} ({class}, priority {}, quota {})",
        case.job.name, case.job.priority, case.quota.name
    );
    let mut text = explanation::outcome_text(&names, cluster, &outcome, &job_label);
    if !trace.steps().is_empty() {
        text.push_str("\nTrace, in order\n");
    }
    for line in trace
        .steps()
        .iter()
        .flat_map(|it| explanation::step_lines(&names, tree, it))
    {
        text.push_str("  ");
        text.push_str(&line);
        text.push('\n');
    }
    let steps = trace.steps().iter();
    Ok(CaseAnswer {
        decision: explanation::outcome_json(&names, &outcome),
        trace: steps
            .map(|it| explanation::step_json(&names, tree, it))
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
        let mut resolver = NameResolver::new(JobCluster::new(case.args.elastic_defaults()));
        let quotas = QuotaIds::from_quotas(&case.quota, &case.quotas, |parent, quota, at| {
            let limits = quota_limits(&mut resolver, quota, at)?;
            Ok(resolver.job_cluster.add_quota(parent, limits))
        })?;
        Ok(Self {
            resolver,
            quotas,
            hosts: BTreeMap::new(),
            excluded: BTreeSet::new(),
            case,
        })
    }

    /// Adds the nodes. A resource that pods request and no node lists is unlimited.
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
            for (resource, _) in self.resolver.limit(request, &at)?.iter() {
                if !named.contains_key(&resource) {
                    unlimited.insert(resource, Amount::UNLIMITED);
                }
            }
        }
        for (at, (node, mut allocatable)) in case.nodes.iter().zip(all).enumerate() {
            allocatable.extend(unlimited.iter().map(|(it, amount)| (*it, *amount)));
            let host = self.resolver.job_cluster.set_host(HostSpec {
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
            .resolver
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
            let cpu = self.resolver.job_cluster.resource("cpu");
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
        let request = self.resolver.resources(request, &format!("{at}.req"))?;
        let requests = request.iter().collect();
        Ok(self.resolver.job_cluster.shape(Shape {
            requests,
            ..Shape::default()
        }))
    }

    fn traits(&mut self, quota: Option<&str>, labels: PreemptionLabels) -> JobPodSpec {
        let cluster = &mut self.resolver.job_cluster;
        let quotas = &mut self.quotas;
        let quota =
            quota.map(|it| quotas.id(it, || cluster.add_quota(None, QuotaLimits::default())));
        JobPodSpec {
            quota,
            preemption_labels: labels,
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
        self.resolver.job_cluster.set_pod(spec, pod.traits)
    }

    fn add_running_pod(&mut self, pod: &RunningPod, at: &str) -> Result<(), CaseError> {
        let labels = preemption_labels(pod.preemptible.as_deref(), None, None);
        let mut traits = self.traits(pod.quota.as_deref(), labels);
        traits.is_evicted = pod.leaving;
        let pod_to_add = PodToAdd {
            name: &pod.name,
            host: Some(self.host(&pod.node, at)?),
            shape: self.shape(&pod.req, at)?,
            priority: pod.priority,
            traits,
        };
        self.add_pod(&pod_to_add);
        Ok(())
    }

    fn add_pending_pod(&mut self, pod: &QuotaPod, at: &str) -> Result<(), CaseError> {
        let labels = preemption_labels(pod.preemptible.as_deref(), None, None);
        let own = self.case.quota.name.as_str();
        let pod_to_add = PodToAdd {
            name: &pod.name,
            host: None,
            shape: self.shape(&pod.req, at)?,
            priority: 0,
            traits: self.traits(Some(pod.quota.as_deref().unwrap_or(own)), labels),
        };
        self.add_pod(&pod_to_add);
        Ok(())
    }

    /// Adds the job; returns its id and its last pod.
    fn add_job(&mut self) -> Result<(JobId, Option<PodId>), CaseError> {
        let case = self.case;
        let (namespace, name) = (
            self.resolver.job_cluster.symbol(""),
            self.resolver.job_cluster.symbol(&case.job.name),
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
            let pod_to_add = PodToAdd {
                name: &pod.name,
                host,
                shape: self.shape(&pod.req, &at)?,
                priority: case.job.priority,
                traits,
            };
            last = Some(self.add_pod(&pod_to_add));
        }
        if case.job.minimum.is_some() || case.job.total.is_some() {
            let there = u32::try_from(case.job.pods.len()).unwrap_or(u32::MAX);
            let total = case.job.total.unwrap_or(there);
            let minimum = case.job.minimum.unwrap_or(total);
            self.resolver
                .job_cluster
                .set_gang(job, GangSize { minimum, total });
        }
        Ok((job, last))
    }

    /// The node of a pod of the job. An assumed pod without a node is put on an unnamed one.
    fn current_host(&mut self, pod: &JobPod, at: &str) -> Result<Option<HostId>, CaseError> {
        let is_assumed = self.case.assumed_pods.contains(&pod.name);
        match &pod.node {
            Some(node) => self.host(node, at).map(Some),
            None if is_assumed => Ok(Some(self.resolver.job_cluster.host_id(""))),
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
