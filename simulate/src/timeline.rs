//! Discrete-event simulation of jobs in virtual time, with Kueue's timeline.
//!
//! [`simulate`] runs the jobs of a [`JobTrace`] through the queues and returns the [`Timeline`] of each job. Decisions,
//! queue order and requeueing are those of the core with Kueue's compatibility; a cycle is one call of
//! [`State::next_cycle`](lockkeeper_preemption::State::next_cycle).
//!
//! Source of the rules: Kueue at commit `ff69552e`: `pkg/scheduler/scheduler.go`, `pkg/cache/queue`, and the event handlers
//! of its controllers for Workloads and ClusterQueues, run in virtual time.
//!
//! A job has not arrived yet, or it is pending, running, terminating (preempted or evicted, and it keeps its quota during the
//! grace period), finished, or deactivated. An **instant** is a time at which something is due, the planned end of a run that was preempted
//! included. Nothing happens between two instants. In an instant, in this order:
//!
//! 1. quotas of ClusterQueues change, in the order of the trace; a change to the same quotas has no effect, as an API
//!    server reports none;
//! 2. jobs whose run time has passed finish, by name;
//! 3. terminating jobs whose grace period has passed release their quota and are pending again, by name;
//! 4. pods become ready, by name of their jobs;
//! 5. timeouts of pods that are not ready and backoffs end, by name: jobs are evicted, deactivated or requeued, as
//!    [`next_step`](lockkeeper_preemption::requeue::next_step) decides;
//! 6. the inadmissible workloads of each tree with a change, a finish or a release become active;
//! 7. jobs arrive, in the order of the trace;
//! 8. cycles run until the instant ends. With `blockAdmission`, none runs while the pods of a job with quota are not ready.
//!
//! After each cycle, the admitted jobs run, and the victims stop. Without a grace period they release their quota before the
//! next cycle. A preemption is final: the victim stops even if its preemptor is never admitted.
//!
//! An instant ends when no queue has an active workload, or with an **idle** cycle, which admits and preempts no job, after
//! which the queues are in the same state as after an earlier idle cycle with only idle cycles in between. The state is
//! their active and inadmissible workloads, the sticky preemptors (`BestEffortFIFO` only) and the flavors tried for
//! active workloads. So a blocked head of a `StrictFIFO` queue costs two cycles in each instant.
//!
//! Not simulated: the batching of requeue events, the pause after a cycle without success, the latency and failures of an
//! API server, pods that fail.

mod affected;
mod agenda;
mod assignments;
mod cycles;
mod engine;
mod event_loop;
mod fairness;
mod group_metrics;
mod initial_runs;
mod job_lifecycles;
mod job_state;
mod job_trace;
mod lost_time;
mod metrics;
mod node_metrics;
mod node_placement;
mod node_trace;
mod placed_jobs;
mod pod_objects;
mod pod_set_table;
mod pods_ready;
mod pods_ready_stats;
mod pool_metrics;
mod queue_history;
mod quota_metrics;
mod ratio;
mod ready_time;
mod recorded;
mod result;
mod simulation;
mod stats;
mod summary;
mod timeline_record;
mod trace_config;
mod trace_error;
mod usage_history;
mod usage_record;
mod utilization;
mod validate;
mod waiting_jobs;

pub use affected::{AFFECTED_MAX, AffectedJob, JobOutcome, job_outcomes, most_affected};
pub use engine::{first_decisions, simulate};
pub use event_loop::event_loop;
pub use fairness::{Fairness, QueueShare, ShareInterval};
pub use group_metrics::{GroupMetrics, GroupPodsReady, Slowdown};
pub use job_trace::{Assumption, Job, JobTrace, PreemptedRun, QuotaChange};
pub use metrics::{Metrics, RepeatedPreemptions, metrics};
pub use node_metrics::NodeMetrics;
pub use node_trace::{TraceFlavor, TraceNode, TracePlacement};
pub use pod_set_table::PodSetTable;
pub use pods_ready_stats::PodsReadyStats;
pub use pool_metrics::PoolMetrics;
pub use quota_metrics::QuotaMetrics;
pub use ready_time::{ReadyTime, ReadyTimes};
pub use recorded::recorded_timeline;
pub use result::{
    Event, EventKind, Eviction, EvictionReason, JobTimeline, NotReadyEviction, Outcome,
    PlannedStart, QuotaUsage, Run, RunAssignment, RunEnd, RunNodes, Stats, Timeline, WaitTimes,
};
pub use summary::write_summary;
pub use timeline_record::TimelineRecord;
pub use trace_config::TraceConfig;
pub use trace_error::TraceError;
pub use usage_history::{UsageHistory, usage_history};
pub use utilization::utilization;
