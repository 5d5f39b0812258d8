//! Parameters and namespaces, and the invocations of a policy that they give.

use super::binding::Binding;
use super::decision::Missing;
use super::frame::{Frame, NamespaceInput};
use super::match_resources::Match;
use super::params::{Found, ParamKind, Params};
use super::request::AdmissionRequest;
use crate::builtin::BuiltInKind;
use crate::crd::values::metadata_of;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The objects that policies read besides that of the request.
#[derive(Debug, Default)]
pub(super) struct KnownObjects {
    pub(super) params: Params,
    namespaces: BTreeMap<String, Value>,
    /// Cluster-scoped kinds of parameters that are not built in.
    pub(super) cluster_scoped: BTreeSet<ParamKind>,
    /// The kinds of parameters of which all objects are known.
    pub(super) complete_kinds: BTreeSet<ParamKind>,
    /// All parameters are known.
    pub(super) is_complete: bool,
}

/// One evaluation of a policy.
#[derive(Clone, Debug)]
pub(super) struct Invocation<'a> {
    pub(super) binding: &'a Binding,
    /// The version of the resource that the policy matches.
    pub(super) version: String,
    pub(super) params: Option<&'a Value>,
}

/// A binding, or the policy itself, that cannot be invoked.
#[derive(Debug)]
pub(super) struct NotInvoked {
    /// The name of the binding.
    pub(super) binding: Option<String>,
    pub(super) reason: Reason,
}

/// Why a binding cannot be invoked.
#[derive(Debug)]
pub(super) enum Reason {
    /// Something is not known.
    Missing(Missing),
    /// The binding cannot be used.
    Configuration(String),
}

impl KnownObjects {
    pub(super) fn add_namespace(&mut self, namespace: &Value) {
        if let Some(name) = metadata_of(namespace).get("name").and_then(Value::as_str) {
            let entry = self.namespaces.entry(name.to_owned());
            entry.or_insert_with(|| namespace.clone());
        }
    }

    /// Adds the objects of another set. Those of this set are preferred.
    pub(super) fn merge(&mut self, other: Self) {
        self.params.merge(other.params);
        for (name, namespace) in other.namespaces {
            self.namespaces.entry(name).or_insert(namespace);
        }
        self.cluster_scoped.extend(other.cluster_scoped);
        self.complete_kinds.extend(other.complete_kinds);
        self.is_complete |= other.is_complete;
    }

    /// The variable `namespaceObject`.
    pub(super) fn namespace_input<'a>(
        &'a self,
        request: &AdmissionRequest<'a>,
    ) -> NamespaceInput<'a> {
        match request.namespace {
            Some(name) if !request.resource.is_namespace() => match self.namespaces.get(name) {
                Some(namespace) => NamespaceInput::Known(namespace),
                None => NamespaceInput::Unknown(name),
            },
            _ => NamespaceInput::None,
        }
    }

    /// The invocations of a policy for a request, and what cannot be invoked.
    pub(super) fn invocations<'a>(
        &'a self,
        policy: &'a Frame,
        bindings: &'a [Binding],
        request: &AdmissionRequest<'_>,
    ) -> (Vec<Invocation<'a>>, Vec<NotInvoked>) {
        let (mut out, mut others) = (Vec::new(), Vec::new());
        let name = request.rule_namespace();
        let namespace = name.and_then(|it| self.namespaces.get(it));
        let missing_namespace = |binding: Option<&Binding>| NotInvoked {
            binding: binding.map(|it| it.name.clone()),
            reason: Reason::Missing(Missing::Namespace(name.unwrap_or_default().to_owned())),
        };
        if bindings.is_empty() {
            return (out, others);
        }
        let version = match policy.requests.matches(request, namespace) {
            Match::No => return (out, others),
            Match::Undecided => {
                others.push(missing_namespace(None));
                return (out, others);
            }
            Match::Version(version) => version,
        };
        for binding in bindings {
            match binding.requests.matches(request, namespace) {
                Match::No => continue,
                Match::Undecided => {
                    others.push(missing_namespace(Some(binding)));
                    continue;
                }
                Match::Version(_) => {}
            }
            match self.params_of(policy, binding, name) {
                Ok(params) => out.extend(params.into_iter().map(|params| Invocation {
                    binding,
                    version: version.clone(),
                    params,
                })),
                Err(reason) => others.push(NotInvoked {
                    binding: Some(binding.name.clone()),
                    reason,
                }),
            }
        }
        (out, others)
    }

    fn params_of(
        &self,
        policy: &Frame,
        binding: &Binding,
        namespace: Option<&str>,
    ) -> Result<Vec<Option<&Value>>, Reason> {
        let kind = policy.param_kind.as_ref();
        let scope = (
            kind.is_some_and(|it| self.is_namespaced(it)),
            self.is_complete || kind.is_some_and(|it| self.complete_kinds.contains(it)),
        );
        match self
            .params
            .find(kind, binding.params.as_ref(), namespace, scope)
        {
            Found::Params(params) => Ok(params),
            Found::Missing(what) => Err(Reason::Missing(Missing::Params(what))),
            Found::Error(reason) => Err(Reason::Configuration(reason)),
        }
    }

    fn is_namespaced(&self, kind: &ParamKind) -> bool {
        match BuiltInKind::find(&kind.api_version, &kind.kind) {
            Some(built_in) => built_in.is_namespaced(),
            None => !self.cluster_scoped.contains(kind),
        }
    }
}
