//! Koordinator's classes of quality of service and of priority.

use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::foreign::koordinator::{PRIORITY_CLASS, QOS_CLASS};
use std::ops::RangeInclusive;

/// The classes of quality of service.
const QOS_CLASSES: [&str; 5] = ["LSE", "LSR", "LS", "BE", "SYSTEM"];

/// The classes of priority, with the priorities of each (Koordinator, `apis/extension/priority.go`).
const PRIORITY_CLASSES: [(&str, RangeInclusive<i32>); 4] = [
    ("koord-prod", 9_000..=9_999),
    ("koord-mid", 7_000..=7_999),
    ("koord-batch", 5_000..=5_999),
    ("koord-free", 3_000..=3_999),
];

/// The class that the label names; empty if there is no label, or no such class.
pub(super) fn class(pod: &Pod) -> &str {
    let named = super::value(pod, QOS_CLASS).unwrap_or_default();
    if QOS_CLASSES.contains(&named) {
        named
    } else {
        ""
    }
}

/// The class of priority: the one that the label names, and without the label the one that
/// `spec.priority` lies in; empty if there is none.
pub(super) fn priority_class(pod: &Pod) -> &'static str {
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority);
    let named = super::value(pod, PRIORITY_CLASS);
    let found = PRIORITY_CLASSES.iter().find(|(name, range)| match named {
        Some(named) => *name == named,
        None => priority.is_some_and(|priority| range.contains(&priority)),
    });
    found.map_or("", |(name, _)| name)
}
