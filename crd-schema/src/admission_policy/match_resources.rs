//! Which requests a policy or a binding matches (`MatchResources`), as `policy/matching` and `webhook/predicates` of
//! `k8s.io/apiserver`.

use super::request::{AdmissionRequest, labels_of};
use super::selector::Selector;
use crate::crd::values::{array_at, text_at, texts_at};
use serde_json::{Map, Value, json};

/// The label with the name of a namespace, which each has.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The requests that match.
#[derive(Debug, Default)]
pub(super) struct MatchResources {
    namespaces: Selector,
    objects: Selector,
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    /// Whether requests in other versions of the resource do not match.
    is_exact: bool,
}

/// A rule with the operations and resources of requests.
#[derive(Debug)]
struct Rule {
    names: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    operations: Vec<String>,
    resources: Vec<String>,
    scope: Scope,
}

#[derive(Debug)]
enum Scope {
    Any,
    Cluster,
    Namespaced,
}

/// Whether a request matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Match {
    No,
    /// In this version of the resource.
    Version(String),
    /// That depends on the labels of the Namespace of the request, which are not known.
    Undecided,
}

impl MatchResources {
    /// Reads a field; an absent one matches everything.
    pub(super) fn new(field: Option<&Value>) -> Self {
        let Some(field) = field else {
            return Self::default();
        };
        let rules = |key: &str| array_at(field, key).iter().map(Rule::new).collect();
        Self {
            namespaces: Selector::new(field.get("namespaceSelector")),
            objects: Selector::new(field.get("objectSelector")),
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
            is_exact: text_at(field, "matchPolicy") == Some("Exact"),
        }
    }

    /// Whether a request matches. `namespace` is the Namespace of the request, if it is known.
    pub(super) fn matches(
        &self,
        request: &AdmissionRequest<'_>,
        namespace: Option<&Value>,
    ) -> Match {
        let in_namespace = self.selects_namespace(request, namespace);
        if in_namespace == Some(false) || !self.selects_object(request) {
            return Match::No;
        }
        if self.version_of(&self.excluded, request).is_some() {
            return Match::No;
        }
        let version = if self.rules.is_empty() {
            Some(&*request.resource.version)
        } else {
            self.version_of(&self.rules, request)
        };
        match (version, in_namespace) {
            (None, _) => Match::No,
            (Some(_), None) => Match::Undecided,
            (Some(version), _) => Match::Version(version.to_owned()),
        }
    }

    fn selects_object(&self, request: &AdmissionRequest<'_>) -> bool {
        let mut objects = [Some(request.object), request.old].into_iter().flatten();
        self.objects.is_empty() || objects.any(|it| self.objects.selects(labels_of(it)))
    }

    /// `None` if that depends on labels that are not known.
    fn selects_namespace(
        &self,
        request: &AdmissionRequest<'_>,
        namespace: Option<&Value>,
    ) -> Option<bool> {
        // Requests for cluster-scoped objects match, except those for namespaces.
        let Some(name) = request
            .rule_namespace()
            .filter(|_| !self.namespaces.is_empty())
        else {
            return Some(true);
        };
        let known = if request.resource.is_namespace() {
            Some(request.object)
        } else {
            namespace
        };
        let mut labels: Map<String, Value> = known.map(labels_of).cloned().unwrap_or_default();
        labels.insert(NAME_LABEL.to_owned(), json!(name));
        match known {
            Some(_) => Some(self.namespaces.selects(&labels)),
            None => self.namespaces.selects_known(&labels),
        }
    }

    /// The version of the resource in which one of the rules matches.
    fn version_of<'a>(&self, rules: &[Rule], request: &AdmissionRequest<'a>) -> Option<&'a str> {
        let resource = request.resource;
        let matching = |version: &str| rules.iter().any(|it| it.matches(request, version));
        if matching(&resource.version) {
            return Some(&resource.version);
        }
        let others = if self.is_exact {
            &[]
        } else {
            resource.other_versions.as_slice()
        };
        others.iter().map(String::as_str).find(|it| matching(it))
    }
}

impl Rule {
    fn new(rule: &Value) -> Self {
        Self {
            names: texts_at(rule, "resourceNames"),
            groups: texts_at(rule, "apiGroups"),
            versions: texts_at(rule, "apiVersions"),
            operations: texts_at(rule, "operations"),
            resources: texts_at(rule, "resources"),
            scope: match text_at(rule, "scope") {
                Some("Cluster") => Scope::Cluster,
                Some("Namespaced") => Scope::Namespaced,
                _ => Scope::Any,
            },
        }
    }

