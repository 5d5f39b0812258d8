//! Schemas for editors and for tools that do not read CRDs: JSON Schema (draft 7, which all of them
//! support) for each kind and for the configuration file, a catalogue, and an OpenAPI document.

use crate::plain_definitions;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lockkeeper_api::config::Config;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The dialect of the schemas.
const DIALECT: &str = "http://json-schema.org/draft-07/schema#";

/// The file of the schema of the configuration.
pub const CONFIG_FILE: &str = "lockkeeper-config.json";

/// The file of the catalogue, in the form of SchemaStore.
pub const CATALOGUE_FILE: &str = "catalog.json";

/// The file of the OpenAPI document.
pub const OPENAPI_FILE: &str = "openapi.json";

/// A file with its path below the folder of schemas.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaFile {
    /// The path.
    pub path: String,
    /// The schema.
    pub schema: Value,
}

/// A version of a kind.
struct Kind {
    group: String,
    version: String,
    name: String,
    is_namespaced: bool,
    plural: String,
    schema: Value,
}

impl Kind {
    /// The path by kubeconform's template: `{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json`.
    fn path(&self) -> String {
        format!(
            "{}/{}_{}.json",
            self.group,
            self.name.to_lowercase(),
            self.version
        )
    }

    fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// The name in the components of an OpenAPI document: the group's parts in reverse order.
    fn component(&self) -> String {
        let mut parts: Vec<&str> = self.group.split('.').collect();
        parts.reverse();
        format!("{}.{}.{}", parts.join("."), self.version, self.name)
    }
}

/// All files, in the order of their paths.
#[must_use]
pub fn files() -> Vec<SchemaFile> {
    let kinds = kinds(plain_definitions());
    let mut out: Vec<SchemaFile> = kinds
        .iter()
        .map(|kind| SchemaFile {
            path: kind.path(),
            schema: kind_schema(kind),
        })
        .collect();
    for (path, schema) in [
        (CATALOGUE_FILE, catalogue(&kinds)),
        (CONFIG_FILE, config_schema()),
        (OPENAPI_FILE, open_api(&kinds)),
    ] {
        out.push(SchemaFile {
            path: path.to_owned(),
            schema,
        });
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    out
}

fn kinds(definitions: Vec<CustomResourceDefinition>) -> Vec<Kind> {
    let mut out = Vec::new();
    for definition in definitions {
        let spec = definition.spec;
        for version in spec.versions {
            let schema = version.schema.and_then(|it| it.open_api_v3_schema);
            // A schema is plain data, so it always serializes.
            let schema = serde_json::to_value(schema).unwrap_or_default();
            out.push(Kind {
                group: spec.group.clone(),
                version: version.name,
                name: spec.names.kind.clone(),
                is_namespaced: spec.scope == "Namespaced",
                plural: spec.names.plural.clone(),
                schema,
            });
        }
    }
    out
}

/// The JSON Schema of a kind. Unknown fields are rejected, as with strict field validation; the status,
/// which no user writes by hand, is omitted.
fn kind_schema(kind: &Kind) -> Value {
    let mut schema = kind.schema.clone();
    forbid_unknown_fields(&mut schema);
    if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        fields.insert(
            "apiVersion".to_owned(),
            json!({"type": "string", "enum": [kind.api_version()]}),
        );
        fields.insert(
            "kind".to_owned(),
            json!({"type": "string", "enum": [kind.name]}),
        );
        fields.insert("metadata".to_owned(), json!({"type": "object"}));
        fields.insert(
            "status".to_owned(),
            json!({"type": "object", "description": "Written by lockkeeper."}),
        );
    }
    let required = schema.get("required").and_then(Value::as_array).cloned();
    let mut names: Vec<Value> = ["apiVersion", "kind", "metadata"].map(Value::from).to_vec();
    names.extend(required.into_iter().flatten());
    if let Value::Object(fields) = &mut schema {
        fields.insert("required".to_owned(), names.into());
        fields.insert("$schema".to_owned(), DIALECT.into());
        fields.insert("title".to_owned(), kind.name.clone().into());
    }
    schema
}

