//! A running simulation.

use super::agenda::Agenda;
use super::assignments::Assignments;
use super::job_lifecycles::JobLifecycles;
use super::job_state::{JobState, PodSetTemplates, initial_jobs};
use super::job_trace::{Job, JobTrace};
use super::node_placement::NodePlacement;
use super::queue_history::QueueHistory;
use super::result::{Event, EventKind, PlannedStart};
use super::usage_record::UsageRecord;
use super::waiting_jobs::WaitingJobs;
use lockkeeper_preemption::job::PreemptionLabels;
use lockkeeper_preemption::{
    Compatibility, Damping, NodeId, Options, PodSet, State, WorkloadId, WorkloadSpec,
    set_execution_time_max,
};
use lockkeeper_scenario::{ClusterQueue, core_algorithm, declare_cohort, declare_queue};
use std::collections::{BTreeMap, BTreeSet};
/// A running simulation.
pub(super) struct Simulation<'a> {
    pub(super) trace: &'a JobTrace,
    pub(super) state: State,
    /// As changed so far.
    pub(super) queues: Vec<ClusterQueue>,
    pub(super) now_s: i64,
    pub(super) cycle: u64,
    pub(super) jobs: Vec<JobState>,
    pub(super) pod_sets: PodSetTemplates,
    /// The job of each workload, by the index of the workload.
    pub(super) job_of: Vec<usize>,
    pub(super) next_arrival: usize,
    pub(super) next_change: usize,
    pub(super) run_ends: Agenda,
    pub(super) grace_ends: Agenda,
    pub(super) lifecycles: JobLifecycles,
    /// By queue, by index of the node: the job that is the sticky preemptor.
    pub(super) sticky: BTreeMap<NodeId, usize>,
    pub(super) queue_history: QueueHistory,
    pub(super) assignments: Assignments,
    pub(super) usage: UsageRecord,
    /// The nodes, if the trace has jobs that are placed.
    pub(super) placement: Option<NodePlacement<'a>>,
    pub(super) waiting: WaitingJobs,
    pub(super) preemptions: u64,
    pub(super) preemptions_max: u64,
    pub(super) makespan_s: i64,
    pub(super) instants: Vec<(i64, u64)>,
    pub(super) events: Vec<Event>,
    pub(super) backfilled: usize,
    pub(super) planned_starts: Vec<PlannedStart>,
    /// The jobs whose first decision is explained.
    pub(super) watched: BTreeSet<usize>,
    pub(super) explanations: BTreeMap<usize, String>,
}

impl<'a> Simulation<'a> {
    /// A simulation before its start.
    pub(super) fn new(trace: &'a JobTrace) -> Self {
        let mut state = State::new(Options {
            algorithm: core_algorithm(trace.algorithm, trace.fair_sharing.as_ref()),
            compatibility: Compatibility::Kueue,
            // Kueue has no damping.
            damping: Damping::Off,
            ..Options::default()
        });
        for cohort in &trace.cohorts {
            declare_cohort(&mut state, cohort);
        }
        for queue in &trace.cluster_queues {
            declare_queue(&mut state, queue);
        }
        let (jobs, pod_sets) = initial_jobs(trace, &mut state);
        let jobs_count = u64::try_from(jobs.len()).unwrap_or(u64::MAX);
        Self {
            trace,
            state,
            queues: trace.cluster_queues.clone(),
            now_s: 0,
            cycle: 0,
            jobs,
            pod_sets,
            job_of: Vec::new(),
            next_arrival: 0,
            next_change: 0,
            run_ends: Agenda::default(),
            grace_ends: Agenda::default(),
            lifecycles: JobLifecycles::new(trace),
            sticky: BTreeMap::new(),
            queue_history: QueueHistory::default(),
            assignments: Assignments::default(),
            usage: UsageRecord::default(),
            placement: NodePlacement::new(trace),
            waiting: WaitingJobs::default(),
            preemptions: 0,
            preemptions_max: trace.max_preemptions_per_job.saturating_mul(jobs_count),
            makespan_s: 0,
            instants: Vec::new(),
            events: Vec::new(),
            backfilled: 0,
            planned_starts: Vec::new(),
            watched: BTreeSet::new(),
            explanations: BTreeMap::new(),
        }
    }

    /// Puts a job into its queue.
    pub(super) fn enqueue(&mut self, index: usize) {
        let order_time_s = self.order_time_s(index);
        let spec = self.trace.jobs.get(index);
        let (Some(spec), Some(job)) = (spec, self.jobs.get_mut(index)) else {
            return;
        };
        let pod_sets = self.pod_sets.get(job.pod_sets);
        job.workload = self
            .state
            .add_pending(workload_spec(spec, pod_sets, order_time_s));
        let max_s = spec.maximum_execution_time_seconds;
        set_execution_time_max(&mut self.state, job.workload, max_s);
        set_job_of(&mut self.job_of, job.workload, index);
    }

    /// The time of a job in queue order, in seconds.
    pub(super) fn order_time_s(&self, index: usize) -> i64 {
        let created_s = || self.trace.jobs.get(index).map_or(0, Job::created_s);
        let order_time_s = self.lifecycles.order_time_s(index);
        order_time_s.unwrap_or_else(created_s)
    }

    /// Adds an event.
    pub(super) fn record(&mut self, kind: EventKind) {
        match kind {
            EventKind::Admitted { .. }
            | EventKind::Evicted { .. }
            | EventKind::Requeued { .. }
            | EventKind::Released { .. } => {}
            EventKind::Preempted { .. }
            | EventKind::Finished { .. }
            | EventKind::Ready { .. }
            | EventKind::Changed { .. } => self.lifecycles.record_progress(),
        }
        self.events.push(Event {
            at_s: self.now_s,
            kind,
        });
    }
}

/// A job as a workload of the core.
pub(super) fn workload_spec(
    job: &Job,
    pod_sets: Vec<PodSet>,
    order_time_s: i64,
) -> WorkloadSpec<'_> {
    WorkloadSpec {
        name: &job.name,
        uid: &job.uid,
        queue: &job.cluster_queue,
        priority: job.priority,
        preemption_priority: None,
        order_time: order_time_s,
        waiting_since_s: job.created_s(),
        pod_sets,
        is_in_scope: true,
        preemption_labels: PreemptionLabels::default(),
    }
}

/// Notes the job of a workload. The core reuses the indices of workloads.
pub(super) fn set_job_of(job_of: &mut Vec<usize>, workload: WorkloadId, job: usize) {
    let at = workload.index();
    if job_of.len() <= at {
        job_of.resize(at.saturating_add(1), usize::MAX);
    }
    if let Some(slot) = job_of.get_mut(at) {
        *slot = job;
    }
}
