#![doc = include_str!("unknown_priority_class.md")]

use super::priorities::class;
use crate::cluster_view::Lookup;
use crate::finding::Findings;
use crate::priority_admission::known_classes;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::Workload;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(super) const RULE: Rule<Workload> = Rule {
    id: "WL004",
    name: "unknown-priority-class",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["seed-system-classes-for-workloads"],
    layers: &[Layer::Webhook],
    doc: include_str!("unknown_priority_class.md"),
    check: Check::Context(check),
};

fn check(workload: &Workload, context: &Context<'_>, out: &mut Findings) {
    let spec = &workload.spec;
    let scheduling = spec.priority_class_name.as_ref();
    // A preemption class of the same name was most likely set by the default: one finding is enough.
    let preemption = spec.preemption_priority_class_name.as_ref();
    let preemption = preemption.filter(|name| Some(*name) != scheduling);
    let fields = [
        ("spec.priorityClassName", scheduling),
        ("spec.preemptionPriorityClassName", preemption),
    ];
    for (field, name) in fields {
        let Some(name) = name else { continue };
        if class(context.cluster, name) == Lookup::Absent {
            out.not_found(FieldPath::new(field), name, known_classes(context.cluster));
        }
    }
}
