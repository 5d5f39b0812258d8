//! Who goes and who waits: quota, borrowing and preemption.
#![deny(clippy::arithmetic_side_effects)]

mod amount;
mod ask;
mod cycle;
mod flavors;
mod names;
mod policy;
mod queue;
mod quota;
pub mod requeue;
mod running;
mod share;
mod state;
mod trace;
mod victims;

pub use amount::Amount;
pub use ask::Nomination;
pub use cycle::{Cycle, Decision, Entry, Head, RequeueReason, RequeuedTo, SkipReason};
pub use flavors::{Assignment, FlavorAssignment, Mode, PodSet, PodSetAssignment};
pub use names::{CellId, FlavorId, FlavorResource, NodeId, ResourceId, WorkloadId};
pub use policy::{
    Algorithm, BorrowWithinCohort, Compatibility, FairStrategy, FlavorFungibility, Fungibility,
    Preemption, Preference, QueueingStrategy, ReclaimWithinCohort, WithinClusterQueue,
};
pub use quota::{FlavorQuotas, Quota, ResourceGroup};
pub use state::{BorrowingGate, CohortSpec, Options, QueueSpec, Reservation, State, WorkloadSpec};
pub use trace::{CandidateVerdict, FlavorVerdict, Possibility, QueueVerdict, Step, Trace};
pub use victims::{Reason, Victim};
