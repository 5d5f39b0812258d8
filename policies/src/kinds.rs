//! The list of kinds with rules.
//!
//! A new kind is added here; the registry, the webhook's routes, the offline check and the page tests use this list.

use crate::validated_kind::ValidatedKind;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::foreign::koordinator::ElasticQuota;
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::foreign::scheduling;
use lockkeeper_api::{ClusterQueue, Cohort, JobKind, JobSet, LocalQueue, ResourceFlavor, Workload};

/// A generic operation on kinds.
pub trait KindVisitor {
    /// Visits one kind.
    fn kind<T: ValidatedKind>(&mut self);
}

/// Visits every kind once, in the order of the rule reference.
pub fn visit(visitor: &mut impl KindVisitor) {
    visitor.kind::<ClusterQueue>();
    visitor.kind::<Cohort>();
    visitor.kind::<ResourceFlavor>();
    visitor.kind::<LocalQueue>();
    visitor.kind::<Workload>();
    visitor.kind::<JobKind>();
    visitor.kind::<PriorityClass>();
    visitor.kind::<scheduling::Workload>();
    visitor.kind::<scheduling::PodGroup>();
    visitor.kind::<scheduling::v1beta1::Workload>();
    visitor.kind::<scheduling::v1beta1::PodGroup>();
    visitor.kind::<Pod>();
    visitor.kind::<Job>();
    visitor.kind::<JobSet>();
    visitor.kind::<kueue::ClusterQueue>();
    visitor.kind::<kueue::Cohort>();
    visitor.kind::<kueue::ResourceFlavor>();
    visitor.kind::<kueue::LocalQueue>();
    visitor.kind::<kueue::Workload>();
    visitor.kind::<ElasticQuota>();
}
