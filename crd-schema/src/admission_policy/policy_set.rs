//! Policies with their bindings, parameters and namespaces.

use super::binding::Binding;
use super::decision::{Actions, Decision, Missing, Outcome};
use super::frame::{Inputs, NamespaceInput, Problem};
use super::match_resources::Match;
use super::params::{Found, ParamKind, Params};
use super::request::{AdmissionRequest, Conversion, group_version};
use super::validating::{Failed, ValidatingPolicy};
use crate::builtin::BuiltInKind;
use crate::crd::values::{metadata_of, text_at};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The group of policies and bindings.
const GROUP: &str = "admissionregistration.k8s.io";

/// The policies of a cluster or of files. Objects of the same kind and name: the first counts.
#[derive(Debug, Default)]
pub struct PolicySet {
    validating: BTreeMap<String, (ValidatingPolicy, Vec<Problem>)>,
    /// By the name of their policy.
    bindings: BTreeMap<String, Vec<Binding>>,
    params: Params,
    namespaces: BTreeMap<String, Value>,
    /// Cluster-scoped kinds among those of parameters, by `apiVersion` and kind.
    cluster_scoped: BTreeSet<(String, String)>,
    /// The kinds of parameters of which all objects are known.
    complete_kinds: BTreeSet<ParamKind>,
    is_complete: bool,
}

impl PolicySet {
    /// Whether an object is a policy or a binding.
    #[must_use]
    pub fn is_policy(object: &Value) -> bool {
        let kind = text_at(object, "kind").unwrap_or_default();
        group_version(object).0 == GROUP
            && matches!(
                kind,
                "ValidatingAdmissionPolicy" | "ValidatingAdmissionPolicyBinding"
            )
    }

    /// Adds a policy or a binding; other objects are ignored.
    pub fn add(&mut self, object: &Value) {
        if !Self::is_policy(object) {
            return;
        }
        if text_at(object, "kind") == Some("ValidatingAdmissionPolicy") {
            let (policy, problems) = ValidatingPolicy::new(object);
            let name = policy.frame.name.clone();
            self.validating.entry(name).or_insert((policy, problems));
        } else if let Some(binding) = Binding::new(object) {
            let all = self.bindings.entry(binding.policy.clone()).or_default();
            if all.iter().all(|it| it.name != binding.name) {
                all.push(binding);
            }
        }
    }

    /// The kinds of the parameters of all policies: `apiVersion` and kind.
    #[must_use]
    pub fn param_kinds(&self) -> BTreeSet<(String, String)> {
        let policies = self.validating.values();
        let kinds = policies.filter_map(|(policy, _)| policy.frame.param_kind.clone());
        kinds.map(|it| (it.api_version, it.kind)).collect()
    }

    /// Adds an object of a kind of parameters.
    pub fn add_param(&mut self, object: &Value) {
        self.params.add(object);
    }

    /// Adds a Namespace, whose labels and fields policies may read.
    pub fn add_namespace(&mut self, namespace: &Value) {
        if let Some(name) = metadata_of(namespace).get("name").and_then(Value::as_str) {
            let entry = self.namespaces.entry(name.to_owned());
            entry.or_insert_with(|| namespace.clone());
        }
    }

    /// Declares a kind of parameters as cluster-scoped. Built-in kinds are known; others are namespaced otherwise.
    pub fn add_cluster_scoped(&mut self, api_version: &str, kind: &str) {
        let kind = (api_version.to_owned(), kind.to_owned());
        self.cluster_scoped.insert(kind);
    }

