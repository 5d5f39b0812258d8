//! The preemption priority against the scheduling priority.
#![doc = include_str!("preemption_priority_below_scheduling.md")]
#![doc = include_str!("preemption_priority_too_far_above.md")]
#![doc = include_str!("separate_preemption_priority_not_allowed.md")]

use super::priorities::separate_priorities;
use crate::finding::Findings;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::Workload;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(super) const BELOW_SCHEDULING: Rule<Workload> = Rule {
    id: "WL001",
    name: "preemption-priority-below-scheduling",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["seed-priority-le-preemption-priority"],
    layers: &[Layer::Webhook],
    doc: include_str!("preemption_priority_below_scheduling.md"),
    check: Check::Context(below_scheduling),
};

pub(super) const TOO_FAR_ABOVE: Rule<Workload> = Rule {
    id: "WL002",
    name: "preemption-priority-too-far-above",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &[],
    layers: &[Layer::Webhook],
    doc: include_str!("preemption_priority_too_far_above.md"),
    check: Check::Context(too_far_above),
};

pub(super) const NOT_ALLOWED: Rule<Workload> = Rule {
    id: "WL003",
    name: "separate-preemption-priority-not-allowed",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &[],
    layers: &[Layer::Webhook],
    doc: include_str!("separate_preemption_priority_not_allowed.md"),
    check: Check::Context(not_allowed),
};

fn place() -> FieldPath {
    FieldPath::new("spec.preemptionPriorityClassName")
}

fn below_scheduling(workload: &Workload, context: &Context<'_>, out: &mut Findings) {
    let Some(both) = separate_priorities(workload, context.cluster) else {
        return;
    };
    if both.preemption < both.scheduling {
        out.invalid(
            place(),
            both.preemption_class,
            format!(
                "its value {} is below the {}, so two such workloads could preempt each other \
                 without end; name a class with a value of at least {}",
                both.preemption,
                both.scheduling_priority_text(),
                both.scheduling,
            ),
        );
    }
}

fn too_far_above(workload: &Workload, context: &Context<'_>, out: &mut Findings) {
    let Some(most) = context.settings.priority.max_preemption_above_scheduling else {
        return;
    };
    let Some(both) = separate_priorities(workload, context.cluster) else {
        return;
    };
    // 64 bits, because the sum of two priorities may exceed 32.
    let highest = i64::from(both.scheduling).saturating_add(i64::from(most));
    if i64::from(both.preemption) > highest {
        out.invalid(
            place(),
            both.preemption_class,
            format!(
                "its value {} is more than {most} above the {}; the administrator allows at most \
                 {highest}",
                both.preemption,
                both.scheduling_priority_text(),
            ),
        );
    }
}

fn not_allowed(workload: &Workload, context: &Context<'_>, out: &mut Findings) {
    let Some(allowed) = &context.settings.priority.separate_preemption_allowed_for else {
        return;
    };
    let Some(both) = separate_priorities(workload, context.cluster) else {
        return;
    };
    let exempt = both
        .scheduling_class
        .is_some_and(|name| allowed.iter().any(|a| a == name));
    if both.preemption != both.scheduling && !exempt {
        let allowed_workloads = match allowed.as_slice() {
            [] => "no workload".to_owned(),
            names => format!("only workloads of the classes {}", names.join(", ")),
        };
        out.invalid(
            place(),
            both.preemption_class,
            format!(
                "{allowed_workloads} may have a separate preemption priority; leave this field out, or name \
                 a class with the value {}",
                both.scheduling,
            ),
        );
    }
}
