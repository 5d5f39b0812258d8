//! Policies with their bindings, parameters and namespaces.

use super::binding::Binding;
use super::decision::{Actions, Decision, Missing, Outcome, PolicyKind};
use super::frame::{Frame, Inputs, Problem};
use super::known_objects::{Invocation, KnownObjects, NotInvoked, Reason};
use super::merge::MergeTypes;
use super::mutating::{self, MutatingPolicy};
use super::params::ParamKind;
use super::request::{AdmissionRequest, Conversion, group_version};
use super::validating::{self, ValidatingPolicy};
use crate::crd::values::text_at;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The group of policies and bindings.
const GROUP: &str = "admissionregistration.k8s.io";

/// The policies of a cluster or of files. Objects of the same kind and name: the first counts.
#[derive(Debug, Default)]
pub struct PolicySet {
    validating: Policies<ValidatingPolicy>,
    mutating: Policies<MutatingPolicy>,
    known: KnownObjects,
}

/// The policies of a kind, by name, and the bindings, by the name of their policy.
#[derive(Debug)]
struct Policies<P> {
    policies: BTreeMap<String, (P, Vec<Problem>)>,
    bindings: BTreeMap<String, Vec<Binding>>,
}

/// An object after mutating policies.
#[derive(Debug)]
pub struct Mutated {
    /// The object; `None` if no policy changes it.
    pub object: Option<Value>,
    /// The policies that have an error or cannot decide.
    pub decisions: Vec<Decision>,
}

/// What a mutation needs to know about the kind of the object.
#[derive(Clone, Copy)]
pub struct MutationKind<'a> {
    /// How partial objects are merged.
    pub types: MergeTypes<'a>,
    /// Sets the defaults of an object.
    pub set_defaults: &'a dyn Fn(Value) -> Value,
}

impl<P> Default for Policies<P> {
    fn default() -> Self {
        Self {
            policies: BTreeMap::new(),
            bindings: BTreeMap::new(),
        }
    }
}

impl<P> Policies<P> {
    fn add_policy(&mut self, name: String, policy: (P, Vec<Problem>)) {
        self.policies.entry(name).or_insert(policy);
    }

    fn add_binding(&mut self, binding: Binding) {
        let all = self.bindings.entry(binding.policy.clone()).or_default();
        if all.iter().all(|it| it.name != binding.name) {
            all.push(binding);
        }
    }

    fn merge(&mut self, other: Self) {
        for (name, policy) in other.policies {
            self.add_policy(name, policy);
        }
        for binding in other.bindings.into_values().flatten() {
            self.add_binding(binding);
        }
    }

    /// The bindings of a policy.
    fn bindings_of(&self, name: &str) -> &[Binding] {
        self.bindings.get(name).map_or(&[], Vec::as_slice)
    }
}

impl PolicySet {
    /// Whether an object is a policy or a binding.
    #[must_use]
    pub fn is_policy(object: &Value) -> bool {
        let kind = text_at(object, "kind").unwrap_or_default();
        group_version(object).0 == GROUP
            && matches!(
                kind,
                "ValidatingAdmissionPolicy"
                    | "ValidatingAdmissionPolicyBinding"
                    | "MutatingAdmissionPolicy"
                    | "MutatingAdmissionPolicyBinding"
            )
    }

    /// Adds a policy or a binding; other objects are ignored.
    pub fn add(&mut self, object: &Value) {
        if !Self::is_policy(object) {
            return;
        }
        match text_at(object, "kind") {
            Some("ValidatingAdmissionPolicy") => {
                let policy = ValidatingPolicy::new(object);
                let name = policy.0.frame.name.clone();
                self.validating.add_policy(name, policy);
            }
            Some("MutatingAdmissionPolicy") => {
                let policy = MutatingPolicy::new(object);
                let name = policy.0.frame.name.clone();
                self.mutating.add_policy(name, policy);
            }
            Some("ValidatingAdmissionPolicyBinding") => {
                if let Some(binding) = Binding::new(object) {
                    self.validating.add_binding(binding);
                }
            }
            _ => {
                if let Some(binding) = Binding::new(object) {
                    self.mutating.add_binding(binding);
                }
            }
        }
    }

    /// The kinds of the parameters of all policies: `apiVersion` and kind.
    #[must_use]
    pub fn param_kinds(&self) -> BTreeSet<(String, String)> {
        let validating = self.validating.policies.values().map(|it| &it.0.frame);
        let mutating = self.mutating.policies.values().map(|it| &it.0.frame);
        let kinds = validating.chain(mutating);
        let kinds = kinds.filter_map(|it| it.param_kind.clone());
        kinds.map(|it| (it.api_version, it.kind)).collect()
    }

