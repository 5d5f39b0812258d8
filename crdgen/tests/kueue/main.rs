//! Where our schemas are the same as Kueue's, wider or narrower, field by field; each that takes less has a reason.
//! `UPDATE_DOCS=1 cargo test -p lockkeeper-crdgen --test kueue` regenerates `docs/kueue-schema.md`.
//!
//! `LOCKKEEPER_CONFORMANCE_DIR` names the folder with Kueue's definitions in `crds/`; without it `../shared/data` and the
//! schemas that are built in are tried, which a test of the policies holds to the definitions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use lockkeeper_crdgen::diff::{Change, ChangeCode, Effect, SchemaPath, compare_schemas};
use lockkeeper_testkit::assert_file_is_current;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The kinds that both have, with their plurals.
const KINDS: [(&str, &str); 5] = [
    ("ClusterQueue", "clusterqueues"),
    ("Cohort", "cohorts"),
    ("LocalQueue", "localqueues"),
    ("ResourceFlavor", "resourceflavors"),
    ("Workload", "workloads"),
];

/// Kueue's version that ours follow.
const VERSION: &str = "v1beta2";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FieldVerdict {
    Same,
    Wider,
    OnlyHere,
    Differs,
    Narrower,
    Missing,
}

impl FieldVerdict {
    const fn words(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Wider => "wider",
            Self::OnlyHere => "only here",
            Self::Differs => "other default",
            Self::Narrower => "narrower",
            Self::Missing => "missing here",
        }
    }

    fn from_change(change: &Change) -> Self {
        match (change.code, change.effect) {
            (ChangeCode::FieldRemoved, _) => Self::Missing,
            (ChangeCode::FieldAdded | ChangeCode::RequiredFieldAdded, _) => Self::OnlyHere,
            (
                ChangeCode::DefaultAdded | ChangeCode::DefaultRemoved | ChangeCode::DefaultChanged,
                _,
            ) => Self::Differs,
            (_, Effect::Narrower | Effect::Unclear) => Self::Narrower,
            (_, Effect::Wider) | (ChangeCode::DefaultOfRequiredAdded, _) => Self::Wider,
            (_, Effect::Same) => Self::Same,
        }
    }

    /// Whether an object of Kueue's may not come over as it is.
    fn needs_reason(self) -> bool {
        self >= Self::Differs
    }
}

/// The comparison of one field.
struct Row {
    kind: &'static str,
    path: String,
    verdict: FieldVerdict,
    what: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reason {
    why: String,
    fields: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Kueue's schema of a kind.
fn kueue_schema(plural: &str) -> JSONSchemaProps {
    let folder = env::var_os("LOCKKEEPER_CONFORMANCE_DIR").map(|it| root().join(it));
    let folders = folder.into_iter().chain([root().join("../shared/data")]);
    let mut files = folders.map(|it| it.join(format!("crds/kueue.x-k8s.io_{plural}.yaml")));
    let schema = if let Some(file) = files.find(|it| it.is_file()) {
        let crd: Value = serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        let versions = crd["spec"]["versions"].as_array().unwrap().clone();
        let version = versions
            .into_iter()
            .find(|it| it["name"] == VERSION)
            .unwrap();
        version["schema"]["openAPIV3Schema"].clone()
    } else {
        let file = root().join(format!("policies/src/kueue/schemas/{plural}.json"));
        let versions: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        versions[VERSION].clone()
    };
    serde_json::from_value(without_pods(&schema)).unwrap()
}

fn lockkeeper_schema(kind: &str) -> JSONSchemaProps {
    let mut all = lockkeeper_crdgen::plain_definitions().into_iter();
    let definition = all.find(|it| it.spec.names.kind == kind).unwrap();
    let mut versions = definition.spec.versions.into_iter();
    let version = versions
        .find(|it| it.name == lockkeeper_api::VERSION)
        .unwrap();
    version.schema.unwrap().open_api_v3_schema.unwrap()
}

/// The thousands of fields of a pod template are those of Kubernetes; here the webhook reads them.
fn without_pods(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) if fields.contains_key("properties") && is_pod_schema(schema) => {
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
        }
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, it)| (key.clone(), without_pods(it)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.iter().map(without_pods).collect(),
        other => other.clone(),
    }
}

fn is_pod_schema(schema: &Value) -> bool {
    schema
        .pointer("/properties/spec/properties/containers")
        .is_some()
}

/// All places of a schema.
fn paths(schema: &JSONSchemaProps, at: &SchemaPath, out: &mut BTreeSet<SchemaPath>) {
    for (name, child) in schema.properties.iter().flatten() {
        // These are the same for all kinds.
        if at.is_root() && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            continue;
        }
        let path = at.field(name);
        paths(child, &path, out);
        out.insert(path);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        let path = at.items();
        paths(items, &path, out);
        out.insert(path);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(entry)) = &schema.additional_properties {
        let path = at.entries();
        paths(entry, &path, out);
        out.insert(path);
    }
}

