//! `CustomResourceDefinition`s: objects of their kinds are validated as the API server does, and so are they.

mod custom_resource;
mod definition_object;
mod field_text;
mod set;
mod suggestions;

pub(crate) use custom_resource::check_custom_resource;
pub use definition_object::is_definition;
pub(crate) use definition_object::{check_definition, is_patch};
pub use set::{DefinitionSet, IncompleteDefinition};
