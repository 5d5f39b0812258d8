//! Compares the decisions of a live Kueue with those of the core.
//!
//! An [`Observer`] gets the objects of a cluster from watches, one change at a time, and derives Kueue's decisions from the
//! changes of Workloads: an admission with its flavors, or a preemption with its victims. It decides in Kueue's place and
//! reports each decision that differs, with both reasons.
//!
//! Watches do not say on which state Kueue has decided. A decision therefore agrees if the core decides the same on one of
//! the states that Kueue may have had. These are, for a decision of a second (the time in its condition):
//!
//! - **What Kueue has seen**: the API server orders all writes of Workloads, and watches deliver them in this order, so Kueue has
//!   seen a prefix of the changes. It ends at most [`ObserveSettings::lag_ms`] before the second and has no change that was
//!   written after the decision.
//! - **What Kueue has decided**: its decisions of earlier seconds are part of the state, whether they are written yet or not;
//!   those of the same second may be, in the order in which cycles of the core make them.
//! - **What cycles have left**: a workload that did not fit leaves its queue until quota is released, and one that lost its quota
//!   to others continues at its next flavor. Objects show none of it, so cycles of the core run from the begin of the second on, and
//!   from the begin of the second before, between all changes. They have to make the decisions that Kueue has made.
//! - **Late requeueing**: Kueue returns workloads that did not fit to their queue up to a second after quota was released. A
//!   workload that did not fit within [`ObserveSettings::inadmissible_ms`] may be out of its queue, so that those behind it come first.
//! - **Waiting preemptors**: the last workload of a queue for which others were preempted comes first. Objects do not show when
//!   another one waits for the same victims instead. So the state may have none, and the workload of the decision may be the one
//!   if the core would have let it wait for victims.
//! - **The newest admissions**: those that Kueue has not seen yet are newer than others of their second, and the newest are preempted
//!   first. Which of several is the newest is not known: the victims of the decision may be.
//! - **Slow cycles**: a cycle waits for the writes of its preemptions. If a preemption was written in a later second than it was
//!   decided in, the state may be as much older, at most [`ObserveSettings::slow_cycle_s`].
//!
//! A preemption whose victims were preempted in several cycles agrees if the core preempts each part after the part before.
//! Victims belong to one preemption until the preemptor or one of them is admitted again.
//!
//! The number of these states is bounded: for a decision of Kueue, 30,000 cycles of one search and 100,000 cycles and decisions in
//! all. A decision that differs on all states within these bounds, while there are more, is [`ResultKind::Ambiguous`].
//!
//! Pure: the current time is an input, and nothing here does I/O. Memory is bounded by the objects of the cluster and by
//! [`ObserveSettings::changes_max`].
#![deny(clippy::arithmetic_side_effects)]

mod candidate_states;
mod change;
mod check;
mod comparison;
mod core_cycles;
mod cycle_replay;
mod decision;
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
mod unchecked_decisions;
mod workload_facts;

pub use change::{Change, ObjectKind};
pub use observer::Observer;
pub use report::{Counts, DecisionKind, Difference, Report, ResultKind, write_report};
pub use settings::ObserveSettings;
