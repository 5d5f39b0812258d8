//! Job-level preemption under elastic quotas.
//!
//! Source: Koordinator's proposal 20240115-support-job-level-preemption. `docs/job.md` has its rules R1 to R14
//! one by one, our decisions where it leaves a question open, and the differences from Koordinator's code.
//!
//! | module | content |
//! | --- | --- |
//! | [`preemptibility`] | [`PreemptionLabels`], [`ElasticDefaults`] → [`Preemptibility`], [`VictimAction`] (R5, R7, R11) |
//! | [`resource_list`], [`quota`] | [`ResourceList`]; [`QuotaTree`] with [`QuotaLimits`] and [`QuotaUsage`] |
//! | [`quota_check`] | a job against its quota and all ancestors: [`check_quota`] → [`QuotaCheck`] (R1–R4, R6) |
//! | [`cluster`] | [`JobCluster`]: nodes and pods ([`crate::placement`]), quotas, jobs ([`JobId`]), updated by events |
//! | [`preempt`], `request`, `simulated_removal`, `assign_back` | one round: [`plan_round`] → [`JobOutcome`], all or nothing (R8–R10, R13, R14) |
//! | [`in_flight`] | [`RoundsInFlight`]: rounds with victims that still exist (R12) |
//! | [`trace`] | [`JobStep`]: the trace of a round |
//! | [`runtime_quota`], [`revoke`], [`per_pod`] | Koordinator's own algorithms, off by default |
//!
//! All functions are pure; names are interned as ids.

mod assign_back;
pub mod cluster;
pub mod in_flight;
pub mod per_pod;
pub mod preempt;
pub mod preemptibility;
pub mod quota;
pub mod quota_check;
mod request;
pub mod resource_list;
pub mod revoke;
pub mod runtime_quota;
mod simulated_removal;
pub mod trace;

pub use cluster::{GangSize, JobCluster, JobId, JobPodSpec};
pub use in_flight::{BlockedReason, RoundLimits, RoundsInFlight};
pub use preempt::{JobOutcome, JobPlan, JobRejection, plan_round};
pub use preemptibility::{
    ElasticDefaults, LabelValue, Preemptibility, PreemptionLabels, VictimAction,
};
pub use quota::{PodStage, QuotaId, QuotaLimits, QuotaTree, QuotaUsage};
pub use quota_check::{CheckedUsage, QuotaCheck, QuotaCheckLevel, check_quota};
pub use resource_list::ResourceList;
pub use trace::{AssignBackFailure, JobStep, RemovalReason};
