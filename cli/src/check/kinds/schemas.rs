//! The schemas that are at hand.

use crate::Failure;
use lockkeeper_api::foreign::kueue;
use lockkeeper_policies::schema::StructuralSchema;
use serde_json::Value;
use std::sync::OnceLock;

/// The schema of a kind, where it is at hand. It is made ready when it is asked for first.
pub(super) enum SchemaSource {
    None,
    Lockkeeper(Box<LazySchema>),
    Kueue {
        kind: &'static str,
        version: &'static str,
    },
}

/// A schema of one of lockkeeper's kinds.
pub(super) struct LazySchema {
    schema: Value,
    structure: OnceLock<Option<StructuralSchema>>,
}

impl SchemaSource {
    pub(super) fn get(&self) -> Option<&StructuralSchema> {
        match self {
            Self::None => None,
            Self::Lockkeeper(own) => {
                // A test holds that all of them can be read.
                let made = || StructuralSchema::new(&own.schema).ok();
                own.structure.get_or_init(made).as_ref()
            }
            Self::Kueue { kind, version } => {
                lockkeeper_policies::kueue::structural_schema(kind, version)
            }
        }
    }
}

/// A kind whose schema is known.
pub(super) struct KindDefinition {
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) plural: String,
    pub(super) is_namespaced: bool,
}

/// The schemas of Kueue's kinds.
pub(super) fn kueue_schemas() -> impl Iterator<Item = (KindDefinition, SchemaSource)> {
    lockkeeper_policies::kueue::kinds().map(|(kind, version)| {
        let of = KindDefinition {
            version: format!("{}/{version}", kueue::GROUP),
            kind: kind.to_owned(),
            plural: plural(kind),
            is_namespaced: matches!(kind, "LocalQueue" | "Workload"),
        };
        (of, SchemaSource::Kueue { kind, version })
    })
}

/// What Kueue calls a kind in paths.
fn plural(kind: &str) -> String {
    let end = if kind.ends_with('s') { "es" } else { "s" };
    format!("{}{end}", kind.to_lowercase())
}

/// The schemas of lockkeeper's kinds, as the definitions have them but for the expressions: the rules that these are of
/// are asked anyway.
pub(super) fn lockkeeper_schemas() -> Result<Vec<(KindDefinition, SchemaSource)>, Failure> {
    let mut all = Vec::new();
    for definition in lockkeeper_crdgen::plain_definitions() {
        let spec = definition.spec;
        let schemas = spec.versions.into_iter().filter_map(|it| it.schema);
        for schema in schemas.filter_map(|it| it.open_api_v3_schema) {
            let of = KindDefinition {
                version: format!("{}/{}", lockkeeper_api::GROUP, lockkeeper_api::VERSION),
                kind: spec.names.kind.clone(),
                plural: spec.names.plural.clone(),
                is_namespaced: spec.scope == "Namespaced",
            };
            let own = LazySchema {
                schema: serde_json::to_value(schema)?,
                structure: OnceLock::new(),
            };
            all.push((of, SchemaSource::Lockkeeper(Box::new(own))));
        }
    }
    Ok(all)
}
