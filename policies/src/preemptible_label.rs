//! Whether the pods of a job may be victims, by Koordinator's label.

use crate::cluster_view::PreemptibleLabel;
use crate::settings::Settings;
use lockkeeper_api::labels;
use std::collections::BTreeMap;

/// What the labels of a pod say.
pub(crate) fn label(labels: Option<&BTreeMap<String, String>>) -> PreemptibleLabel {
    PreemptibleLabel::parse(value(labels))
}

/// The value of the label.
pub(crate) fn value(labels: Option<&BTreeMap<String, String>>) -> Option<&str> {
    labels?.get(labels::PREEMPTIBLE).map(String::as_str)
}

/// Whether a pod with such a label may be a victim: labels are compared by what they mean, so
/// `true` and a missing label agree unless the settings say that missing means no.
pub(crate) fn is_preemptible(label: PreemptibleLabel, settings: &Settings) -> bool {
    match label {
        PreemptibleLabel::Yes => true,
        PreemptibleLabel::No => false,
        PreemptibleLabel::Missing => !settings.job.disable_default_preemptiable,
    }
}

/// The value as it is shown.
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

/// What the label must be for a pod to be so.
pub(crate) fn expected_value(preemptible: bool) -> &'static str {
    if preemptible { "\"true\"" } else { "\"false\"" }
}
