//! Objects as admission policies see them: valid and with their defaults.

use super::built_in_change::is_live;
use super::custom_resource::stored;
use super::request::request;
use super::set::DefinitionSet;
use lockkeeper_crd_schema::admission_policy::{MergeTypes, Resource};
use lockkeeper_crd_schema::builtin::{BuiltInKind, Release};
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

/// The defaults of an object, and how partial objects are applied to it.
pub(crate) struct Mutable<'a> {
    pub(crate) object: Value,
    pub(crate) resource: Resource,
    pub(crate) is_namespaced: bool,
    pub(crate) types: MergeTypes<'a>,
    pub(crate) set_defaults: Box<dyn Fn(Value) -> Value + 'a>,
}

/// An object of a kind with a definition, valid or not; `None` if there is none.
pub(crate) fn mutable_custom_resource<'a>(
    definitions: &'a DefinitionSet,
    object: &Value,
) -> Option<Mutable<'a>> {
    let definition = definitions.find(object)?;
    let version = definition.version_of(object)?;
    let schema = definition.schema(version).ok()?;
    let (resource, is_namespaced) = definition.resource(version);
    let set_defaults = move |mut object: Value| {
        schema.prune(&mut object);
        schema.default(&mut object);
        object
    };
    let types = definition.openapi_schema(version);
    Some(Mutable {
        object: set_defaults(object.clone()),
        resource,
        is_namespaced,
        types: types.map_or(MergeTypes::Unknown, MergeTypes::Schema),
        set_defaults: Box::new(set_defaults),
    })
}

/// An object of a built-in kind, valid or not; `None` if it is of another kind.
pub(crate) fn mutable_built_in(release: Release, object: &Value) -> Option<Mutable<'static>> {
    let kind = built_in_kind(release, object)?;
    let set_defaults = move |object: Value| {
        let created = kind.created(&request(&object, None, FieldValidation::Ignore));
        created.unwrap_or(object)
    };
    Some(Mutable {
        object: set_defaults(object.clone()),
        resource: built_in_resource(kind),
        is_namespaced: kind.is_namespaced(),
        types: MergeTypes::BuiltIn(kind),
        set_defaults: Box::new(set_defaults),
    })
}

fn built_in_kind(release: Release, object: &Value) -> Option<BuiltInKind> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    BuiltInKind::find_in(release, text("apiVersion")?, text("kind")?)
}

fn built_in_resource(kind: BuiltInKind) -> Resource {
    let plural = Resource::plural_of(kind.name());
    let mut resource = Resource::new(kind.group(), kind.version(), kind.name(), &plural);
    resource.other_versions = kind.other_versions();
    resource
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
pub(crate) fn admitted_built_in(
    release: Release,
    object: &Value,
    old: Option<&Value>,
) -> Option<Admitted> {
    let kind = built_in_kind(release, object)?;
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
        resource: built_in_resource(kind),
        is_namespaced: kind.is_namespaced(),
    })
}

fn accepted(verdict: Verdict) -> Option<Value> {
    match verdict {
        Verdict::Accepted(object) => Some(object),
        Verdict::Undecodable { .. } | Verdict::Invalid(_) => None,
    }
}
