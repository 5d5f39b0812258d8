//! Definitions with several versions, and how stored objects get from one to the next.
//!
//! A version is served (people may ask for it) and one of them is stored (what the API server writes). [`combine`] makes
//! one definition of definitions with a version each, as `kube`'s derive gives them, and refuses what an API server would
//! refuse or what would lose objects. [`migration()`] is what has stored objects written anew, and [`check_removal`] says
//! whether a version may be taken away.

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

/// The longest warning that an API server takes, in bytes.
pub const WARNING_MAX_BYTES: usize = 256;

/// The version of conversion reviews that the webhook speaks.
const REVIEW_VERSION: &str = "v1";

/// A version of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// A definition with this version alone.
    pub definition: CustomResourceDefinition,
    /// Whether people may ask for it.
    pub served: bool,
    /// Whether it is the one that is stored.
    pub stored: bool,
    /// What people are told who ask for it; `None` if it is not on its way out.
    pub deprecated: Option<Deprecation>,
}

/// A version is on its way out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Deprecation {
    /// With Kubernetes' own words: `example.com/v1alpha1 Thing is deprecated`.
    #[default]
    Plain,
    /// With these.
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

    /// The same, with a warning to who asks for it.
    #[must_use]
    pub fn deprecated(mut self, deprecation: Deprecation) -> Self {
        self.deprecated = Some(deprecation);
        self
    }

    /// The same, for nobody to ask for any more.
    #[must_use]
    pub fn unserved(mut self) -> Self {
        self.served = false;
        self
    }
}

/// Who converts objects from one version to another.
#[derive(Clone, Copy, Debug)]
pub enum Conversion<'a> {
    /// Nobody: the API server changes `apiVersion` and drops what the other version does not have.
    None,
    /// The webhook.
    Webhook {
        /// Where it is.
        endpoint: &'a Endpoint,
        /// Who signs its certificate.
        authorities: CaSource<'a>,
    },
}

/// Versions that make no definition.
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
    /// Nobody could look at what is stored.
    #[error(
        "{definition}: version {version} is stored and not served; serve it, or store another one"
    )]
    StoredUnserved {
        /// The definition.
        definition: String,
        /// The version.
        version: String,
    },
    /// A warning that an API server does not take.
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
    /// What one version has would be dropped by the other.
    #[error(
        "{definition}: versions {first} and {second} differ in their schemas and nobody converts them, so that an API server \
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
        /// In what they differ.
        source: MergeError,
    },
}

/// One definition with all of these versions, the most important one first, as Kubernetes orders them.
///
/// # Errors
///
/// When they make no definition that an API server takes, or one that loses what is stored.
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

/// The definition of a version that says whether it is served and how it is deprecated.
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
    let is_wrong = |it: &String| {
        it.is_empty() || it.len() > WARNING_MAX_BYTES || it.chars().any(char::is_control)
    };
    if warning.as_ref().is_some_and(is_wrong) {
        return Err(VersionsError::Warning {
            definition: definition.to_owned(),
            version: name.to_owned(),
        });
    }
    let mut marked = version.definition;
    for it in &mut marked.spec.versions {
        it.served = version.served;
        it.deprecated = deprecated;
        it.deprecation_warning.clone_from(&warning);
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
                service: client.service.map(|it| ServiceReference {
                    name: it.name,
                    namespace: it.namespace,
                    path: it.path,
                    port: it.port,
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
