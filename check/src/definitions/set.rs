//! The definitions of a check, compiled on first use.

use super::definition_object::is_patch;
use lockkeeper_crd_schema::admission_policy::{Conversion, Resource};
use lockkeeper_crd_schema::crd::Schema;
use lockkeeper_policies::schema::StructuralSchema;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use thiserror::Error;

/// The least similarity of a suggested kind.
const SIMILARITY_MIN: f64 = 0.85;

/// Definitions by group and kind. Each version is compiled when the first object of it is checked, once for all
/// threads and all clones of the set.
#[derive(Clone, Debug, Default)]
pub struct DefinitionSet {
    definitions: BTreeMap<(String, String), Arc<Definition>>,
}

/// A definition without a group, a kind or versions.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "the definition has no spec.group, spec.names.kind or spec.versions; its objects are not checked"
)]
pub struct IncompleteDefinition;

/// A definition.
#[derive(Debug)]
pub(super) struct Definition {
    value: Value,
    versions: BTreeMap<String, Version>,
}

/// A version of a definition.
#[derive(Debug)]
pub(super) struct Version {
    name: String,
    pub(super) is_served: bool,
    schema: OnceLock<Result<Schema, String>>,
    structure: OnceLock<Option<StructuralSchema>>,
}

impl DefinitionSet {
    /// Adds a `CustomResourceDefinition`. The first definition of a kind is used. Patches of definitions are ignored.
    ///
    /// # Errors
    ///
    /// The definition has no group, no kind or no versions.
    pub fn add(&mut self, definition: &Value) -> Result<(), IncompleteDefinition> {
        if is_patch(definition) {
            return Ok(());
        }
        let text = |value: &Value, pointer| {
            let text = value.pointer(pointer).and_then(Value::as_str);
            text.map(str::to_owned)
        };
        let (Some(group), Some(kind)) = (
            text(definition, "/spec/group"),
            text(definition, "/spec/names/kind"),
        ) else {
            return Err(IncompleteDefinition);
        };
        let key = (group, kind);
        let versions = definition
            .pointer("/spec/versions")
            .and_then(Value::as_array);
        let versions = versions.into_iter().flatten().filter_map(|it| {
            let name = text(it, "/name")?;
            let version = Version {
                name: name.clone(),
                is_served: it["served"] == true,
                schema: OnceLock::new(),
                structure: OnceLock::new(),
            };
            Some((name, version))
        });
        let versions: BTreeMap<String, Version> = versions.collect();
        if versions.is_empty() {
            return Err(IncompleteDefinition);
        }
        self.definitions.entry(key).or_insert_with(|| {
            let mut value = definition.clone();
            let schemas = value.pointer_mut("/spec/versions");
            for version in schemas.and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
                    remove_descriptions(schema);
                }
            }
            Arc::new(Definition { value, versions })
        });
        Ok(())
    }

    /// Whether there are no definitions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.definitions.is_empty()
    }

    /// Adds the definitions of another set. Those of this set are preferred.
    pub fn merge(&mut self, other: Self) {
        for (key, definition) in other.definitions {
            self.definitions.entry(key).or_insert(definition);
        }
    }

    /// Whether there is a definition of an object's kind.
    pub(crate) fn has(&self, object: &Value) -> bool {
        self.find(object).is_some()
    }

    /// The definition of an object's kind.
    pub(super) fn find(&self, object: &Value) -> Option<&Definition> {
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        let (group, _) = text("apiVersion")?.split_once('/')?;
        let key = (group.to_owned(), text("kind")?.to_owned());
        self.definitions.get(&key).map(Arc::as_ref)
    }

    /// The definition of a kind, without descriptions.
    #[must_use]
    pub fn definition(&self, group: &str, kind: &str) -> Option<&Value> {
        let key = (group.to_owned(), kind.to_owned());
        self.definitions.get(&key).map(|it| &it.value)
    }

    /// The name in paths of a kind with a definition.
    #[must_use]
    pub fn plural(&self, api_version: &str, kind: &str) -> Option<&str> {
        let (group, _) = api_version.split_once('/')?;
        let definition = self.definitions.get(&(group.to_owned(), kind.to_owned()))?;
        definition.value.pointer("/spec/names/plural")?.as_str()
    }

    /// The cluster-scoped kinds: `apiVersion` and kind.
    pub(crate) fn cluster_scoped(&self) -> impl Iterator<Item = (String, &str)> {
        let all = self.definitions.iter();
        let cluster =
            all.filter(|(_, it)| it.value.pointer("/spec/scope") == Some(&"Cluster".into()));
        cluster.flat_map(|((group, kind), definition)| {
            let versions = definition.versions.keys();
            versions.map(move |it| (format!("{group}/{it}"), kind.as_str()))
        })
    }

    /// Removes the unknown fields of an object and sets the defaults of its kind, as the API server does. An object without a
    /// usable definition stays as it is.
    pub(crate) fn set_defaults(&self, object: &mut Value) {
        let schema = self.find(object).and_then(|definition| {
            let version = definition.version_of(object)?;
            definition.schema(version).ok()
        });
        if let Some(schema) = schema {
            schema.prune(object);
            schema.default(object);
        }
    }

    /// The schema for corrections of an object.
    pub(crate) fn structure(&self, object: &Value) -> Option<&StructuralSchema> {
        let definition = self.find(object)?;
        definition.structure(definition.version_of(object)?)
    }

    /// The kind with the most similar name, such as `example.com/v1 Widget`.
    pub(crate) fn nearest(&self, api_version: &str, kind: &str) -> Option<String> {
        let (group, version) = api_version.split_once('/')?;
        let similarity =
            |a: &str, b: &str| strsim::jaro_winkler(&a.to_lowercase(), &b.to_lowercase());
        let scored = self.definitions.iter().map(|(key, definition)| {
            let score = similarity(kind, &key.1).min(similarity(group, &key.0));
            (score, key, definition)
        });
        let (score, key, definition) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let has_version = definition.versions.contains_key(version);
        let version = if has_version {
            version
        } else {
            definition.versions.keys().next_back()?
        };
        (score >= SIMILARITY_MIN).then(|| format!("{}/{version} {}", key.0, key.1))
    }
}