/// Turns a structural schema into JSON Schema: drops the extensions of Kubernetes, and forbids
/// unknown fields.
fn forbid_unknown_fields(node: &mut Value) {
    let Value::Object(fields) = node else {
        return;
    };
    // Read first: the next line drops the extension.
    let is_open = fields.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    fields.retain(|key, _| !key.starts_with("x-kubernetes-"));
    // `int32` and `int64` are formats of Kubernetes, not of JSON Schema.
    if fields
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|it| it.starts_with("int"))
    {
        fields.remove("format");
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = fields.get_mut(key) {
            forbid_unknown_fields(child);
        }
    }
    if let Some(Value::Object(children)) = fields.get_mut("properties") {
        children.values_mut().for_each(forbid_unknown_fields);
        if !is_open {
            // A map keeps the schema of its entries.
            fields.entry("additionalProperties").or_insert(false.into());
        }
    }
}

fn config_schema() -> Value {
    let settings = SchemaSettings::draft07();
    let schema = settings.into_generator().into_root_schema_for::<Config>();
    let mut schema = schema.to_value();
    if let Value::Object(fields) = &mut schema {
        fields.insert("title".to_owned(), "Configuration of lockkeeper".into());
    }
    schema
}

fn catalogue(kinds: &[Kind]) -> Value {
    let mut schemas: Vec<Value> = kinds
        .iter()
        .map(|kind| {
            json!({
                "name": format!("{} {}", kind.api_version(), kind.name),
                "description": kind.schema.get("description").cloned().unwrap_or_default(),
                "url": kind.path(),
            })
        })
        .collect();
    schemas.push(json!({
        "name": "lockkeeper configuration",
        "description": "The configuration file of lockkeeper serve, control and check.",
        "fileMatch": ["lockkeeper.yaml", "lockkeeper.yml"],
        "url": CONFIG_FILE,
    }));
    json!({
        "$schema": "https://json.schemastore.org/schema-catalog.json",
        "version": 1,
        "schemas": schemas,
    })
}

/// The part of OpenAPI that generators of clients read: the kinds and their endpoints.
fn open_api(kinds: &[Kind]) -> Value {
    let mut components = Map::new();
    let mut paths = Map::new();
    for kind in kinds {
        let mut schema = kind.schema.clone();
        if let Value::Object(fields) = &mut schema {
            let of = json!([{"group": kind.group, "version": kind.version, "kind": kind.name}]);
            fields.insert("x-kubernetes-group-version-kind".to_owned(), of);
        }
        components.insert(kind.component(), schema);
        paths.extend(endpoints(kind));
    }
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "lockkeeper",
            "description": "The kinds of lockkeeper, as an API server with their definitions serves them.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": components},
    })
}

/// The endpoints of a kind: the collection, and one object.
fn endpoints(kind: &Kind) -> [(String, Value); 2] {
    let scope = if kind.is_namespaced {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    let all = format!("/apis/{}{scope}/{}", kind.api_version(), kind.plural);
    let one = format!("{all}/{{name}}");
    let schema = json!({"$ref": format!("#/components/schemas/{}", kind.component())});
    let body = json!({"required": true, "content": {"application/json": {"schema": schema}}});
    let answer = |what: &str| json!({what: {"description": "The object.", "content": {"application/json": {"schema": schema}}}});
    let parameter = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    let mut of_all = Vec::new();
    if kind.is_namespaced {
        of_all.push(parameter("namespace"));
    }
    let mut of_one = of_all.clone();
    of_one.push(parameter("name"));
    let named = |verb: &str| format!("{verb}{}{}", kind.version, kind.name);
    [
        (
            all,
            json!({
                "parameters": of_all,
                "post": {"operationId": named("create"), "requestBody": body, "responses": answer("201")},
            }),
        ),
        (
            one,
            json!({
                "parameters": of_one,
                "get": {"operationId": named("read"), "responses": answer("200")},
                "put": {"operationId": named("replace"), "requestBody": body, "responses": answer("200")},
                "delete": {"operationId": named("delete"), "responses": {"200": {"description": "It is deleted."}}},
            }),
        ),
    ]
}

#[cfg(test)]
mod tests;
