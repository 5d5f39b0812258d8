//! Admission policies, which the API server evaluates when the webhook is unavailable or not installed.
//!
//! They hold the CEL expressions that no schema holds: those for kinds of other projects, those that
//! cost too much for the schema of lockkeeper's kinds, and those of rules that the administrator
//! softens. Rules that look up other objects need the webhook.

mod cel_fields;
pub mod cel_rewrite;
pub mod declared_children;
pub mod declared_jobs;
mod declared_pod_sets;
pub mod default_queue;
#[cfg(test)]
mod evaluation;
pub mod guards;
pub mod job_guards;
pub mod mutating;
pub mod pod_guards;

use crate::cel::{ExpressionError, RuleExpression, is_always_enforced};
use crate::webhooks::{MATCH_POLICY, NAME, match_conditions, object_selector, rule as sent};
use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding,
    NamedRuleWithOperations, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec, Validation,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, ObjectMeta,
};
use lockkeeper_api::config::{Action, ForeignKinds};
use lockkeeper_api::labels;
use lockkeeper_policies::registry::{self, Registration};
use lockkeeper_policies::rule::{Layer, Operation, RuleInfo};
use lockkeeper_policies::settings::Settings;
use std::collections::{BTreeMap, BTreeSet};

/// Validating and mutating policies with their bindings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdmissionPolicies {
    /// The validating policies.
    pub validating: Vec<(
        ValidatingAdmissionPolicy,
        Vec<ValidatingAdmissionPolicyBinding>,
    )>,
    /// The mutating policies.
    pub mutating: Vec<(MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding)>,
}

/// The actions of a rule: the default, and the overrides of namespaces.
#[derive(Clone, Debug)]
struct RuleActions {
    default_action: Action,
    namespaces: BTreeMap<String, Action>,
}

/// The label of each namespace that holds its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// The policies for lockkeeper's kinds, for those that go with them, and for the wanted ones of other projects.
///
/// Rules that an exception of the administrator names are omitted.
///
/// # Errors
///
/// When an expression does not compile. A test checks those of a release.
pub fn policies(
    foreign_kinds: &BTreeSet<ForeignKinds>,
    settings: &Settings,
) -> Result<AdmissionPolicies, ExpressionError> {
    let rules = registry::all();
    let mut out = AdmissionPolicies::default();
    for kind in registry::built_in(foreign_kinds, settings) {
        // A binding has the actions of a whole policy, so each set of actions has its own policy.
        let mut by_actions: BTreeMap<String, (RuleActions, Vec<RuleExpression<'_>>)> =
            BTreeMap::new();
        for ruled in policy_expressions(&rules, &kind, settings) {
            ruled.compile()?;
            let actions = RuleActions::for_rule(ruled.rule, &kind, settings);
            let entry = by_actions.entry(actions.name());
            entry.or_insert_with(|| (actions, Vec::new())).1.push(ruled);
        }
        for (actions, expressions) in by_actions.into_values() {
            out.validating
                .push(validating(&kind, &actions, &expressions));
        }
        let adds_finalizers = settings.adds_finalizers;
        out.mutating
            .extend(mutating::for_kind(&kind, adds_finalizers));
    }
    Ok(out)
}

/// The CEL expressions of the policies for a kind.
fn policy_expressions<'a>(
    rules: &'a [RuleInfo],
    kind: &Registration,
    settings: &Settings,
) -> Vec<RuleExpression<'a>> {
    let mut out = Vec::new();
    for rule in rules {
        let is_of_kind = rule.group == kind.group && rule.kind == kind.kind;
        // Policies do not support exceptions: only the webhook evaluates a rule that has one.
        let is_on =
            settings.is_on(rule.id, rule.action) && !settings.exceptions.covers_rule(rule.id);
        if !is_of_kind || !is_on {
            continue;
        }
        for layer in rule.layers {
            let expressions = match layer {
                Layer::Schema(cel_rules) if !is_always_enforced(rule, settings) => cel_rules(),
                Layer::Policy(cel_rules) => cel_rules(),
                _ => continue,
            };
            out.extend(
                expressions
                    .into_iter()
                    .map(|expression| RuleExpression { rule, expression }),
            );
        }
    }
    out
}

impl RuleActions {
    fn for_rule(rule: &RuleInfo, kind: &Registration, settings: &Settings) -> Self {
        let default_action = settings.action(rule.id, rule.action, None);
        let named = settings.namespace_overrides(rule.id);
        // A cluster-scoped object has the default action: it would match the bindings of all
        // namespaces.
        let namespaces = named.filter(|(_, action)| kind.namespaced && *action != default_action);
        Self {
            default_action,
            namespaces: namespaces.map(|(name, it)| (name.to_owned(), it)).collect(),
        }
    }

    /// The suffix of the name of a policy: the action, and the overrides of namespaces.
    fn name(&self) -> String {
        let mut out = action_name(self.default_action).to_owned();
        for (namespace, action) in &self.namespaces {
            out = format!("{out}.{namespace}-{}", action_name(*action));
        }
        out
    }
}

fn action_name(action: Action) -> &'static str {
    lockkeeper_policies::reference::action_name(action)
}

