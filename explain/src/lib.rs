//! Explains the state of a workload, from the objects of a cluster.
//!
//! [`WorldBuilder`] takes objects of lockkeeper or of Kueue, from a cluster or from files, and builds a [`World`].
//! [`World::find`] selects a workload by name or by job, and [`explain()`] answers: why it is pending, what is ahead of it,
//! which workloads it would preempt, its latest start, and the smallest change that admits it; for a running workload, which
//! workloads could preempt it; for an evicted one, its preemptor. Every answer comes from the core that the controller runs, so it is the controller's decision.
//!
//! Pure: the current time is an input, and nothing here does I/O.
#![deny(clippy::arithmetic_side_effects)]

mod answer;
mod candidates;
mod capacity;
mod change;
mod change_text;
mod changes;
mod comparison;
mod contenders;
mod count_text;
mod dump;
mod error;
mod eviction;
mod eviction_text;
mod explain;
mod forecast;
mod free_quota;
mod identity;
mod kueue_objects;
mod kueue_reader;
mod listing;
mod node_answer;
mod node_placement;
mod node_text;
mod pending;
mod possible_preemption;
mod preemption_within_queue;
mod preemptors;
mod project;
mod quota;
mod quota_use;
mod references;
mod selection;
mod start_bound;
mod template;
mod text;
mod trial;
mod waiting_preemptors;
mod waiting_time;
mod world;
mod world_builder;

pub use answer::{
    Answer, Candidate, Eviction, EvictionCount, Forecast, LevelAnswer, Position, Preemption,
    Preemptor, QuotaAnswer, Requeue, Situation, StartBound, StartCondition, Subject, Victim,
};
pub use capacity::{Excess, PendingPodSet, pending_pod_sets};
pub use change::{AmountChange, Change};
pub use comparison::{Affected, Comparison, compare};
pub use dump::{NameReplacer, POD_ANNOTATIONS, reduce_object};
pub use error::{SelectionError, UnreadableObject};
pub use explain::explain;
pub use identity::for_each_item;
pub use kueue_reader::{KueueObject, KueueReader, ReadKueueObject};
pub use listing::{PendingWorkload, QuotaRow, pending_workloads, quota_rows};
pub use node_answer::{NodeAnswer, NodePlacementAnswer, NodeVictim, PlacedPods, PlacementResult};
pub use project::Project;
pub use quota_use::{QuotaUse, quota_use};
pub use selection::Selector;
pub use text::write_answer;
pub use world::World;
pub use world_builder::{WorldBuilder, WorldSettings};
