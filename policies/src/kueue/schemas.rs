//! The schemas of Kueue's custom resources, as of Kueue ff69552e.

use crate::schema::StructuralSchema;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

/// By kind: for each version its schema, without descriptions and without the fields of pods.
const SOURCES: [(&str, &str); 6] = [
    ("ClusterQueue", include_str!("schemas/clusterqueues.json")),
    ("Cohort", include_str!("schemas/cohorts.json")),
    ("LocalQueue", include_str!("schemas/localqueues.json")),
    (
        "ResourceFlavor",
        include_str!("schemas/resourceflavors.json"),
    ),
    ("Workload", include_str!("schemas/workloads.json")),
    (
        "WorkloadPriorityClass",
        include_str!("schemas/workloadpriorityclasses.json"),
    ),
];

/// A schema that is compiled on first use: most processes need few kinds, and compiling the expressions of all kinds
/// takes a tenth of a second.
struct LazySchema {
    schema: Value,
    compiled: OnceLock<Option<StructuralSchema>>,
}

type ByKindAndVersion = BTreeMap<(&'static str, String), LazySchema>;

static SCHEMAS: LazyLock<ByKindAndVersion> = LazyLock::new(|| {
    let mut all = BTreeMap::new();
    for (kind, source) in SOURCES {
        // A test checks that all schemas can be parsed.
        let versions: BTreeMap<String, Value> = serde_json::from_str(source).unwrap_or_default();
        for (version, schema) in versions {
            let structure = OnceLock::new();
            all.insert(
                (kind, version),
                LazySchema {
                    schema,
                    compiled: structure,
                },
            );
        }
    }
    all
});

/// The kinds and versions whose schema is known.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    SCHEMAS
        .keys()
        .map(|(kind, version)| (*kind, version.as_str()))
}

/// The schema of one of Kueue's kinds in a version; `None` if there is no such kind or version.
#[must_use]
pub fn structural_schema(kind: &str, version: &str) -> Option<&'static StructuralSchema> {
    let (kind, _) = SOURCES.iter().find(|(it, _)| *it == kind)?;
    let lazy = SCHEMAS.get(&(*kind, version.to_owned()))?;
    let made = || StructuralSchema::new(&lazy.schema).ok();
    lazy.compiled.get_or_init(made).as_ref()
}

#[cfg(test)]
mod tests {
    use super::{SOURCES, kinds, structural_schema};

    #[test]
    fn bundled_schemas_compile() {
        assert_eq!(kinds().count(), 2 * SOURCES.len());
        for (kind, version) in kinds() {
            assert!(
                structural_schema(kind, version).is_some(),
                "{kind} {version}"
            );
        }
        assert!(structural_schema("Workload", "v1beta1").is_some());
        assert!(structural_schema("Workload", "v1").is_none());
        assert!(structural_schema("Job", "v1").is_none());
    }
}
