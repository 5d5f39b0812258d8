//! Mutating admission policies, which default fields as the webhook does.

use super::{constraints, name, policy_metadata};
use crate::webhooks::match_conditions;
use k8s_openapi::api::admissionregistration::v1::{
    ApplyConfiguration, JSONPatch, MatchCondition, MatchResources, MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding, MutatingAdmissionPolicyBindingSpec,
    MutatingAdmissionPolicySpec, Mutation,
};
use lockkeeper_api::labels;
use lockkeeper_policies::cel_defaults::{CelDefault, FieldDefault};
use lockkeeper_policies::registry::Registration;
use lockkeeper_policies::rule::Operation;
use std::collections::BTreeSet;

/// A policy and its binding.
pub type PolicyWithBinding = (MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding);

/// The kinds whose objects are created suspended when they name a queue.
const SUSPENDED: [&str; 2] = ["Job", "JobSet"];

/// The policy for a kind, if it has defaults.
pub(super) fn for_kind(kind: &Registration, adds_finalizers: bool) -> Option<PolicyWithBinding> {
    let is_made = kind.defaulted_on.contains(&Operation::Create);
    if is_made && SUSPENDED.contains(&kind.kind.as_str()) {
        return Some(suspend_policy(kind));
    }
    if is_made && kind.kind == "Pod" {
        return Some(gate_policy(kind));
    }
    let defaults: Vec<CelDefault> = kind
        .cel_defaults
        .iter()
        .copied()
        .filter(|it| adds_finalizers || !matches!(it, CelDefault::Finalizer(_)))
        .collect();
    (!defaults.is_empty()).then(|| default_policy(kind, &defaults))
}

/// Suspends a new job that names a queue, as the webhook does.
fn suspend_policy(kind: &Registration) -> PolicyWithBinding {
    let mut conditions = match_conditions(kind, kind.defaults_selected_by);
    conditions.push(MatchCondition {
        name: "names-a-queue".to_owned(),
        expression: format!(
            "has(object.metadata.labels) && '{}' in object.metadata.labels",
            labels::QUEUE_NAME
        ),
    });
    let mutation = Mutation {
        apply_configuration: Some(ApplyConfiguration {
            expression: Some("Object{spec: Object.spec{suspend: true}}".to_owned()),
        }),
        json_patch: None,
        patch_type: "ApplyConfiguration".to_owned(),
    };
    let on = [Operation::Create].into();
    bind_policy(kind, "suspend", &on, conditions, vec![mutation])
}

/// Adds the scheduling gate to a new pod with the queue label, as the webhook does.
fn gate_policy(kind: &Registration) -> PolicyWithBinding {
    let gate = format!("{{'name': '{}'}}", labels::ADMISSION_GATE);
    let gates = "object.spec.schedulingGates";
    let expression = format!(
        "!has({gates}) ? [{}] : {gates}.exists(it, it.name == '{}') ? [] : [{}]",
        add("/spec/schedulingGates", &format!("[{gate}]")),
        labels::ADMISSION_GATE,
        add("/spec/schedulingGates/-", &gate),
    );
    let mutation = json_patch(expression);
    let on = [Operation::Create].into();
    let conditions = match_conditions(kind, kind.defaults_selected_by);
    bind_policy(kind, "gate", &on, conditions, vec![mutation])
}

/// Defaults the fields that no schema default covers.
fn default_policy(kind: &Registration, defaults: &[CelDefault]) -> PolicyWithBinding {
    // Not `ApplyConfiguration`: it needs the schema, which the API server has only a moment after
    // the kind. A JSON Patch needs none.
    let mutations = defaults.iter().map(|it| json_patch(patch(it)));
    bind_policy(
        kind,
        "fill",
        &kind.defaulted_on,
        match_conditions(kind, kind.defaults_selected_by),
        mutations.collect(),
    )
}

/// The mutation by a CEL expression that returns a JSON Patch.
pub(super) fn json_patch(expression: String) -> Mutation {
    Mutation {
        apply_configuration: None,
        json_patch: Some(JSONPatch {
            expression: Some(expression),
        }),
        patch_type: "JSONPatch".to_owned(),
    }
}

