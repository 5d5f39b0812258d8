//! Jobs under elastic quotas, written down: the cases of the conformance data, and of what people write for
//! `lockkeeper explain --scenario` (docs/scenario.md).
//!
//! A case says in `kind` what it asks. A field that is not known is refused, so that nothing is passed over.

mod answer;
mod case;
mod decide;
mod explanation;
mod job_preemption;
mod per_pod;
mod quota_check;
mod resolve;
mod runtime_quota;
mod soft_eviction;

pub use answer::CaseAnswer;
pub use decide::Case;
pub use resolve::CaseError;
pub use soft_eviction::PreemptorRef;
