//! Parameters of policies, as `CollectParams` of `k8s.io/apiserver/pkg/admission/plugin/policy/generic`.

use super::request::labels_of;
use super::selector::Selector;
use crate::crd::values::{metadata_of, text_at};
use serde_json::Value;
use std::collections::BTreeMap;

/// The kind of the parameters of a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ParamKind {
    pub(super) api_version: String,
    pub(super) kind: String,
}

/// The parameters that a binding uses.
#[derive(Debug)]
pub(super) struct ParamRef {
    name: String,
    namespace: String,
    selector: Option<Selector>,
    /// Whether requests are denied without parameters.
    denies_without: bool,
}

/// All known parameters by kind, and by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Params(BTreeMap<ParamKind, BTreeMap<(String, String), Value>>);

/// The parameters of a binding for a request.
#[derive(Debug, PartialEq)]
pub(super) enum Found<'a> {
    /// The policy decides once for each; `None` is a decision without parameters.
    Params(Vec<Option<&'a Value>>),
    /// The binding cannot be used.
    Error(String),
    /// These parameters are not known.
    Missing(String),
}

impl ParamKind {
    /// The kind of a policy, if it has parameters.
    pub(super) fn new(field: Option<&Value>) -> Option<Self> {
        let field = field?;
        Some(Self {
            api_version: text_at(field, "apiVersion")?.to_owned(),
            kind: text_at(field, "kind")?.to_owned(),
        })
    }

    /// The kind with a version and name.
    pub(super) fn named(api_version: &str, kind: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    fn of_object(object: &Value) -> Option<Self> {
        Self::new(Some(object))
    }
}

impl ParamRef {
    pub(super) fn new(field: &Value) -> Self {
        let text = |key: &str| text_at(field, key).unwrap_or_default().to_owned();
        Self {
            name: text("name"),
            namespace: text("namespace"),
            selector: field.get("selector").map(|it| Selector::new(Some(it))),
            denies_without: text("parameterNotFoundAction") == "Deny",
        }
    }
}

impl Params {
    /// Adds an object of a kind of parameters.
    pub(super) fn add(&mut self, object: &Value) {
        let Some(kind) = ParamKind::of_object(object) else {
            return;
        };
        let metadata = metadata_of(object);
        let text = |key: &str| {
            let text = metadata.get(key).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let objects = self.0.entry(kind).or_default();
        let key = (text("namespace"), text("name"));
        objects.entry(key).or_insert_with(|| object.clone());
    }

    /// Adds other parameters. Those here are preferred.
    pub(super) fn merge(&mut self, other: Self) {
        for (kind, objects) in other.0 {
            let own = self.0.entry(kind).or_default();
            for (key, object) in objects {
                own.entry(key).or_insert(object);
            }
        }
    }

    /// The parameters of a binding for a request in a namespace. `is_complete`: there are no others.
    pub(super) fn find(
        &self,
        kind: Option<&ParamKind>,
        reference: Option<&ParamRef>,
        request_namespace: Option<&str>,
        (is_namespaced, is_complete): (bool, bool),
    ) -> Found<'_> {
        let (Some(kind), Some(reference)) = (kind, reference) else {
            return Found::Params(vec![None]);
        };
        let namespace = match (is_namespaced, &*reference.namespace, request_namespace) {
            (true, "", None) => {
                let reason = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
                return Found::Error(reason.to_owned());
            }
            (true, "", Some(namespace)) | (true, namespace, _) => namespace,
            (false, "", _) => "",
            (false, _, _) => {
                let reason =
                    "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
                return Found::Error(reason.to_owned());
            }
        };
        let all = self.0.get(kind).into_iter().flatten();
        let here = all.filter(|((other, _), _)| other == namespace);
        let found = here.filter(|((_, name), object)| match &reference.selector {
            Some(selector) => selector.selects(labels_of(object)),
            None => *name == reference.name,
        });
        let found: Vec<_> = found.map(|(_, object)| Some(object)).collect();
        if !found.is_empty() && (is_complete || reference.selector.is_none()) {
            return Found::Params(found);
        }
        if !is_complete {
            let what = match &reference.selector {
                Some(_) => "by labels".to_owned(),
                None if namespace.is_empty() => reference.name.clone(),
                None => format!("{namespace}/{}", reference.name),
            };
            return Found::Missing(format!("{} {what}", kind.kind));
        }
        if reference.denies_without {
            let reason = "no params found for policy binding with `Deny` parameterNotFoundAction";
            return Found::Error(reason.to_owned());
        }
        Found::Params(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::{Found, ParamKind, ParamRef, Params};
    use serde_json::json;

    #[test]
    fn parameters_are_found_by_name_or_labels() {
        let mut params = Params::default();
        for (namespace, name, size) in [("a", "limits", 1), ("b", "limits", 2), ("a", "more", 3)] {
            params.add(&json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": namespace, "labels": {"set": namespace}},
                "data": {"size": size},
            }));
        }
        let kind = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        let kind = ParamKind::new(Some(&kind)).unwrap();
        let find = |reference: &serde_json::Value, request: Option<&str>, is_complete| {
            let reference = ParamRef::new(reference);
            match params.find(Some(&kind), Some(&reference), request, (true, is_complete)) {
                Found::Params(found) => found
                    .iter()
                    .map(|it| it.unwrap()["data"]["size"].to_string())
                    .collect::<Vec<_>>()
                    .join(" "),
                Found::Error(reason) | Found::Missing(reason) => reason,
            }
        };
        let deny = "no params found for policy binding with `Deny` parameterNotFoundAction";
        for (reference, request, is_complete, expected) in [
            (json!({"name": "limits"}), Some("a"), true, "1"),
            (
                json!({"name": "limits", "namespace": "b"}),
                Some("a"),
                true,
                "2",
            ),
            (json!({"name": "limits", "namespace": "b"}), None, true, "2"),
            (
                json!({"selector": {"matchLabels": {"set": "a"}}}),
                Some("a"),
                true,
                "1 3",
            ),
            (json!({"selector": {}}), Some("b"), true, "2"),
            (
                json!({"name": "none", "parameterNotFoundAction": "Deny"}),
                Some("a"),
                true,
                deny,
            ),
            (
                json!({"name": "none"}),
                Some("a"),
                false,
                "ConfigMap a/none",
            ),
            (
                json!({"selector": {}}),
                Some("a"),
                false,
                "ConfigMap by labels",
            ),
            (
                json!({"name": "limits"}),
                None,
                true,
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources",
            ),
        ] {
            assert_eq!(
                find(&reference, request, is_complete),
                expected,
                "{reference}"
            );
        }
    }

    #[test]
    fn a_binding_without_parameters_decides_once() {
        let kind = ParamKind::named("v1", "ConfigMap");
        let found = Params::default();
        let found = found.find(Some(&kind), None, None, (true, true));
        assert_eq!(found, Found::Params(vec![None]));
    }
}