/// Words say nothing of values, and expressions stand beside each other in the pages of the rules.
fn is_value_change(change: &Change) -> bool {
    !matches!(
        change.code,
        ChangeCode::DescriptionChanged
            | ChangeCode::RuleAdded
            | ChangeCode::RuleRemoved
            | ChangeCode::RuleMessageChanged
            | ChangeCode::RatchetingRuleAdded
            | ChangeCode::TransitionRuleAdded
    )
}

fn rows(kind: &'static str, plural: &str) -> Vec<Row> {
    let (theirs, ours) = (kueue_schema(plural), lockkeeper_schema(kind));
    let mut changes: BTreeMap<String, Vec<Change>> = BTreeMap::new();
    for change in compare_schemas(kind, VERSION, &theirs, &ours) {
        if is_value_change(&change) {
            changes
                .entry(change.place.field())
                .or_default()
                .push(change);
        }
    }
    let mut all = BTreeSet::new();
    paths(&theirs, &SchemaPath::default(), &mut all);
    paths(&ours, &SchemaPath::default(), &mut all);
    let mut rows: Vec<Row> = Vec::new();
    for path in all.iter().map(ToString::to_string) {
        // If one side lacks a field, it lacks the fields below it as well.
        let is_alone =
            |it: &Row| it.verdict == FieldVerdict::Missing || it.verdict == FieldVerdict::OnlyHere;
        let is_below = |row: &Row| {
            let rest = path.strip_prefix(&row.path);
            rest.is_some_and(|rest| rest.starts_with(['.', '[']))
        };
        if rows.iter().any(|it| is_alone(it) && is_below(it)) {
            continue;
        }
        let of_it = changes.remove(&path).unwrap_or_default();
        rows.push(Row {
            kind,
            verdict: of_it
                .iter()
                .map(FieldVerdict::from_change)
                .max()
                .unwrap_or(FieldVerdict::Same),
            what: of_it.into_iter().map(|it| it.description).collect(),
            path,
        });
    }
    assert!(changes.is_empty(), "{kind}: {:?}", changes.keys());
    rows
}

fn page(rows: &[Row], reasons: &[Reason]) -> String {
    let why = |row: &Row| {
        let name = format!("{} {}", row.kind, row.path);
        let reason = reasons.iter().find(|it| it.fields.contains(&name));
        reason.map_or("", |it| it.why.as_str())
    };
    let mut out = format!(
        "# Schemas compared with Kueue's\n\n<!-- Made by UPDATE_DOCS=1 cargo test -p lockkeeper-crdgen --test kueue -->\n\n\
         This page compares the schemas of the kinds that both projects have, field by field (here {}, in Kueue {VERSION}). \
         *Wider* and *only here* accept all values that Kueue accepts; *narrower*, *missing here* and *other default* have a \
         reason. Expressions are not compared: they are in the [rules](rules/README.md). Fields below a field that is missing or \
         only here are not listed. The pod template has no schema here: the webhook decodes it.\n",
        lockkeeper_api::VERSION
    );
    for (kind, _) in KINDS {
        let of_kind: Vec<&Row> = rows.iter().filter(|it| it.kind == kind).collect();
        let counts = [
            FieldVerdict::Same,
            FieldVerdict::Wider,
            FieldVerdict::OnlyHere,
            FieldVerdict::Differs,
            FieldVerdict::Narrower,
            FieldVerdict::Missing,
        ];
        let counts = counts.map(|verdict| {
            let count = of_kind.iter().filter(|it| it.verdict == verdict).count();
            format!("{count} {}", verdict.words())
        });
        writeln!(out, "\n## {kind}\n\n{}.\n", counts.join(", ")).unwrap();
        writeln!(out, "| field | | what | why |\n| --- | --- | --- | --- |").unwrap();
        for row in of_kind {
            let what = row.what.join("; ").replace('|', "\\|");
            let (path, words) = (&row.path, row.verdict.words());
            writeln!(out, "| `{path}` | {words} | {what} | {} |", why(row)).unwrap();
        }
    }
    out
}

#[test]
fn narrower_fields_have_documented_reasons() {
    let rows: Vec<Row> = KINDS
        .iter()
        .flat_map(|(kind, plural)| rows(kind, plural))
        .collect();
    let reasons: Vec<Reason> = serde_saphyr::from_str(include_str!("reasons.yaml")).unwrap();
    let fields: Vec<&String> = reasons.iter().flat_map(|it| &it.fields).collect();
    let names: BTreeSet<&String> = fields.iter().copied().collect();
    assert_eq!(names.len(), fields.len(), "a field has one reason");
    let needed = rows.iter().filter(|it| it.verdict.needs_reason());
    let needed: BTreeSet<String> = needed
        .map(|it| format!("{} {}", it.kind, it.path))
        .collect();
    let without: Vec<_> = needed.iter().filter(|it| !names.contains(it)).collect();
    assert!(without.is_empty(), "fields without a reason: {without:#?}");
    let unused: Vec<_> = names.iter().filter(|it| !needed.contains(**it)).collect();
    assert!(unused.is_empty(), "reasons without use: {unused:#?}");

    let (path, made) = (root().join("docs/kueue-schema.md"), page(&rows, &reasons));
    let command = "cargo test -p lockkeeper-crdgen --test kueue";
    assert_file_is_current(&path, &made, command);
}
