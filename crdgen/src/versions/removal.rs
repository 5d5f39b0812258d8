//! How stored objects leave a version, and whether it may go.

use k8s_openapi::api::storagemigration::v1::{
    StorageVersionMigration, StorageVersionMigrationSpec,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{GroupResource, ObjectMeta};

/// Why a version may not be taken out of a definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemovalError {
    /// It is not there.
    #[error("{definition} has no version {version}, only {}; name one of these", known.join(", "))]
    Unknown {
        /// The definition.
        definition: String,
        /// The version.
        version: String,
        /// Those that are there.
        known: Vec<String>,
    },
    /// Objects are written in it.
    #[error(
        "{definition} stores {version}; store another version first, and migrate what is stored"
    )]
    Stored {
        /// The definition.
        definition: String,
        /// The version.
        version: String,
    },
    /// Objects were written in it, and may still lie there.
    #[error(
        "{definition} has {version} in status.storedVersions, so that objects may still be stored in it; migrate them, and \
         wait until it is gone from there"
    )]
    WasStored {
        /// The definition.
        definition: String,
        /// The version.
        version: String,
    },
    /// Nobody has said what is stored: this is no definition from a cluster.
    #[error(
        "{definition} has no status.storedVersions; take the definition from the cluster (kubectl get -o yaml)"
    )]
    NoStatus {
        /// The definition.
        definition: String,
    },
    /// People may still ask for it.
    #[error(
        "{definition} still serves {version}; stop serving it first, so that who uses it is seen while it can come back"
    )]
    Served {
        /// The definition.
        definition: String,
        /// The version.
        version: String,
    },
}

/// What has the API server's migration write all stored objects anew, in the version that is stored now. An API server of
/// 1.37 or later has it, in `storagemigration.k8s.io/v1`.
#[must_use]
pub fn migration(definition: &CustomResourceDefinition) -> StorageVersionMigration {
    let spec = &definition.spec;
    let stored = spec.versions.iter().find(|it| it.storage);
    let version = stored.map_or("", |it| it.name.as_str());
    let (group, resource) = (spec.group.clone(), spec.names.plural.clone());
    StorageVersionMigration {
        metadata: ObjectMeta {
            // One that is done is never run again: each version to be stored has one of its own.
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
    /// What it is, in a word.
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

    /// Whether it says that the question cannot be answered.
    #[must_use]
    pub const fn is_undecided(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::NoStatus { .. })
    }
}

/// Whether a version may be taken out of a definition, as it is on the cluster.
///
/// # Errors
///
/// The first of [`hindrances`]: objects are or may be stored in it, or it is still served.
pub fn check_removal(
    definition: &CustomResourceDefinition,
    version: &str,
) -> Result<(), RemovalError> {
    let first = removal_blockers(definition, version).into_iter().next();
    first.map_or(Ok(()), Err)
}

/// All that stands against taking a version out of a definition, as it is on the cluster, in the order in which it is to be
/// done away with.
#[must_use]
pub fn removal_blockers(definition: &CustomResourceDefinition, version: &str) -> Vec<RemovalError> {
    let versions = &definition.spec.versions;
    let (name, text) = (super::definition_name(definition), version.to_owned());
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
    let kept = match stored {
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
    kept.into_iter().chain(served).collect()
}
