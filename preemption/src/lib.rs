//! Who goes and who waits: quota, borrowing and preemption, as a pure library.
//!
//! ClusterQueues have *nominal quota* of flavors and resources, and stand below cohorts, in a tree of any
//! depth. What a queue does not use, others of its cohort may *borrow*, as far as its *lending limit* and
//! their *borrowing limits* allow. Workloads wait in queues; in each cycle the head of every queue is
//! looked at:
//!
//! 1. **Nomination.** Each head alone gets flavors for its pod sets: the first that fits, or the best of
//!    those that would do if others went. Who would have to go is searched for: *candidates* in the
//!    preemptor's own queue, if its policy allows it, and in queues that borrow. They are taken in order
//!    (lowest priority first, newest first) until the *preemptor* fits; whoever is not needed then is let
//!    off again (*fill-back*). The rest are its *victims*.
//! 2. **Order.** Who borrows less goes first, then who has the higher priority, then who came earlier;
//!    with fair sharing, whose queue has the smaller *dominant resource share*.
//! 3. **Decision.** In that order, each is admitted, or its victims are told to go, or it is skipped
//!    because those before it have taken what it needs.
//! 4. **Requeue.** Who was not admitted waits at the head, or steps aside until something changes.
//!
//! Beyond Kueue, [`Damping`] holds the quota that a preemption frees for its preemptor until it is admitted
//! or gives up, and lets nobody be preempted in circles; [`PreemptionLimits`] spare workloads that the policies
//! would let go. A fit is not admitted on the quota of a victim that has not gone yet ([`Compatibility`]).
//!
//! Apart from quota, [`gang`] says whom a pod or a gang preempts so that it finds a place on nodes, which
//! [`placement`] knows.
//!
//! Decisions are those of Kueue, which is the oracle of the conformance tests; where Kueue is plainly
//! wrong, [`Compatibility`] chooses. Time is a parameter. Nothing here does I/O, and no input ends in a
//! panic. Asked with [`Trace::on`], a decision says what was considered, in order.
//!
//! # Example
//!
//! Two teams share a cohort. `b` has borrowed all that `a` leaves idle, and `a` wants it back:
//!
//! ```
//! use lockkeeper_preemption::job::Says;
//! use lockkeeper_preemption::{
//!     Amount, Decision, FlavorFungibility, FlavorQuotas, FlavorResource, Options, PodSet, Preemption,
//!     QueueSpec, QueueingStrategy, Quota, Reason, ReclaimWithinCohort, Reservation, ResourceGroup,
//!     State, WorkloadSpec,
//! };
//!
//! let mut state = State::new(Options::default());
//! let (flavor, cpu) = (state.flavor("default"), state.resource("cpu"));
//! for name in ["a", "b"] {
//!     let quota = Quota {
//!         nominal: Amount::new(2000), // milli-CPU
//!         borrowing_limit: None,
//!         lending_limit: None,
//!     };
//!     let quotas = vec![(cpu, quota)];
//!     state.set_queue(QueueSpec {
//!         name,
//!         cohort: Some("all"),
//!         groups: vec![ResourceGroup {
//!             resources: vec![cpu],
//!             flavors: vec![FlavorQuotas { flavor, quotas }],
//!         }],
//!         preemption: Preemption {
//!             reclaim_within_cohort: ReclaimWithinCohort::Any,
//!             ..Preemption::default()
//!         },
//!         fungibility: FlavorFungibility::default(),
//!         strategy: QueueingStrategy::BestEffortFifo,
//!         weight: 1.0,
//!         elastic: None,
//!         is_active: true,
//!     });
//! }
//! let workload = |name, queue| WorkloadSpec {
//!     name,
//!     uid: name,
//!     queue,
//!     priority: 0,
//!     order_time: 0,
//!     pod_sets: vec![PodSet {
//!         name: "main".into(),
//!         count: 1,
//!         count_min: None,
//!         requests: Box::new([(cpu, Amount::new(1000))]),
//!         ineligible: Box::new([]),
//!         shape: 0,
//!     }],
//!     is_in_scope: true,
//!     says: Says::default(),
//! };
//! for (name, reserved_at_s) in [("b1", 1), ("b2", 2), ("b3", 3), ("b4", 4)] {
//!     let held = Reservation {
//!         usage: vec![(FlavorResource { flavor, resource: cpu }, Amount::new(1000))],
//!         reserved_at_s,
//!         is_evicted: false,
//!     };
//!     state.add_running(workload(name, "b"), &held);
//! }
//! state.add_pending(workload("a1", "a"));
//!
//! let cycle = state.next_cycle(5, false);
//! let Decision::Preempt(victims) = &cycle.entries[0].decision else {
//!     panic!("{:?}", cycle.entries[0].decision);
//! };
//! // The newest of `b` goes: it holds what `b` has borrowed.
//! assert_eq!(state.workload_name(victims[0].workload), "b4");
//! assert_eq!(victims[0].reason, Reason::InCohortReclamation);
//!
//! // When it has gone, `a1` is admitted.
//! state.release(victims[0].workload);
//! let cycle = state.next_cycle(6, false);
//! assert!(cycle.entries.iter().any(|entry| {
//!     state.workload_name(entry.workload) == "a1" && entry.decision == Decision::Admit
//! }));
//! ```
#![deny(clippy::arithmetic_side_effects)]

mod admitted;
mod amount;
mod assignment;
mod candidate_list;
mod cycle;
mod damping;
mod dominant_share;
mod elastic;
mod flavor_assigner;
pub mod gang;
mod ids;
mod inadmissible_index;
pub mod job;
pub mod placement;
mod pod_set_interner;
mod policy;
mod queue;
mod quota;
pub mod requeue;
mod small_amounts;
mod spec;
mod state;
mod trace;
mod victim;
mod victim_protection;
mod victims;
mod what_if;
mod workload_table;

pub use amount::Amount;
pub use assignment::{Assignment, FlavorAssignment, Mode, PodSet, PodSetAssignment};
pub use cycle::{Cycle, Decision, Entry, Head, RequeueDestination, RequeueReason, SkipReason};
pub use damping::{Damping, Headroom, ThrashStats};
pub use ids::{
    BudgetId, CellId, FlavorId, FlavorResource, GroupId, HostId, NodeId, PodId, ResourceId,
    ShapeId, SymbolId, UnitId, WorkloadId,
};
pub use policy::{
    Algorithm, BorrowWithinCohort, Compatibility, FairStrategy, FlavorFungibility, Fungibility,
    Preemption, PreemptionLimits, Preference, QueueingStrategy, ReclaimWithinCohort,
    WithinClusterQueue,
};
pub use quota::{FlavorQuotas, Quota, ResourceGroup};
pub use spec::{
    BorrowingGate, CohortSpec, KueueBugs, Options, QueueSpec, Reservation, WorkloadSpec,
};
pub use state::{PendingCounts, State};
pub use trace::{CandidateVerdict, FlavorVerdict, Possibility, QueueVerdict, Step, Trace};
pub use victim::{PreemptionReason, Protection, Victim};
pub use what_if::Nomination;
