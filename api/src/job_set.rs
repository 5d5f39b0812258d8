//! JobSets (`jobset.x-k8s.io`), as far as the webhook reads them.

use crate::foreign::foreign_kind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

/// The API group of JobSets.
pub const GROUP: &str = "jobset.x-k8s.io";

/// The version of it that is read: the only one that a release serves. An API server that serves others
/// as well converts to it.
pub const VERSION: &str = "v1alpha2";

/// The kind.
pub const KIND: &str = "JobSet";

/// Jobs of several templates that run together. Of the specification only what says whether it is
/// suspended.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct JobSet {
    /// Its metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Its specification.
    #[serde(default)]
    pub spec: Option<JobSetSpec>,
}

/// The specification of a JobSet, as far as the webhook reads it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct JobSetSpec {
    /// Whether none of its Jobs may run.
    #[serde(default)]
    pub suspend: Option<bool>,
}

foreign_kind!(
    JobSet,
    kube::core::NamespaceResourceScope,
    GROUP,
    VERSION,
    KIND,
    "jobsets"
);
