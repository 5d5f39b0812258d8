//! Kueue's Workload. Pre-existing findings are not exempt, unlike for other kinds: a status that contradicts the
//! specification misleads the controllers, independent of the client that wrote it.

mod admission_changed;
mod admission_gates;
mod admission_of_unknown_pod_set;
mod admission_usage_not_divisible;
mod cluster_not_nominated;
mod invalid_condition;
mod invalid_pod_set_update;
mod invalid_priority_boost;
mod invalid_slice_size;
mod min_count_with_elastic_job;
mod pod_set_update_of_unknown_pod_set;
mod pod_set_updates_changed_while_ready;
mod pod_sets_changed_while_reserved;
mod quota_status;
mod reclaimable_pods;
mod reclaimable_pods_decreased;
mod reserved_without_admission;

use crate::labels::{misplaced_key, misspelt_key};
use crate::pod_sets::{PodSetView, PodSets};
use crate::rule::Rule;
use crate::settings::Settings;
use crate::validated_kind::{ValidatedKind, WebhookScope, implement_type_mismatch};
use crate::workload::{
    invalid_template_metadata, negative_resources, reserved_resource, several_min_counts,
};
use lockkeeper_api::config::Action;
use lockkeeper_api::config::ForeignKinds;
use lockkeeper_api::foreign::kueue::Workload;

static RULES: &[Rule<Workload>] = &[
    several_min_counts::rule(),
    invalid_template_metadata::rule(),
    reserved_resource::rule(),
    negative_resources::rule(),
    min_count_with_elastic_job::RULE,
    invalid_slice_size::RULE,
    pod_sets_changed_while_reserved::RULE,
    reserved_without_admission::RULE,
    admission_of_unknown_pod_set::RULE,
    admission_usage_not_divisible::RULE,
    admission_changed::RULE,
    reclaimable_pods::OF_UNKNOWN_POD_SET,
    reclaimable_pods::ABOVE_COUNT,
    reclaimable_pods_decreased::DECREASED,
    reclaimable_pods_decreased::REMOVED,
    pod_set_update_of_unknown_pod_set::RULE,
    invalid_pod_set_update::RULE,
    pod_set_updates_changed_while_ready::RULE,
    cluster_not_nominated::RULE,
    admission_gates::INVALID,
    admission_gates::ADDED,
    invalid_priority_boost::RULE,
    invalid_condition::RULE,
    misspelt_key::rule(Action::Off),
    misplaced_key::rule(Action::Off),
];

impl ValidatedKind for Workload {
    const NAMESPACED: bool = true;
    const OWN: bool = false;
    const WEBHOOK: WebhookScope = WebhookScope::Foreign(ForeignKinds::Kueue);
    const RATCHETS: bool = false;

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }
}

impl PodSets for Workload {
    fn pod_sets(&self) -> impl Iterator<Item = PodSetView<'_>> {
        let pod_sets = self.spec.pod_sets.iter().enumerate();
        pod_sets.map(|(position, it)| PodSetView {
            position,
            name: &it.name,
            min_count: it.min_count,
            template: &it.template,
        })
    }

    fn is_gate_enabled(gate: &str, settings: &Settings) -> bool {
        settings.is_gate_enabled(gate, true)
    }
}
