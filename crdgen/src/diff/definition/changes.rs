//! Builds the changes of a definition and its versions.

use crate::diff::{Change, ChangeCode, ChangeLocation, Effect};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinitionVersion, JSONSchemaProps,
};

pub(super) fn version_change(
    name: &str,
    version: &CustomResourceDefinitionVersion,
    field: &'static str,
    code: ChangeCode,
    what: String,
) -> Change {
    Change::new(
        name,
        ChangeLocation::Version(version.name.clone(), field),
        code,
        what,
    )
}

pub(super) fn schema_of(version: &CustomResourceDefinitionVersion) -> JSONSchemaProps {
    let schema = version.schema.as_ref();
    schema
        .and_then(|it| it.open_api_v3_schema.clone())
        .unwrap_or_default()
}

/// The change with its effect on the accepted values.
pub(super) fn with_effect(change: Change, effect: Effect) -> Change {
    Change { effect, ..change }
}
