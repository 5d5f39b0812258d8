//! The objects of a source, before they are a world.

use super::queue_objects::QueueObjects;
use super::scheduler_config::SchedulerConfig;
use lockkeeper_explain::WorldBuilder;
use serde_json::Value;

/// The objects before they are a world.
pub(crate) struct ReadObjects {
    pub(crate) builder: WorldBuilder,
    /// The manifests of queues, cohorts, flavors and classes.
    pub(crate) queue_objects: QueueObjects,
    /// The namespace of names without one.
    pub(crate) namespace: Option<String>,
    /// The current time, of a cluster.
    pub(crate) now_ms: Option<i64>,
    /// The configuration of Kueue, if a dump has it.
    pub(super) kueue_config: Option<SchedulerConfig>,
    /// The declared kinds of jobs.
    pub(crate) job_kinds: Vec<Value>,
}
