//! What changes between two states of CRDs, and whom it hurts.
//!
//! The comparison is pure: definitions in, [`Change`]s out. A change is *compatible* only if every object that the API
//! server holds under the old schema is valid under the new one, and means the same; whatever cannot be shown to be so is
//! breaking. `docs/crd-diff.md` has the classes and the codes.

mod bounds;
mod cel_rules;
mod change;
mod change_codes;
pub mod cli;
mod definition;
mod junctors;
mod path;
pub mod render;
mod schema;
pub mod source;
mod stored_objects;

pub use change::{Change, ChangeClass, ChangeLocation, Effect, StoredObjectsEffect};
pub use change_codes::{CODES, ChangeCode};
pub use path::SchemaPath;
pub use schema::compare as compare_schemas;
pub use stored_objects::{StoredObjectOutcome, StoredObjectReport, check_stored_objects};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use std::collections::BTreeMap;

/// All changes between two sets of definitions, which are matched by their names. They come by the name of their
/// definition, and within one from its outside inwards.
#[must_use]
pub fn compare(old: &[CustomResourceDefinition], new: &[CustomResourceDefinition]) -> Vec<Change> {
    let by_name = |all: &[CustomResourceDefinition]| -> BTreeMap<String, CustomResourceDefinition> {
        let named = all.iter().map(|it| (name_of(it), it.clone()));
        named.collect()
    };
    let (old, new) = (by_name(old), by_name(new));
    let mut changes = Vec::new();
    for (name, definition) in &old {
        match new.get(name) {
            Some(new) => changes.extend(definition::compare(name, definition, new)),
            None => changes.push(Change::for_definition(
                name,
                "",
                ChangeCode::DefinitionRemoved,
                "the definition is gone, and with it all its objects".to_owned(),
            )),
        }
    }
    for name in new.keys().filter(|it| !old.contains_key(*it)) {
        let what = "the definition is new".to_owned();
        changes.push(Change::for_definition(
            name,
            "",
            ChangeCode::DefinitionAdded,
            what,
        ));
    }
    changes.sort_by(|a, b| a.definition.cmp(&b.definition));
    changes
}

/// The name of a definition; one that has none is called as it would have to be.
#[must_use]
pub fn name_of(definition: &CustomResourceDefinition) -> String {
    let given = definition.metadata.name.clone();
    let spec = &definition.spec;
    given.unwrap_or_else(|| format!("{}.{}", spec.names.plural, spec.group))
}