    /// There are no other parameters of a kind.
    pub fn set_complete_kind(&mut self, api_version: &str, kind: &str) {
        self.complete_kinds.insert(ParamKind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        });
    }

    /// There are no other parameters: a policy whose parameters are absent decides without them.
    pub fn set_complete(&mut self) {
        self.is_complete = true;
    }

    /// Whether no policy can decide about anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.validating.is_empty()
    }

    /// Adds the objects of another set. Those of this set are preferred.
    pub fn merge(&mut self, other: Self) {
        for (name, policy) in other.validating {
            self.validating.entry(name).or_insert(policy);
        }
        for (policy, bindings) in other.bindings {
            let all = self.bindings.entry(policy).or_default();
            for binding in bindings {
                if all.iter().all(|it| it.name != binding.name) {
                    all.push(binding);
                }
            }
        }
        self.params.merge(other.params);
        for (name, namespace) in other.namespaces {
            self.namespaces.entry(name).or_insert(namespace);
        }
        self.cluster_scoped.extend(other.cluster_scoped);
        self.complete_kinds.extend(other.complete_kinds);
        self.is_complete |= other.is_complete;
    }

    /// The decisions that are no permission, by policy and binding. The cost is at most 10,000,000 units of CEL for each
    /// binding and parameter, as in the API server.
    #[must_use]
    pub fn validate(&self, request: &AdmissionRequest<'_>) -> Vec<Decision> {
        // The API server exempts all policies and webhook configurations.
        if request.resource.group == GROUP {
            return Vec::new();
        }
        let namespace = request.rule_namespace();
        let namespace = namespace.and_then(|it| self.namespaces.get(it));
        let mut out = Vec::new();
        for (policy, problems) in self.validating.values() {
            let bindings = self.bindings.get(&policy.frame.name);
            let Some(bindings) = bindings.filter(|it| !it.is_empty()) else {
                continue;
            };
            let by_policy = |outcome: Outcome| Decision {
                policy: policy.frame.name.clone(),
                binding: None,
                outcome,
                field: Vec::new(),
            };
            let version = match policy.frame.requests.matches(request, namespace) {
                Match::No => continue,
                Match::Undecided => {
                    out.push(by_policy(Outcome::Undecided(missing_namespace(request))));
                    continue;
                }
                Match::Version(version) => version,
            };
            if let Some((field, reason)) = problems.first() {
                out.push(by_policy(Outcome::Unusable(format!("{field}: {reason}"))));
                continue;
            }
            for binding in bindings {
                self.decide(policy, binding, request, &version, &mut out);
            }
        }
        out
    }

    /// The decisions of a binding.
    fn decide(
        &self,
        policy: &ValidatingPolicy,
        binding: &Binding,
        request: &AdmissionRequest<'_>,
        version: &str,
        out: &mut Vec<Decision>,
    ) {
        let mut push = |outcome: Outcome, field: Vec<String>| {
            let decision = Decision {
                policy: policy.frame.name.clone(),
                binding: Some(binding.name.clone()),
                outcome,
                field,
            };
            // The parameters of a binding often give the same answer.
            if !out.contains(&decision) {
                out.push(decision);
            }
        };
        let name = request.rule_namespace();
        let namespace = name.and_then(|it| self.namespaces.get(it));
        match binding.requests.matches(request, namespace) {
            Match::No => return,
            Match::Undecided => {
                return push(Outcome::Undecided(missing_namespace(request)), Vec::new());
            }
            Match::Version(_) => {}
        }
        let kind = policy.frame.param_kind.as_ref();
        let scope = (
            kind.is_some_and(|it| self.is_namespaced(it)),
            self.is_complete || kind.is_some_and(|it| self.complete_kinds.contains(it)),
        );
        let params = match self.params.find(kind, binding.params.as_ref(), name, scope) {
            Found::Params(params) => params,
            Found::Missing(what) => {
                return push(Outcome::Undecided(Missing::Params(what)), Vec::new());
            }
            Found::Error(reason) => {
                if policy.frame.fails_closed {
                    let message = format!("failed to configure binding: {reason}");
                    let actions = Actions::DENY;
                    push(Outcome::Denied { message, actions }, Vec::new());
                }
                return;
            }
        };
        let Some(object) = converted(request, request.object, version) else {
            let missing = Missing::Version(version.to_owned());
            return push(Outcome::Undecided(missing), Vec::new());
        };
        let old = request.old.and_then(|it| converted(request, it, version));
        let (variable, user) = (request.variable(version), request.user_variable());
        for params in params {
            let inputs = Inputs {
                object: &object,
                old: old.as_deref(),
                request: &variable,
                user: user.as_ref(),
                params,
                namespace: match (request.namespace, namespace) {
                    _ if request.resource.is_namespace() => NamespaceInput::None,
                    (None, _) => NamespaceInput::None,
                    (Some(_), Some(namespace)) => NamespaceInput::Known(namespace),
                    (Some(name), None) => NamespaceInput::Unknown(name),
                },
            };
            for failed in policy.validate(inputs) {
                match failed {
                    Failed::Undecided(missing) => push(Outcome::Undecided(missing), Vec::new()),
                    Failed::Denied(message, field) if !binding.actions.are_empty() => {
                        let actions = binding.actions;
                        push(Outcome::Denied { message, actions }, field);
                    }
                    Failed::Denied(..) => {}
                }
            }
        }
    }

    fn is_namespaced(&self, kind: &ParamKind) -> bool {
        match BuiltInKind::find(&kind.api_version, &kind.kind) {
            Some(built_in) => built_in.is_namespaced(),
            None => {
                let key = (kind.api_version.clone(), kind.kind.clone());
                !self.cluster_scoped.contains(&key)
            }
        }
    }
}

fn missing_namespace(request: &AdmissionRequest<'_>) -> Missing {
    let name = request.rule_namespace().unwrap_or_default();
    Missing::Namespace(name.to_owned())
}

/// The object in a version of its resource; `None` if the conversion is not known.
fn converted<'a>(
    request: &AdmissionRequest<'_>,
    object: &'a Value,
    version: &str,
) -> Option<Cow<'a, Value>> {
    let resource = request.resource;
    if version == resource.version {
        return Some(Cow::Borrowed(object));
    }
    if resource.conversion != Conversion::ApiVersion {
        return None;
    }
    let mut object = object.clone();
    let fields = object.as_object_mut()?;
    let version = format!("{}/{version}", resource.group);
    fields.insert("apiVersion".to_owned(), json!(version));
    Some(Cow::Owned(object))
}