impl Definition {
    /// The version that an object names.
    pub(super) fn version_of(&self, object: &Value) -> Option<&Version> {
        let api_version = object.get("apiVersion").and_then(Value::as_str)?;
        self.versions.get(api_version.split_once('/')?.1)
    }

    /// The resource of objects in a version, and whether they have a namespace.
    pub(super) fn resource(&self, version: &Version) -> (Resource, bool) {
        let text = |pointer: &str| {
            let text = self.value.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default()
        };
        let mut resource = Resource::new(
            text("/spec/group"),
            &version.name,
            text("/spec/names/kind"),
            text("/spec/names/plural"),
        );
        let others = self.served().into_iter().filter(|it| *it != version.name);
        resource.other_versions = others.map(str::to_owned).collect();
        if text("/spec/conversion/strategy") != "Webhook" {
            resource.conversion = Conversion::ApiVersion;
        }
        (resource, text("/spec/scope") != "Cluster")
    }

    /// The names of the served versions.
    pub(super) fn served(&self) -> Vec<&str> {
        let served = self.versions.iter().filter(|(_, it)| it.is_served);
        served.map(|(name, _)| name.as_str()).collect()
    }

    /// The compiled schema of a version, or why there is none.
    pub(super) fn schema<'a>(&'a self, version: &'a Version) -> Result<&'a Schema, &'a str> {
        let compile =
            || Schema::from_crd(&self.value, &version.name).map_err(|error| error.to_string());
        version
            .schema
            .get_or_init(compile)
            .as_ref()
            .map_err(String::as_str)
    }

    /// The schema of a version as it is written.
    pub(super) fn openapi_schema(&self, version: &Version) -> Option<&Value> {
        let versions = self.value.pointer("/spec/versions")?.as_array()?;
        let found = versions
            .iter()
            .find(|it| it["name"] == version.name.as_str())?;
        found.pointer("/schema/openAPIV3Schema")
    }

    /// The schema of a version for corrections; `None` if it does not compile in this form.
    pub(super) fn structure<'a>(&'a self, version: &'a Version) -> Option<&'a StructuralSchema> {
        let compile = || StructuralSchema::new(self.openapi_schema(version)?).ok();
        version.structure.get_or_init(compile).as_ref()
    }
}

/// Removes the descriptions of a schema: they are most of its text, and no check reads them.
fn remove_descriptions(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        return;
    };
    if fields.get("description").is_some_and(Value::is_string) {
        fields.remove("description");
    }
    for (keyword, value) in fields.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(schemas)) => {
                schemas.values_mut().for_each(remove_descriptions);
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(remove_descriptions);
            }
            ("items" | "additionalProperties" | "not", schema) => remove_descriptions(schema),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DefinitionSet, remove_descriptions};
    use serde_json::json;

    #[test]
    fn descriptions_are_removed_but_fields_with_that_name_are_not() {
        let mut schema = json!({
            "description": "text",
            "properties": {
                "description": {"type": "string", "description": "text"},
                "list": {"items": {"description": "text", "oneOf": [{"description": "text"}]}},
            },
            "default": {"description": "kept"},
        });
        remove_descriptions(&mut schema);
        let expected = json!({
            "properties": {
                "description": {"type": "string"},
                "list": {"items": {"oneOf": [{}]}},
            },
            "default": {"description": "kept"},
        });
        assert_eq!(schema, expected);
    }

    #[test]
    fn nearest_kind_of_the_definitions() {
        let mut set = DefinitionSet::default();
        for (group, kind) in [("example.com", "Widget"), ("example.org", "Gadget")] {
            let versions = json!([{"name": "v1", "served": true}]);
            let spec = json!({"group": group, "names": {"kind": kind}, "versions": versions});
            set.add(&json!({"spec": spec})).unwrap();
        }
        for (api_version, kind, expected) in [
            ("example.com/v1", "Widgit", Some("example.com/v1 Widget")),
            ("example.com/v2", "widget", Some("example.com/v1 Widget")),
            ("exmaple.com/v1", "Widget", Some("example.com/v1 Widget")),
            ("example.com/v1", "Cluster", None),
            ("other.dev/v1", "Widget", None),
            ("v1", "Widget", None),
        ] {
            let found = set.nearest(api_version, kind);
            assert_eq!(found.as_deref(), expected, "{api_version} {kind}");
        }
    }

    #[test]
    fn incomplete_definitions_are_not_added() {
        let mut set = DefinitionSet::default();
        for definition in [
            json!({"spec": {"scope": "Cluster"}}),
            json!({"spec": {"group": "example.com", "names": {"kind": "Widget"}}}),
            json!({"spec": {"group": "example.com", "versions": [{"name": "v1"}]}}),
        ] {
            assert!(set.add(&definition).is_err(), "{definition}");
        }
        let patch = json!({"metadata": {"name": "a"}, "spec": {"conversion": {}}});
        assert!(set.add(&patch).is_ok());
        assert!(set.is_empty());
    }
}
