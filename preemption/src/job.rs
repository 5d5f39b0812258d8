//! Job-level preemption under elastic quotas.
//!
//! Source: Koordinator's proposal 20240115-support-job-level-preemption. `docs/job.md` has its rules R1 to R14
//! one by one, how its holes are filled, and what Koordinator's code does otherwise.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`class`] | [`Says`], [`Switches`] → [`Class`], who may trigger, [`VictimAction`] (R5, R7, R11) |
//! | [`resources`], [`quota`] | [`Resources`]; [`QuotaTree`]: [`Limits`] and [`Figures`] of quotas below quotas |
//! | [`mod@admission`] | a job against its quota and all above: [`admission()`] → [`Admission`] (R1–R4, R6) |
//! | [`world`] | [`World`]: nodes and pods ([`crate::placement`]), quotas, jobs ([`JobId`]), by events |
//! | [`preempt`], `emptied`, `assign_back` | one round: [`plan`] → [`Outcome`], all or nothing (R8–R10, R13, R14) |
//! | [`in_flight`] | [`InFlight`]: rounds whose victims have not gone (R12) |
//! | [`trace`] | [`Step`]: what a round considered |
//! | [`runtime`], [`revoke`], [`per_pod`] | Koordinator's own ways, for who wants them |
//!
//! Everything is a function of what is passed in; names are numbers.

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
