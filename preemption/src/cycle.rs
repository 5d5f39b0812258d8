//! One cycle: decides on the heads of all queues in order.
//!
//! Source: Kueue `pkg/scheduler/scheduler.go`, KEP-83. Every head is **nominated** alone: its flavors and,
//! if needed, its victims, as if no other workload were pending. Then the entries are processed in order,
//! and each sees the quota that earlier entries have reserved. An entry that no longer fits is skipped and
//! requeued.
//!
//! Quota for a preemptor without candidates is reserved in the cycle, unless its queue can reclaim it at
//! any time.

mod backfill;
mod backfill_plan;
mod entry;
mod entry_usage;
mod held_quota;
mod nominate;
mod order;
mod preview;
mod process;
mod reuse;
mod run;
mod victim_limit;

pub use entry::{Cycle, Decision, Entry, Head, RequeueDestination, RequeueReason, SkipReason};
pub(crate) use held_quota::{NominationOptions, nominate_with_holds};
pub(crate) use nominate::{NominationContext, demands};
pub use preview::NextDecision;
pub(crate) use preview::next_decision;
pub use run::{count_repeated_cycle, requeue_expired_backoffs};