    /// Adds an object of a kind of parameters.
    pub fn add_param(&mut self, object: &Value) {
        self.known.params.add(object);
    }

    /// Adds a Namespace, whose labels and fields policies may read.
    pub fn add_namespace(&mut self, namespace: &Value) {
        self.known.add_namespace(namespace);
    }

    /// Declares a kind of parameters as cluster-scoped. Built-in kinds are known; others are namespaced otherwise.
    pub fn add_cluster_scoped(&mut self, api_version: &str, kind: &str) {
        let kind = ParamKind::named(api_version, kind);
        self.known.cluster_scoped.insert(kind);
    }

    /// There are no other parameters of a kind.
    pub fn set_complete_kind(&mut self, api_version: &str, kind: &str) {
        let kind = ParamKind::named(api_version, kind);
        self.known.complete_kinds.insert(kind);
    }

    /// There are no other parameters: a policy whose parameters are absent decides without them.
    pub fn set_complete(&mut self) {
        self.known.is_complete = true;
    }

    /// Whether no policy can decide about anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.validating.policies.is_empty() && self.mutating.policies.is_empty()
    }

    /// Adds the objects of another set. Those of this set are preferred.
    pub fn merge(&mut self, other: Self) {
        self.validating.merge(other.validating);
        self.mutating.merge(other.mutating);
        self.known.merge(other.known);
    }

    /// The decisions of validating policies that are no permission, by policy and binding. The cost is at most 10,000,000
    /// units of CEL for each binding and parameter, as in the API server.
    #[must_use]
    pub fn validate(&self, request: &AdmissionRequest<'_>) -> Vec<Decision> {
        let mut out = Decisions::new(PolicyKind::Validating);
        // The API server exempts all policies and webhook configurations.
        if request.resource.group == GROUP {
            return out.all;
        }
        for (policy, problems) in self.validating.policies.values() {
            let bindings = self.validating.bindings_of(&policy.frame.name);
            let found = self.known.invocations(&policy.frame, bindings, request);
            for invocation in out.usable(&policy.frame, problems, found) {
                self.decide(policy, &invocation, request, &mut out);
            }
        }
        out.all
    }

    /// The decisions of an invocation.
    fn decide(
        &self,
        policy: &ValidatingPolicy,
        invocation: &Invocation<'_>,
        request: &AdmissionRequest<'_>,
        out: &mut Decisions,
    ) {
        let (frame, binding) = (&policy.frame, invocation.binding);
        let version = &invocation.version;
        let Some(object) = converted(request, request.object, version) else {
            let missing = Missing::Version(version.clone());
            return out.push(
                frame,
                Some(&binding.name),
                Outcome::Undecided(missing),
                Vec::new(),
            );
        };
        let old = request.old.and_then(|it| converted(request, it, version));
        let (variable, user) = (request.variable(version), request.user_variable());
        let inputs = Inputs {
            object: &object,
            old: old.as_deref(),
            request: &variable,
            user: user.as_ref(),
            params: invocation.params,
            namespace: self.known.namespace_input(request),
        };
        for failed in policy.validate(inputs) {
            match failed {
                validating::Failed::Undecided(missing) => {
                    let outcome = Outcome::Undecided(missing);
                    out.push(frame, Some(&binding.name), outcome, Vec::new());
                }
                validating::Failed::Denied(message, field) if !binding.actions.are_empty() => {
                    let actions = binding.actions;
                    let outcome = Outcome::Denied { message, actions };
                    out.push(frame, Some(&binding.name), outcome, field);
                }
                validating::Failed::Denied(..) => {}
            }
        }
    }

    /// The object after all mutating policies, in the order of their names. Policies with the reinvocation policy
    /// `IfNeeded` run once more if one has changed the object. The cost is at most 10,000,000 units of CEL for each
    /// mutation, as in the API server.
    #[must_use]
    pub fn mutate(&self, request: &AdmissionRequest<'_>, kind: MutationKind<'_>) -> Mutated {
        let mut out = Decisions::new(PolicyKind::Mutating);
        let mut object = None;
        if request.resource.group != GROUP {
            for is_reinvoked in [false, true] {
                if is_reinvoked && object.is_none() {
                    break;
                }
                self.mutate_once(request, kind, is_reinvoked, &mut object, &mut out);
            }
        }
        Mutated {
            object,
            decisions: out.all,
        }
    }

    /// Runs all policies, or those that run again.
    fn mutate_once(
        &self,
        request: &AdmissionRequest<'_>,
        kind: MutationKind<'_>,
        is_reinvoked: bool,
        object: &mut Option<Value>,
        out: &mut Decisions,
    ) {
        for (policy, problems) in self.mutating.policies.values() {
            if is_reinvoked && !policy.is_reinvoked {
                continue;
            }
            let bindings = self.mutating.bindings_of(&policy.frame.name);
            let found = self.known.invocations(&policy.frame, bindings, request);
            for invocation in out.usable(&policy.frame, problems, found) {
                self.invoke(policy, &invocation, (request, kind), object, out);
            }
        }
    }

    /// Applies the mutations of an invocation to the object.
    fn invoke(
        &self,
        policy: &MutatingPolicy,
        invocation: &Invocation<'_>,
        (request, kind): (&AdmissionRequest<'_>, MutationKind<'_>),
        object: &mut Option<Value>,
        out: &mut Decisions,
    ) {
        let frame = &policy.frame;
        let name = Some(&*invocation.binding.name);
        let version = &invocation.version;
        let old = request.old.and_then(|it| converted(request, it, version));
        let (variable, user) = (request.variable(version), request.user_variable());
        for number in 0..policy.count() {
            let current = object.as_ref().unwrap_or(request.object);
            let Some(current) = converted(request, current, version) else {
                let missing = Missing::Version(version.clone());
                return out.push(frame, name, Outcome::Undecided(missing), Vec::new());
            };
            let inputs = Inputs {
                object: &current,
                old: old.as_deref(),
                request: &variable,
                user: user.as_ref(),
                params: invocation.params,
                namespace: self.known.namespace_input(request),
            };
            // The conditions are evaluated once, before the first mutation.
            let changed = match number {
                0 => match policy.applies(inputs) {
                    Ok(true) => policy.mutate(number, inputs, kind.types),
                    Ok(false) => return,
                    Err(failed) => return out.push_failed(frame, name, failed),
                },
                _ => policy.mutate(number, inputs, kind.types),
            };
            match changed {
                Ok(None) => {}
                Ok(Some(mut changed)) => {
                    let own = request.object.get("apiVersion");
                    if let (Some(fields), Some(own)) = (changed.as_object_mut(), own) {
                        fields.insert("apiVersion".to_owned(), own.clone());
                    }
                    *object = Some((kind.set_defaults)(changed));
                }
                Err(failed) => out.push_failed(frame, name, failed),
            }
        }
    }
}

