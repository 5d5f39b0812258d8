//! `docs/fields.md` lists each field of the CRDs and each label and annotation, with a test that shows its effect.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod document;
mod evidence;
mod keys;

use document::{Row, SECTION_WITHOUT_EFFECT};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use lockkeeper_crdgen::diff::SchemaPath;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The sections of the page that list labels, annotations and finalizers.
const KEY_SECTIONS: [&str; 2] = ["Labels and annotations", "Keys of other projects"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The fields of a schema that have no fields of their own. A list or map of plain values counts as one field.
fn leaves(schema: &JSONSchemaProps, at: &SchemaPath, out: &mut BTreeSet<String>) {
    let is_object = |it: &JSONSchemaProps| it.properties.as_ref().is_some_and(|it| !it.is_empty());
    if is_object(schema) {
        for (name, child) in schema.properties.iter().flatten() {
            // These are the same for all kinds.
            if at.is_root() && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                continue;
            }
            leaves(child, &at.field(name), out);
        }
        return;
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items
        && is_object(items)
    {
        return leaves(items, &at.items(), out);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(entry)) = &schema.additional_properties
        && is_object(entry)
    {
        return leaves(entry, &at.entries(), out);
    }
    out.insert(at.to_string());
}

/// The leaf fields of each kind.
fn fields_by_kind() -> BTreeMap<String, BTreeSet<String>> {
    let mut kinds: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for definition in lockkeeper_crdgen::plain_definitions() {
        let fields = kinds.entry(definition.spec.names.kind).or_default();
        for version in definition.spec.versions {
            let schema = version.schema.unwrap().open_api_v3_schema.unwrap();
            leaves(&schema, &SchemaPath::default(), fields);
        }
    }
    kinds
}

/// Whether a row lists a field: by its path, or with `.*` all fields below a path.
fn covers(listed: &str, field: &str) -> bool {
    match listed.strip_suffix(".*") {
        Some(parent) => field
            .strip_prefix(parent)
            .is_some_and(|rest| rest.starts_with('.')),
        None => listed == field,
    }
}

/// The differences between the names that a section lists, and those that exist.
fn differences(section: &str, listed: &[&str], existing: &BTreeSet<String>) -> Vec<String> {
    let mut out = Vec::new();
    for name in existing {
        let count = listed.iter().filter(|it| covers(it, name)).count();
        if count != 1 {
            out.push(format!("{section}: {name} has {count} rows instead of 1"));
        }
    }
    for row in listed {
        if !existing.iter().any(|it| covers(row, it)) {
            out.push(format!("{section}: {row} does not exist"));
        }
    }
    out
}

/// The names that the page lists for a kind, with those that have no effect.
fn listed<'a>(rows: &'a [Row], kind: &str) -> Vec<&'a str> {
    let without_effect = |row: &'a Row| {
        let name = row.name.strip_prefix(kind)?;
        name.strip_prefix(' ')
    };
    let names = rows.iter().filter_map(|row| match row.section.as_str() {
        SECTION_WITHOUT_EFFECT => without_effect(row),
        section => (section == kind).then_some(row.name.as_str()),
    });
    names.collect()
}

#[test]
fn every_field_of_the_definitions_has_one_row() {
    let rows = document::rows();
    let kinds = fields_by_kind();
    assert_eq!(kinds.len(), 6, "{:?}", kinds.keys());
    let faults = kinds
        .iter()
        .flat_map(|(kind, fields)| differences(kind, &listed(&rows, kind), fields));
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "docs/fields.md:\n{}", faults.join("\n"));
    let is_known = |row: &Row| {
        kinds.contains_key(&row.section)
            || KEY_SECTIONS.contains(&row.section.as_str())
            || row.section == SECTION_WITHOUT_EFFECT
    };
    let unknown: Vec<&Row> = rows.iter().filter(|row| !is_known(row)).collect();
    assert!(unknown.is_empty(), "rows outside the sections: {unknown:?}");
}

#[test]
fn every_label_and_annotation_has_one_row() {
    let rows = document::rows();
    let mut names = listed(&rows, "label");
    for section in KEY_SECTIONS {
        names.extend(listed(&rows, section));
    }
    let faults = differences("labels", &names, &keys::in_sources());
    assert!(faults.is_empty(), "docs/fields.md:\n{}", faults.join("\n"));
}

#[test]
fn every_row_names_existing_tests() {
    let faults = document::rows()
        .iter()
        .flat_map(evidence::faults)
        .collect::<Vec<_>>();
    assert!(faults.is_empty(), "docs/fields.md:\n{}", faults.join("\n"));
}

#[test]
fn missing_duplicate_and_unknown_rows_are_reported() {
    let existing = ["spec.a", "spec.b.c", "spec.b.d"].map(str::to_owned);
    let existing = BTreeSet::from(existing);
    let check = |listed: &[&str]| differences("Kind", listed, &existing);
    assert_eq!(check(&["spec.a", "spec.b.*"]), [""; 0]);
    assert_eq!(
        check(&["spec.a", "spec.b"]),
        [
            "Kind: spec.b.c has 0 rows instead of 1",
            "Kind: spec.b.d has 0 rows instead of 1",
            "Kind: spec.b does not exist",
        ]
    );
    assert_eq!(
        check(&["spec.a", "spec.b.*", "spec.b.c"]),
        ["Kind: spec.b.c has 2 rows instead of 1"]
    );
}
