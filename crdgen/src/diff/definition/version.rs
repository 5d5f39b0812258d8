//! Compares one version.

use super::changes::{schema_of, version_change};
use crate::diff::{Change, ChangeCode, StoredObjectsEffect, schema};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinitionVersion, CustomResourceSubresources,
};

pub(super) fn compare(
    name: &str,
    old: &CustomResourceDefinitionVersion,
    new: &CustomResourceDefinitionVersion,
) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut add = |field: &'static str, code: ChangeCode, what: &str| {
        changes.push(version_change(name, new, field, code, what.to_owned()));
    };
    match (old.served, new.served) {
        (true, false) => add(
            "served",
            ChangeCode::VersionNoLongerServed,
            "the version is no longer served",
        ),
        (false, true) => add("served", ChangeCode::VersionServed, "the version is served"),
        _ => {}
    }
    if !old.storage && new.storage {
        let what = "objects are now stored in this version";
        add("storage", ChangeCode::StorageVersionChanged, what);
    }
    let deprecation = |version: &CustomResourceDefinitionVersion| {
        (
            version.deprecated == Some(true),
            version.deprecation_warning.clone(),
        )
    };
    if deprecation(old) != deprecation(new) {
        let word = if deprecation(new).0 { "is" } else { "is not" };
        let what = format!("the version {word} deprecated");
        add("deprecated", ChangeCode::DeprecationChanged, &what);
    }
    let columns = |it: &CustomResourceDefinitionVersion| it.additional_printer_columns.clone();
    let has_new_columns = columns(old).unwrap_or_default() != columns(new).unwrap_or_default();
    changes.extend(subresources(name, old, new));
    changes.extend(selectable(name, old, new));
    if has_new_columns {
        let what = "the columns change".to_owned();
        let field = "additionalPrinterColumns";
        let code = ChangeCode::ColumnsChanged;
        changes.push(version_change(name, new, field, code, what));
    }
    changes.extend(schema::compare(
        name,
        &new.name,
        &schema_of(old),
        &schema_of(new),
    ));
    changes
}

fn subresources(
    name: &str,
    old: &CustomResourceDefinitionVersion,
    new: &CustomResourceDefinitionVersion,
) -> Vec<Change> {
    let of = |version: &CustomResourceDefinitionVersion| -> CustomResourceSubresources {
        version.subresources.clone().unwrap_or_default()
    };
    let (before, after) = (of(old), of(new));
    let mut changes = Vec::new();
    match (before.status.is_some(), after.status.is_some()) {
        (false, true) => {
            let what = "the status subresource is added".to_owned();
            changes.push(version_change(
                name,
                new,
                "subresources.status",
                ChangeCode::StatusAdded,
                what,
            ));
        }
        (true, false) => {
            let what = "the status subresource is removed".to_owned();
            changes.push(version_change(
                name,
                new,
                "subresources.status",
                ChangeCode::StatusRemoved,
                what,
            ));
        }
        _ => {}
    }
    let (code, what) = match (&before.scale, &after.scale) {
        (None, Some(_)) => (ChangeCode::ScaleAdded, "the kind can be scaled"),
        (Some(_), None) => (ChangeCode::ScaleChanged, "the kind can no longer be scaled"),
        (Some(before), Some(after)) if before != after => (
            ChangeCode::ScaleChanged,
            "the scale subresource uses other fields",
        ),
        _ => return changes,
    };
    changes.push(version_change(
        name,
        new,
        "subresources.scale",
        code,
        what.to_owned(),
    ));
    changes
}

fn selectable(
    name: &str,
    old: &CustomResourceDefinitionVersion,
    new: &CustomResourceDefinitionVersion,
) -> Vec<Change> {
    let of = |version: &CustomResourceDefinitionVersion| -> Vec<String> {
        let all = version.selectable_fields.iter().flatten();
        all.map(|it| it.json_path.clone()).collect()
    };
    let (before, after) = (of(old), of(new));
    let gone = before.iter().filter(|it| !after.contains(it));
    let gone = gone.map(|path| {
        (
            ChangeCode::SelectableFieldRemoved,
            format!("{path} is removed"),
        )
    });
    let come = after.iter().filter(|it| !before.contains(it));
    let come = come.map(|it| (ChangeCode::SelectableFieldAdded, format!("{it} is added")));
    let all = gone.chain(come);
    let changes = all.map(|(code, what)| Change {
        stored: StoredObjectsEffect::Untouched,
        ..version_change(name, new, "selectableFields", code, what)
    });
    changes.collect()
}
