#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::*;
use crate::yaml;
use lockkeeper_api::cluster_queue::StopPolicy;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::rule::Context;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::Value;

/// `kubectl apply` keeps the whole object in an annotation; all annotations together have room for
/// this many bytes.
const ANNOTATIONS_BYTES_MAX: usize = 262_144;

/// The definitions as JSON.
fn all() -> Vec<Value> {
    let definitions = definitions(&Settings::default()).unwrap();
    definitions
        .iter()
        .map(|crd| serde_json::to_value(crd).unwrap())
        .collect()
}

fn root(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// The schema of a kind.
fn schema_of(kind: &str) -> Value {
    let all = all();
    let crd = all
        .iter()
        .find(|crd| crd["spec"]["names"]["kind"] == kind)
        .unwrap();
    root(crd).clone()
}

/// Calls `visit` with each node of all schemas and its path.
fn each_node(mut visit: impl FnMut(&str, &Value)) {
    for crd in all() {
        walk(
            root(&crd),
            crd["spec"]["names"]["kind"].as_str().unwrap(),
            &mut visit,
        );
    }
}

fn walk(node: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, node);
    for (name, child) in node["properties"].as_object().into_iter().flatten() {
        walk(child, &format!("{path}.{name}"), visit);
    }
    for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if !node[key].is_null() {
            walk(&node[key], &format!("{path}{mark}"), visit);
        }
    }
}

fn is_quantity(node: &Value) -> bool {
    node["x-kubernetes-int-or-string"] == true
}

#[test]
fn definitions_have_expected_kinds_and_names() {
    let names: Vec<String> = definitions(&Settings::default())
        .unwrap()
        .into_iter()
        .filter_map(|crd| crd.metadata.name)
        .collect();
    assert_eq!(
        names,
        [
            "clusterqueues.lockkeeper.dev",
            "cohorts.lockkeeper.dev",
            "jobkinds.lockkeeper.dev",
            "localqueues.lockkeeper.dev",
            "resourceflavors.lockkeeper.dev",
            "workloads.lockkeeper.dev",
        ]
    );
    for crd in all() {
        assert!(crd["status"].is_null());
        assert_eq!(crd["spec"]["versions"].as_array().unwrap().len(), 1);
        assert!(root(&crd)["description"].is_string());
    }
}

#[test]
fn schemas_are_structural() {
    each_node(|path, node| {
        let open = node["x-kubernetes-preserve-unknown-fields"] == true;
        assert!(
            node["type"].is_string() || is_quantity(node) || open,
            "{path} has no type: {node}"
        );
        for key in [
            "$ref", "allOf", "oneOf", "not", "const", "title", "nullable",
        ] {
            assert!(node[key].is_null(), "{path} has {key}");
        }
        let any_of = &node["anyOf"];
        if is_quantity(node) {
            assert_eq!(
                *any_of,
                json!([{"type": "integer"}, {"type": "string"}]),
                "{path}"
            );
            assert!(node["type"].is_null(), "{path}");
        } else {
            assert!(any_of.is_null(), "{path} has anyOf");
        }
        let both = !node["properties"].is_null() && !node["additionalProperties"].is_null();
        assert!(!both, "{path} has properties and additionalProperties");
        assert!(node["default"] != Value::Null || node.get("default").is_none());
    });
}

#[test]
fn fields_are_described() {
    each_node(|path, node| {
        let field = path.contains('.') && !path.ends_with(['.', ']', '}']);
        assert!(
            !field || node["description"].is_string(),
            "{path} has no description"
        );
    });
}

/// A field without a bound has an unbounded validation cost.
#[test]
fn lists_maps_and_strings_are_bounded() {
    each_node(|path, node| {
        let bound = match node["type"].as_str() {
            Some("array") => {
                assert!(node["items"].is_object(), "{path} has no items");
                "maxItems"
            }
            Some("string") if node["enum"].is_null() && node["format"] != "date-time" => {
                "maxLength"
            }
            None if is_quantity(node) => "maxLength",
            Some("object") if node["additionalProperties"].is_object() => "maxProperties",
            _ => return,
        };
        assert!(node[bound].is_u64(), "{path} has no {bound}");
    });
}

#[test]
fn formats_are_known_to_api_server() {
    each_node(|path, node| {
        let format = node["format"].as_str();
        assert!(
            matches!(format, None | Some("int32" | "int64" | "date-time")),
            "{path}: {format:?}"
        );
    });
}

#[test]
fn schema_defaults_are_valid_values() {
    each_node(|path, node| {
        let Some(default) = node.get("default") else {
            return;
        };
        let fits = match node["type"].as_str() {
            Some("string") => default.is_string(),
            Some("integer") => default.is_i64(),
            Some("boolean") => default.is_boolean(),
            Some("object") => default.is_object(),
            Some("array") => default.is_array(),
            _ => is_quantity(node) && default.is_string(),
        };
        assert!(fits, "{path}: {default}");
        if let Some(values) = node["enum"].as_array() {
            assert!(values.contains(default), "{path}: {default}");
        }
    });
}

#[test]
fn list_map_keys_are_required_or_defaulted() {
    each_node(|path, node| {
        for key in node["x-kubernetes-list-map-keys"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let items = &node["items"];
            let required = items["required"]
                .as_array()
                .is_some_and(|names| names.contains(key));
            let defaulted = !items["properties"][key.as_str().unwrap()]["default"].is_null();
            assert!(required || defaulted, "{path}: {key}");
        }
    });
}

