//! Checks stored objects against new definitions.

use crate::diff::name_of;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lockkeeper_api::JobKind;
use lockkeeper_job_kinds::check_against_definition;
use lockkeeper_policies::schema::{SchemaError, StructuralSchema};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The result for a stored object, ordered by severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoredObjectOutcome {
    /// It could be created again.
    Passes,
    /// It could be created again, but loses fields.
    LosesFields,
    /// It could not be created again; updates pass that leave invalid values unchanged.
    PassesUntouched,
    /// Every update of it is rejected.
    RejectedOnUpdate,
    /// It declares the kind, and does not fit the definition.
    DeclarationMismatch,
    /// Its version is not served.
    Unserved,
}

impl StoredObjectOutcome {
    /// The text in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::LosesFields => "loses fields",
            Self::PassesUntouched => "passes until it is changed",
            Self::RejectedOnUpdate => "is rejected on every update",
            Self::DeclarationMismatch => "does not fit the definition",
            Self::Unserved => "has a version that is not served",
        }
    }
}

/// The report on one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredObjectReport {
    /// The object, such as `Cohort team-a/eu`.
    pub object: String,
    /// The name of its definition.
    pub definition: String,
    /// The result.
    pub outcome: StoredObjectOutcome,
    /// The dropped fields.
    pub dropped: Vec<String>,
    /// The findings on creation, and before Kubernetes 1.33 on every update.
    pub on_create: Vec<String>,
    /// The findings on an update without changes.
    pub on_update: Vec<String>,
}

/// The objects whose kind one of the definitions has, in their order, and how many others there were.
///
/// # Errors
///
/// When an expression or a pattern of a schema cannot be compiled.
pub fn check_stored_objects(
    objects: &[Value],
    definitions: &[CustomResourceDefinition],
) -> Result<(Vec<StoredObjectReport>, usize), SchemaError> {
    let mut structures = BTreeMap::new();
    let mut verdicts = Vec::new();
    let mut others = 0_usize;
    for object in objects {
        let (version, kind) = (text(object, "apiVersion"), text(object, "kind"));
        let (group, version) = version.split_once('/').unwrap_or_default();
        let declared = check_declaration(object, definitions);
        let is_declaration = declared.is_some();
        verdicts.extend(declared);
        let mut of = definitions.iter();
        let Some(definition) = of.find(|it| it.spec.group == group && it.spec.names.kind == kind)
        else {
            others = others.saturating_add(usize::from(!is_declaration));
            continue;
        };
        let served = definition
            .spec
            .versions
            .iter()
            .find(|it| it.served && it.name == version);
        let schema = served.and_then(|it| it.schema.as_ref()?.open_api_v3_schema.as_ref());
        let Some(schema) = schema else {
            verdicts.push(StoredObjectReport::new(
                object,
                definition,
                StoredObjectOutcome::Unserved,
            ));
            continue;
        };
        let key = (name_of(definition), version.to_owned());
        if !structures.contains_key(&key) {
            let schema = serde_json::to_value(schema).unwrap_or_default();
            structures.insert(key.clone(), StructuralSchema::new(&schema)?);
        }
        if let Some(structure) = structures.get(&key) {
            verdicts.push(check_object(object, definition, structure));
        }
    }
    Ok((verdicts, others))
}

/// Compares a `JobKind` with the definition of its kind; `None` for other objects, and if there is no such definition.
fn check_declaration(
    object: &Value,
    definitions: &[CustomResourceDefinition],
) -> Option<StoredObjectReport> {
    let (version, kind) = (text(object, "apiVersion"), text(object, "kind"));
    if kind != "JobKind" || version.split_once('/')?.0 != lockkeeper_api::GROUP {
        return None;
    }
    let declaration: JobKind = serde_json::from_value(object.clone()).ok()?;
    let name = declaration.metadata.name.as_deref()?;
    let definition = definitions.iter().find(|it| name_of(it) == name)?;
    let schema = serde_json::to_value(definition).ok()?;
    let mut report = StoredObjectReport::new(object, definition, StoredObjectOutcome::Passes);
    report.object = format!("JobKind {name}");
    if let Err(errors) = check_against_definition(&declaration, &schema) {
        report.outcome = StoredObjectOutcome::DeclarationMismatch;
        let errors = errors.iter();
        report.on_create = errors
            .map(|it| format!("{}: {}", it.field, it.problem))
            .collect();
    }
    Some(report)
}

fn check_object(
    object: &Value,
    definition: &CustomResourceDefinition,
    structure: &StructuralSchema,
) -> StoredObjectReport {
    let mut read = object.clone();
    // The API server prunes and defaults a stored object when it reads it.
    let dropped = structure.prune(&mut read);
    structure.apply_defaults(&mut read);
    let texts = |old: Option<&Value>| -> Vec<String> {
        let found = structure.check(&read, old);
        found
            .iter()
            .map(lockkeeper_policies::finding::Finding::text)
            .collect()
    };
    // The second check has the object as its own old version: only unchanged values.
    let (on_create, on_update) = (texts(None), texts(Some(&read)));
    let outcome = if !on_update.is_empty() {
        StoredObjectOutcome::RejectedOnUpdate
    } else if !on_create.is_empty() {
        StoredObjectOutcome::PassesUntouched
    } else if !dropped.is_empty() {
        StoredObjectOutcome::LosesFields
    } else {
        StoredObjectOutcome::Passes
    };
    StoredObjectReport {
        dropped: dropped.iter().map(|it| it.field.to_string()).collect(),
        on_create,
        on_update,
        ..StoredObjectReport::new(object, definition, outcome)
    }
}

impl StoredObjectReport {
    fn new(
        object: &Value,
        definition: &CustomResourceDefinition,
        outcome: StoredObjectOutcome,
    ) -> Self {
        let of = |name: &str| {
            let value = object.get("metadata").and_then(|it| it.get(name));
            value.and_then(Value::as_str).map(str::to_owned)
        };
        let name = of("name")
            .or_else(|| of("generateName"))
            .unwrap_or_default();
        let name = match of("namespace") {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name,
        };
        Self {
            object: format!("{} {name}", definition.spec.names.kind),
            definition: name_of(definition),
            outcome,
            dropped: Vec::new(),
            on_create: Vec::new(),
            on_update: Vec::new(),
        }
    }
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}
