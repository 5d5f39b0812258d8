//! Kubernetes' Workload and PodGroup: `scheduling.k8s.io/v1alpha2` of Kubernetes 1.36, and `v1beta1` of 1.37.
//!
//! All rules here are Kubernetes' own. Most fields are immutable, so the rules check new objects only;
//! `workload_changed` and `pod_group_changed` report updates of immutable fields. Where the versions differ, a rule has
//! a check for each. [`strategy`] removes the fields of `v1alpha2` that the API server drops before validation.

mod composite;
mod controller_reference;
mod defaults;
mod disruption_mode;
mod feature_gates;
mod field_without_gate;
mod identity;
mod immutable_fields;
mod metadata;
mod pod_group_changed;
mod pod_group_priority;
mod pod_group_view;
mod preemption_policy;
mod priority;
mod resource_claims;
mod scheduling_policy;
mod status;
pub mod strategy;
mod template_priorities;
mod template_reference;
mod templates;
mod topology;
mod workload_changed;

pub(crate) use feature_gates::GENERIC_WORKLOAD;

use crate::defaulting::Defaults;
use crate::rule::{Context, Rule};
use crate::validated_kind::{ValidatedKind, WebhookScope, implement_type_mismatch};
use lockkeeper_api::foreign::scheduling::v1beta1;
use lockkeeper_api::foreign::scheduling::{PodGroup, Workload};

static WORKLOAD: &[Rule<Workload>] = &[
    metadata::workload(),
    identity::workload(),
    workload_changed::V1ALPHA2,
    templates::V1ALPHA2,
    controller_reference::workload(),
    scheduling_policy::workload(),
    topology::workload(),
    resource_claims::workload(),
    disruption_mode::workload(),
    priority::workload(),
    field_without_gate::workload(),
];

static WORKLOAD_V1BETA1: &[Rule<v1beta1::Workload>] = &[
    metadata::workload(),
    identity::workload(),
    workload_changed::V1BETA1,
    templates::V1BETA1,
    controller_reference::workload(),
    scheduling_policy::workload(),
    topology::workload(),
    resource_claims::workload(),
    disruption_mode::workload(),
    priority::workload(),
    field_without_gate::workload(),
    composite::RULE,
    template_priorities::RULE,
    preemption_policy::WORKLOAD,
];

static POD_GROUP: &[Rule<PodGroup>] = &[
    metadata::pod_group(),
    identity::pod_group(),
    pod_group_changed::V1ALPHA2,
    template_reference::MALFORMED_V1ALPHA2,
    template_reference::DANGLING,
    scheduling_policy::pod_group(),
    topology::pod_group(),
    resource_claims::pod_group(),
    disruption_mode::pod_group(),
    priority::pod_group(),
    field_without_gate::pod_group(),
    pod_group_priority::unknown_class(),
    pod_group_priority::mismatch(),
    status::conditions(),
    status::claims(),
    status::unknown_claim(),
];

static POD_GROUP_V1BETA1: &[Rule<v1beta1::PodGroup>] = &[
    metadata::pod_group(),
    identity::pod_group(),
    pod_group_changed::V1BETA1,
    template_reference::MALFORMED_V1BETA1,
    template_reference::DANGLING_V1BETA1,
    scheduling_policy::pod_group(),
    topology::pod_group(),
    resource_claims::pod_group(),
    disruption_mode::pod_group(),
    priority::pod_group(),
    field_without_gate::pod_group(),
    pod_group_priority::unknown_class(),
    pod_group_priority::mismatch(),
    status::conditions(),
    status::claims(),
    status::unknown_claim(),
    preemption_policy::POD_GROUP,
];

impl ValidatedKind for Workload {
    const NAMESPACED: bool = true;
    const OWN: bool = false;
    const WEBHOOK: WebhookScope = WebhookScope::Never;

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        WORKLOAD
    }
}

impl ValidatedKind for PodGroup {
    const NAMESPACED: bool = true;
    const OWN: bool = false;
    const WEBHOOK: WebhookScope = WebhookScope::Never;

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        POD_GROUP
    }

    fn defaults(object: &Self, old: Option<&Self>, context: &Context<'_>) -> Defaults {
        defaults::defaults_v1alpha2(object, old, context)
    }
}

impl ValidatedKind for v1beta1::Workload {
    const NAMESPACED: bool = true;
    const OWN: bool = false;
    const WEBHOOK: WebhookScope = WebhookScope::Never;

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        WORKLOAD_V1BETA1
    }
}

impl ValidatedKind for v1beta1::PodGroup {
    const NAMESPACED: bool = true;
    const OWN: bool = false;
    const WEBHOOK: WebhookScope = WebhookScope::Never;

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        POD_GROUP_V1BETA1
    }

    fn defaults(object: &Self, old: Option<&Self>, context: &Context<'_>) -> Defaults {
        defaults::defaults_v1beta1(object, old, context)
    }
}
