//! The pods of jobs on nodes, placed as the controller places them.

use super::job_trace::{Job, JobTrace};
use super::node_trace::TracePlacement;
use super::pod_objects::{RunningPod, nodes, template};
use super::result::{RunAssignment, RunNodes};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use lockkeeper_api::workload::{DisruptionMode, NominatedPlacement};
use lockkeeper_cluster_state::placement_state::{
    PlacementOutcome, PlacementPodSet, PlacementRequest, PlacementState, Victim, WorkloadUnit,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The result of a plan.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NodePlan {
    /// The queue of the job does not place jobs on nodes.
    NotPlaced,
    /// All pods fit.
    Fits(NominatedPlacement),
    /// All pods fit when these jobs, and those that terminate already, have released their nodes.
    Waits(NominatedPlacement, Vec<usize>),
    /// The pods do not fit.
    DoesNotFit,
}

/// A job with quota.
#[derive(Clone, Debug)]
struct PlacedJob {
    assignment: Arc<RunAssignment>,
    /// The nodes that it waits for; `None` if it runs.
    nominated: Option<NominatedPlacement>,
    /// The names of its running pods.
    pods: Vec<String>,
}

/// The nodes, and the jobs that have quota.
#[derive(Debug)]
pub(super) struct NodePlacement<'a> {
    trace: &'a JobTrace,
    placement: &'a TracePlacement,
    state: PlacementState,
    /// The templates of pod sets, by their address: equal ones are shared.
    templates: BTreeMap<usize, Arc<[PodTemplateSpec]>>,
    jobs: BTreeMap<usize, PlacedJob>,
}

impl<'a> NodePlacement<'a> {
    /// The nodes without pods; `None` if the trace places no jobs.
    pub(super) fn new(trace: &'a JobTrace) -> Option<Self> {
        let placement = trace.placement.as_ref().filter(|it| it.is_on())?;
        let mut state = PlacementState::new();
        for node in placement.nodes.iter().flat_map(nodes) {
            state.set_node(&node);
        }
        Some(Self {
            trace,
            placement,
            state,
            templates: BTreeMap::new(),
            jobs: BTreeMap::new(),
        })
    }

    /// Whether a job is placed on nodes.
    pub(super) fn places(&self, job: usize) -> bool {
        let job = self.trace.jobs.get(job);
        job.is_some_and(|it| self.placement.places(&it.cluster_queue))
    }

    /// A number that grows when nodes may have more room.
    pub(super) fn revision(&self) -> u64 {
        self.state.revision()
    }

    /// The jobs that have quota and wait for their nodes.
    pub(super) fn nominated(&self) -> Vec<usize> {
        let nominated = self.jobs.iter().filter(|it| it.1.nominated.is_some());
        nominated.map(|(job, _)| *job).collect()
    }

    /// Plans the nodes of a job with quota. The nodes that it waits for are kept if they are still right.
    pub(super) fn plan(&mut self, job: usize, assignment: &RunAssignment) -> NodePlan {
        let nominated = self.jobs.get(&job).and_then(|it| it.nominated.clone());
        self.with_request(
            job,
            assignment,
            nominated.as_ref(),
            |state, request| match state.plan(request).outcome {
                PlacementOutcome::Fits(nodes) => NodePlan::Fits(nodes),
                PlacementOutcome::AwaitingVictims(nodes) => NodePlan::Waits(nodes, Vec::new()),
                PlacementOutcome::Preempt { placement, victims } => {
                    NodePlan::Waits(placement, jobs_of(&victims))
                }
                PlacementOutcome::Infeasible(_) => NodePlan::DoesNotFit,
            },
        )
        .unwrap_or(NodePlan::DoesNotFit)
    }

    /// Whether a job fits on nodes when these jobs have released theirs, perhaps after further preemptions.
    pub(super) fn fits_after(
        &mut self,
        job: usize,
        assignment: &RunAssignment,
        victims: &[usize],
    ) -> bool {
        let names: Vec<String> = victims.iter().map(usize::to_string).collect();
        let fits = self.with_request(job, assignment, None, |state, request| {
            let victims = names.iter().map(|it| ("", it.as_str()));
            let decision = state.plan_after_eviction(request, victims);
            !matches!(decision.outcome, PlacementOutcome::Infeasible(_))
        });
        fits.unwrap_or_default()
    }

    /// Reserves nodes for a job, which waits until they are free.
    pub(super) fn nominate(
        &mut self,
        job: usize,
        assignment: &Arc<RunAssignment>,
        nodes: NominatedPlacement,
    ) {
        self.set_unit(job, false);
        self.with_request(job, assignment, None, |state, request| {
            state.reserve(request, &nodes);
        });
        let placed = PlacedJob {
            assignment: Arc::clone(assignment),
            nominated: Some(nodes),
            pods: Vec::new(),
        };
        self.jobs.insert(job, placed);
    }