/// Collects decisions.
struct Decisions {
    kind: PolicyKind,
    all: Vec<Decision>,
}

impl Decisions {
    fn new(kind: PolicyKind) -> Self {
        Self {
            kind,
            all: Vec::new(),
        }
    }

    fn push(
        &mut self,
        policy: &Frame,
        binding: Option<&str>,
        outcome: Outcome,
        field: Vec<String>,
    ) {
        let decision = Decision {
            kind: self.kind,
            policy: policy.name.clone(),
            binding: binding.map(str::to_owned),
            outcome,
            field,
        };
        // The parameters of a binding often give the same answer.
        if !self.all.contains(&decision) {
            self.all.push(decision);
        }
    }

    /// An error denies the request if the policy fails closed.
    fn push_failed(&mut self, policy: &Frame, binding: Option<&str>, failed: mutating::Failed) {
        match failed {
            mutating::Failed::Undecided(missing) => {
                self.push(policy, binding, Outcome::Undecided(missing), Vec::new());
            }
            mutating::Failed::Error(message) if policy.fails_closed => {
                let actions = Actions::DENY;
                let outcome = Outcome::Denied { message, actions };
                self.push(policy, binding, outcome, Vec::new());
            }
            mutating::Failed::Error(_) => {}
        }
    }

    /// The invocations of a policy that can be used. What cannot be invoked becomes a decision.
    fn usable<'a>(
        &mut self,
        policy: &Frame,
        problems: &[Problem],
        (invocations, others): (Vec<Invocation<'a>>, Vec<NotInvoked>),
    ) -> Vec<Invocation<'a>> {
        let is_matched = !invocations.is_empty() || !others.is_empty();
        if let Some((field, reason)) = problems.first().filter(|_| is_matched) {
            let outcome = Outcome::Unusable(format!("{field}: {reason}"));
            self.push(policy, None, outcome, Vec::new());
            return Vec::new();
        }
        for NotInvoked { binding, reason } in others {
            let outcome = match reason {
                Reason::Missing(missing) => Outcome::Undecided(missing),
                Reason::Configuration(_) if !policy.fails_closed => continue,
                Reason::Configuration(reason) => Outcome::Denied {
                    message: format!("failed to configure binding: {reason}"),
                    actions: Actions::DENY,
                },
            };
            self.push(policy, binding.as_deref(), outcome, Vec::new());
        }
        invocations
    }
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
