//! Koordinator's preemptible label: whether the pods of a job may be victims.

use crate::cluster_view::PreemptibleLabel;
use crate::settings::Settings;
use lockkeeper_api::labels;
use std::collections::BTreeMap;

/// The preemptible label of a pod.
pub(crate) fn label(labels: Option<&BTreeMap<String, String>>) -> PreemptibleLabel {
    PreemptibleLabel::parse(value(labels))
}

/// The value of the label; `None` if it is missing.
pub(crate) fn value(labels: Option<&BTreeMap<String, String>>) -> Option<&str> {
    labels?.get(labels::PREEMPTIBLE).map(String::as_str)
}

/// Whether a pod with this label may be a victim. Labels are compared by this meaning, so `true` and a missing label
/// are equal unless `disableDefaultPreemptiable` is set.
pub(crate) fn is_preemptible(label: PreemptibleLabel, settings: &Settings) -> bool {
    match label {
        PreemptibleLabel::Yes => true,
        PreemptibleLabel::No => false,
        PreemptibleLabel::Missing => !settings.job.disable_default_preemptiable,
    }
}

/// The value for messages.
pub(crate) fn display_value(value: Option<&str>) -> &str {
    value.unwrap_or("(no label)")
}

/// The adjective for a message.
pub(crate) fn adjective(preemptible: bool) -> &'static str {
    if preemptible {
        "preemptible"
    } else {
        "non-preemptible"
    }
}

/// The label value, quoted, that makes a pod preemptible or not.
pub(crate) fn expected_value(preemptible: bool) -> &'static str {
    if preemptible { "\"true\"" } else { "\"false\"" }
}
