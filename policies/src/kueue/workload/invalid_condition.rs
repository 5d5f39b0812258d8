#![doc = include_str!("invalid_condition.md")]

use crate::finding::Findings;
use crate::name_validation;
use crate::rule::{Check, Layer, Rule};
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::{Condition, Workload};
use std::collections::BTreeSet;

/// The most bytes of a reason.
const REASON_MAX: usize = 1024;

/// The most bytes of a message.
const MESSAGE_MAX: usize = 32 * 1024;

/// The values of a condition's status, in the order of Kubernetes.
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

/// The zero time of Go, in seconds since 1970.
const NO_TIME_SECONDS: i64 = -62_135_596_800;

pub(super) const RULE: Rule<Workload> = Rule {
    id: "KL019",
    name: "invalid-condition",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-conditions-valid"],
    layers: &[Layer::Webhook],
    doc: include_str!("invalid_condition.md"),
    check: Check::Object(check),
};

fn check(workload: &Workload, out: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (position, item) in workload.status.conditions.iter().enumerate() {
        if out.is_full() {
            return;
        }
        let place = FieldPath::new("status.conditions").item(position, &item.type_);
        if !seen.insert(item.type_.as_str()) {
            let field = place.clone().field("type");
            out.duplicate(field, &item.type_, "give each type once");
        }
        condition(item, &place, out);
    }
}

fn condition(condition: &Condition, place: &FieldPath, out: &mut Findings) {
    let field = |name| place.clone().field(name);
    for fault in name_validation::label_key(&condition.type_) {
        out.invalid(field("type"), &condition.type_, fault);
    }
    if !STATUSES.contains(&condition.status.as_str()) {
        out.not_supported(field("status"), &condition.status, &STATUSES);
    }
    if condition.observed_generation < 0 {
        let detail = "must be 0 or more";
        out.invalid(
            field("observedGeneration"),
            condition.observed_generation,
            detail,
        );
    }
    let since = condition.last_transition_time.as_ref();
    if since.is_none_or(|it| it.0.as_second() == NO_TIME_SECONDS && it.0.subsec_nanosecond() == 0) {
        out.required(
            field("lastTransitionTime"),
            "set when the status last changed",
        );
    }
    if condition.reason.is_empty() {
        out.required(field("reason"), "set the reason, in one word");
    } else {
        if !is_reason(&condition.reason) {
            out.invalid(
                field("reason"),
                &condition.reason,
                "must start with a letter and go on with letters, digits, '_', ',' or ':', and not \
                 end in ',' or ':'",
            );
        }
        if condition.reason.len() > REASON_MAX {
            out.too_long(field("reason"), "may have at most 1024 bytes");
        }
    }
    if condition.message.len() > MESSAGE_MAX {
        out.too_long(field("message"), "may have at most 32768 bytes");
    }
}

/// Whether Kubernetes accepts a reason: `[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?`.
fn is_reason(text: &str) -> bool {
    let is_inner = |it: char| it.is_ascii_alphanumeric() || "_,:".contains(it);
    text.starts_with(|it: char| it.is_ascii_alphabetic())
        && text.chars().all(is_inner)
        && !text.ends_with([',', ':'])
}
