//! What is collected of the objects of a source.

use super::queue_objects::QueueObjects;
use super::read_objects::ReadObjects;
use super::scheduler_config::{SchedulerConfig, kueue_configuration};
use crate::Failure;
use anyhow::Error;
use lockkeeper_explain::{WorldBuilder, for_each_item};
use serde_json::Value;

/// The objects of a source, or of a part of it.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) builder: WorldBuilder,
    queue_objects: QueueObjects,
    /// The last configuration of Kueue among the objects.
    kueue_config: Option<Result<SchedulerConfig, Error>>,
    /// The declared kinds of jobs.
    job_kinds: Vec<Value>,
}

impl Collected {
    /// Adds an object, or each item of a list.
    pub(super) fn add(&mut self, object: Value) {
        for_each_item(object, &mut |object| {
            if let Some(found) = kueue_configuration(&object) {
                self.kueue_config = Some(found);
            }
            if is_job_kind(&object) {
                self.job_kinds.push(object);
                return;
            }
            self.queue_objects.put(&object);
            self.builder.add(object);
        });
    }

    /// Adds what was collected of the part behind this one.
    pub(super) fn merge(&mut self, other: Self) {
        self.builder.merge(other.builder);
        self.queue_objects.merge(other.queue_objects);
        self.job_kinds.extend(other.job_kinds);
        self.kueue_config = other.kueue_config.or_else(|| self.kueue_config.take());
    }

    /// The objects, with the namespace of names without one, and the current time of a cluster.
    pub(super) fn into_read_objects(
        self,
        namespace: Option<String>,
        now_ms: Option<i64>,
    ) -> Result<ReadObjects, Failure> {
        Ok(ReadObjects {
            builder: self.builder,
            queue_objects: self.queue_objects,
            namespace,
            now_ms,
            kueue_config: self.kueue_config.transpose().map_err(Failure::Usage)?,
            job_kinds: self.job_kinds,
        })
    }
}

/// Whether an object declares a kind of jobs.
pub(crate) fn is_job_kind(object: &Value) -> bool {
    let is = |field: &str, value: &str| object.get(field).is_some_and(|it| it == value);
    is("kind", "JobKind") && is("apiVersion", "lockkeeper.dev/v1alpha1")
}
