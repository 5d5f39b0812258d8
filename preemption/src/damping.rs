//! Damping makes preemption terminate: quota that a preemption frees is held for its preemptor, and
//! preemption loops are cut.
//!
//! **Held quota.** From the decision on, the quota that the preemptor was nominated for counts as used by
//! its queue, less the part that its victims still use: no other workload is admitted on it or borrows it.
//! The hold ends when the preemptor is admitted, is removed, backs off, or no longer finds any assignment. A
//! workload of strictly higher priority that could preempt the preemptor displaces it, and uses the held
//! quota instead of waiting until the preemptor runs; the head of a `StrictFIFO` queue displaces the
//! workloads behind it. In a cycle, workloads that displace a preemptor come first, then preemptors with
//! held quota.
//!
//! **No loops.** A preemptor preempts a workload of the same or a higher priority only once, as long as
//! the workload that preempted the preemptor itself still exists. (Workloads of lower priority it may
//! preempt any number of times.) This history is dropped when either workload is removed, when the preemptor
//! was evicted for another reason, and when queues or cohorts of their tree change.
//!
//! Why preemption terminates if there are no other events than preemptions and admissions: each workload
//! preempts each other one at most once, except downwards in priority, so there is a last such step. After
//! it each preemption has victims of lower priority only and, because of the hold, is followed by the
//! admission of the preemptor or of a workload of higher priority that takes its place: the priorities of
//! the admitted workloads, sorted, grow in lexical order. There are finitely many such sets.
//!
//! Kueue has neither: freed quota goes to the first workload that fits (Kueue issue 13797), and loops were
//! reported in issues 2821, 3779, 6947 and 14543.

mod history;
mod hold;
mod mode;
mod stats;

pub(crate) use history::Histories;
pub(crate) use hold::{Hold, Holds};
pub use mode::Damping;
pub use stats::{Headroom, RepeatStats};