fn bind_policy(
    kind: &Registration,
    end: &str,
    on: &BTreeSet<Operation>,
    conditions: Vec<MatchCondition>,
    mutations: Vec<Mutation>,
) -> PolicyWithBinding {
    let constraints = constraints(kind, on, kind.defaults_selected_by);
    with_binding(&name(kind, end), constraints, conditions, mutations)
}

/// A policy with its binding. A request passes unchanged if the policy fails.
pub(super) fn with_binding(
    name: &str,
    constraints: MatchResources,
    conditions: Vec<MatchCondition>,
    mutations: Vec<Mutation>,
) -> PolicyWithBinding {
    let policy = MutatingAdmissionPolicy {
        metadata: policy_metadata(name),
        spec: Some(MutatingAdmissionPolicySpec {
            failure_policy: Some("Ignore".to_owned()),
            match_conditions: Some(conditions),
            match_constraints: Some(constraints),
            mutations: Some(mutations),
            reinvocation_policy: Some("IfNeeded".to_owned()),
            ..MutatingAdmissionPolicySpec::default()
        }),
    };
    let binding = MutatingAdmissionPolicyBinding {
        metadata: policy_metadata(name),
        spec: Some(MutatingAdmissionPolicyBindingSpec {
            policy_name: Some(name.to_owned()),
            ..MutatingAdmissionPolicyBindingSpec::default()
        }),
    };
    (policy, binding)
}

/// The CEL expression that returns the patch.
fn patch(filling: &CelDefault) -> String {
    match filling {
        // An `add` at `/-` appends to a list, which has to exist.
        CelDefault::Finalizer(finalizer) => format!(
            "has(object.metadata.deletionTimestamp) || (has(object.metadata.finalizers) && '{finalizer}' in object.metadata.finalizers) ? [] : \
             has(object.metadata.finalizers) ? [{}] : [{}]",
            add("/metadata/finalizers/-", &format!("'{finalizer}'")),
            add("/metadata/finalizers", &format!("['{finalizer}']")),
        ),
        CelDefault::Field(field) => field_patch(field),
    }
}

/// Adds a field, and before it each missing parent: an `add` of JSON Patch creates no parents.
fn field_patch(field: &FieldDefault) -> String {
    let steps: Vec<&str> = field.path.split('.').collect();
    let mut paths = Vec::new();
    for step in &steps {
        let above: &str = paths.last().map_or("", String::as_str);
        paths.push(format!("{above}/{step}"));
    }
    let Some((whole, above)) = paths.split_last() else {
        return "[]".to_owned();
    };
    // A missing field at the top is not created: other checks reject the object.
    let top = above.first().map(|it| format!("!{}", has_path(it)));
    let when = Some(field.when).filter(|it| !it.is_empty());
    let never = when.map(|it| format!("!({it})"));
    let unless: Vec<String> = top
        .into_iter()
        .chain([has_path(whole)])
        .chain(never)
        .collect();
    let parents = above.iter().skip(1).map(|path| {
        let made = add(path, "{}");
        format!("({} ? [] : [{made}]) + ", has_path(path))
    });
    let parents: String = parents.collect::<Vec<_>>().concat();
    let last = add(whole, field.value);
    format!("{} ? [] : {parents}[{last}]", unless.join(" || "))
}

/// A CEL test that each step of a path is present.
pub(super) fn has_path(path: &str) -> String {
    let mut at = "object".to_owned();
    let mut all = Vec::new();
    for step in path.split('/').filter(|it| !it.is_empty()) {
        // `has` fails below a missing field, so each step has a test of its own.
        at = format!("{at}.{step}");
        all.push(format!("has({at})"));
    }
    let all = all.join(" && ");
    if all.contains('&') {
        format!("({all})")
    } else {
        all
    }
}

pub(super) fn add(path: &str, value: &str) -> String {
    format!("JSONPatch{{op: 'add', path: '{path}', value: {value}}}")
}

#[cfg(test)]
mod tests;
