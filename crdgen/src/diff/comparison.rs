//! Compares two sets of definitions.

use crate::diff::{Change, ChangeCode, definition};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use std::collections::BTreeMap;

/// The changes between two sets of definitions, matched by name, sorted by the name of the definition and within one from
/// the outside inwards.
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
                "the definition is removed, and with it all its objects".to_owned(),
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

/// `metadata.name` of a definition; if unset, the name that it must have, `plural.group`.
#[must_use]
pub fn name_of(definition: &CustomResourceDefinition) -> String {
    let name = definition.metadata.name.clone();
    let spec = &definition.spec;
    name.unwrap_or_else(|| format!("{}.{}", spec.names.plural, spec.group))
}
