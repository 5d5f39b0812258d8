//! Preemption that comes to an end: what it frees is kept for its preemptor, and nobody is preempted in
//! circles.
//!
//! **Held quota.** From the decision on, what the preemptor was nominated for counts as used by its queue,
//! as far as its victims do not use it any more: nobody else is admitted on it or borrows it. The hold ends
//! when the preemptor is admitted, goes away, steps aside for a backoff, or no longer gets anything. A
//! workload of strictly higher priority that could preempt the preemptor takes the held quota instead of
//! waiting for it to run first; so does the head of a `StrictFIFO` queue from whoever is behind it.
//! In a cycle those come first who take held quota over, then those for whom it is held.
//!
//! **No circles.** A preemptor takes a workload of its own or a higher priority only once, as long as the
//! workload that preempted the preemptor itself is there. (Of lower priority as often as needed.) That
//! is forgotten when either is gone, when the preemptor was evicted for another reason, and when queues
//! or cohorts of their tree change.
//!
//! Why it ends, when nothing happens but preemptions and admissions: of every pair one takes the other at
//! most once, other than downwards in priority, so there is a last such step. After it each preemption
//! takes only from below and, because of the hold, is followed by the preemptor's admission, or by that of a
//! higher one which takes its place: the admitted workloads, sorted by priority, grow in lexical order. There
//! are finitely many such sets.
//!
//! Kueue has neither: freed quota is for whoever comes first (Kueue issue 13797), and loops were reported as
//! issues 2821, 3779, 6947 and 14543.

mod history;
mod hold;
mod of_state;

use crate::amount::Amount;
use crate::ids::WorkloadId;

pub(crate) use history::Histories;
pub(crate) use hold::{Hold, Holds};

/// Whether freed quota is held, and circles are cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damping {
    /// They are.
    #[default]
    On,
    /// They are not, as in Kueue.
    Off,
}

/// What a workload finds of a flavor and resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headroom {
    /// What it could have now, what others lend it included.
    pub free: Amount,
    /// For which other preemptors it is held, and how much.
    pub held: Vec<(WorkloadId, Amount)>,
}

/// How much was undone again: the thrash meter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrashStats {
    /// Workloads that gave their quota back because they were preempted.
    pub preempted: u64,
    /// Of these, how many were admitted again.
    pub readmitted: u64,
    /// Of those, how many were preempted again.
    pub preempted_again: u64,
}
