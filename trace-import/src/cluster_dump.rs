//! The workloads of a cluster as jobs: running ones with their elapsed time, pending ones in their order.

use crate::assumption_counts::AssumptionCounts;
use crate::dump_queues::{algorithm, cluster_queues, cohorts};
use crate::import_error::{ImportError, ImportProblem};
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::{NotQueuedReason, WorkloadPhase};
use lockkeeper_explain::World;
use lockkeeper_preemption::{PodSet as CorePodSet, State, WorkloadView};
use lockkeeper_scenario::{AmountText, PodSet};
use lockkeeper_simulate::timeline::{Job, JobTrace, PodSetTable};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a dump does not say.
#[derive(Clone, Copy, Debug, Default)]
pub struct DumpSettings {
    /// The run time of workloads without `maximumExecutionTimeSeconds`, in seconds.
    pub assumed_run_s: Option<i64>,
}

/// Returns the queues and workloads of a cluster as a trace. All jobs arrive at 0, the time of the dump.
///
/// Costs the objects, and the logarithm of the number of workloads.
///
/// # Errors
///
/// The world has no workload in a queue, or a workload has no run time.
pub fn dump_trace(world: &World, settings: DumpSettings) -> Result<JobTrace, ImportError> {
    let mut import = DumpImport {
        world,
        settings,
        assumptions: AssumptionCounts::default(),
        pod_sets: PodSetTable::default(),
        without_run_time: 0,
    };
    for text in world.assumptions() {
        import.assumptions.add(text);
    }
    let unreadable = u64::try_from(world.unreadable().len()).unwrap_or(u64::MAX);
    import
        .assumptions
        .add_times("object left out: it is unreadable", unreadable);
    let keys = world.workload_keys();
    let mut jobs: Vec<Job> = keys.filter_map(|key| import.job(key)).collect();
    if import.without_run_time > 0 {
        return Err(ImportError::general(ImportProblem::NoRunTime {
            count: import.without_run_time,
        }));
    }
    if jobs.is_empty() {
        return Err(ImportError::general(ImportProblem::NoJob(
            ": no Workload of the dump has a queue",
        )));
    }
    // Of equal times, by name.
    jobs.sort_by_key(Job::created_s);
    let (algorithm, fair_sharing) = algorithm(world.algorithm());
    Ok(JobTrace {
        algorithm,
        fair_sharing,
        cohorts: cohorts(world.cohorts()),
        cluster_queues: cluster_queues(world.cluster().objects()),
        jobs: Arc::new(jobs),
        assumptions: import.assumptions.into_assumptions(),
        ..JobTrace::default()
    })
}

struct DumpImport<'w> {
    world: &'w World,
    settings: DumpSettings,
    assumptions: AssumptionCounts,
    pod_sets: PodSetTable,
    without_run_time: u64,
}