    fn matches(&self, request: &AdmissionRequest<'_>, version: &str) -> bool {
        let resource = request.resource;
        let is_cluster = resource.is_namespace() || request.namespace.is_none();
        let in_scope = match self.scope {
            Scope::Any => true,
            Scope::Cluster => is_cluster,
            Scope::Namespaced => !is_cluster,
        };
        let has_resource = self.resources.iter().any(|it| {
            let (name, sub) = it.split_once('/').unwrap_or((it, ""));
            (name == "*" || name == resource.plural) && matches!(sub, "" | "*")
        });
        in_scope
            && has(&self.operations, request.operation())
            && has(&self.groups, &resource.group)
            && has(&self.versions, version)
            && has_resource
            && (self.names.is_empty() || self.names.iter().any(|it| it == request.name()))
    }
}

/// Whether a list has a value, or the wildcard.
fn has(list: &[String], value: &str) -> bool {
    list.iter().any(|it| it == "*" || it == value)
}

#[cfg(test)]
mod tests {
    use super::{Match, MatchResources};
    use crate::admission_policy::request::{AdmissionRequest, Resource};
    use serde_json::{Value, json};

    fn rule(changes: &Value) -> Value {
        let mut rule = json!({
            "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"],
        });
        for (key, value) in changes.as_object().unwrap() {
            rule[key] = value.clone();
        }
        rule
    }

    fn matched(field: &Value, old: Option<&Value>, namespace: Option<&Value>) -> String {
        let object =
            json!({"metadata": {"name": "web", "namespace": "a", "labels": {"tier": "web"}}});
        let mut resource = Resource::new("apps", "v1", "Deployment", "deployments");
        resource.other_versions = vec!["v1beta1".to_owned()];
        let mut request = AdmissionRequest::create(&object, &resource, Some("a"));
        request.old = old;
        match MatchResources::new(Some(field)).matches(&request, namespace) {
            Match::No => "no".to_owned(),
            Match::Version(version) => version,
            Match::Undecided => "undecided".to_owned(),
        }
    }

    #[test]
    fn requests_match_by_rules() {
        for (changes, expected) in [
            (json!({}), "v1"),
            (json!({"apiGroups": ["*"], "resources": ["*"]}), "v1"),
            (json!({"resources": ["*/*"]}), "v1"),
            (json!({"resources": ["deployments/scale"]}), "no"),
            (json!({"operations": ["UPDATE"]}), "no"),
            (json!({"operations": ["*"]}), "v1"),
            (json!({"apiVersions": ["v1beta1"]}), "v1beta1"),
            (json!({"apiVersions": ["v2"]}), "no"),
            (json!({"scope": "Cluster"}), "no"),
            (json!({"scope": "Namespaced"}), "v1"),
            (json!({"resourceNames": ["web"]}), "v1"),
            (json!({"resourceNames": ["api"]}), "no"),
        ] {
            let field = json!({"resourceRules": [rule(&changes)]});
            assert_eq!(matched(&field, None, None), expected, "{changes}");
        }
        let excluded = json!({"resourceRules": [rule(&json!({}))], "excludeResourceRules": [rule(&json!({}))]});
        assert_eq!(matched(&excluded, None, None), "no");
        let exact = json!({"resourceRules": [rule(&json!({"apiVersions": ["v1beta1"]}))], "matchPolicy": "Exact"});
        assert_eq!(matched(&exact, None, None), "no");
        assert_eq!(matched(&json!({}), None, None), "v1");
        let update = json!({"resourceRules": [rule(&json!({"operations": ["UPDATE"]}))]});
        assert_eq!(matched(&update, Some(&json!({})), None), "v1");
    }

    #[test]
    fn requests_match_by_labels() {
        let team = json!({"metadata": {"name": "a", "labels": {"team": "x"}}});
        for (field, known, expected) in [
            (
                json!({"objectSelector": {"matchLabels": {"tier": "web"}}}),
                None,
                "v1",
            ),
            (
                json!({"objectSelector": {"matchLabels": {"tier": "db"}}}),
                None,
                "no",
            ),
            (
                json!({"namespaceSelector": {"matchLabels": {"team": "x"}}}),
                None,
                "undecided",
            ),
            (
                json!({"namespaceSelector": {"matchLabels": {"team": "x"}}}),
                Some(&team),
                "v1",
            ),
            (
                json!({"namespaceSelector": {"matchLabels": {"team": "y"}}}),
                Some(&team),
                "no",
            ),
            (
                json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "a"}}}),
                None,
                "v1",
            ),
            (
                json!({"namespaceSelector": {"matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["a"]},
                ]}}),
                None,
                "no",
            ),
        ] {
            assert_eq!(matched(&field, None, known), expected, "{field}");
        }
        // The labels of the old object count as well.
        let field = json!({"objectSelector": {"matchLabels": {"tier": "db"}}});
        let old = json!({"metadata": {"labels": {"tier": "db"}}});
        assert_eq!(matched(&field, Some(&old), None), "v1");
    }
}
