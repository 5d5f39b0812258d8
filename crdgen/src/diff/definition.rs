//! Compares the definitions of a kind and its versions, except for the schemas.

use crate::diff::{Change, ChangeClass, ChangeCode, schema};
use changes::{schema_of, version_change};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};

mod changes;
mod names;
mod version;

pub(super) fn compare(
    name: &str,
    old: &CustomResourceDefinition,
    new: &CustomResourceDefinition,
) -> Vec<Change> {
    let mut changes = names::compare(name, old, new);
    let versions = |it: &CustomResourceDefinition| it.spec.versions.clone();
    for version in versions(old) {
        match find(new, &version.name) {
            Some(after) => {
                let mut found = version::compare(name, &version, after);
                // Changes of a version that is neither served nor stored affect no client.
                if !is_in_use(old, &version) && !is_in_use(new, after) {
                    mark_compatible(&mut found);
                }
                changes.append(&mut found);
            }
            None => changes.push(version_removed(name, old, &version)),
        }
    }
    for version in &new.spec.versions {
        let before = find(old, &version.name);
        if before.is_none() {
            let what = "the version is new".to_owned();
            changes.push(version_change(
                name,
                version,
                "",
                ChangeCode::VersionAdded,
                what,
            ));
        }
        // Clients can request the version for the first time.
        if before.is_none_or(|before| !before.served && version.served) {
            changes.extend(changes_without_conversion(name, old, new, version));
        }
    }
    changes
}

fn find<'a>(
    definition: &'a CustomResourceDefinition,
    name: &str,
) -> Option<&'a CustomResourceDefinitionVersion> {
    definition.spec.versions.iter().find(|it| it.name == name)
}

/// Whether `status.storedVersions` lists the version; `None` without a status.
fn is_stored(definition: &CustomResourceDefinition, version: &str) -> Option<bool> {
    let stored = definition.status.as_ref()?.stored_versions.as_ref()?;
    (!stored.is_empty()).then(|| stored.iter().any(|it| it == version))
}

/// Whether the version is served or stored.
fn is_in_use(
    definition: &CustomResourceDefinition,
    version: &CustomResourceDefinitionVersion,
) -> bool {
    version.served || version.storage || is_stored(definition, &version.name) == Some(true)
}

fn mark_compatible(changes: &mut [Change]) {
    for change in changes {
        change.class = ChangeClass::Compatible;
        change
            .description
            .push_str("; the version is neither served nor stored");
    }
}

fn version_removed(
    name: &str,
    old: &CustomResourceDefinition,
    version: &CustomResourceDefinitionVersion,
) -> Change {
    let stored = is_stored(old, &version.name);
    let (code, what) = if version.storage || stored == Some(true) {
        (
            ChangeCode::StoredVersionRemoved,
            "the version is removed, and objects are stored in it",
        )
    } else if version.served {
        (ChangeCode::VersionRemoved, "the version is removed")
    } else {
        (
            ChangeCode::UnservedVersionRemoved,
            "the version is removed; it was not served",
        )
    };
    let change = version_change(name, version, "", code, what.to_owned());
    // The status proves that no object is stored in the version.
    if code == ChangeCode::UnservedVersionRemoved && stored == Some(false) {
        return change.with_class(ChangeClass::Compatible);
    }
    change
}

/// The changes for objects in the old storage version when a client requests a newly served version: without a
/// conversion webhook only their apiVersion changes.
fn changes_without_conversion(
    name: &str,
    old: &CustomResourceDefinition,
    new: &CustomResourceDefinition,
    version: &CustomResourceDefinitionVersion,
) -> Vec<Change> {
    let has_webhook = new
        .spec
        .conversion
        .as_ref()
        .is_some_and(|it| it.strategy == "Webhook");
    let stored = old.spec.versions.iter().find(|it| it.storage);
    let Some(stored) = stored.filter(|it| !has_webhook && it.name != version.name) else {
        return Vec::new();
    };
    let changes = schema::compare(name, &version.name, &schema_of(stored), &schema_of(version));
    let hurting = changes
        .into_iter()
        .filter(|it| it.class != ChangeClass::Compatible);
    let described = hurting.map(|change| Change {
        description: format!(
            "compared with {}, in which objects are stored: {}",
            stored.name, change.description
        ),
        ..change
    });
    described.collect()
}
