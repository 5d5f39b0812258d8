//! JobSets (`jobset.x-k8s.io`), as far as the webhook reads them.

use crate::foreign::foreign_kind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The API group of JobSets.
pub const GROUP: &str = "jobset.x-k8s.io";

/// The version of it that is read: the only one that a release serves. An API server that serves others
/// as well converts to it.
pub const VERSION: &str = "v1alpha2";

/// The kind.
pub const KIND: &str = "JobSet";

/// Jobs of several templates that run together. Of the specification only what says whether it is
/// suspended, and what its templates say of themselves.
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
    /// Its Jobs.
    #[serde(default, rename = "replicatedJobs")]
    pub replicated_jobs: Option<Vec<ReplicatedJob>>,
}

/// Jobs of one template.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ReplicatedJob {
    /// Its name.
    #[serde(default)]
    pub name: Option<String>,
    /// The Jobs.
    #[serde(default)]
    pub template: Option<JobTemplate>,
}

/// The template of Jobs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct JobTemplate {
    /// What the Jobs are labelled with.
    #[serde(default)]
    pub metadata: Option<TemplateMetadata>,
    /// Their specification.
    #[serde(default)]
    pub spec: Option<JobTemplateSpec>,
}

/// The specification of a template of Jobs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct JobTemplateSpec {
    /// The pods.
    #[serde(default)]
    pub template: Option<PodTemplate>,
}

/// The template of pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct PodTemplate {
    /// What the pods are labelled with.
    #[serde(default)]
    pub metadata: Option<TemplateMetadata>,
}

/// The metadata of a template. What is not read is not decoded, so that nothing in it keeps a JobSet from being
/// read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct TemplateMetadata {
    /// The labels.
    #[serde(default)]
    pub labels: Option<BTreeMap<String, String>>,
    /// The annotations.
    #[serde(default)]
    pub annotations: Option<BTreeMap<String, String>>,
}

foreign_kind!(
    JobSet,
    kube::core::NamespaceResourceScope,
    GROUP,
    VERSION,
    KIND,
    "jobsets"
);
