//! Rounds of preemption on nodes.

use super::case::{JobPod, Node, NodeStatus, QuotaPod, Round, RunningPod, says};
use super::door::{CaseError, Door, Quotas, limits, read, unknown};
use super::{Told, story};
use crate::scenario::{AmountText, ScenarioError, number};
use lockkeeper_preemption::job::{
    Gang, InFlight, JobId, Limits, PodTraits, RoundLimits, Says, World, plan,
};
use lockkeeper_preemption::placement::{HostSpec, Labels, PodPreemption, PodSpec, Shape};
use lockkeeper_preemption::{Amount, HostId, PodId, ResourceId, ShapeId, Trace};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Whole cores in thousandths.
const CORE_MILLI: i64 = 1000;

/// What a case is made into.
struct Stage<'a> {
    door: Door,
    quotas: Quotas,
    hosts: BTreeMap<&'a str, HostId>,
    excluded: BTreeSet<HostId>,
    case: &'a Round,
}

/// A pod of the case.
struct Put<'a> {
    name: &'a str,
    host: Option<HostId>,
    shape: ShapeId,
    priority: i32,
    traits: PodTraits,
}

pub(super) fn decide(asked: &Value) -> Result<Told, CaseError> {
    let case: Round = read(asked)?;
    let mut stage = Stage::of(&case)?;
    stage.put_nodes()?;
    for (at, pod) in case.running.iter().enumerate() {
        stage.put_running(pod, &format!("running[{at}]"))?;
    }
    for (at, pod) in case.pending.iter().enumerate() {
        stage.put_pending(pod, &format!("pending[{at}]"))?;
    }
    let (job, last) = stage.put_job()?;
    let mut rounds = InFlight::new(RoundLimits::default());
    if case.previous_round_in_flight {
        // Who its victims are is not said; anybody stands for them.
        rounds.begin(job, last, 0);
    }
    let Stage {
        door,
        quotas,
        excluded,
        ..
    } = stage;
    let world = &door.world;
    let mut trace = Trace::on();
    let outcome = plan(world, &rounds, job, &excluded, 0, &mut trace);
    let naming = story::Naming {
        names: world.cluster(),
        quotas: &quotas,
    };
    let tree = world.quotas();
    let class = world.switches().class(case.job.says()).as_str();
    let who = format!(
        "job {} ({class}, priority {}, quota {})",
        case.job.name, case.job.priority, case.quota.name
    );
    let mut text = story::outcome_text(&naming, world, &outcome, &who);
    if !trace.steps().is_empty() {
        text.push_str("\nWhat was considered, in order\n");
    }
    for line in trace
        .steps()
        .iter()
        .flat_map(|it| story::lines(&naming, tree, it))
    {
        text.push_str("  ");
        text.push_str(&line);
        text.push('\n');
    }
    let steps = trace.steps().iter();
    Ok(Told {
        decision: story::outcome(&naming, &outcome),
        trace: steps.map(|it| story::told(&naming, tree, it)).collect(),
        text,
    })
}

