//! Kinds by definitions: objects of the kinds of `CustomResourceDefinition`s are validated as the API server does, and so
//! are the definitions and objects of built-in kinds. Other kinds are validated by the JSON Schemas of a catalogue.

mod admitted;
mod built_in;
mod built_in_change;
mod built_in_version;
mod custom_resource;
mod definition_object;
mod field_text;
mod json_schema;
mod request;
mod schema_catalog;
mod schema_check;
mod schema_location;
mod set;
mod suggestions;

pub(crate) use admitted::{
    Admitted, Mutable, admitted_built_in, admitted_custom_resource, mutable_built_in,
    mutable_custom_resource,
};
pub(crate) use built_in::{check_built_in, shape_findings};
pub(crate) use built_in_change::is_whole;
pub(crate) use built_in_version::unserved_version;
pub(crate) use custom_resource::check_custom_resource;
pub use definition_object::is_definition;
pub(crate) use definition_object::{check_definition, is_patch};
pub use schema_catalog::{ReadSchema, SchemaCatalog};
pub(crate) use schema_check::check_json_schema;
pub use schema_location::{LocationError, SchemaLocation};
pub use set::{DefinitionSet, IncompleteDefinition};