/// The action of the API server on a failed validation.
fn validation_actions(action: Action) -> Option<Vec<String>> {
    let actions: &[&str] = match action {
        Action::Enforce => &["Deny"],
        Action::Warn => &["Warn"],
        Action::Audit => &["Audit"],
        Action::Off => return None,
    };
    Some(actions.iter().map(|it| (*it).to_owned()).collect())
}

/// The name of a policy for a kind.
fn name(kind: &Registration, end: &str) -> String {
    match kind.group.as_str() {
        "" | lockkeeper_api::GROUP => format!("{}.{end}.{}", kind.plural, lockkeeper_api::GROUP),
        // Another project's kind may have the plural of one of lockkeeper's kinds.
        group => format!("{}.{group}.{end}.{}", kind.plural, lockkeeper_api::GROUP),
    }
}

fn policy_metadata(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some([("app.kubernetes.io/part-of".to_owned(), NAME.to_owned())].into()),
        ..ObjectMeta::default()
    }
}

fn validating(
    kind: &Registration,
    actions: &RuleActions,
    expressions: &[RuleExpression<'_>],
) -> (
    ValidatingAdmissionPolicy,
    Vec<ValidatingAdmissionPolicyBinding>,
) {
    let name = name(kind, &actions.name());
    let operations = expressions
        .iter()
        .flat_map(|it| it.rule.operations)
        .copied();
    let operations: BTreeSet<Operation> = operations.collect();
    let policy = ValidatingAdmissionPolicy {
        metadata: policy_metadata(&name),
        spec: Some(ValidatingAdmissionPolicySpec {
            failure_policy: Some(failure_policy(kind).to_owned()),
            match_conditions: Some(match_conditions(kind, kind.selected_by)),
            match_constraints: Some(constraints(kind, &operations, kind.selected_by)),
            validations: Some(expressions.iter().map(validation).collect()),
            ..ValidatingAdmissionPolicySpec::default()
        }),
        ..ValidatingAdmissionPolicy::default()
    };
    (policy, bindings(&name, actions))
}

/// The failure policy of a validating policy: whether an object is rejected whose evaluation fails.
///
/// Jobs with the queue label are rejected: an object that exceeds the cost limit of an expression must not bypass it.
fn failure_policy(kind: &Registration) -> &'static str {
    if kind.own || kind.selected_by.contains(&labels::QUEUE_NAME) {
        "Fail"
    } else {
        "Ignore"
    }
}

fn validation(ruled: &RuleExpression<'_>) -> Validation {
    let expression = &ruled.expression;
    let detail = cel_rewrite::message_expression(expression);
    // The API server's message names the policy, but not the field.
    let field = format!("{}{}", expression.path, expression.field_path);
    let field = field.trim_start_matches('.');
    Validation {
        expression: cel_rewrite::rewrite_for_object(expression, ruled.rule.ratchets),
        message: Some(format!("{field}: {}", ruled.message())),
        message_expression: detail.map(|it| {
            let field = field.replace('\'', "\\'");
            format!("'{field}: ' + ({it}) + ' [{}]'", ruled.rule.id)
        }),
        reason: Some("Invalid".to_owned()),
    }
}

/// One binding for all namespaces without an override, and one for each override.
fn bindings(name: &str, actions: &RuleActions) -> Vec<ValidatingAdmissionPolicyBinding> {
    let others: Vec<String> = actions.namespaces.keys().cloned().collect();
    let rest = Some(others).filter(|it| !it.is_empty());
    let mut out = Vec::new();
    out.extend(binding(
        name,
        name,
        actions.default_action,
        rest.map(|it| in_namespaces("NotIn", it)),
    ));
    for (namespace, action) in &actions.namespaces {
        let only = in_namespaces("In", vec![namespace.clone()]);
        let of = format!("{namespace}.{name}");
        out.extend(binding(&of, name, *action, Some(only)));
    }
    out
}

fn binding(
    name: &str,
    policy: &str,
    action: Action,
    namespaces: Option<LabelSelector>,
) -> Option<ValidatingAdmissionPolicyBinding> {
    let resources = namespaces.map(|selector| MatchResources {
        namespace_selector: Some(selector),
        ..MatchResources::default()
    });
    Some(ValidatingAdmissionPolicyBinding {
        metadata: policy_metadata(name),
        spec: ValidatingAdmissionPolicyBindingSpec {
            match_resources: resources,
            policy_name: policy.to_owned(),
            validation_actions: validation_actions(action)?,
            ..ValidatingAdmissionPolicyBindingSpec::default()
        },
    })
}

fn in_namespaces(operator: &str, names: Vec<String>) -> LabelSelector {
    LabelSelector {
        match_expressions: Some(vec![LabelSelectorRequirement {
            key: NAMESPACE_NAME.to_owned(),
            operator: operator.to_owned(),
            values: Some(names),
        }]),
        match_labels: None,
    }
}

fn constraints(
    kind: &Registration,
    operations: &BTreeSet<Operation>,
    selected_by: &[&str],
) -> MatchResources {
    let sent = sent(kind, operations);
    MatchResources {
        match_policy: Some(MATCH_POLICY.to_owned()),
        object_selector: object_selector(selected_by),
        resource_rules: Some(vec![NamedRuleWithOperations {
            api_groups: sent.api_groups,
            api_versions: sent.api_versions,
            operations: sent.operations,
            resource_names: None,
            resources: sent.resources,
            scope: sent.scope,
        }]),
        ..MatchResources::default()
    }
}
