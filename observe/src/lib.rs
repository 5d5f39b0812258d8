//! Compares the decisions of a live Kueue with those of the core.
//!
//! An [`Observer`] gets the objects of a cluster from watches, one change at a time, and derives Kueue's decisions from the
//! changes of Workloads: an admission with its flavors, or a preemption with its victims. It decides in Kueue's place and
//! reports each decision that differs, with both reasons.
//!
//! Watches do not say on which state Kueue has decided. A decision therefore agrees if the core decides the same on one of
//! the states that Kueue may have had:
//!
//! - The API server orders all writes of Workloads, and watches deliver them in this order: Kueue has seen a prefix of the changes. It
//!   ends at most [`ObserveSettings::lag_ms`] before the second in the condition of the decision and has no change that was written
//!   after the decision.
//! - Kueue's own decisions count for it when it makes them. Those of earlier seconds are part of the state, whether they are
//!   written yet or not; those of the same second may be.
//! - A cycle waits for the writes of its preemptions. If a preemption was written in a later second than it was decided in, the
//!   state may be as much older, at most [`ObserveSettings::slow_cycle_s`].
//! - A workload that did not fit leaves its queue until quota is released, one that lost its quota to others continues at its
//!   next flavor, and a preemptor that waits for victims comes first. Objects show none of it, so cycles run on all states of
//!   the second, and of the second before.
//! - Kueue returns workloads that did not fit to their queue up to a second after quota was released. A workload that did not
//!   fit within [`ObserveSettings::requeue_ms`] may be out of its queue, so that those behind it come first.
//!
//! Pure: the current time is an input, and nothing here does I/O. Memory is bounded by the objects of the cluster and by
//! [`ObserveSettings::entries_max`].
#![deny(clippy::arithmetic_side_effects)]

mod change;
mod check;
mod comparison;
mod decision;

mod candidate_states;
mod core_cycles;
mod cycle_replay;
mod history;
mod known_state;
mod missing_decisions;
mod observer;
mod past_states;
mod pending_index;
mod preemptors;
mod queue_objects;
mod queue_trees;
mod report;
mod search;
mod settings;
mod workload_facts;

pub use change::{Change, ObjectKind};
pub use observer::Observer;
pub use report::{Counts, DecisionKind, Difference, Report, ResultKind, write_report};
pub use settings::ObserveSettings;
