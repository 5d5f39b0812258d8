//! Checks that the API server accepts the schemas of a definition: structural schemas, list types,
//! defaults and CEL rules.
//!
//! The checks, their order and their messages are those of `apiextensions-apiserver` (`pkg/apiserver/schema/validation.go`,
//! `complete.go`, `defaulting/validation.go`, and `pkg/apis/apiextensions/validation/validation.go`). The cost
//! of expressions is not checked; the API server estimates it by its own tables.

mod cel_and_patterns;
mod defaults;
mod findings;
mod lists;
mod nested;
mod properties;
mod unsupported;

use findings::FindingCollector;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps,
};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::finding::{ErrorKind, Finding};
use std::collections::BTreeSet;
use std::fmt;

/// A definition that the API server would reject.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the API server would reject {definition}: {problems}")]
pub struct NotStructural {
    /// The name of the definition.
    pub definition: String,
    /// Its problems, at least one.
    pub problems: Problems,
}

/// The problems of a definition, each with its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(Vec<Finding>);

impl Problems {
    /// Iterates over the problems.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(Finding::text).collect();
        f.write_str(&texts.join("; "))
    }
}

/// Checks a definition by the rules of the API server.
///
/// # Errors
///
/// [`NotStructural`] with every problem, each with its path in the definition.
pub fn check(definition: &CustomResourceDefinition) -> Result<(), NotStructural> {
    let mut found = FindingCollector::default();
    versions(&definition.spec.versions, &mut found);
    let problems = found.into_findings();
    if problems.is_empty() {
        return Ok(());
    }
    Err(NotStructural {
        definition: definition.metadata.name.clone().unwrap_or_default(),
        problems: Problems(problems),
    })
}

fn versions(versions: &[CustomResourceDefinitionVersion], found: &mut FindingCollector) {
    let field = || FieldPath::new("spec").field("versions");
    for (position, version) in versions.iter().enumerate() {
        let at = field()
            .index(position)
            .field("schema")
            .field("openAPIV3Schema");
        let schema = version.schema.as_ref();
        let Some(schema) = schema.and_then(|it| it.open_api_v3_schema.as_ref()) else {
            found.required(at, "must be given");
            continue;
        };
        let has_status = version
            .subresources
            .as_ref()
            .is_some_and(|it| it.status.is_some());
        if has_status {
            check_status_siblings(schema, &at, found);
        }
        check_schema(schema, &at, found);
    }
    let names: BTreeSet<&str> = versions.iter().map(|it| it.name.as_str()).collect();
    if names.len() < versions.len() {
        found.report(
            field(),
            ErrorKind::Invalid,
            None,
            "must contain unique version names",
        );
    }
    if versions.iter().filter(|it| it.storage).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        found.report(field(), ErrorKind::Invalid, None, detail);
    }
}

/// Checks the keywords beside the status: with the status subresource, the API server validates the
/// status by a schema of its own, so that no keyword of the root may refer to it.
fn check_status_siblings(schema: &JSONSchemaProps, at: &FieldPath, found: &mut FindingCollector) {
    // Clears the keywords that are allowed; any other makes the rest differ from the default.
    let rest = JSONSchemaProps {
        description: None,
        type_: None,
        format: None,
        title: None,
        maximum: None,
        exclusive_maximum: None,
        minimum: None,
        exclusive_minimum: None,
        max_length: None,
        min_length: None,
        pattern: None,
        max_items: None,
        min_items: None,
        unique_items: None,
        multiple_of: None,
        required: None,
        items: None,
        properties: None,
        external_docs: None,
        example: None,
        x_kubernetes_preserve_unknown_fields: None,
        x_kubernetes_validations: None,
        ..schema.clone()
    };
    if rest != JSONSchemaProps::default() {
        let detail = "with the status subresource the root of the schema may have description, type, required, \
                      properties, x-kubernetes-preserve-unknown-fields and x-kubernetes-validations";
        found.report(at.clone(), ErrorKind::Invalid, None, detail);
    }
}

/// Checks one schema.
fn check_schema(schema: &JSONSchemaProps, at: &FieldPath, found: &mut FindingCollector) {
    let before = found.len();
    if schema.nullable == Some(true) {
        found.forbidden(
            at.clone().field("nullable"),
            "nullable cannot be true at the root",
        );
    }
    properties::check_root(schema, at, found);
    nested::check_complete(schema, at, found);
    lists::check(schema, at, found);
    // As in the API server, CEL rules and defaults need a schema without findings.
    if found.len() > before {
        return;
    }
    cel_and_patterns::check(schema, at, found);
    if found.len() == before {
        defaults::check(schema, at, found);
    }
}

#[cfg(test)]
mod tests;
