//! The API resources of the kinds that are watched and written.

use crate::Kind;
use crate::job_adapters::{JobKinds, Resource};
use k8s_openapi::api::core::v1::{LimitRange, Namespace, Node, Pod};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use kube::core::ApiResource;
use lockkeeper_api::{ClusterQueue, Cohort, JobKind, LocalQueue, ResourceFlavor, Workload};

/// The API resource of a kind; `None` for an unknown kind of jobs.
pub(super) fn resource(kinds: &JobKinds, kind: Kind) -> Option<ApiResource> {
    Some(match kind {
        Kind::ClusterQueue => ApiResource::erase::<ClusterQueue>(&()),
        Kind::Cohort => ApiResource::erase::<Cohort>(&()),
        Kind::LocalQueue => ApiResource::erase::<LocalQueue>(&()),
        Kind::ResourceFlavor => ApiResource::erase::<ResourceFlavor>(&()),
        Kind::PriorityClass => ApiResource::erase::<PriorityClass>(&()),
        Kind::Namespace => ApiResource::erase::<Namespace>(&()),
        Kind::LimitRange => ApiResource::erase::<LimitRange>(&()),
        Kind::RuntimeClass => ApiResource::erase::<RuntimeClass>(&()),
        Kind::Workload => ApiResource::erase::<Workload>(&()),
        Kind::PodGroup => ApiResource::erase::<PodGroup>(&()),
        Kind::JobKind => ApiResource::erase::<JobKind>(&()),
        Kind::Job(at) => api_resource(kinds.get(at)?.resource()),
        Kind::Node => ApiResource::erase::<Node>(&()),
        Kind::BoundPod => ApiResource::erase::<Pod>(&()),
        Kind::DisruptionBudget => ApiResource::erase::<PodDisruptionBudget>(&()),
    })
}

/// The resource of a kind of jobs, as the client needs it.
pub(super) fn api_resource(of: Resource) -> ApiResource {
    ApiResource {
        api_version: of.api_version(),
        group: of.group.into_owned(),
        version: of.version.into_owned(),
        kind: of.kind.into_owned(),
        plural: of.plural.into_owned(),
    }
}
