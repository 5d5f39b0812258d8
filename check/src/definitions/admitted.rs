//! Objects as admission policies see them: valid and with their defaults.

use super::built_in_change::is_live;
use super::custom_resource::stored;
use super::request::request;
use super::set::DefinitionSet;
use lockkeeper_crd_schema::admission_policy::Resource;
use lockkeeper_crd_schema::builtin::BuiltInKind;
use lockkeeper_crd_schema::crd::{FieldValidation, Verdict};
use serde_json::Value;

/// An object that the API server accepts unless a policy denies it.
pub(crate) struct Admitted {
    pub(crate) object: Value,
    /// The stored object of an update.
    pub(crate) old: Option<Value>,
    pub(crate) resource: Resource,
    pub(crate) is_namespaced: bool,
}

/// An object of a kind with a definition; `None` if there is none, or the object is not valid.
pub(crate) fn admitted_custom_resource(
    definitions: &DefinitionSet,
    object: &Value,
    old: Option<&Value>,
) -> Option<Admitted> {
    let definition = definitions.find(object)?;
    let version = definition.version_of(object)?;
    let schema = definition.schema(version).ok()?;
    let (resource, is_namespaced) = definition.resource(version);
    let old = old.map(|it| stored(schema, it));
    let object = if is_live(object) {
        object.clone()
    } else {
        accepted(
            schema
                .answer(&request(object, old.as_ref(), FieldValidation::Ignore))
                .verdict,
        )?
    };
    Some(Admitted {
        object,
        old,
        resource,
        is_namespaced,
    })
}

/// An object of a built-in kind; `None` if it is of another kind, or not valid.
pub(crate) fn admitted_built_in(object: &Value, old: Option<&Value>) -> Option<Admitted> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let kind = BuiltInKind::find(text("apiVersion")?, text("kind")?)?;
    let mut resource = Resource::new(
        kind.group(),
        kind.version(),
        kind.name(),
        &Resource::plural_of(kind.name()),
    );
    resource.other_versions = kind.other_versions();
    let old = old.and_then(|it| kind.created(&request(it, None, FieldValidation::Ignore)));
    let object = if is_live(object) {
        object.clone()
    } else {
        accepted(
            kind.answer(&request(object, old.as_ref(), FieldValidation::Ignore))
                .verdict,
        )?
    };
    Some(Admitted {
        object,
        old,
        resource,
        is_namespaced: kind.is_namespaced(),
    })
}

fn accepted(verdict: Verdict) -> Option<Value> {
    match verdict {
        Verdict::Accepted(object) => Some(object),
        Verdict::Undecodable { .. } | Verdict::Invalid(_) => None,
    }
}