impl DumpImport<'_> {
    /// The job of a workload; `None` if it is left out.
    fn job(&mut self, key: &str) -> Option<Job> {
        let cluster = self.world.cluster();
        let workload = self.world.workload(key)?;
        match cluster.phase(key) {
            Some(Ok(WorkloadPhase::NotQueued(NotQueuedReason::Finished))) => return None,
            Some(Ok(WorkloadPhase::NotQueued(reason))) => {
                self.assumptions
                    .add(&format!("workload left out: {}", not_queued_text(reason)));
                return None;
            }
            Some(Ok(WorkloadPhase::OnHold(_))) => self
                .assumptions
                .add("workload in backoff: it is pending from the start"),
            Some(Ok(WorkloadPhase::Pending | WorkloadPhase::Admitted)) => {}
            Some(Err(_)) | None => {
                self.assumptions.add("workload left out: it is invalid");
                return None;
            }
        }
        let state = cluster.state();
        let view = state.workload_view(state.workload(key)?);
        if !view.is_in_scope() {
            self.assumptions
                .add("workload left out: the namespaceSelector of its ClusterQueue does not match");
            return None;
        }
        let queue = state.node_view(view.queue()?).name();
        if cluster.objects().cluster_queue(queue).is_none() {
            // It keeps its admission, and its ClusterQueue was deleted.
            let reason = not_queued_text(NotQueuedReason::NoClusterQueue);
            self.assumptions
                .add(&format!("workload left out: {reason}"));
            return None;
        }
        if cluster.objects().places_on_nodes(queue) {
            self.assumptions.add(
                "workload of a ClusterQueue with placement on nodes: its nodes are not considered (`placement` in --config has nodes)",
            );
        }
        let run = self.run(view, workload);
        let pod_sets = self.pod_sets(state, view, workload, run.is_some());
        let run_seconds = self.run_seconds(workload, run)?;
        let limit_s = workload.spec.maximum_execution_time_seconds.map(i64::from);
        let waited_ms = cluster.now_ms().saturating_sub(view.order_time());
        Some(Job {
            name: key.into(),
            uid: view.uid().to_owned(),
            cluster_queue: queue.into(),
            arrival: 0,
            waited_seconds: waited_ms.div_euclid(1_000).max(0),
            ran_seconds: run,
            run_seconds,
            ready_seconds: None,
            maximum_execution_time_seconds: limit_s.map(|it| it.max(run_seconds)),
            priority: view.priority(),
            pod_sets,
        })
    }

    /// How long a workload has run, in seconds; `None` if it is pending.
    fn run(&mut self, view: WorkloadView<'_>, workload: &Workload) -> Option<i64> {
        let reservation = view.reservation()?;
        if reservation.is_evicted {
            self.assumptions
                .add("workload is being evicted: it is pending from the start");
            return None;
        }
        let status = workload.status.as_ref();
        if status.is_none_or(|it| it.admission.is_none()) {
            return None;
        }
        let now_s = self.world.cluster().now_ms().div_euclid(1_000);
        Some(now_s.saturating_sub(reservation.reserved_at_s).max(0))
    }

    /// The run time of a workload, in seconds.
    fn run_seconds(&mut self, workload: &Workload, ran_s: Option<i64>) -> Option<i64> {
        let limit_s = workload.spec.maximum_execution_time_seconds.map(i64::from);
        let length_s = match (limit_s, self.settings.assumed_run_s) {
            (Some(limit_s), _) => {
                self.assumptions
                    .add("run time unknown: maximumExecutionTimeSeconds is used");
                limit_s
            }
            (None, Some(assumed_s)) => {
                self.assumptions.add(&format!(
                    "run time unknown: {assumed_s} s (--assume-run-seconds)"
                ));
                assumed_s
            }
            (None, None) => {
                self.without_run_time = self.without_run_time.saturating_add(1);
                return None;
            }
        };
        let length_s = length_s.max(1);
        if let Some(ran_s) = ran_s.filter(|it| *it >= length_s) {
            self.assumptions
                .add("workload has run longer than its run time: it ends after 1 s");
            return Some(ran_s.saturating_add(1));
        }
        Some(length_s)
    }

    /// The pod sets, with flavors if the workload runs.
    fn pod_sets(
        &mut self,
        state: &State,
        view: WorkloadView<'_>,
        workload: &Workload,
        is_running: bool,
    ) -> Arc<[PodSet]> {
        let status = workload.status.as_ref().filter(|_| is_running);
        let admission = status.and_then(|it| it.admission.as_ref());
        let pod_sets = view.pod_sets().iter().map(|pod_set| {
            let mut found = scenario_pod_set(state, pod_set);
            let assignments = admission.map(|it| it.pod_set_assignments.as_slice());
            let mut assignments = assignments.unwrap_or_default().iter();
            let Some(assignment) = assignments.find(|it| it.name == *pod_set.name) else {
                return found;
            };
            if i64::from(assignment.count) != pod_set.count {
                self.assumptions
                    .add("workload is admitted with fewer pods: it keeps this number");
                found.count = i64::from(assignment.count);
                found.min_count = None;
                found.requests = assignment
                    .resource_usage
                    .iter()
                    .filter(|(resource, _)| found.requests.contains_key(*resource))
                    .map(|(resource, it)| (resource.clone(), AmountText::Quantity(*it)))
                    .collect();
            }
            found.flavors.clone_from(&assignment.flavors);
            // Resources without a flavor hold no quota.
            found
                .requests
                .retain(|resource, _| assignment.flavors.contains_key(resource));
            found
        });
        let pod_sets: Vec<PodSet> = pod_sets.collect();
        self.pod_sets.share(pod_sets)
    }
}

/// A pod set of a trace, without flavors.
pub(crate) fn scenario_pod_set(state: &State, pod_set: &CorePodSet) -> PodSet {
    let requests = pod_set.requests.iter().map(|(resource, amount)| {
        let name = state.resource_name(*resource).to_owned();
        (name, AmountText::Number(amount.get()))
    });
    let ineligible = pod_set.ineligible.iter();
    PodSet {
        name: pod_set.name.to_string(),
        count: pod_set.count,
        min_count: pod_set.count_min,
        requests: requests.collect(),
        flavors: BTreeMap::new(),
        ineligible_flavors: ineligible
            .map(|it| state.flavor_name(*it).to_owned())
            .collect(),
    }
}

const fn not_queued_text(reason: NotQueuedReason) -> &'static str {
    match reason {
        NotQueuedReason::Finished => "it has finished",
        NotQueuedReason::Inactive => "it is deactivated",
        NotQueuedReason::NoLocalQueue => "its LocalQueue does not exist",
        NotQueuedReason::NoClusterQueue => "its ClusterQueue does not exist or is invalid",
        NotQueuedReason::LocalQueueStopped => "its LocalQueue is stopped",
        NotQueuedReason::NoPriorityClass => "its PriorityClass does not exist",
        NotQueuedReason::PriorityClassNotAllowed => "its queues do not allow its PriorityClass",
    }
}
