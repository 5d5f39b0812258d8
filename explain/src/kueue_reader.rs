//! Reads the objects of a watch on Kueue's kinds, one by one.

use crate::identity::Identity;
use crate::kueue_objects::from_kueue;
use crate::template::{Templates, take_templates};
use crate::world_builder::{decode, with_spec};
use k8s_openapi::api::core::v1::{LimitRange, Namespace};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use serde_json::Value;
use std::sync::Arc;

/// An object that decisions of Kueue depend on, as lockkeeper's kind.
#[derive(Clone, Debug)]
pub enum KueueObject {
    /// A ClusterQueue.
    ClusterQueue(Arc<ClusterQueue>),
    /// A Cohort.
    Cohort(Box<Cohort>),
    /// A `ResourceFlavor`.
    ResourceFlavor(Box<ResourceFlavor>),
    /// A LocalQueue.
    LocalQueue(Box<LocalQueue>),
    /// A `WorkloadPriorityClass`.
    PriorityClass(Box<PriorityClass>),
    /// A Namespace.
    Namespace(Box<Namespace>),
    /// A `LimitRange`.
    LimitRange(Box<LimitRange>),
    /// A `RuntimeClass`.
    RuntimeClass(Box<RuntimeClass>),
    /// A Workload, with reduced pod templates.
    Workload(Arc<Workload>),
}

/// An object, and its fields that decisions here do not consider, as `Kind.field`.
#[derive(Clone, Debug)]
pub struct ReadKueueObject {
    /// The object.
    pub object: KueueObject,
    /// The fields.
    pub not_considered: Vec<String>,
}

/// Reads objects. Equal pod templates are stored once.
#[derive(Clone, Debug, Default)]
pub struct KueueReader {
    templates: Templates,
}

impl KueueReader {
    /// Creates a reader.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Converts an object; `None` if no decision depends on its kind.
    ///
    /// # Errors
    ///
    /// Why the object cannot be converted or decoded.
    pub fn read(&mut self, mut object: Value) -> Result<Option<ReadKueueObject>, String> {
        let identity = Identity::of(&object);
        if identity.group != kueue::GROUP {
            let read = match (identity.group.as_str(), identity.kind.as_str()) {
                ("", "Namespace") => KueueObject::Namespace(decode(object)?),
                ("", "LimitRange") => KueueObject::LimitRange(decode(object)?),
                ("node.k8s.io", "RuntimeClass") => KueueObject::RuntimeClass(decode(object)?),
                _ => return Ok(None),
            };
            return Ok(Some(ReadKueueObject {
                object: read,
                not_considered: Vec::new(),
            }));
        }
        // First, since the conversion copies the object.
        let templates = take_templates(&mut object);
        let converted = from_kueue(object)?;
        let object = converted.object;
        let read = match identity.kind.as_str() {
            "ClusterQueue" => KueueObject::ClusterQueue(decode(object)?),
            "Cohort" => KueueObject::Cohort(decode(with_spec(object))?),
            "ResourceFlavor" => KueueObject::ResourceFlavor(decode(with_spec(object))?),
            "LocalQueue" => KueueObject::LocalQueue(decode(object)?),
            "WorkloadPriorityClass" => KueueObject::PriorityClass(decode(object)?),
            "Workload" => {
                let mut workload: Workload = decode(object)?;
                self.templates.set(&mut workload, templates)?;
                KueueObject::Workload(Arc::new(workload))
            }
            _ => return Ok(None),
        };
        Ok(Some(ReadKueueObject {
            object: read,
            not_considered: converted.not_modelled,
        }))
    }
}
