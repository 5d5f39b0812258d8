//! The rendered objects match the schemas of the API server: kubeconform, with schemas generated from its `OpenAPI`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::rendered::CASES;
use crate::fixture::Fixture;
use crate::helm::{Helm, kubeconform};
use crate::kubectl::Kubectl;
use crate::lockkeeper::Protocol;

/// Kinds of projects whose CRDs are not on the cluster, so there is no schema for them.
const UNPUBLISHED: &[&str] = &[
    "Certificate",
    "Issuer",
    "PodMonitor",
    "PrometheusRule",
    "ServiceMonitor",
];

pub fn matches_published_schemas(stage: &mut Fixture, _: Protocol) {
    let folder = stage.new_folder();
    let kubectl = stage.cluster().kubectl().clone();
    let schemas = folder.join("schemas");
    write_schemas(&kubectl, &schemas);
    let helm = Helm::without_cluster(&folder.join("helm"));
    let file = folder.join("rendered.yaml");
    for (name, values) in CASES.iter().chain([&("default", "")]) {
        fs::write(&file, helm.template(values).assert_silent().stdout).unwrap();
        let printed = kubeconform(&schemas, UNPUBLISHED, &file);
        assert!(printed.ok, "{name}: {}{}", printed.stdout, printed.stderr);
        assert!(
            printed.stdout.contains("Invalid: 0, Errors: 0"),
            "{}",
            printed.stdout
        );
    }
    // An unknown field is reported.
    let rendered = helm.template("").assert_silent().stdout;
    let wrong = rendered.replace("minAvailable: 1", "minimumAvailable: 1");
    fs::write(&file, wrong).unwrap();
    let printed = kubeconform(&schemas, UNPUBLISHED, &file);
    assert!(
        printed.stdout.contains("Invalid: 1, Errors: 0"),
        "{}",
        printed.stdout
    );
}

/// Writes a schema file for each kind that the API server serves.
fn write_schemas(kubectl: &Kubectl, folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let raw = |path: &str| -> Value {
        let reply = kubectl.run(&["get", "--raw", path]).expect_accepted();
        serde_json::from_str(&reply.stdout).unwrap()
    };
    let index = raw("/openapi/v3");
    for (path, entry) in index["paths"].as_object().unwrap() {
        if !path.starts_with("api/") && !path.starts_with("apis/") {
            continue;
        }
        let mut document = raw(entry["serverRelativeURL"].as_str().unwrap());
        tighten(&mut document["components"]);
        let components = &document["components"];
        for (name, schema) in components["schemas"].as_object().into_iter().flatten() {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array();
            for kind in kinds.into_iter().flatten() {
                let reference = format!("#/components/schemas/{name}");
                let whole = json!({"$ref": reference, "components": components});
                fs::write(folder.join(file(kind)), whole.to_string()).unwrap();
            }
        }
    }
}

/// The key that kubeconform expects: for a kind of the core group, the version takes the place of the group.
fn file(kind: &Value) -> String {
    let word = |key: &str| kind[key].as_str().unwrap().to_lowercase();
    let (group, version) = (word("group"), word("version"));
    let group = if group.is_empty() {
        version.clone()
    } else {
        group
    };
    format!("{}-{group}-{version}.json", word("kind"))
}

/// Makes every object schema reject unknown fields.
fn tighten(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let is_section = map.get("properties").is_some_and(Value::is_object);
            let is_open = map.contains_key("x-kubernetes-preserve-unknown-fields");
            if is_section && !is_open && map.get("type") == Some(&json!("object")) {
                map.entry("additionalProperties").or_insert(json!(false));
            }
            map.values_mut().for_each(tighten);
        }
        Value::Array(items) => items.iter_mut().for_each(tighten),
        _ => {}
    }
}
