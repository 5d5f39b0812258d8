//! Schema fragments that the derive macro cannot express.

use schemars::{Schema, SchemaGenerator, json_schema};

/// The longest DNS-1123 subdomain, in characters.
pub(crate) const SUBDOMAIN_LENGTH_MAX: usize = 253;

/// The longest DNS-1123 label, in characters.
pub(crate) const LABEL_LENGTH_MAX: usize = 63;

/// The longest name of a resource, label key, taint key or condition type, in characters: a
/// subdomain, a slash and a name of 63.
pub(crate) const QUALIFIED_NAME_LENGTH_MAX: usize = 317;

/// The longest path of a field in a declaration of a kind of jobs, in characters.
const JOB_PATH_LENGTH_MAX: usize = 256;

/// The longest CEL expression in a declaration of a kind of jobs, in characters. Kubernetes accepts 8,192 in a `matchCondition`.
const EXPRESSION_LENGTH_MAX: usize = 2048;

/// The most requirements of one label selector. Kubernetes has no limit; this one is far above practical use.
const SELECTOR_REQUIREMENTS_MAX: usize = 64;

/// The most values of one requirement, such as the names of namespaces.
const SELECTOR_VALUES_MAX: usize = 1024;

/// A pod template without a schema. An API server's cost per write grows with the schema, and the full pod template is
/// most of it; the webhook decodes it into a type instead. It is atomic: it has one owner in `managedFields`.
pub(crate) fn pod_template(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// The name of an object: a DNS-1123 subdomain.
pub(crate) fn subdomain(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": SUBDOMAIN_LENGTH_MAX,
        "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    })
}

/// The most names of PriorityClasses in a queue.
const PRIORITY_CLASSES_MAX: usize = 64;

/// The names of PriorityClasses.
pub(crate) fn priority_class_names(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": PRIORITY_CLASSES_MAX,
        "x-kubernetes-list-type": "set",
        "items": subdomain(generator),
    })
}

/// The name of a list entry: a DNS-1123 label.
pub(crate) fn label(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": LABEL_LENGTH_MAX,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    })
}

/// The kind of an object, such as `RayJob`.
pub(crate) fn kind_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": LABEL_LENGTH_MAX,
        "pattern": "^[A-Z][A-Za-z0-9]*$",
    })
}

/// The path of a field: names with dots between them, or `['a.b']` for a name with other signs.
pub(crate) fn job_path(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": JOB_PATH_LENGTH_MAX,
    })
}

/// A CEL expression.
pub(crate) fn expression(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": EXPRESSION_LENGTH_MAX,
    })
}

/// CEL expressions by resource.
pub(crate) fn request_expressions(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 16,
        "x-kubernetes-map-type": "atomic",
        "additionalProperties": expression(generator),
    })
}

/// A boolean or a text, of a field of another project.
pub(crate) fn flag_or_text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// The flavors of a pod set, by resource.
pub(crate) fn flavor_names(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": subdomain(generator),
    })
}

/// Labels of nodes.
pub(crate) fn node_labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 8,
        "x-kubernetes-map-type": "atomic",
        "additionalProperties": {"type": "string", "maxLength": LABEL_LENGTH_MAX},
    })
}

/// A label selector. k8s-openapi has the type; the bounds, the operators and the atomic fields are only in Kubernetes'
/// own schema.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "type": "object",
                "description": "Labels that must be present with exactly these values.",
                "maxProperties": SELECTOR_REQUIREMENTS_MAX,
                "additionalProperties": {"type": "string", "maxLength": LABEL_LENGTH_MAX},
            },
            "matchExpressions": {
                "type": "array",
                "description": "Requirements that must all hold, besides matchLabels.",
                "maxItems": SELECTOR_REQUIREMENTS_MAX,
                "x-kubernetes-list-type": "atomic",
                "items": requirement(),
            },
        },
    })
}

fn requirement() -> Schema {
    json_schema!({
        "type": "object",
        "required": ["key", "operator"],
        "properties": {
            "key": {
                "type": "string",
                "description": "The key of the label.",
                "maxLength": QUALIFIED_NAME_LENGTH_MAX,
            },
            "operator": {
                "type": "string",
                "description": "How the label relates to the values.",
                "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
            },
            "values": {
                "type": "array",
                "description": "The values for In and NotIn, at least one; none for Exists and \
                    DoesNotExist.",
                "maxItems": SELECTOR_VALUES_MAX,
                "x-kubernetes-list-type": "atomic",
                "items": {"type": "string", "maxLength": LABEL_LENGTH_MAX},
            },
        },
    })
}

