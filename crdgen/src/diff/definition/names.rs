//! Compares names, scope and conversion.

use super::changes::with_effect;
use crate::diff::{Change, ChangeCode, Effect, StoredObjectsEffect};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionNames,
};

pub(super) fn compare(
    name: &str,
    old: &CustomResourceDefinition,
    new: &CustomResourceDefinition,
) -> Vec<Change> {
    let mut changes = Vec::new();
    let (old, new) = (&old.spec, &new.spec);
    if old.scope != new.scope {
        let what = format!("the scope is {}, it was {}", new.scope, old.scope);
        changes.push(Change::for_definition(
            name,
            "spec.scope",
            ChangeCode::ScopeChanged,
            what,
        ));
    }
    changes.extend(identity(name, &old.names, &new.names));
    changes.extend(aliases(name, &old.names, &new.names));
    // Without a second version, no object is ever converted.
    let several = old.versions.len() > 1 || new.versions.len() > 1;
    let conversions = (old.conversion.as_ref(), new.conversion.as_ref());
    changes.extend(conversion(name, conversions.0, conversions.1, several));
    let keeps = |it: Option<bool>| it == Some(true);
    if keeps(old.preserve_unknown_fields) && !keeps(new.preserve_unknown_fields) {
        let what = "unknown fields are no longer kept".to_owned();
        let field = "spec.preserveUnknownFields";
        let change = Change::for_definition(name, field, ChangeCode::PruningBegun, what);
        changes.push(Change {
            stored: StoredObjectsEffect::Dropped,
            ..with_effect(change, Effect::Narrower)
        });
    }
    changes
}

/// The names that clients use to find the kind.
fn identity(
    name: &str,
    old: &CustomResourceDefinitionNames,
    new: &CustomResourceDefinitionNames,
) -> Vec<Change> {
    let singular = |names: &CustomResourceDefinitionNames| {
        // The API server defaults the singular and the list kind in the same way.
        let default = || names.kind.to_lowercase();
        names
            .singular
            .clone()
            .filter(|it| !it.is_empty())
            .unwrap_or_else(default)
    };
    let list = |names: &CustomResourceDefinitionNames| {
        names
            .list_kind
            .clone()
            .unwrap_or_else(|| format!("{}List", names.kind))
    };
    let pairs = [
        ("spec.names.kind", old.kind.clone(), new.kind.clone()),
        ("spec.names.plural", old.plural.clone(), new.plural.clone()),
        ("spec.names.singular", singular(old), singular(new)),
        ("spec.names.listKind", list(old), list(new)),
    ];
    let other = pairs.into_iter().filter(|(_, old, new)| old != new);
    let changes = other.map(|(field, old, new)| {
        let what = format!("it is {new}, it was {old}");
        Change::for_definition(name, field, ChangeCode::NamesChanged, what)
    });
    changes.collect()
}

fn aliases(
    name: &str,
    old: &CustomResourceDefinitionNames,
    new: &CustomResourceDefinitionNames,
) -> Vec<Change> {
    let mut changes = Vec::new();
    let lists = [
        (
            "spec.names.shortNames",
            ChangeCode::ShortNameRemoved,
            old.short_names.as_deref().unwrap_or_default(),
            new.short_names.as_deref().unwrap_or_default(),
        ),
        (
            "spec.names.categories",
            ChangeCode::CategoryRemoved,
            old.categories.as_deref().unwrap_or_default(),
            new.categories.as_deref().unwrap_or_default(),
        ),
    ];
    for (field, removed, old, new) in lists {
        for alias in old.iter().filter(|it| !new.contains(it)) {
            let what = format!("{alias} is removed");
            changes.push(Change::for_definition(name, field, removed, what));
        }
        for alias in new.iter().filter(|it| !old.contains(it)) {
            let what = format!("{alias} is added");
            changes.push(Change::for_definition(
                name,
                field,
                ChangeCode::AliasAdded,
                what,
            ));
        }
    }
    changes
}

fn conversion(
    name: &str,
    old: Option<&CustomResourceConversion>,
    new: Option<&CustomResourceConversion>,
    several: bool,
) -> Option<Change> {
    let strategy = |conversion: Option<&CustomResourceConversion>| {
        conversion.map_or_else(|| "None".to_owned(), |it| it.strategy.clone())
    };
    let (before, after) = (strategy(old), strategy(new));
    let what = format!("the strategy is {after}, it was {before}");
    let code = match (before.as_str(), after.as_str()) {
        ("Webhook", "None") if several => ChangeCode::ConversionRemoved,
        (before, after) if before != after => ChangeCode::ConversionChanged,
        _ if old.map(|it| &it.webhook) != new.map(|it| &it.webhook) => {
            let what = "the webhook's client configuration changes".to_owned();
            let code = ChangeCode::ConversionChanged;
            return Some(Change::for_definition(name, "spec.conversion", code, what));
        }
        _ => return None,
    };
    Some(Change::for_definition(name, "spec.conversion", code, what))
}
