//! Defaults of a Workload (KEP-5710, Workload priorities).

use crate::cel_defaults::{CelDefault, FieldDefault};
use crate::defaulting::Defaults;
use crate::rule::Context;
use lockkeeper_api::Workload;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::workload::{DisruptionMode, POD_SET_NAME_DEFAULT};

/// The classes that follow from the object and the stored object. The global default is a property of other objects.
pub(super) const CEL_DEFAULTS: &[CelDefault] = &[
    CelDefault::Field(FieldDefault {
        path: "spec.priorityClassName",
        when: "oldObject != null && has(oldObject.spec.priorityClassName)",
        value: "oldObject.spec.priorityClassName",
    }),
    CelDefault::Field(FieldDefault {
        path: "spec.preemptionPriorityClassName",
        when: "oldObject == null ? has(object.spec.priorityClassName) : has(oldObject.spec.preemptionPriorityClassName)",
        value: "oldObject == null ? object.spec.priorityClassName : oldObject.spec.preemptionPriorityClassName",
    }),
];

/// On creation the classes: the global default for scheduling, and that of scheduling for preemption. On an update the
/// classes that the stored object has, as they are immutable: a replacement without these fields is not meant to change
/// them. All other defaults apply always.
pub(super) fn defaults(
    workload: &Workload,
    old: Option<&Workload>,
    context: &Context<'_>,
) -> Defaults {
    let mut out = Defaults::default();
    classes(workload, old, context, &mut out);
    if workload.spec.active.is_none() {
        out.set(FieldPath::new("spec.active"), true);
    }
    for (position, pod_set) in workload.spec.pod_sets.iter().enumerate() {
        let field = FieldPath::new("spec.podSets").index(position);
        if pod_set.name.is_none() {
            out.set(field.clone().field("name"), POD_SET_NAME_DEFAULT);
        }
        if pod_set.count.is_none() {
            out.set(field.field("count"), 1);
        }
    }
    for (position, group) in workload.spec.pod_groups.iter().enumerate() {
        let field = FieldPath::new("spec.podGroups").item(position, &group.name);
        if group.replicas.is_none() {
            out.set(field.clone().field("replicas"), 1);
        }
        if group.disruption_mode.is_none() {
            out.set(field.field("disruptionMode"), DisruptionMode::default());
        }
    }
    out
}

fn classes(workload: &Workload, old: Option<&Workload>, context: &Context<'_>, out: &mut Defaults) {
    let spec = &workload.spec;
    let global_default = || {
        context
            .cluster
            .global_default()
            .found()
            .map(|(name, _)| name)
    };
    let scheduling = match (&spec.priority_class_name, old) {
        (Some(_), _) => None,
        // The field is immutable: a global default created since then must not apply.
        (None, Some(old)) => old.spec.priority_class_name.clone(),
        (None, None) => global_default(),
    };
    let preemption = match (&spec.preemption_priority_class_name, old) {
        (Some(_), _) => None,
        (None, Some(old)) => old.spec.preemption_priority_class_name.clone(),
        (None, None) => spec
            .priority_class_name
            .clone()
            .or_else(|| scheduling.clone()),
    };
    if let Some(name) = scheduling {
        out.set(FieldPath::new("spec.priorityClassName"), name);
    }
    if let Some(name) = preemption {
        out.set(FieldPath::new("spec.preemptionPriorityClassName"), name);
    }
}
