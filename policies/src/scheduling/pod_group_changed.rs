#![doc = include_str!("pod_group_changed.md")]

use super::feature_gates::{COMPOSITE, is_enabled};
use super::field_without_gate::report_disabled_gate;
use super::immutable_fields;
use super::pod_group_view::PodGroupFields;
use crate::finding::Findings;
use crate::rule::{Change, Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::v1beta1::{self, WorkloadReference};
use lockkeeper_api::foreign::scheduling::{
    PodGroup, PodGroupSpec, SchedulingPolicy, TemplateReference, WorkloadTemplateReference,
};

/// The rule for `v1alpha2`.
pub(super) const V1ALPHA2: Rule<PodGroup> = rule(Check::Change(check_v1alpha2));

/// The rule for `v1beta1`.
pub(super) const V1BETA1: Rule<v1beta1::PodGroup> = rule(Check::Change(check_v1beta1));

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

fn check_v1alpha2(change: &Change<'_, PodGroup>, context: &Context<'_>, out: &mut Findings) {
    let (old, new) = (&change.old.spec, &change.new.spec);
    if old.template_ref != new.template_ref {
        let field = FieldPath::new("spec.podGroupTemplateRef");
        let shown = |spec: &PodGroupSpec| spec.template_ref.as_ref().map(template_text);
        immutable_fields::report_immutable::<PodGroup>(field, shown(old), shown(new), out);
    }
    let (old, new) = (&old.group.scheduling_policy, &new.group.scheduling_policy);
    if old != new {
        let field = FieldPath::new("spec.schedulingPolicy");
        immutable_fields::report_immutable::<PodGroup>(
            field,
            Some(policy_text(old)),
            Some(policy_text(new)),
            out,
        );
    }
    check_fields(change, context, out);
}

fn check_v1beta1(
    change: &Change<'_, v1beta1::PodGroup>,
    context: &Context<'_>,
    out: &mut Findings,
) {
    let (old, new) = (&change.old.spec, &change.new.spec);
    let parents = [old, new].map(|it| it.parent_composite_pod_group_name.clone());
    let [before, after] = parents;
    if before != after {
        let field = FieldPath::new("spec.parentCompositePodGroupName");
        if after.is_some() && !is_enabled(COMPOSITE, context) {
            report_disabled_gate(field.clone(), COMPOSITE, out);
        }
        immutable_fields::report_immutable::<v1beta1::PodGroup>(field, before, after, out);
    }
    if old.workload_ref != new.workload_ref {
        let field = FieldPath::new("spec.workloadRef");
        let [before, after] = [old, new].map(|it| it.workload_ref.as_ref().map(reference_text));
        immutable_fields::report_immutable::<v1beta1::PodGroup>(field, before, after, out);
    }
    for (old, new) in change.old.groups().iter().zip(&change.new.groups()) {
        immutable_fields::check_policy::<v1beta1::PodGroup>(old, new, out);
    }
    check_fields(change, context, out);
}

fn check_fields<T: PodGroupFields>(
    change: &Change<'_, T>,
    context: &Context<'_>,
    out: &mut Findings,
) {
    for (old, new) in change.old.groups().iter().zip(&change.new.groups()) {
        immutable_fields::check_fields::<T>(old, new, context, out);
    }
}

// The text of the values in messages.

fn template_text(reference: &TemplateReference) -> String {
    let workload = reference.workload.as_ref();
    let name = |reference: &WorkloadTemplateReference| {
        format!(
            "{} of {}",
            reference.pod_group_template_name, reference.workload_name
        )
    };
    workload.map(name).unwrap_or_default()
}

fn reference_text(reference: &WorkloadReference) -> String {
    format!("{} of {}", reference.template_name, reference.workload_name)
}

fn policy_text(policy: &SchedulingPolicy) -> String {
    let gang = policy.gang.as_ref();
    let gang = gang.map(|gang| format!("gang of {}", gang.min_count));
    let basic = policy.basic.as_ref().map(|_| "basic".to_owned());
    [basic, gang]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}
