//! CRDs with several versions, and the migration of stored objects.
//!
//! Clients can request served versions; the API server stores objects in the storage version. [`combine`] merges
//! definitions with one version each, as `kube`'s derive generates them, and rejects those that an API server would
//! reject or that would lose objects. `lockkeeper_conversion::migration` returns a `StorageVersionMigration` of stored objects, and
//! `lockkeeper_conversion::check_removal` reports whether a version can be removed.

use crate::webhooks::{CERT_MANAGER, CaSource, Endpoint, client};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionVersion,
    ServiceReference, WebhookClientConfig, WebhookConversion,
};
use kube::core::Version as ApiVersion;
use kube::core::crd::{MergeError, merge_crds};
use lockkeeper_conversion::definition_name;
use std::cmp::Reverse;
use std::collections::BTreeSet;

pub mod cli;

/// The path that objects to be converted are sent to.
pub const CONVERT_PATH: &str = "/convert";

/// The longest warning that an API server accepts, in bytes.
pub const WARNING_MAX_BYTES: usize = 256;

/// The version of conversion reviews that the webhook supports.
const REVIEW_VERSION: &str = "v1";

/// A version of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// A definition with this version alone.
    pub definition: CustomResourceDefinition,
    /// Whether clients can request it.
    pub served: bool,
    /// Whether it is the one that is stored.
    pub stored: bool,
    /// The deprecation, if it is deprecated.
    pub deprecated: Option<Deprecation>,
}

/// The deprecation of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Deprecation {
    /// With Kubernetes' default warning: `example.com/v1alpha1 Thing is deprecated`.
    #[default]
    Plain,
    /// With this warning.
    Warning(String),
}

impl Version {
    /// A version that is served and stored.
    #[must_use]
    pub fn stored(definition: CustomResourceDefinition) -> Self {
        Self {
            stored: true,
            ..Self::served(definition)
        }
    }

    /// A version that is served beside the one that is stored.
    #[must_use]
    pub fn served(definition: CustomResourceDefinition) -> Self {
        Self {
            definition,
            served: true,
            stored: false,
            deprecated: None,
        }
    }

    /// The same, with a warning for clients that request it.
    #[must_use]
    pub fn deprecated(mut self, deprecation: Deprecation) -> Self {
        self.deprecated = Some(deprecation);
        self
    }

    /// The same, no longer served.
    #[must_use]
    pub fn unserved(mut self) -> Self {
        self.served = false;
        self
    }
}

/// The conversion strategy.
#[derive(Clone, Copy, Debug)]
pub enum Conversion<'a> {
    /// None: the API server changes `apiVersion` and drops fields that the other version does not have.
    None,
    /// The webhook.
    Webhook {
        /// The address of the webhook.
        endpoint: &'a Endpoint,
        /// The CA of its certificate.
        authorities: CaSource<'a>,
    },
}

/// An error of combining versions.
#[derive(Debug, thiserror::Error)]
pub enum VersionsError {
    /// There is none.
    #[error("there are no versions; give at least one")]
    None,
    /// A definition with none, or several.
    #[error(
        "the definition {definition} has {count} versions; give one definition for each version"
    )]
    NotOne {
        /// The definition.
        definition: String,
        /// How many it has.
        count: usize,
    },
    /// A name that Kubernetes cannot order.
    #[error(
        "{definition}: {version:?} is no name of a version; take one such as v1alpha1, v1beta2 or v1"
    )]
    Name {
        /// The definition.
        definition: String,
        /// The name.
        version: String,
    },
    /// Two of the same name.
    #[error("{definition}: version {version} is there twice; remove one")]
    Twice {
        /// The definition.
        definition: String,
        /// The version.
        version: String,
    },
    /// None is stored.
    #[error("{definition}: no version is stored; mark one of them")]
    NoneStored {
        /// The definition.
        definition: String,
    },
    /// Several are stored.
    #[error("{definition}: {} are stored, and an API server stores one; mark one of them", versions.join(" and "))]
    SeveralStored {
        /// The definition.
        definition: String,
        /// Those that are.
        versions: Vec<String>,
    },
    /// The storage version is not served, so no client could read stored objects.
    #[error(
        "{definition}: version {version} is stored and not served; serve it, or store another one"
    )]
    StoredUnserved {
        /// The definition.
        definition: String,
        /// The version.
        version: String,
    },
    /// A warning that an API server rejects.
    #[error(
        "{definition}: the warning of version {version} must have 1 to {WARNING_MAX_BYTES} bytes, and no line break or other \
         control character"
    )]
    Warning {
        /// The definition.
        definition: String,
        /// The version.
        version: String,
    },
    /// Fields of one version would be dropped in the other.
    #[error(
        "{definition}: versions {first} and {second} have different schemas and no conversion, so that an API server \
         would drop what the other does not have; give a conversion"
    )]
    Unconverted {
        /// The definition.
        definition: String,
        /// A version.
        first: String,
        /// One that differs.
        second: String,
    },
    /// They are not of one kind.
    #[error("{definition}: {source}; all versions must be of one kind")]
    Merge {
        /// The definition.
        definition: String,
        /// The difference.
        source: MergeError,
    },
}

