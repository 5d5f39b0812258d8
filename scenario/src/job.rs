//! Scenarios of jobs under elastic quotas: the cases of the conformance data, and of the files for
//! `lockkeeper explain --scenario` (docs/scenario.md).
//!
//! The field `kind` selects the decision. Unknown fields are rejected, so that no input is ignored.

mod answer;
mod case;
mod decide;
mod explanation;
mod job_preemption;
mod per_pod;
mod quota_check;
mod resolve;
mod runtime_quota;

pub use answer::CaseAnswer;
pub use decide::Case;
pub use resolve::CaseError;
