//! JobSets (`jobset.x-k8s.io`): the fields that the webhook reads.

use crate::foreign::foreign_kind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The API group of JobSets.
pub const GROUP: &str = "jobset.x-k8s.io";

/// The version that is decoded: the only one that JobSet releases serve. An API server that serves others as well
/// converts to it.
pub const VERSION: &str = "v1alpha2";

/// The kind.
pub const KIND: &str = "JobSet";

/// Jobs of several templates that run together. The specification has only `suspend`, `managedBy` and the metadata of the
/// templates.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct JobSet {
    /// Its metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Its specification.
    #[serde(default)]
    pub spec: Option<JobSetSpec>,
}

/// The fields of a JobSet's specification that the webhook reads.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct JobSetSpec {
    /// Whether none of its Jobs may run.
    #[serde(default)]
    pub suspend: Option<bool>,
    /// The controller of the JobSet, if it is not JobSet's own.
    #[serde(default, rename = "managedBy")]
    pub managed_by: Option<String>,
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
    /// The metadata of the Jobs.
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
    /// The metadata of the pods.
    #[serde(default)]
    pub metadata: Option<TemplateMetadata>,
}

/// The metadata of a template. Other fields are not decoded, so that an invalid value in one of them does not make a
/// JobSet undecodable.
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
