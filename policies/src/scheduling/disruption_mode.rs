//! The disruption mode of a group.
#![doc = include_str!("template_disruption_mode.md")]
#![doc = include_str!("pod_group_disruption_mode.md")]

use super::pod_group_view::{DisruptionModeFormat, PodGroupFields};
use crate::finding::{Findings, join_names};
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::{
    DISRUPTION_MODE_POD, DISRUPTION_MODE_POD_GROUP, DisruptionMode,
};

const MODES: [&str; 2] = [DISRUPTION_MODE_POD, DISRUPTION_MODE_POD_GROUP];

pub(super) const fn workload<T: PodGroupFields>() -> Rule<T> {
    Rule::mirrored(
        "KW009",
        "template-disruption-mode-unknown",
        &["pg-disruption-mode-enum", "pg-disruption-mode-any-policy"],
        include_str!("template_disruption_mode.md"),
        Check::Create(check::<T>),
    )
}

pub(super) const fn pod_group<T: PodGroupFields>() -> Rule<T> {
    Rule::mirrored(
        "PG009",
        "pod-group-disruption-mode-unknown",
        &[
            "pg-disruption-mode-enum",
            "pg-disruption-mode-required",
            "pg-disruption-mode-default",
            "pg-disruption-mode-any-policy",
        ],
        include_str!("pod_group_disruption_mode.md"),
        Check::Create(check::<T>),
    )
}

fn check<T: PodGroupFields>(object: &T, context: &Context<'_>, out: &mut Findings) {
    if !T::has_priorities(context) {
        return;
    }
    for group in object.groups() {
        let field = group.path.field("disruptionMode");
        match group.disruption_mode {
            None if !T::ARE_TEMPLATES => report_missing::<T>(field, out),
            // The default is set later, in the PodGroup of the template.
            None => {}
            Some(mode) => check_supported::<T>(field, mode, out),
        }
    }
}

fn check_supported<T: PodGroupFields>(field: FieldPath, mode: &DisruptionMode, out: &mut Findings) {
    match (T::DISRUPTION_MODE_FORMAT, mode) {
        (DisruptionModeFormat::Text, DisruptionMode::Text(mode))
            if MODES.contains(&mode.as_str()) => {}
        (DisruptionModeFormat::Text, mode) => out.not_supported(field, &mode_text(mode), &MODES),
        (DisruptionModeFormat::OneOf, DisruptionMode::Text(mode)) => {
            // A manifest of v1alpha2: the message has the same mode in the later form.
            let member = if mode == DISRUPTION_MODE_POD_GROUP {
                "all"
            } else {
                "single"
            };
            let detail = format!("from v1alpha3 on this is an object; write {{{member}: {{}}}}");
            out.invalid(field, mode, detail);
        }
        (DisruptionModeFormat::OneOf, DisruptionMode::OneOf(members)) => {
            match (members.single.is_some(), members.all.is_some()) {
                (false, false) => out.invalid(field, "", "give one of single and all"),
                (true, true) => out.invalid(field, "all, single", "give only one of them"),
                _ => {}
            }
        }
    }
}

/// Reports a missing disruption mode.
pub(super) fn report_missing<T: PodGroupFields>(field: FieldPath, out: &mut Findings) {
    let detail = match T::DISRUPTION_MODE_FORMAT {
        DisruptionModeFormat::Text => "must be \"Pod\" or \"PodGroup\"; an API server sets \"Pod\"",
        DisruptionModeFormat::OneOf => "give one of single and all; an API server sets single",
    };
    out.required(field, detail);
}

/// The text of a disruption mode in messages.
pub(super) fn mode_text(mode: &DisruptionMode) -> String {
    match mode {
        DisruptionMode::Text(mode) => mode.clone(),
        DisruptionMode::OneOf(members) => {
            let single = members.single.as_ref().map(|_| "single");
            let all = members.all.as_ref().map(|_| "all");
            join_names(single.into_iter().chain(all))
        }
    }
}
