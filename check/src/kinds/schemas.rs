//! Schemas of lockkeeper's and Kueue's kinds.

use crate::setup_error::SetupError;
use lockkeeper_api::foreign::kueue;
use lockkeeper_policies::schema::StructuralSchema;
use serde_json::Value;
use std::sync::OnceLock;

/// The source of the schema of a kind, which is compiled on first use.
pub enum SchemaSource {
    None,
    Lockkeeper(Box<LazySchema>),
    Kueue {
        kind: &'static str,
        version: &'static str,
    },
}

/// A schema of one of lockkeeper's kinds, and its compiled form.
pub struct LazySchema {
    schema: Value,
    structure: OnceLock<Option<StructuralSchema>>,
}

impl SchemaSource {
    /// Whether a given definition of the kind takes the place of this schema: that of another project may be of another
    /// release.
    pub fn is_replaceable(&self) -> bool {
        matches!(self, Self::Kueue { .. })
    }

    pub fn get(&self) -> Option<&StructuralSchema> {
        match self {
            Self::None => None,
            Self::Lockkeeper(own) => {
                // `kind_registry_parses_every_schema` tests that all of them compile.
                let compile = || StructuralSchema::new(&own.schema).ok();
                own.structure.get_or_init(compile).as_ref()
            }
            Self::Kueue { kind, version } => {
                lockkeeper_policies::kueue::structural_schema(kind, version)
            }
        }
    }
}

/// A kind with a schema.
pub struct KindDefinition {
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub is_namespaced: bool,
}

/// The schemas of Kueue's kinds.
pub fn kueue_schemas() -> impl Iterator<Item = (KindDefinition, SchemaSource)> {
    lockkeeper_policies::kueue::kinds().map(|(kind, version)| {
        let definition = KindDefinition {
            version: format!("{}/{version}", kueue::GROUP),
            kind: kind.to_owned(),
            plural: plural(kind),
            is_namespaced: matches!(kind, "LocalQueue" | "Workload"),
        };
        (definition, SchemaSource::Kueue { kind, version })
    })
}

/// The resource name of one of Kueue's kinds.
fn plural(kind: &str) -> String {
    let end = if kind.ends_with('s') { "es" } else { "s" };
    format!("{}{end}", kind.to_lowercase())
}

/// The schemas of the CRDs of lockkeeper's kinds, without CEL: the same rules run in Rust.
pub fn lockkeeper_schemas() -> Result<Vec<(KindDefinition, SchemaSource)>, SetupError> {
    let mut all = Vec::new();
    for definition in lockkeeper_crdgen::plain_definitions() {
        let spec = definition.spec;
        let schemas = spec.versions.into_iter().filter_map(|it| it.schema);
        for schema in schemas.filter_map(|it| it.open_api_v3_schema) {
            let kind = KindDefinition {
                version: format!("{}/{}", lockkeeper_api::GROUP, lockkeeper_api::VERSION),
                kind: spec.names.kind.clone(),
                plural: spec.names.plural.clone(),
                is_namespaced: spec.scope == "Namespaced",
            };
            let own = LazySchema {
                schema: serde_json::to_value(schema)?,
                structure: OnceLock::new(),
            };
            all.push((kind, SchemaSource::Lockkeeper(Box::new(own))));
        }
    }
    Ok(all)
}
