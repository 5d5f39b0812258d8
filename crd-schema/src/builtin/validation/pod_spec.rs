//! Pod specs, as `ValidatePodSpec` of `k8s.io/kubernetes/pkg/apis/core/validation`.

mod claims;
mod containers;
mod context;
mod downward;
mod environment;
mod paths;
mod probes;
mod projected;
mod resources;
mod scheduling;
mod security;
mod spec;
mod volume_sources;
mod volumes;
mod windows;

pub(super) use claims::claim_spec;
pub(super) use containers::PROTOCOLS;
pub(super) use context::PodContext;
pub(super) use probes::port;
pub(super) use resources::container_resource_name;
pub(super) use spec::{validate_new_pod, validate_pod, validate_template};