/// Conditions, with the bounds of `metav1.Condition`. Each condition is atomic and has one owner: with an owner per
/// field, `metadata.managedFields` would be longer than the rest of a workload.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "description": "One aspect of the object's state.",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the status last changed.",
                },
                "message": {
                    "type": "string",
                    "maxLength": 32768,
                    "description": "Details for users; may be empty.",
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "The generation of the spec that the condition was set for.",
                },
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                    "description": "Why the status last changed, as one word in CamelCase.",
                },
                "status": {
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                    "description": "Whether the condition holds.",
                },
                "type": {
                    "type": "string",
                    "maxLength": QUALIFIED_NAME_LENGTH_MAX,
                    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                    "description": "The name of the aspect, in CamelCase.",
                },
            },
        },
    })
}

/// Taints of nodes. A misspelt effect would silently have no effect on pods.
pub(crate) fn taints(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 8,
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "description": "A taint, as in the spec of a node.",
            "required": ["effect", "key"],
            "properties": {
                "effect": taint_effect("What happens to pods that do not tolerate the taint."),
                "key": taint_key("The key of the taint."),
                "value": taint_value("The value of the taint."),
                "timeAdded": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the taint was added.",
                },
            },
        },
    })
}

/// Tolerations of pods.
pub(crate) fn tolerations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 8,
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "description": "A toleration, as in the spec of a pod.",
            "properties": {
                "effect": taint_effect("The effect that is tolerated; all when absent."),
                "key": taint_key("The key that is tolerated; all when absent, with Exists."),
                "operator": {
                    "type": "string",
                    "enum": ["Equal", "Exists"],
                    "description": "Whether the value must be equal, as by default, or does not \
                        matter.",
                },
                "value": taint_value("The value that is tolerated, with Equal."),
                "tolerationSeconds": {
                    "type": "integer",
                    "format": "int64",
                    "description": "How long NoExecute is tolerated, in seconds; for ever when \
                        absent.",
                },
            },
        },
    })
}

fn taint_effect(description: &str) -> Schema {
    json_schema!({
        "type": "string",
        "description": description,
        "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"],
    })
}

fn taint_key(description: &str) -> Schema {
    json_schema!({
        "type": "string",
        "description": description,
        "maxLength": QUALIFIED_NAME_LENGTH_MAX,
    })
}

fn taint_value(description: &str) -> Schema {
    json_schema!({
        "type": "string",
        "description": description,
        "maxLength": LABEL_LENGTH_MAX,
    })
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "tests fail by panicking"
    )]

    use kube::CustomResourceExt;
    use serde_json::Value;

    /// Every schema node of `root` with its path, pod templates left out (they have no schema).
    fn nodes(root: &Value, path: String, out: &mut Vec<(String, Value)>) {
        if let Some(properties) = root["properties"].as_object() {
            for (name, child) in properties {
                nodes(child, format!("{path}.{name}"), out);
            }
        }
        if root["items"].is_object() {
            nodes(&root["items"], format!("{path}[]"), out);
        }
        if root["additionalProperties"].is_object() {
            nodes(&root["additionalProperties"], format!("{path}{{}}"), out);
        }
        out.push((path, root.clone()));
    }

    #[test]
    fn fields_are_described_and_pod_templates_have_no_schema() {
        for crd in [
            crate::ClusterQueue::crd(),
            crate::Cohort::crd(),
            crate::LocalQueue::crd(),
            crate::ResourceFlavor::crd(),
            crate::Workload::crd(),
        ] {
            let json = serde_json::to_value(&crd).unwrap();
            let root = &json["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let mut all = Vec::new();
            nodes(root, crd.spec.names.kind.clone(), &mut all);
            for (path, node) in all {
                if path.ends_with("[]") || path.ends_with("{}") || path.ends_with("metadata") {
                    continue;
                }
                assert!(node["description"].is_string(), "{path} has no description");
                assert!(
                    !path.contains(".template."),
                    "{path}: the pod template must have no schema"
                );
            }
        }
    }
}
