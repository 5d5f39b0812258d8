#![doc = include_str!("priority_class_changed.md")]

use crate::cel::{CelRule, same_field};
use crate::finding::{Findings, quoted};
use crate::rule::{Change, Check, Context, Layer, Rule};
use lockkeeper_api::Workload;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

fn scheduling() -> CelRule {
    CelRule::new(
    "spec",
    same_field("self", "oldSelf", "priorityClassName"),
    "field is immutable; delete the workload and make a new one",
)
.message_expression(
    "'\"' + (has(self.priorityClassName) ? self.priorityClassName : '') + '\": field is immutable; ' \
     + (has(oldSelf.priorityClassName) ? 'keep \"' + oldSelf.priorityClassName + '\"' : 'leave it out') \
     + ', or delete the workload and make a new one'",
)
.field_path(".priorityClassName")
}
fn preemption() -> CelRule {
    CelRule::new(
    "spec",
    same_field("self", "oldSelf", "preemptionPriorityClassName"),
    "field is immutable; delete the workload and make a new one",
)
.message_expression(
    "'\"' + (has(self.preemptionPriorityClassName) ? self.preemptionPriorityClassName : '') + '\": field is immutable; ' \
     + (has(oldSelf.preemptionPriorityClassName) ? 'keep \"' + oldSelf.preemptionPriorityClassName + '\"' : 'leave it out') \
     + ', or delete the workload and make a new one'",
)
.field_path(".preemptionPriorityClassName")
}

pub(super) const RULE: Rule<Workload> = Rule {
    id: "WL005",
    name: "priority-class-changed",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &[
        "seed-preemption-priority-class-name",
        "wl-pod-priority-class-name-immutable-reserved",
        "wl-priority-class-ref-immutable-reserved",
    ],
    layers: &[
        Layer::Webhook,
        Layer::Schema(|| vec![scheduling(), preemption()]),
    ],
    doc: include_str!("priority_class_changed.md"),
    check: Check::Change(check),
};

fn check(change: &Change<'_, Workload>, _: &Context<'_>, out: &mut Findings) {
    let (old, new) = (&change.old.spec, &change.new.spec);
    let fields = [
        (
            "spec.priorityClassName",
            &old.priority_class_name,
            &new.priority_class_name,
        ),
        (
            "spec.preemptionPriorityClassName",
            &old.preemption_priority_class_name,
            &new.preemption_priority_class_name,
        ),
    ];
    for (field, before, after) in fields {
        if before != after {
            let kept = match before {
                Some(name) => format!("keep {}", quoted(name)),
                None => "leave it out".to_owned(),
            };
            out.invalid(
                FieldPath::new(field),
                after.as_deref().unwrap_or(""),
                format!("field is immutable; {kept}, or delete the workload and make a new one"),
            );
        }
    }
}
