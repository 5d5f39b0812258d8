//! The request that policies decide about.

use crate::crd::values::{metadata_of, text_at};
use serde_json::{Map, Value, json};

/// The resource of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// The name in paths, such as `deployments`.
    pub plural: String,
    /// The other versions in which the API server serves the objects.
    pub other_versions: Vec<String>,
    /// What changes between the versions.
    pub conversion: Conversion,
}

/// What changes when an object is converted to another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Only `apiVersion`.
    ApiVersion,
    /// Not known here.
    Unknown,
}

impl Resource {
    /// A resource with one version.
    #[must_use]
    pub fn new(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            other_versions: Vec::new(),
            conversion: Conversion::Unknown,
        }
    }

    /// The name in paths that most kinds have, for a kind without a definition.
    #[must_use]
    pub fn plural_of(kind: &str) -> String {
        let name = kind.to_lowercase();
        if name.ends_with("endpoints") {
            name
        } else if name.ends_with('s') {
            name + "es"
        } else if let Some(stem) = name.strip_suffix('y') {
            format!("{stem}ies")
        } else {
            name + "s"
        }
    }

    pub(super) fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.version == "v1" && self.plural == "namespaces"
    }
}

/// The user of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// The name.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
}

/// A request of `kubectl apply` that creates or updates an object.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionRequest<'a> {
    /// The object with its defaults, as the API server would store it.
    pub object: &'a Value,
    /// The stored object, for an update.
    pub old: Option<&'a Value>,
    /// The resource.
    pub resource: &'a Resource,
    /// The namespace; `None` for cluster-scoped objects.
    pub namespace: Option<&'a str>,
    /// The user; `None` if it is not known.
    pub user: Option<&'a UserInfo>,
}

impl<'a> AdmissionRequest<'a> {
    /// The request of an unknown user that creates an object.
    #[must_use]
    pub fn create(object: &'a Value, resource: &'a Resource, namespace: Option<&'a str>) -> Self {
        Self {
            object,
            old: None,
            resource,
            namespace,
            user: None,
        }
    }

    /// The name of the operation.
    pub(super) fn operation(&self) -> &'static str {
        match self.old {
            Some(_) => "UPDATE",
            None => "CREATE",
        }
    }

    /// The name of the object.
    pub(super) fn name(&self) -> &'a str {
        let name = metadata_of(self.object).get("name");
        name.and_then(Value::as_str).unwrap_or_default()
    }

    /// The namespace as rules see it: an object of the kind Namespace is in its own one.
    pub(super) fn rule_namespace(&self) -> Option<&'a str> {
        if self.resource.is_namespace() {
            Some(self.name())
        } else {
            self.namespace
        }
    }

    /// The variable `request`, for a policy that matches the request in a version. Without the user.
    pub(super) fn variable(&self, version: &str) -> Value {
        let Resource {
            group,
            kind,
            plural,
            ..
        } = self.resource;
        let kind_in = |version: &str| json!({"group": group, "version": version, "kind": kind});
        let resource_in =
            |version: &str| json!({"group": group, "version": version, "resource": plural});
        let own = &self.resource.version;
        let options = match self.old {
            Some(_) => "UpdateOptions",
            None => "CreateOptions",
        };
        let mut out = json!({
            "kind": kind_in(version),
            "resource": resource_in(version),
            "requestKind": kind_in(own),
            "requestResource": resource_in(own),
            "name": self.name(),
            "operation": self.operation(),
            "dryRun": false,
            "options": {
                "apiVersion": "meta.k8s.io/v1", "kind": options,
                "fieldManager": "kubectl-client-side-apply", "fieldValidation": "Strict",
            },
        });
        if let (Some(fields), Some(namespace)) = (out.as_object_mut(), self.rule_namespace()) {
            fields.insert("namespace".to_owned(), namespace.into());
        }
        out
    }

    /// The variable `request.userInfo`.
    pub(super) fn user_variable(&self) -> Option<Value> {
        let user = self.user?;
        Some(json!({"username": user.name, "groups": user.groups}))
    }
}

/// The labels of an object.
pub(super) fn labels_of(object: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    let labels = metadata_of(object).get("labels");
    labels.and_then(Value::as_object).unwrap_or(&EMPTY)
}

/// The group and version of an object.
pub(super) fn group_version(object: &Value) -> (&str, &str) {
    let version = text_at(object, "apiVersion").unwrap_or_default();
    version.split_once('/').unwrap_or(("", version))
}

#[cfg(test)]
mod tests {
    use super::Resource;

    #[test]
    fn names_in_paths_follow_the_kind() {
        for (kind, expected) in [
            ("Pod", "pods"),
            ("NetworkPolicy", "networkpolicies"),
            ("Ingress", "ingresses"),
            ("Endpoints", "endpoints"),
            ("ClusterQueue", "clusterqueues"),
        ] {
            assert_eq!(Resource::plural_of(kind), expected);
        }
    }
}
