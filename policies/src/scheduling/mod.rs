//! Kubernetes' Workload and PodGroup (`scheduling.k8s.io/v1alpha2`).
//!
//! All rules here are Kubernetes' own. Most of what they are about cannot be changed, so they look at an
//! object when it is made; what an update changes all the same is told by `workload_changed` and
//! `pod_group_changed`. [`strategy`] says what the API server drops before it looks.

mod controller_reference;
mod defaults;
mod disruption_mode;
mod field_without_gate;
mod gates;
mod group;
mod identity;
mod metadata;
mod pod_group_changed;
mod pod_group_priority;
mod priority;
mod resource_claims;
mod scheduling_policy;
mod status;
pub mod strategy;
mod template_reference;
mod templates;
mod topology;
mod workload_changed;

pub(crate) use gates::GENERIC_WORKLOAD;

use crate::defaulting::Defaults;
use crate::guarded::Guarded;
use crate::rule::{Context, Rule};
use lockkeeper_api::foreign::scheduling::{PodGroup, Workload};

static WORKLOAD: &[Rule<Workload>] = &[
    metadata::WORKLOAD,
    identity::WORKLOAD,
    workload_changed::RULE,
    templates::RULE,
    controller_reference::RULE,
    scheduling_policy::WORKLOAD,
    topology::WORKLOAD,
    resource_claims::WORKLOAD,
    disruption_mode::WORKLOAD,
    priority::WORKLOAD,
    field_without_gate::WORKLOAD,
];

static POD_GROUP: &[Rule<PodGroup>] = &[
    metadata::POD_GROUP,
    identity::POD_GROUP,
    pod_group_changed::RULE,
    template_reference::MALFORMED,
    template_reference::DANGLING,
    scheduling_policy::POD_GROUP,
    topology::POD_GROUP,
    resource_claims::POD_GROUP,
    disruption_mode::POD_GROUP,
    priority::POD_GROUP,
    field_without_gate::POD_GROUP,
    pod_group_priority::UNKNOWN_CLASS,
    pod_group_priority::MISMATCH,
    status::CONDITIONS,
    status::CLAIMS,
    status::UNKNOWN_CLAIM,
];

impl Guarded for Workload {
    const NAMESPACED: bool = true;
    const OWN: bool = false;

    fn rules() -> &'static [Rule<Self>] {
        WORKLOAD
    }
}

impl Guarded for PodGroup {
    const NAMESPACED: bool = true;
    const OWN: bool = false;

    fn rules() -> &'static [Rule<Self>] {
        POD_GROUP
    }

    fn defaults(object: &Self, old: Option<&Self>, context: &Context<'_>) -> Defaults {
        defaults::fill(object, old, context)
    }
}
