//! Migration of stored objects to another version, and the checks before a version is removed.

use k8s_openapi::api::storagemigration::v1::{
    StorageVersionMigration, StorageVersionMigrationSpec,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{GroupResource, ObjectMeta};

/// A reason why a version cannot be removed from a definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemovalError {
    /// The definition has no such version.
    #[error("{definition} has no version {version}, only {}; give one of these", known.join(", "))]
    Unknown {
        /// The definition.
        definition: String,
        /// The version.
        version: String,
        /// The versions of the definition.
        known: Vec<String>,
    },
    /// It is the storage version.
    #[error(
        "{definition} stores {version}; make another version the storage version and migrate the stored objects first"
    )]
    Stored {
        /// The definition.
        definition: String,
        /// The version.
        version: String,
    },
    /// Objects may still be stored in it.
    #[error(
        "{definition} lists {version} in status.storedVersions: objects may still be stored in it; migrate them, and wait \
         until the list no longer has it"
    )]
    WasStored {
        /// The definition.
        definition: String,
        /// The version.
        version: String,
    },
    /// The stored versions are unknown: the definition does not come from a cluster.
    #[error(
        "{definition} has no status.storedVersions; get the definition from the cluster (kubectl get crd NAME -o yaml)"
    )]
    NoStatus {
        /// The definition.
        definition: String,
    },
    /// It is still served.
    #[error(
        "{definition} still serves {version}; stop serving it first, so that remaining clients show up while it can be restored"
    )]
    Served {
        /// The definition.
        definition: String,
        /// The version.
        version: String,
    },
}

/// The name that a definition must have, `plural.group`; its metadata may be unset.
#[must_use]
pub fn definition_name(definition: &CustomResourceDefinition) -> String {
    let spec = &definition.spec;
    format!("{}.{}", spec.names.plural, spec.group)
}

/// The `StorageVersionMigration` that makes the API server rewrite all stored objects in the current storage version. It
/// requires Kubernetes 1.37 (`storagemigration.k8s.io/v1`).
#[must_use]
pub fn migration(definition: &CustomResourceDefinition) -> StorageVersionMigration {
    let spec = &definition.spec;
    let stored = spec.versions.iter().find(|it| it.storage);
    let version = stored.map_or("", |it| it.name.as_str());
    let (group, resource) = (spec.group.clone(), spec.names.plural.clone());
    StorageVersionMigration {
        metadata: ObjectMeta {
            // A finished migration never runs again, so each storage version needs a separate one.
            name: Some(format!("{resource}.{group}-to-{version}")),
            ..ObjectMeta::default()
        },
        spec: Some(StorageVersionMigrationSpec {
            resource: GroupResource { group, resource },
        }),
        status: None,
    }
}

impl RemovalError {
    /// A token for programs, such as `was-stored`.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown",
            Self::Stored { .. } => "stored",
            Self::WasStored { .. } => "was-stored",
            Self::NoStatus { .. } => "no-status",
            Self::Served { .. } => "served",
        }
    }

    /// Whether the definition lacks the data to decide.
    #[must_use]
    pub const fn is_undecided(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::NoStatus { .. })
    }
}

/// Checks that a version can be removed from a definition, given as it is in the cluster.
///
/// # Errors
///
/// The first of [`removal_blockers`]: objects are or may be stored in the version, or it is still served.
pub fn check_removal(
    definition: &CustomResourceDefinition,
    version: &str,
) -> Result<(), RemovalError> {
    let first = removal_blockers(definition, version).into_iter().next();
    first.map_or(Ok(()), Err)
}

/// The reasons why a version cannot be removed from a definition, given as it is in the cluster, in the order in which to
/// resolve them.
#[must_use]
pub fn removal_blockers(definition: &CustomResourceDefinition, version: &str) -> Vec<RemovalError> {
    let versions = &definition.spec.versions;
    let (name, text) = (definition_name(definition), version.to_owned());
    let Some(found) = versions.iter().find(|it| it.name == version) else {
        return vec![RemovalError::Unknown {
            definition: name,
            version: text,
            known: versions.iter().map(|it| it.name.clone()).collect(),
        }];
    };
    let status = definition.status.as_ref();
    let stored = status.and_then(|it| it.stored_versions.as_ref());
    let (definition, version) = (name, text);
    // The storage version blocks even without a status; any other needs `storedVersions`.
    let storage = match stored {
        _ if found.storage => Some(RemovalError::Stored {
            definition: definition.clone(),
            version: version.clone(),
        }),
        None => Some(RemovalError::NoStatus {
            definition: definition.clone(),
        }),
        Some(stored) => stored.contains(&version).then(|| RemovalError::WasStored {
            definition: definition.clone(),
            version: version.clone(),
        }),
    };
    let served = found.served.then_some(RemovalError::Served {
        definition,
        version,
    });
    storage.into_iter().chain(served).collect()
}
