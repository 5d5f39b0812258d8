//! Rules and defaults of Workloads.

mod admission_of_other_pod_sets;
mod defaults;
mod execution_time_changed_while_admitted;
pub(crate) mod invalid_template_metadata;
mod min_count_above_count;
mod mixed_preemptible_labels;
pub(crate) mod negative_resources;
mod pod_groups;
mod pod_groups_unused;
mod pods_changed_while_reserved;
mod preemption_priority;
pub(crate) mod priorities;
mod priority_class_changed;
mod queue_changed_while_reserved;
mod quota_status;
pub(crate) mod reserved_resource;
pub(crate) mod several_min_counts;
mod template_changed_while_reserved;
mod unknown_priority_class;

use crate::cel_defaults::CelDefault;
use crate::defaulting::Defaults;
use crate::labels::{misplaced_key, misspelt_key};
use crate::pod_sets::{PodSetView, PodSets};
use crate::rule::{Context, Operation, Rule};
use crate::submission::{
    pods_of_other_priority, priority_class_not_allowed, request_too_large, uncovered_resource,
    unknown_local_queue,
};
use crate::validated_kind::{ValidatedKind, implement_type_mismatch};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use lockkeeper_api::Workload;
use lockkeeper_api::config::Action;
use std::sync::Arc;

static RULES: &[Rule<Workload>] = &[
    preemption_priority::BELOW_SCHEDULING,
    preemption_priority::TOO_FAR_ABOVE,
    preemption_priority::NOT_ALLOWED,
    unknown_priority_class::RULE,
    priority_class_changed::RULE,
    mixed_preemptible_labels::RULE,
    several_min_counts::rule(),
    invalid_template_metadata::rule(),
    reserved_resource::rule(),
    negative_resources::rule(),
    pod_groups::UNKNOWN,
    pod_groups::UNEVEN,
    pod_groups::MINIMUM_ABOVE_REPLICA,
    pod_groups_unused::RULE,
    min_count_above_count::RULE,
    queue_changed_while_reserved::RULE,
    execution_time_changed_while_admitted::RULE,
    pods_changed_while_reserved::RULE,
    template_changed_while_reserved::RULE,
    admission_of_other_pod_sets::RULE,
    priority_class_not_allowed::rule(),
    unknown_local_queue::rule(),
    uncovered_resource::rule(),
    request_too_large::rule(),
    pods_of_other_priority::rule(),
    misspelt_key::rule(Action::Warn),
    misplaced_key::rule(Action::Warn),
];

impl ValidatedKind for Workload {
    const NAMESPACED: bool = true;
    const OWN: bool = true;
    const DEFAULTED_ON: &'static [Operation] = &[Operation::Create, Operation::Update];
    const CEL_DEFAULTS: &'static [CelDefault] = defaults::CEL_DEFAULTS;
    const HAS_POD_SETS: bool = true;

    fn pod_set_templates(object: &mut Self) -> Vec<&mut Arc<PodTemplateSpec>> {
        let pod_sets = object.spec.pod_sets.iter_mut();
        pod_sets.map(|it| &mut it.template).collect()
    }

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }

    fn defaults(object: &Self, old: Option<&Self>, context: &Context<'_>) -> Defaults {
        defaults::defaults(object, old, context)
    }
}

impl PodSets for Workload {
    fn pod_sets(&self) -> impl Iterator<Item = PodSetView<'_>> {
        let pod_sets = self.spec.pod_sets.iter().enumerate();
        pod_sets.map(|(position, it)| PodSetView {
            position,
            name: it.name(),
            min_count: it.min_count,
            template: &it.template,
        })
    }
}
