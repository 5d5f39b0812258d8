#![doc = include_str!("pod_group_changed.md")]

use super::field_without_gate::closed;
use super::gates::{COMPOSITE, is_on};
use super::group::Grouped;
use super::kept;
use crate::finding::Findings;
use crate::rule::{Change, Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::v1beta1::{self, WorkloadReference};
use lockkeeper_api::foreign::scheduling::{
    PodGroup, PodGroupSpec, SchedulingPolicy, TemplateReference, WorkloadTemplateReference,
};

/// The rule for `v1alpha2`.
pub(super) const FIRST: Rule<PodGroup> = rule(Check::Change(first));

/// The rule for `v1beta1`.
pub(super) const LATER: Rule<v1beta1::PodGroup> = rule(Check::Change(later));

const fn rule<T>(check: Check<T>) -> Rule<T> {
    Rule::mirrored(
        "PG003",
        "pod-group-spec-changed",
        &[
            "pg-template-ref-immutable",
            "pg-scheduling-policy-immutable",
            "pg-constraints-immutable",
            "pg-constraints-gate",
            "pg-resource-claims-immutable",
            "pg-resource-claims-max",
            "pg-disruption-mode-immutable",
            "pg-disruption-mode-gate",
            "pg-priority-class-name-immutable",
            "pg-priority-class-name-gate",
            "pg-priority-immutable",
            "pg-priority-gate",
        ],
        include_str!("pod_group_changed.md"),
        check,
    )
}

fn first(change: &Change<'_, PodGroup>, context: &Context<'_>, out: &mut Findings) {
    let (old, new) = (&change.old.spec, &change.new.spec);
    if old.template_ref != new.template_ref {
        let field = FieldPath::new("spec.podGroupTemplateRef");
        let shown = |spec: &PodGroupSpec| spec.template_ref.as_ref().map(template);
        kept::immutable::<PodGroup>(field, shown(old), shown(new), out);
    }
    let (old, new) = (&old.group.scheduling_policy, &new.group.scheduling_policy);
    if old != new {
        let field = FieldPath::new("spec.schedulingPolicy");
        kept::immutable::<PodGroup>(field, Some(policy(old)), Some(policy(new)), out);
    }
    fields(change, context, out);
}

fn later(change: &Change<'_, v1beta1::PodGroup>, context: &Context<'_>, out: &mut Findings) {
    let (old, new) = (&change.old.spec, &change.new.spec);
    let parents = [old, new].map(|it| it.parent_composite_pod_group_name.clone());
    let [before, after] = parents;
    if before != after {
        let field = FieldPath::new("spec.parentCompositePodGroupName");
        if after.is_some() && !is_on(COMPOSITE, context) {
            closed(field.clone(), COMPOSITE, out);
        }
        kept::immutable::<v1beta1::PodGroup>(field, before, after, out);
    }
    if old.workload_ref != new.workload_ref {
        let field = FieldPath::new("spec.workloadRef");
        let [before, after] = [old, new].map(|it| it.workload_ref.as_ref().map(reference));
        kept::immutable::<v1beta1::PodGroup>(field, before, after, out);
    }
    for (old, new) in change.old.groups().iter().zip(&change.new.groups()) {
        kept::policy::<v1beta1::PodGroup>(old, new, out);
    }
    fields(change, context, out);
}

fn fields<T: Grouped>(change: &Change<'_, T>, context: &Context<'_>, out: &mut Findings) {
    for (old, new) in change.old.groups().iter().zip(&change.new.groups()) {
        kept::fields::<T>(old, new, context, out);
    }
}

// How messages name the values.

fn template(reference: &TemplateReference) -> String {
    let workload = reference.workload.as_ref();
    let name = |it: &WorkloadTemplateReference| {
        format!("{} of {}", it.pod_group_template_name, it.workload_name)
    };
    workload.map(name).unwrap_or_default()
}

fn reference(reference: &WorkloadReference) -> String {
    format!("{} of {}", reference.template_name, reference.workload_name)
}

fn policy(policy: &SchedulingPolicy) -> String {
    let gang = policy.gang.as_ref();
    let gang = gang.map(|gang| format!("gang of {}", gang.min_count));
    let basic = policy.basic.as_ref().map(|_| "basic".to_owned());
    [basic, gang]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}
