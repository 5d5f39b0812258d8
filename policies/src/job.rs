//! Rules and defaults of Jobs with the queue label.

use crate::defaulting::Defaults;
use crate::job_suspend;
use crate::labels::{misplaced_key, misspelt_key, unparsable_label_value};
use crate::queued_job::{
    foreign_controller, manual_selector, owner_changed, priority_changed, queue_changed,
    queue_in_pod_template,
};
use crate::rule::{Context, Operation, Rule};
use crate::submission::{
    disruption_mode_unused, pods_of_other_priority, priority_class_not_allowed, request_too_large,
    uncovered_resource, unknown_class, unknown_local_queue,
};
use crate::validated_kind::{ValidatedKind, implement_type_mismatch};
use k8s_openapi::api::batch::v1::Job;
use lockkeeper_api::config::Action;
use lockkeeper_api::labels;

static RULES: &[Rule<Job>] = &[
    misspelt_key::rule(Action::Warn),
    misplaced_key::rule(Action::Warn),
    unparsable_label_value::rule(),
    disruption_mode_unused::rule(),
    queue_changed::rule(),
    priority_changed::rule(),
    owner_changed::rule(),
    foreign_controller::rule(),
    queue_in_pod_template::rule_of_jobs(),
    manual_selector::rule(),
    priority_class_not_allowed::rule(),
    unknown_local_queue::rule(),
    unknown_class::rule(),
    uncovered_resource::rule(),
    request_too_large::rule(),
    pods_of_other_priority::rule(),
];

impl ValidatedKind for Job {
    const NAMESPACED: bool = true;
    const OWN: bool = false;
    const SELECTED_BY: &'static [&'static str] = &[labels::QUEUE_NAME];
    const DEFAULTED_ON: &'static [Operation] = &[Operation::Create];

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }

    fn defaults(object: &Self, old: Option<&Self>, _: &Context<'_>) -> Defaults {
        let spec = object.spec.as_ref();
        let is_suspended = spec.map(|spec| spec.suspend == Some(true));
        job_suspend::default_suspend(&object.metadata, is_suspended, old.is_none())
    }
}
