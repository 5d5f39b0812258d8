//! Kinds by definitions: objects of the kinds of `CustomResourceDefinition`s are validated as the API server does, and so
//! are the definitions and objects of built-in kinds.

mod built_in;
mod built_in_change;
mod custom_resource;
mod definition_object;
mod field_text;
mod request;
mod set;
mod suggestions;

pub(crate) use built_in::check_built_in;
pub(crate) use built_in_change::is_whole;
pub(crate) use custom_resource::check_custom_resource;
pub use definition_object::is_definition;
pub(crate) use definition_object::{check_definition, is_patch};
pub use set::{DefinitionSet, IncompleteDefinition};
