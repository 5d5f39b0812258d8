//! JobSets (`jobset.x-k8s.io`), as far as the webhook reads them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use std::borrow::Cow;

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

impl Resource for JobSet {
    type DynamicType = ();
    type Scope = kube::core::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "jobsets".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
