//! Settings of the reconciler; they do not change while it runs.

use crate::key::Kind;
use lockkeeper_policies::settings::Settings as RuleSettings;
use lockkeeper_preemption::Options;
use lockkeeper_preemption::requeue::RequeueSettings;

/// Settings of the reconciler.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Scheduling options.
    pub options: Options,
    /// `waitForPodsReady`.
    pub requeue: RequeueSettings,
    /// Prefixes of the resources that need no quota (`resources.excludePrefixes`).
    pub excluded_resource_prefixes: Vec<String>,
    /// Rules that stored queues and cohorts are validated with; the first finding is reported in
    /// the condition `Misconfigured`.
    pub rules: RuleSettings,
    /// The maximum number of in-flight writes.
    pub writes_max: usize,
    /// The minimum time between two status writes of one queue, in milliseconds.
    pub status_interval_ms: i64,
    /// Pending reasons written per second; unused tokens of ten seconds are saved up.
    pub pending_reason_writes_per_second: u32,
    /// Events emitted per second for evictions; further evictions are summarised per LocalQueue.
    pub eviction_events_per_second: u32,
    /// How long the acknowledgement of a start or a stop by the controller of a job is waited for, in milliseconds.
    pub job_response_ms: i64,
    /// How long after its eviction a workload may hold quota before other workloads are preempted instead, in
    /// milliseconds.
    pub stuck_eviction_ms: i64,
    /// How long finished workloads are kept, in milliseconds; for ever without it.
    pub finished_retention_ms: Option<i64>,
    /// The most bytes of pod templates that are kept as text; a job beyond that is read again when its template is
    /// needed.
    pub template_bytes_max: usize,
    /// The kinds of jobs that the cluster has, or may have, as indices into `KINDS`.
    pub job_kinds: Vec<usize>,
    /// Whether the cluster has `PodGroup` objects, or may have them.
    pub has_pod_groups: bool,
    /// Whether the cluster has `JobKind` objects, or may have them.
    pub has_job_kinds: bool,
    /// Whether the events of the scheduler's state are taken down.
    pub has_decision_log: bool,
    /// Seed of the random generator.
    pub seed: u64,
    /// The name of this process, written as `reportingInstance` of events.
    pub instance: String,
}

impl Settings {
    /// The kinds that a cluster may lack, and that this one has, or may have.
    pub(super) fn optional_kinds(&self) -> Vec<Kind> {
        let pod_groups = self.has_pod_groups.then_some(Kind::PodGroup);
        let job_kinds = self.has_job_kinds.then_some(Kind::JobKind);
        let jobs = self.job_kinds.iter().map(|at| Kind::Job(*at));
        jobs.chain(pod_groups).chain(job_kinds).collect()
    }

    /// Whether workloads are admitted one at a time (`waitForPodsReady.blockAdmission`).
    pub(super) const fn blocks_admission(&self) -> bool {
        self.requeue.is_enabled && self.requeue.block_admission
    }
}