    /// Runs the pods of a job on nodes from a time in seconds. Returns the nodes.
    pub(super) fn start(
        &mut self,
        job: usize,
        assignment: &Arc<RunAssignment>,
        nodes: &NominatedPlacement,
        now_s: i64,
    ) -> RunNodes {
        let owner = job.to_string();
        self.state.release("", &owner);
        self.set_unit(job, false);
        let templates = self.templates_of(job);
        let priority = self.trace.jobs.get(job).map_or(0, |it| it.priority);
        let mut pods = Vec::new();
        for (at, (pod_set, template)) in nodes.pod_sets.iter().zip(templates.iter()).enumerate() {
            for (node, count) in &pod_set.nodes {
                for number in 0..*count {
                    let name = format!("{owner}-{at}-{node}-{number}");
                    let pod = RunningPod {
                        name: &name,
                        owner: &owner,
                        node,
                        priority,
                        started_at_s: now_s,
                    };
                    self.state.set_pod(&pod.object(template));
                    pods.push(name);
                }
            }
        }
        let placed = PlacedJob {
            assignment: Arc::clone(assignment),
            nominated: None,
            pods,
        };
        self.jobs.insert(job, placed);
        nodes.pod_sets.iter().map(|it| it.nodes.clone()).collect()
    }

    /// The assignment of a job that has quota.
    pub(super) fn assignment(&self, job: usize) -> Option<Arc<RunAssignment>> {
        self.jobs.get(&job).map(|it| Arc::clone(&it.assignment))
    }

    /// A preempted job terminates: its nodes are expected to be released.
    pub(super) fn evict(&mut self, job: usize) {
        if self.jobs.contains_key(&job) {
            self.set_unit(job, true);
        }
    }

    /// A job has no quota any more: it releases its nodes.
    pub(super) fn remove(&mut self, job: usize) {
        let Some(placed) = self.jobs.remove(&job) else {
            return;
        };
        for pod in &placed.pods {
            self.state.remove_pod("", pod);
        }
        self.state.remove_workload("", &job.to_string());
    }

    fn set_unit(&mut self, job: usize, is_evicted: bool) {
        let name = job.to_string();
        let priority = self.trace.jobs.get(job).map_or(0, |it| it.priority);
        self.state.set_workload(&WorkloadUnit {
            namespace: "",
            name: &name,
            owner_uids: vec![&name],
            priority,
            preemption_priority: priority,
            never_preempts: false,
            is_evicted,
            is_non_preemptible: false,
            disruption: DisruptionMode::PodGroup,
        });
    }

    /// Calls a function with the request of a job; `None` if the job does not exist.
    fn with_request<T>(
        &mut self,
        job: usize,
        assignment: &RunAssignment,
        nominated: Option<&NominatedPlacement>,
        call: impl FnOnce(&mut PlacementState, &PlacementRequest<'_>) -> T,
    ) -> Option<T> {
        let templates = self.templates_of(job);
        let spec = self.trace.jobs.get(job)?;
        let name = job.to_string();
        let pod_sets = spec.pod_sets.iter().zip(templates.iter()).enumerate();
        let pod_sets = pod_sets.map(|(at, (pod_set, template))| {
            let counts = assignment.counts.as_ref();
            let count = counts.and_then(|it| it.get(at)).unwrap_or(&pod_set.count);
            PlacementPodSet {
                name: &pod_set.name,
                template,
                count: i32::try_from(*count).unwrap_or(i32::MAX),
                node_selector: self.flavor_selector(assignment, at),
                tolerations: Vec::new(),
            }
        });
        let request = PlacementRequest {
            namespace: "",
            name: &name,
            pod_sets: pod_sets.collect(),
            priority: spec.priority,
            never_preempts: false,
            pod_defaults: None,
            nominated,
        };
        Some(call(&mut self.state, &request))
    }

    /// The labels of the nodes of the flavors of a pod set.
    fn flavor_selector(
        &self,
        assignment: &RunAssignment,
        pod_set: usize,
    ) -> Vec<(&'a str, &'a str)> {
        let flavors = assignment.flavors.get(pod_set);
        let flavors = flavors.into_iter().flat_map(BTreeMap::values);
        let labels = flavors.filter_map(|it| self.placement.flavor_labels(it));
        let labels = labels.flatten();
        labels
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect()
    }

    fn templates_of(&mut self, job: usize) -> Arc<[PodTemplateSpec]> {
        let Some(spec) = self.trace.jobs.get(job) else {
            return Arc::default();
        };
        let entry = self.templates.entry(address(spec));
        Arc::clone(entry.or_insert_with(|| spec.pod_sets.iter().map(template).collect()))
    }
}

/// The address of the pod sets of a job. Jobs share equal ones.
pub(super) fn address(job: &Job) -> usize {
    Arc::as_ptr(&job.pod_sets).addr()
}

/// The jobs among victims. Single pods do not occur: a job is preempted as a whole.
fn jobs_of(victims: &[Victim]) -> Vec<usize> {
    let jobs = victims.iter().filter_map(|it| match it {
        Victim::Workload { name, .. } => name.parse().ok(),
        Victim::Pod { .. } => None,
    });
    jobs.collect()
}