/// One definition with all of these versions, in the priority order of Kubernetes.
///
/// # Errors
///
/// When an API server would reject the definition, or would lose stored data with it.
pub fn combine(
    versions: Vec<Version>,
    conversion: Conversion<'_>,
) -> Result<CustomResourceDefinition, VersionsError> {
    let named = versions.iter().map(name).collect::<Result<Vec<_>, _>>()?;
    let first = versions.first().ok_or(VersionsError::None)?;
    let definition = definition_name(&first.definition);
    distinct(&definition, &named)?;
    let stored = stored(&definition, &versions, &named)?;
    let mut all = Vec::with_capacity(versions.len());
    for (version, name) in versions.into_iter().zip(&named) {
        all.push(marked(&definition, version, name)?);
    }
    let merged = merge_crds(all, &stored);
    let mut whole = merged.map_err(|source| VersionsError::Merge {
        definition: definition.clone(),
        source,
    })?;
    let versions = &mut whole.spec.versions;
    versions.sort_by_cached_key(|it| Reverse(ApiVersion::parse(&it.name).priority()));
    match conversion {
        // Without a webhook the API server drops the fields that the other version lacks.
        Conversion::None => same_schemas(&definition, versions)?,
        Conversion::Webhook {
            endpoint,
            authorities,
        } => conversion_webhook(&mut whole, endpoint, authorities),
    }
    Ok(whole)
}

/// The name of the only version of a definition.
fn name(version: &Version) -> Result<String, VersionsError> {
    let definition = definition_name(&version.definition);
    match version.definition.spec.versions.as_slice() {
        [one] => match ApiVersion::parse(&one.name) {
            // Kubernetes orders v1beta1, and not v1beta.
            ApiVersion::Stable(_)
            | ApiVersion::Beta(_, Some(_))
            | ApiVersion::Alpha(_, Some(_)) => Ok(one.name.clone()),
            _ => Err(VersionsError::Name {
                definition,
                version: one.name.clone(),
            }),
        },
        others => Err(VersionsError::NotOne {
            definition,
            count: others.len(),
        }),
    }
}

fn distinct(definition: &str, names: &[String]) -> Result<(), VersionsError> {
    let mut seen = BTreeSet::new();
    match names.iter().find(|it| !seen.insert(*it)) {
        None => Ok(()),
        Some(twice) => Err(VersionsError::Twice {
            definition: definition.to_owned(),
            version: twice.clone(),
        }),
    }
}

/// The version that is stored.
fn stored(
    definition: &str,
    versions: &[Version],
    names: &[String],
) -> Result<String, VersionsError> {
    let definition = definition.to_owned();
    let mut all = versions.iter().zip(names).filter(|(it, _)| it.stored);
    let (version, name) = match (all.next(), all.next()) {
        (None, _) => return Err(VersionsError::NoneStored { definition }),
        (Some((_, first)), Some((_, second))) => {
            let others = all.map(|(_, name)| name.clone());
            let versions = [first.clone(), second.clone()].into_iter().chain(others);
            return Err(VersionsError::SeveralStored {
                definition,
                versions: versions.collect(),
            });
        }
        (Some(one), None) => one,
    };
    if version.served {
        return Ok(name.clone());
    }
    Err(VersionsError::StoredUnserved {
        definition,
        version: name.clone(),
    })
}

/// The definition of a version, with `served` and the deprecation set.
fn marked(
    definition: &str,
    version: Version,
    name: &str,
) -> Result<CustomResourceDefinition, VersionsError> {
    let (deprecated, warning) = match version.deprecated {
        None => (None, None),
        Some(Deprecation::Plain) => (Some(true), None),
        Some(Deprecation::Warning(text)) => (Some(true), Some(text)),
    };
    let is_wrong = |text: &String| {
        text.is_empty() || text.len() > WARNING_MAX_BYTES || text.chars().any(char::is_control)
    };
    if warning.as_ref().is_some_and(is_wrong) {
        return Err(VersionsError::Warning {
            definition: definition.to_owned(),
            version: name.to_owned(),
        });
    }
    let mut marked = version.definition;
    for entry in &mut marked.spec.versions {
        entry.served = version.served;
        entry.deprecated = deprecated;
        entry.deprecation_warning.clone_from(&warning);
    }
    Ok(marked)
}

fn same_schemas(
    definition: &str,
    versions: &[CustomResourceDefinitionVersion],
) -> Result<(), VersionsError> {
    let Some((first, others)) = versions.split_first() else {
        return Ok(());
    };
    match others.iter().find(|it| it.schema != first.schema) {
        None => Ok(()),
        Some(second) => Err(VersionsError::Unconverted {
            definition: definition.to_owned(),
            first: first.name.clone(),
            second: second.name.clone(),
        }),
    }
}

fn conversion_webhook(
    definition: &mut CustomResourceDefinition,
    endpoint: &Endpoint,
    authorities: CaSource<'_>,
) {
    let (ca_bundle, certificate) = authorities.parts();
    let client = client(endpoint, CONVERT_PATH, ca_bundle);
    definition.spec.conversion = Some(CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            client_config: Some(WebhookClientConfig {
                ca_bundle: client.ca_bundle,
                service: client.service.map(|service| ServiceReference {
                    name: service.name,
                    namespace: service.namespace,
                    path: service.path,
                    port: service.port,
                }),
                url: client.url,
            }),
            conversion_review_versions: vec![REVIEW_VERSION.to_owned()],
        }),
    });
    if let Some(certificate) = certificate {
        let annotations = definition.metadata.annotations.get_or_insert_default();
        annotations.insert(CERT_MANAGER.to_owned(), certificate.to_owned());
    }
}

#[cfg(test)]
mod tests;
