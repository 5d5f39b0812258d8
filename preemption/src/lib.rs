//! Quota, borrowing and preemption as a pure library.
//!
//! ClusterQueues have *nominal quota* of flavors and resources and are the leaves of a tree of cohorts of any
//! depth. Other queues of the cohort may *borrow* quota that a queue does not use, within its *lending limit* and
//! their *borrowing limits*. Pending workloads wait in queues; each cycle decides on the head of every
//! queue:
//!
//! 1. **Nomination.** Each head alone gets flavors for its pod sets: the first that fits, or the best one
//!    that would fit after preemption. The search for *victims* goes through *candidates* in the preemptor's
//!    own queue, if its policy permits that, and in queues that borrow. It adds them in order (lowest
//!    priority first, newest first) until the *preemptor* fits, and then removes every victim that is not
//!    needed from the list (*fill-back*).
//! 2. **Order.** Entries that borrow less come first, then those of higher priority, then the older ones;
//!    with fair sharing, those of the queue with the smaller *dominant resource share*.
//! 3. **Decision.** In that order each entry is admitted, or its victims are preempted, or it is skipped
//!    because earlier entries of the cycle have used the quota.
//! 4. **Requeue.** A workload that was not admitted goes back to its queue, or becomes inadmissible until
//!    something changes that may help it.
//!
//! Beyond Kueue, [`Damping`] holds the quota that a preemption frees for its preemptor until the preemptor
//! is admitted or the hold ends, and cuts preemption loops; [`PreemptionLimits`] protect workloads that the
//! policies would permit to preempt. A workload is not admitted on the quota of a victim that has not
//! released it yet ([`Compatibility`]).
//!
//! Apart from quota, [`gang`] chooses the victims of a pod or a gang that needs room on nodes, whose free
//! resources [`placement`] tracks.
//!
//! Decisions are those of Kueue, which is the oracle of the conformance tests; [`Compatibility`]
//! selects whether Kueue's known bugs are reproduced. Time is a parameter. Nothing here does I/O, and no input causes a
//! panic. With [`Trace::on`], a decision records what it considered, in order.
//!
//! # Example
//!
//! Two teams share a cohort. `b` has borrowed all idle quota of `a`, and `a` reclaims it:
//!
//! ```
//! use lockkeeper_preemption::job::PreemptionLabels;
//! use lockkeeper_preemption::{
//!     Amount, Decision, FlavorFungibility, FlavorQuotas, FlavorResource, Options, PodSet, Preemption,
//!     PreemptionReason, QueueSpec, QueueingStrategy, Quota, ReclaimWithinCohort, Reservation,
//!     ResourceGroup, State, WorkloadSpec,
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
//!         backfill: None,
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
//!     preemption_priority: None,
//!     order_time: 0,
//!     waiting_since_s: 0,
//!     pod_sets: vec![PodSet {
//!         name: "main".into(),
//!         count: 1,
//!         count_min: None,
//!         requests: Box::new([(cpu, Amount::new(1000))]),
//!         ineligible: Box::new([]),
//!         template_hash: 0,
//!     }],
//!     is_in_scope: true,
//!     preemption_labels: PreemptionLabels::default(),
//! };
//! for (name, reserved_at_s) in [("b1", 1), ("b2", 2), ("b3", 3), ("b4", 4)] {
//!     let reservation = Reservation {
//!         usage: vec![(FlavorResource { flavor, resource: cpu }, Amount::new(1000))],
//!         reserved_at_s,
//!         is_evicted: false,
//!     };
//!     state.add_admitted(workload(name, "b"), &reservation);
//! }
//! state.add_pending(workload("a1", "a"));
//!
//! let cycle = state.next_cycle(5, false);
//! let Decision::Preempt(victims) = &cycle.entries[0].decision else {
//!     panic!("{:?}", cycle.entries[0].decision);
//! };
//! // The newest workload of `b` is preempted: it uses the borrowed quota.
//! assert_eq!(state.workload_name(victims[0].workload), "b4");
//! assert_eq!(victims[0].reason, PreemptionReason::InCohortReclamation);
//!
//! // Once the victim has released its quota, `a1` is admitted.
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
mod assignment_request;
pub mod backfill;
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
mod known_nomination;
mod non_preemptible;
pub mod placement;
mod pod_set_interner;
mod policy;
mod queue;
mod quota;
mod quota_comparison;
pub mod requeue;
mod small_amounts;
mod spec;
mod state;
mod trace;
mod tree_versions;
mod usage_sums;
mod victim;
mod victim_protection;
mod victims;
mod what_if;
mod workload_table;

pub use amount::Amount;
pub use assignment::{Assignment, FlavorAssignment, Mode, PodSet, PodSetAssignment};
pub use backfill::{Backfill, BackfillPolicy, StartBound};
pub use cycle::{
    Cycle, Decision, Entry, Head, NextDecision, RequeueDestination, RequeueReason, SkipReason,
    count_repeated_cycle, requeue_expired_backoffs,
};
pub use damping::{Damping, Headroom, RepeatStats};
pub use ids::{
    BudgetId, CellId, FlavorId, FlavorResource, GroupId, HostId, NodeId, PodId, PortProtocol,
    ResourceId, ShapeId, SymbolId, UnitId, WorkloadId,
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
pub use state::{
    DampingView, NamesView, NodeView, PendingCounts, QuotaLevel, State, TreeView, WorkloadView,
    active_class_count, has_heads, mark_preemptor, mark_stuck, quota_levels,
    set_execution_time_max, set_latest_end,
};
pub use trace::{CandidateVerdict, FlavorVerdict, Possibility, QueueVerdict, Step, Trace};
pub use victim::{PreemptionReason, Protection, Victim};
pub use what_if::{Nomination, WhatIf};
