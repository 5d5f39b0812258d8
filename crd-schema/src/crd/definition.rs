//! A `CustomResourceDefinition` as far as it decides on objects: names, scope and versions.

use super::definition_checks::record_sum_types;
use super::node::{Node, NodeError};
use super::numbers::encoded;
use super::values::{array_at, text_at};
use serde_json::Value;
use std::fmt;

/// A definition or a version that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionError {
    /// The definition has no such version.
    NoVersion(String),
    /// A field of the definition is missing or has the wrong type.
    Field(&'static str),
    /// The schema cannot be compiled.
    Schema {
        /// The place in the schema, such as `.properties.spec`.
        place: String,
        /// The problem.
        problem: String,
    },
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoVersion(name) => write!(f, "the definition has no version {name:?}"),
            Self::Field(field) => write!(f, "{field} is missing or has the wrong type"),
            Self::Schema { place, problem } => write!(f, "{place}: {problem}"),
        }
    }
}

impl std::error::Error for DefinitionError {}

impl From<NodeError> for DefinitionError {
    fn from(error: NodeError) -> Self {
        Self::Schema {
            place: error.place,
            problem: error.problem,
        }
    }
}

/// The paths of the scale subresource.
#[derive(Debug)]
pub(super) struct Scale {
    pub(super) spec_replicas: String,
    pub(super) status_replicas: String,
    pub(super) label_selector: Option<String>,
}

/// One version of a definition.
#[derive(Debug)]
pub struct Schema {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) version: String,
    pub(super) is_namespaced: bool,
    pub(super) root: Node,
    /// The schema of the stored version, if that is another one.
    pub(super) stored_root: Option<Node>,
    pub(super) has_status: bool,
    pub(super) scale: Option<Scale>,
    pub(super) preserves_unknown_fields: bool,
    /// The warning of a deprecated version.
    pub(super) deprecation: Option<String>,
}

/// The schema of a version; null if it has none.
fn schema_of(version: &Value) -> &Value {
    let schema = version
        .get("schema")
        .and_then(|it| it.get("openAPIV3Schema"));
    schema.unwrap_or(&Value::Null)
}

/// A compiled schema of a stored definition.
fn stored_node(schema: &Value) -> Result<Node, NodeError> {
    let mut node = Node::from_schema(schema)?;
    encode_values(&mut node);
    record_sum_types(&mut node, true);
    Ok(node)
}

/// Replaces defaults and the values of `enum` by their stored forms: floats without a fraction are integers.
fn encode_values(node: &mut Node) {
    for value in node.default.iter_mut().chain(&mut node.enum_values) {
        *value = encoded(value);
    }
    let below = [&mut node.items, &mut node.additional, &mut node.not];
    let below = below.into_iter().flatten().map(AsMut::as_mut);
    let branches = [&mut node.all_of, &mut node.any_of, &mut node.one_of];
    let branches = branches.into_iter().flatten();
    for node in below.chain(branches).chain(node.properties.values_mut()) {
        encode_values(node);
    }
}

impl Schema {
    /// Compiles one version of a `CustomResourceDefinition` (`apiextensions.k8s.io/v1`). The cost is linear in the
    /// size of the definition; the nesting of the schema is bounded.
    ///
    /// # Errors
    ///
    /// A [`DefinitionError`] if the version or a field is missing, or if the schema cannot be compiled.
    pub fn from_crd(definition: &Value, version: &str) -> Result<Self, DefinitionError> {
        let spec = &definition["spec"];
        let group = text_at(spec, "group").ok_or(DefinitionError::Field("spec.group"))?;
        let kind =
            text_at(&spec["names"], "kind").ok_or(DefinitionError::Field("spec.names.kind"))?;
        let versions = array_at(spec, "versions");
        let chosen = versions
            .iter()
            .find(|it| text_at(it, "name") == Some(version));
        let chosen = chosen.ok_or_else(|| DefinitionError::NoVersion(version.to_owned()))?;
        let root = stored_node(schema_of(chosen))?;
        let is_stored = |it: &&Value| it["storage"] == true && text_at(it, "name") != Some(version);
        let stored = versions.iter().find(is_stored);
        let stored = stored.map(|it| stored_node(schema_of(it)));
        let subresources = &chosen["subresources"];
        let scale = subresources.get("scale").filter(|it| it.is_object());
        let text = |value: &Value, key| text_at(value, key).unwrap_or_default().to_owned();
        Ok(Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            version: version.to_owned(),
            is_namespaced: text_at(spec, "scope") == Some("Namespaced"),
            root,
            stored_root: stored.transpose()?,
            has_status: subresources.get("status").is_some_and(Value::is_object),
            scale: scale.map(|it| Scale {
                spec_replicas: text(it, "specReplicasPath"),
                status_replicas: text(it, "statusReplicasPath"),
                label_selector: text_at(it, "labelSelectorPath").map(str::to_owned),
            }),
            preserves_unknown_fields: spec["preserveUnknownFields"] == true,
            deprecation: (chosen["deprecated"] == true).then(|| {
                let warning = text_at(chosen, "deprecationWarning").map(str::to_owned);
                warning.unwrap_or_else(|| format!("{group}/{version} {kind} is deprecated"))
            }),
        })
    }

    /// The `apiVersion` of the objects.
    #[must_use]
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}