#[test]
fn only_resource_flavor_has_optional_spec() {
    for crd in all() {
        let required = root(&crd)["required"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let default = &root(&crd)["properties"]["spec"]["default"];
        if crd["spec"]["names"]["kind"] == "ResourceFlavor" {
            assert_eq!((required, default), (vec![], &json!({})));
        } else {
            assert_eq!((required, default), (vec![json!("spec")], &Value::Null));
        }
    }
}

#[test]
fn pod_template_has_no_schema() {
    let workload = schema_of("Workload");
    let template =
        &workload["properties"]["spec"]["properties"]["podSets"]["items"]["properties"]["template"];
    assert_eq!(template["x-kubernetes-preserve-unknown-fields"], true);
    assert!(template["properties"].is_null());
}

/// The derive's own schema describes these fields by their type.
#[test]
fn enums_are_described_by_field_and_values() {
    let queue = schema_of("ClusterQueue");
    let policy = &queue["properties"]["spec"]["properties"]["preemption"]["properties"]["reclaimWithinCohort"];
    let description = policy["description"].as_str().unwrap();
    assert!(
        description.starts_with("Which workloads of other queues"),
        "{description}"
    );
    assert!(
        description.ends_with("\n- Any: Any borrowing workload."),
        "{description}"
    );
}

#[test]
fn definitions_fit_into_the_annotation_of_kubectl() {
    for crd in all() {
        let bytes = crd.to_string().len();
        assert!(bytes < ANNOTATIONS_BYTES_MAX / 4, "{bytes}");
    }
}

#[test]
fn definition_yaml_round_trips() {
    for crd in definitions(&Settings::default()).unwrap() {
        let text = yaml::document(&crd).unwrap();
        assert!(!text.contains("null\n"), "{text}");
        let read: CustomResourceDefinition = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read, crd);
        let order: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split_once(':').map(|(key, _)| key))
            .filter(|key| !key.starts_with([' ', '-']))
            .collect();
        assert_eq!(order, ["apiVersion", "kind", "metadata", "spec"]);
    }
}

/// Fills in the defaults of a schema, as the API server does.
fn default_by_schema(value: &mut Value, node: &Value) {
    if let (Value::Object(map), Some(properties)) = (&mut *value, node["properties"].as_object()) {
        for (name, child) in properties {
            if let Some(default) = child.get("default") {
                map.entry(name).or_insert_with(|| default.clone());
            }
            if let Some(field) = map.get_mut(name) {
                default_by_schema(field, child);
            }
        }
    }
    for item in value.as_array_mut().into_iter().flatten() {
        default_by_schema(item, &node["items"]);
    }
}

/// Fills in what the webhook would.
fn default_by_webhook<T: ValidatedKind>(value: &mut Value) {
    let object: T = serde_json::from_value(value.clone()).unwrap();
    let (index, settings) = (Index::default(), Settings::default());
    let context = Context {
        cluster: &index,
        settings: &settings,
    };
    for filled in T::defaults(&object, None, &context).items() {
        filled.apply(value);
    }
}

/// Whether it is the API server that fills in or the webhook, the outcome is the same.
#[track_caller]
fn same_defaults<T: ValidatedKind>(kind: &str, spec: &Value) {
    let schema = schema_of(kind);
    let input = json!({"metadata": {"name": "sample"}, "spec": spec});

    let mut by_webhook = input.clone();
    default_by_webhook::<T>(&mut by_webhook);
    let mut webhook_first = by_webhook.clone();
    default_by_schema(&mut webhook_first, &schema);
    assert_eq!(
        webhook_first, by_webhook,
        "the schema has a default that the webhook has not"
    );

    let mut schema_first = input;
    default_by_schema(&mut schema_first, &schema);
    default_by_webhook::<T>(&mut schema_first);
    assert_eq!(schema_first, by_webhook);
}

#[test]
fn schema_defaults_match_webhook_defaults() {
    let queue = |spec| same_defaults::<ClusterQueue>("ClusterQueue", &spec);
    queue(json!({}));
    queue(json!({"flavorFungibility": {}, "fairSharing": {}, "preemption": {}}));
    queue(json!({"flavorFungibility": {"whenCanBorrow": "TryNextFlavor"}, "elastic": {}}));
    queue(json!({"preemption": {"borrowWithinCohort": {}}, "stopPolicy": "Hold"}));

    let workload = |spec| same_defaults::<Workload>("Workload", &spec);
    workload(json!({"podSets": [{"template": {}}]}));
    workload(json!({
        "podSets": [{"template": {}, "count": 2, "podGroupName": "workers"}],
        "podGroups": [{"name": "workers"}, {"name": "others", "replicas": 3}],
        "active": false,
    }));
    same_defaults::<ResourceFlavor>("ResourceFlavor", &json!({}));
}

/// Kinds that the webhook does not default have defaults all the same.
#[test]
fn schema_only_defaults_are_applied() {
    let mut cohort = json!({"spec": {"fairSharing": {}}});
    default_by_schema(&mut cohort, &schema_of("Cohort"));
    assert_eq!(cohort["spec"]["fairSharing"]["weight"], "1");

    let mut queue = json!({"spec": {"clusterQueue": "research"}});
    default_by_schema(&mut queue, &schema_of("LocalQueue"));
    assert_eq!(queue["spec"]["stopPolicy"], json!(StopPolicy::default()));
}
