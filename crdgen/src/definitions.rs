//! The definitions of lockkeeper's kinds.

use crate::cel::{self, ExpressionError};
use crate::structural;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceValidation, JSON, JSONSchemaProps,
};
use kube::CustomResourceExt;
use lockkeeper_api::{ClusterQueue, Cohort, JobKind, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_crd_schema::builtin::Release;
use lockkeeper_policies::settings::Settings;
use schemars::JsonSchema;
use serde_json::json;

/// The CRDs of lockkeeper's kinds in the order of their names, with the CEL expressions of the rules
/// that are enforced in every namespace.
///
/// # Errors
///
/// When an expression does not compile. A test checks those of a release.
pub fn definitions(settings: &Settings) -> Result<Vec<CustomResourceDefinition>, ExpressionError> {
    definitions_for(settings, Release::NEWEST)
}

/// The same for a release of Kubernetes: without the expressions whose cost its API server estimates as too high.
///
/// # Errors
///
/// Those of [`definitions`].
pub fn definitions_for(
    settings: &Settings,
    release: Release,
) -> Result<Vec<CustomResourceDefinition>, ExpressionError> {
    let mut all = plain_definitions();
    for definition in &mut all {
        for version in &mut definition.spec.versions {
            let schema = version.schema.as_mut();
            if let Some(schema) = schema.and_then(|it| it.open_api_v3_schema.as_mut()) {
                cel::attach(schema, &definition.spec.names.kind, settings, release)?;
            }
        }
    }
    Ok(all)
}

/// The CRDs without CEL rules, for callers that evaluate the rules themselves.
#[must_use]
pub fn plain_definitions() -> Vec<CustomResourceDefinition> {
    vec![
        definition::<ClusterQueue>(&structural::schema::<ClusterQueue>()),
        definition::<Cohort>(&structural::schema::<Cohort>()),
        definition::<JobKind>(&structural::schema::<JobKind>()),
        definition::<LocalQueue>(&structural::schema::<LocalQueue>()),
        definition::<ResourceFlavor>(&with_optional_spec(structural::schema::<ResourceFlavor>())),
        definition::<Workload>(&structural::schema::<Workload>()),
    ]
}

/// The CRD that the derive generates, with another schema.
pub(crate) fn definition<T: CustomResourceExt + JsonSchema>(
    schema: &JSONSchemaProps,
) -> CustomResourceDefinition {
    let mut definition = T::crd();
    // The derive's schema has quantities of any type, and describes a field of a policy by the type
    // of the policy.
    for version in &mut definition.spec.versions {
        version.schema = Some(CustomResourceValidation {
            open_api_v3_schema: Some(schema.clone()),
        });
    }
    definition
}

/// Makes a missing spec an empty one. A flavor without a spec matches any node, which is all
/// that many clusters need; in other kinds a missing spec is an error.
fn with_optional_spec(mut schema: JSONSchemaProps) -> JSONSchemaProps {
    if let Some(required) = &mut schema.required {
        required.retain(|name| name != "spec");
    }
    schema.required = schema.required.filter(|names| !names.is_empty());
    if let Some(spec) = schema
        .properties
        .as_mut()
        .and_then(|properties| properties.get_mut("spec"))
    {
        spec.default = Some(JSON(json!({})));
    }
    schema
}

#[cfg(test)]
mod tests;
