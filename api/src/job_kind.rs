//! `JobKind`: the declaration of a kind of jobs of another project, so that its objects queue for quota.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

use crate::schema;

/// The field that suspends a job unless a declaration names another one.
pub const SUSPEND_PATH_DEFAULT: &str = "spec.suspend";

/// How the jobs of a kind are suspended and started, which pods they have, and how their status is read. The name of the
/// object is that of the kind's `CustomResourceDefinition`: `<plural>.<group>`.
#[allow(
    clippy::duplicated_attributes,
    reason = "printer columns of one type are not the same attribute"
)]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "lockkeeper.dev",
    version = "v1alpha1",
    kind = "JobKind",
    plural = "jobkinds",
    shortname = "lkjk",
    category = "lockkeeper",
    status = "JobKindStatus",
    derive = "PartialEq",
    doc = "A kind of jobs of another project whose objects queue for quota.",
    printcolumn(name = "Kind", type_ = "string", json_path = ".spec.kind"),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"),
    printcolumn(
        name = "Active",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Active')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Active')].reason"
    ),
    printcolumn(
        name = "Misconfigured",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Misconfigured')].status",
        priority = 1
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct JobKindSpec {
    /// The version in which jobs are read and written, such as v1.
    #[schemars(schema_with = "schema::label")]
    pub version: String,

    /// The kind, such as `RayJob`.
    #[schemars(schema_with = "schema::kind_name")]
    pub kind: String,

    /// The field that suspends a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<SuspendField>,

    /// The field that gives a job to another controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<ManagedByField>,

    /// The pods of a job, by template.
    #[schemars(length(min = 1, max = 8), extend("x-kubernetes-list-type" = "atomic"))]
    pub pod_sets: Vec<PodSetSource>,

    /// How the status of a job is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<JobStatusExpressions>,

    /// CEL: the name of the priority class of a job, or an empty text. The label lockkeeper.dev/priority-class of a job has
    /// precedence. Default: only the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::expression")]
    pub priority_class: Option<String>,

    /// Fields that are written when a job is suspended, so that it can start again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "atomic"))]
    pub reset_on_stop: Vec<ResetField>,

    /// The jobs that the controller of this kind creates for a job. Their pods are among those of the job, so they need no
    /// quota of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), extend("x-kubernetes-list-type" = "atomic"))]
    pub children: Vec<ChildJobs>,

    /// The label by which the pods of a job are found when the job is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_label: Option<PodLabel>,
}

/// The observed state of a declaration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobKindStatus {
    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Active: whether the controller manages the jobs of the kind. Misconfigured: whether the declaration has a mistake, or does not
    /// fit the definition of the kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// The field that suspends a job.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SuspendField {
    /// Its path, below spec. Default: spec.suspend.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::job_path")]
    pub path: Option<String>,

    /// Its value in a suspended job. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::flag_or_text")]
    pub suspended_value: Option<Value>,

    /// Its value in a started job. Default: false. An absent field counts as this value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::flag_or_text")]
    pub started_value: Option<Value>,
}

/// The field that names the controller of a job.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedByField {
    /// Its path, such as spec.managedBy.
    #[schemars(schema_with = "schema::job_path")]
    pub path: String,

    /// Its value for the controller of the kind. A job with another value is not started, because nothing could stop it.
    #[schemars(length(min = 1, max = 253))]
    pub controller: String,
}

/// A field that is written when a job is suspended.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResetField {
    /// Its path, below spec.
    #[schemars(schema_with = "schema::job_path")]
    pub path: String,

    /// Its value. Default: the field is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::flag_or_text")]
    pub value: Option<Value>,
}

/// The pods of one template, or of each item of a list or map of templates.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSetSource {
    /// The path of a list or map, below spec: each of its items is a pod set. The expressions then read the item as `item`, and
    /// the key in a map as `key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::job_path")]
    pub for_each: Option<String>,

    /// The name of the pod set. Required without forEach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label")]
    pub name: Option<String>,

    /// CEL: the name of the pod set of an item. Its letters become lower-case. Default: the key in a map, item.name in a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::expression")]
    pub name_expression: Option<String>,

    /// CEL: whether the job has these pods. Default: whether it has the template, or
    /// the object with the fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::expression")]
    pub condition: Option<String>,

    /// The path of the pod template: from the root, or with forEach from the item. Either template or podFields is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::job_path")]
    pub template: Option<String>,

    /// The path of an object with the fields nodeSelector and tolerations, for pods without a template. Their requests are those in
    /// requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::job_path")]
    pub pod_fields: Option<String>,

    /// CEL: the requests of a pod by resource, as quantities, with podFields.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::request_expressions")]
    pub requests: BTreeMap<String, String>,

    /// CEL: the number of pods. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::expression")]
    pub count: Option<String>,

    /// The path of the number of pods: from the root, or with forEach from the item. An absent number counts as 1. In place of
    /// count, if the job may start with fewer pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::job_path")]
    pub count_field: Option<String>,

    /// CEL: the fewest pods with which the job may start; 0 if it needs all. Requires countField, which is then written: the number
    /// of pods that have quota at the start, and the number of the user when the job is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::expression")]
    pub minimum: Option<String>,

    /// CEL: the number of pods that have succeeded and will not run again. Their quota is released while the others run.
    /// Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::expression")]
    pub reclaimable: Option<String>,
}

/// CEL expressions over a job, which they read as `self`. The defaults read status.conditions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatusExpressions {
    /// Whether the job has ended with success. Default: a condition Complete, Completed or Succeeded is True.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::expression")]
    pub succeeded: Option<String>,

    /// Whether the job has ended without success. Default: the condition Failed is True.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::expression")]
    pub failed: Option<String>,

    /// The message of the end. Default: that of the condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::expression")]
    pub message: Option<String>,

    /// Whether all pods are ready. Default: a condition Ready or Running is True.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::expression")]
    pub ready: Option<String>,

    /// Whether the controller of the kind has observed the suspension, and no pod is active. Quota is released then. Default:
    /// no condition Ready or Running is True, and no condition Suspended is False.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::expression")]
    pub stopped: Option<String>,

    /// Whether the controller of the kind has observed the start. Default: no condition Suspended is True.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::expression")]
    pub started: Option<String>,
}

/// Jobs that the controller of a kind creates.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChildJobs {
    /// Their API group.
    #[schemars(schema_with = "schema::subdomain")]
    pub group: String,

    /// Their kind.
    #[schemars(schema_with = "schema::kind_name")]
    pub kind: String,

    /// CEL: the list of their names. A job with another name needs quota of its own, even if its owner is the parent.
    #[schemars(schema_with = "schema::expression")]
    pub names: String,
}

/// A label of pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodLabel {
    /// Its key.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,

    /// What its value is.
    pub value: PodLabelValue,
}

/// The value of a label of pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum PodLabelValue {
    /// The name of the job.
    #[default]
    Name,
    /// The uid of the job.
    Uid,
}
