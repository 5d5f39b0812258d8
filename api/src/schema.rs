//! Schema fragments that derive cannot express.

use schemars::{Schema, SchemaGenerator, json_schema};

/// The longest DNS-1123 subdomain, in characters.
pub(crate) const SUBDOMAIN_LENGTH_MAX: usize = 253;

/// The longest DNS-1123 label, in characters.
pub(crate) const LABEL_LENGTH_MAX: usize = 63;

/// A pod template without a schema. An API server's cost per write grows with the schema, and the
/// full pod template is most of it; the webhook decodes it typed instead.
pub(crate) fn pod_template(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "description": "The pods of this pod set, as in a Job's spec.template. It has no schema \
            here: the webhook decodes it and reports what does not fit.",
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

/// The name of a list entry: a DNS-1123 label.
pub(crate) fn label(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": LABEL_LENGTH_MAX,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
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
    fn every_field_is_described_and_no_pod_template_has_a_schema() {
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