impl<'a> Stage<'a> {
    fn of(case: &'a Round) -> Result<Self, CaseError> {
        unique("nodes", case.nodes.iter().map(|it| it.name.as_str()))?;
        let running = case.running.iter().map(|it| it.name.as_str());
        let pending = case.pending.iter().map(|it| it.name.as_str());
        let of_job = case.job.pods.iter().map(|it| it.name.as_str());
        unique(
            "running, pending, job.pods",
            running.chain(pending).chain(of_job),
        )?;
        let mut door = Door::of(World::new(case.args.switches()));
        let quotas = Quotas::of(&case.quota, &case.quotas, |parent, quota, at| {
            let limits = limits(&mut door, quota, at)?;
            Ok(door.world.add_quota(parent, limits))
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
    fn put_nodes(&mut self) -> Result<(), CaseError> {
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
            let host = self.door.world.set_host(HostSpec {
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
                AmountText::Quantity(_) => number(cpu, "cpu", at)?,
            };
            let milli = number(AmountText::Number(milli), "cpu", at)?;
            let cpu = self.door.world.resource("cpu");
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
        known.ok_or_else(|| unknown(&format!("{at}.node"), name, self.hosts.keys()))
    }

    fn shape(&mut self, request: &super::case::Amounts, at: &str) -> Result<ShapeId, CaseError> {
        let request = self.door.resources(request, &format!("{at}.req"))?;
        let requests = request.iter().collect();
        Ok(self.door.world.shape(Shape {
            requests,
            ..Shape::default()
        }))
    }

    fn traits(&mut self, quota: Option<&str>, says: Says) -> PodTraits {
        let world = &mut self.door.world;
        let quotas = &mut self.quotas;
        let quota = quota.map(|it| quotas.id(it, || world.add_quota(None, Limits::default())));
        PodTraits {
            quota,
            says,
            ..PodTraits::default()
        }
    }

    fn put(&mut self, pod: &Put<'_>) -> PodId {
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
        self.door.world.set_pod(spec, pod.traits)
    }

    fn put_running(&mut self, pod: &RunningPod, at: &str) -> Result<(), CaseError> {
        let says = says(pod.preemptible.as_deref(), None, None);
        let mut traits = self.traits(pod.quota.as_deref(), says);
        traits.is_evicted = pod.leaving;
        let put = Put {
            name: &pod.name,
            host: Some(self.host(&pod.node, at)?),
            shape: self.shape(&pod.req, at)?,
            priority: pod.priority,
            traits,
        };
        self.put(&put);
        Ok(())
    }

    fn put_pending(&mut self, pod: &QuotaPod, at: &str) -> Result<(), CaseError> {
        let says = says(pod.preemptible.as_deref(), None, None);
        let own = self.case.quota.name.as_str();
        let put = Put {
            name: &pod.name,
            host: None,
            shape: self.shape(&pod.req, at)?,
            priority: 0,
            traits: self.traits(Some(pod.quota.as_deref().unwrap_or(own)), says),
        };
        self.put(&put);
        Ok(())
    }

    /// The job, and one of its pods.
    fn put_job(&mut self) -> Result<(JobId, Option<PodId>), CaseError> {
        let case = self.case;
        let (namespace, name) = (
            self.door.world.word(""),
            self.door.world.word(&case.job.name),
        );
        let job = JobId::Group { namespace, name };
        for (at, assumed) in case.assumed_pods.iter().enumerate() {
            let names: Vec<&str> = case.job.pods.iter().map(|it| it.name.as_str()).collect();
            if !names.contains(&assumed.as_str()) {
                return Err(unknown(&format!("assumed_pods[{at}]"), assumed, &names));
            }
        }
        let mut last = None;
        for (at, pod) in case.job.pods.iter().enumerate() {
            let at = format!("job.pods[{at}]");
            let host = self.place(pod, &at)?;
            let mut traits = self.traits(Some(&case.quota.name), case.job.says());
            traits.job = Some(name);
            let put = Put {
                name: &pod.name,
                host,
                shape: self.shape(&pod.req, &at)?,
                priority: case.job.priority,
                traits,
            };
            last = Some(self.put(&put));
        }
        if case.job.minimum.is_some() || case.job.total.is_some() {
            let there = u32::try_from(case.job.pods.len()).unwrap_or(u32::MAX);
            let total = case.job.total.unwrap_or(there);
            let minimum = case.job.minimum.unwrap_or(total);
            self.door.world.set_gang(job, Gang { minimum, total });
        }
        Ok((job, last))
    }

    /// Where a pod of the job is. One that is assumed on a node that nobody knows is somewhere else.
    fn place(&mut self, pod: &JobPod, at: &str) -> Result<Option<HostId>, CaseError> {
        let is_assumed = self.case.assumed_pods.contains(&pod.name);
        match &pod.node {
            Some(node) => self.host(node, at).map(Some),
            None if is_assumed => Ok(Some(self.door.world.host_id(""))),
            None => Ok(None),
        }
    }
}

fn unique<'a>(at: &str, names: impl Iterator<Item = &'a str>) -> Result<(), CaseError> {
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
