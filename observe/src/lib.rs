//! Compares the decisions of a live Kueue with those of the core.
//!
//! An [`Observer`] gets the objects of a cluster from watches, one change at a time, and derives Kueue's decisions from the
//! changes of Workloads: an admission with its flavors, or a preemption with its victims. It decides in Kueue's place and
//! reports each decision that differs, with both reasons.
//!
//! Watches do not say on which state Kueue has decided. A decision therefore agrees if the core decides the same on one of
//! the states that Kueue may have had:
//!
//! - The condition that a decision writes has the second of the decision. The state is at most [`ObserveSettings::lag_ms`]
//!   older, and has no change that was written after the decision.
//! - A cycle waits for the writes of its preemptions. After a preemption, the state may be as much older as the cycle took, at most
//!   [`ObserveSettings::slow_cycle_s`].
//! - Kueue's own decisions of earlier seconds are part of the state, whether they are written yet or not.
//! - Kueue returns workloads that did not fit to their queue up to a second after quota was released. A workload that did not
//!   fit within [`ObserveSettings::requeue_ms`] may be out of its queue, so that those behind it come first.
//!
//! Pure: the current time is an input, and nothing here does I/O. Memory is bounded by the objects of the cluster and by
//! [`ObserveSettings::entries_max`].
#![deny(clippy::arithmetic_side_effects)]

mod candidate_states;
mod change;
mod check;
mod comparison;
mod decision;
mod forecast;
mod history;
mod observer;
mod overdue;
mod pending_index;
mod preemptors;
mod queue_objects;
mod queue_trees;
mod report;
mod settings;
mod workload_facts;

pub use change::{Change, ObjectKind};
pub use observer::Observer;
pub use report::{Counts, DecisionKind, Difference, Report, ResultKind, write_report};
pub use settings::ObserveSettings;
