#![doc = include_str!("pod_group_changed.md")]

use super::disruption_mode;
use super::field_without_gate::closed;
use super::gates::{PREEMPTION, TOPOLOGY, is_on};
use super::resource_claims::CLAIMS_MAX;
use crate::finding::{Findings, listed, quoted};
use crate::rule::{Change, Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::{
    DisruptionMode, Group, PodGroup, PodGroupSpec, SchedulingPolicy, TemplateReference,
    WorkloadTemplateReference,
};

pub(super) const RULE: Rule<PodGroup> = Rule::mirrored(
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
    Check::Change(check),
);

fn check(change: &Change<'_, PodGroup>, context: &Context<'_>, out: &mut Findings) {
    let (old, new) = (&change.old.spec, &change.new.spec);
    if old.template_ref != new.template_ref {
        let field = FieldPath::new("spec.podGroupTemplateRef");
        let shown = |spec: &PodGroupSpec| spec.template_ref.as_ref().map(template);
        immutable(field, shown(old), shown(new), out);
    }
    let (old, new) = (&old.group, &new.group);
    if old.scheduling_policy != new.scheduling_policy {
        let field = FieldPath::new("spec.schedulingPolicy");
        let shown = |group: &Group| Some(policy(&group.scheduling_policy));
        immutable(field, shown(old), shown(new), out);
    }
    if old.resource_claims != new.resource_claims {
        let field = FieldPath::new("spec.resourceClaims");
        immutable(field.clone(), claims(old), claims(new), out);
        if new.resource_claims.len() > CLAIMS_MAX {
            out.too_many(field, new.resource_claims.len(), CLAIMS_MAX);
        }
    }
    gated(old, new, context, out);
}

/// The fields that have a gate. While it is off they cannot be set, but they can be taken away.
fn gated(old: &Group, new: &Group, context: &Context<'_>, out: &mut Findings) {
    let is_constrained = old.scheduling_constraints != new.scheduling_constraints;
    let fields: [(&str, bool, Shown, &str); 4] = [
        (
            "spec.schedulingConstraints",
            is_constrained,
            constraints,
            TOPOLOGY,
        ),
        (
            "spec.disruptionMode",
            old.disruption_mode != new.disruption_mode,
            mode,
            PREEMPTION,
        ),
        (
            "spec.priorityClassName",
            old.priority_class_name != new.priority_class_name,
            class,
            PREEMPTION,
        ),
        (
            "spec.priority",
            old.priority != new.priority,
            priority,
            PREEMPTION,
        ),
    ];
    for (field, is_changed, shown, gate) in fields {
        if !is_changed {
            continue;
        }
        let field = FieldPath::new(field);
        let (before, after) = (shown(old), shown(new));
        match (is_on(gate, context), &after) {
            (true, _) => immutable(field, before, after, out),
            (false, Some(_)) => closed(field, gate, out),
            (false, None) => {}
        }
    }
    let was_taken = old.disruption_mode.is_some() && new.disruption_mode.is_none();
    if was_taken && is_on(PREEMPTION, context) {
        disruption_mode::missing(FieldPath::new("spec.disruptionMode"), out);
    }
}

/// How a message names a value, if there is one.
type Shown = fn(&Group) -> Option<String>;

fn immutable(field: FieldPath, before: Option<String>, after: Option<String>, out: &mut Findings) {
    let kept = match before {
        Some(before) => format!("keep {}", quoted(&before)),
        None => "leave it out".to_owned(),
    };
    out.invalid(
        field,
        after.unwrap_or_default(),
        format!("field is immutable; {kept}, or delete the PodGroup and make a new one"),
    );
}

// How messages name the values.

fn template(reference: &TemplateReference) -> String {
    let workload = reference.workload.as_ref();
    let name = |it: &WorkloadTemplateReference| {
        format!("{} of {}", it.pod_group_template_name, it.workload_name)
    };
    workload.map(name).unwrap_or_default()
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

fn claims(group: &Group) -> Option<String> {
    let claims = &group.resource_claims;
    let names = claims.iter().map(|claim| claim.name.as_str());
    (!claims.is_empty()).then(|| listed(names))
}

fn constraints(group: &Group) -> Option<String> {
    let constraints = group.scheduling_constraints.as_ref()?;
    let keys = constraints.topology.iter().map(|it| it.key.as_str());
    Some(listed(keys))
}

fn mode(group: &Group) -> Option<String> {
    Some(match group.disruption_mode.as_ref()? {
        DisruptionMode::Text(mode) => mode.clone(),
        DisruptionMode::OneOf(_) => "an object".to_owned(),
    })
}

fn class(group: &Group) -> Option<String> {
    let name = &group.priority_class_name;
    (!name.is_empty()).then(|| name.clone())
}

fn priority(group: &Group) -> Option<String> {
    group.priority.map(|priority| priority.to_string())
}
