//! Pods that carry a job label.

mod preemptible_label_differs;

use crate::guarded::Guarded;
use crate::rule::Rule;
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::labels;

static RULES: &[Rule<Pod>] = &[preemptible_label_differs::RULE];

impl Guarded for Pod {
    const NAMESPACED: bool = true;
    const OWN: bool = false;
    const SELECTED_BY: Option<&'static str> = Some(labels::JOB);

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }
}
