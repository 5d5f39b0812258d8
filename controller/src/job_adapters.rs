//! The kinds of jobs that the controller starts and stops. To add one, write a file like `job_adapters/batch_job.rs`
//! and add an entry to [`KINDS`].

mod batch_job;
mod declared;
mod job_kinds;
mod job_set;
mod name_digest;
mod pod;
mod pod_group;
mod pod_template;
mod resource;
mod unknown_owner;
mod workload_identity;

use crate::key::{JobKey, ObjectKey};
use k8s_openapi::api::core::v1::{PodTemplateSpec, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::labels;
use lockkeeper_api::workload::DisruptionMode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use job_kinds::{DeclareError, JobKinds};
pub use pod_group::{GroupClaim, group_uid, template_text as group_template_text};
pub(crate) use pod_template::has_same_requests;
pub use pod_template::strip_template;
pub use resource::Resource;
pub use unknown_owner::UnknownOwner;
pub(crate) use workload_identity::group_of_workload;
use workload_identity::{job_controller, kind_prefix, workload_name};
pub use workload_identity::{
    job_name_from_workload, kind_from_workload_name, labelled_job_uid, owner,
};

/// All kinds; a kind is identified by its index.
pub const KINDS: [&dyn JobAdapter; 4] = [
    &batch_job::BatchJob,
    &job_set::JobSet,
    &pod::SinglePod,
    &pod_group::PodGroup,
];

/// The names of the kinds in [`KINDS`].
const BUILT_IN_NAMES: [&str; 4] = ["Job", "JobSet", "Pod", "PodGroup"];

/// The index of the kind of pods.
pub const POD: usize = 2;

/// The index of the kind of pod groups, which consist of pods.
pub const POD_GROUP: usize = 3;

/// The kind whose watch shows the jobs of a kind: of a group its members.
#[must_use]
pub fn watched_kind(index: usize) -> usize {
    let kind = KINDS.get(index);
    kind.and_then(|it| it.member_kind()).unwrap_or(index)
}

/// The kinds that are watched.
pub fn watched_kinds() -> impl Iterator<Item = usize> {
    (0..KINDS.len()).filter(|it| watched_kind(*it) == *it)
}

/// The kind with this index, for messages; "Job" if there is none.
#[must_use]
pub fn kind_name(index: usize) -> &'static str {
    BUILT_IN_NAMES.get(index).copied().unwrap_or("Job")
}

/// How the controller stops a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMethod {
    /// It sets `spec.suspend`, and the job starts again later.
    Suspend,
    /// It deletes the job: a pod that was bound to a node cannot wait again.
    Delete,
}

/// A kind of job: how it is parsed, started and stopped, and how its pods are placed.
pub trait JobAdapter: Send + Sync {
    /// The API resource.
    fn resource(&self) -> Resource;

    /// Whether every cluster has this kind; the others are found by discovery.
    fn is_built_in(&self) -> bool;

    /// The value of `spec.managedBy` that means the controller of this kind, like an unset field.
    fn default_manager(&self) -> &'static str {
        ""
    }

    /// The label selector of the pods of a job that is gone. `None` if the job is the pod, if its kind has no such label, or if
    /// the label has the name and that is not known.
    fn pod_selector(&self, name: Option<&ObjectKey>, uid: &str) -> Option<String>;

    /// Jobs per page of a list.
    fn list_page_size(&self) -> u32 {
        // Each may have one and a half megabytes, and kube has a page in memory three times for a moment.
        20
    }

    /// The kind of the objects that its jobs consist of, if they are no objects themselves.
    fn member_kind(&self) -> Option<usize> {
        None
    }

    /// How a job is stopped.
    fn stop_method(&self) -> StopMethod {
        StopMethod::Suspend
    }

    /// The merge patch of the `spec` of a job that stops it.
    fn suspend_patch(&self) -> Value {
        json!({"suspend": true})
    }

    /// The merge patch of the `spec` of a stopped job that starts it.
    fn start_patch(&self, job: &JobView) -> Value {
        let _ = job;
        json!({"suspend": false})
    }

    /// Whether its controller creates other jobs, so that [`Self::covers`] may hold.
    fn creates_jobs(&self) -> bool {
        false
    }

    /// Whether a job, of the kind `child_kind`, was created by the controller of `parent`, and its pods are among those of the
    /// workload of `parent`. A claim in `ownerReferences` alone exempts no job. Only kinds that create jobs override it.
    fn covers(&self, parent: &JobView, child_kind: &Resource, child: &JobView) -> bool {
        let _ = (parent, child_kind, child);
        false
    }

    /// Parses a job.
    ///
    /// # Errors
    ///
    /// A [`JobParseError`] if a field that the controller uses has the wrong type.
    fn parse(&self, object: Value) -> Result<JobView, JobParseError>;

    /// The pod templates of its pod sets, unstripped, from the text of a [`TemplateSource`].
    fn templates(&self, source: &str) -> Vec<Value> {
        vec![parse_source(source)]
    }

    /// Whether [`JobAdapter::placement_patch`] needs the text of the templates.
    fn needs_templates_for_placement(&self) -> bool {
        false
    }

    /// The merge patch of the `spec` that gives its pods the placement `placed`; `None` if that needs the text of the
    /// templates and `source` has none.
    fn placement_patch(
        &self,
        job: &JobView,
        source: Option<&str>,
        placed: &[PodPlacement],
    ) -> Option<Value>;
}

/// A job that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct JobParseError {
    /// The path of the field, as far as it is known.
    pub field: &'static str,
    /// The error of the decoder.
    pub problem: String,
}

/// The fields of a job that the controller uses.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each mirrors a field of the object, and any combination is possible"
)]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobView {
    /// Namespace and name.
    pub name: ObjectKey,
    /// Its uid.
    pub uid: String,
    /// Its resource version.
    pub version: u64,
    /// Whether it is being deleted.
    pub is_deleted: bool,
    /// When a pod that is being deleted has to have ended, in seconds since 1970; until then it may run.
    pub termination_end_s: Option<i64>,
    /// The job that controls it according to its owner references, with the uid; the claim is not verified.
    pub parent: Option<(JobKey, String)>,
    /// The controlling owner, if its kind was unknown when the job was decoded: it may be declared later.
    pub unknown_owner: Option<Box<UnknownOwner>>,
    /// `spec.managedBy`, if that is not the controller of its kind.
    pub foreign_manager: Option<String>,
    /// Whether its spec was never changed since its creation, so that it was never started.
    pub is_unchanged: bool,
    /// The LocalQueue that it names.
    pub queue: String,
    /// The class of its priority.
    pub priority_class: Option<String>,
    /// The class of its priority as a victim.
    pub preemption_priority_class: Option<String>,
    /// The disruption mode, if its label sets one.
    pub disruption_mode: Option<DisruptionMode>,
    /// How long it may run, in seconds.
    pub maximum_execution_time_s: Option<i32>,
    /// `spec.suspend`; of a pod, whether it has the scheduling gate of the controller, or has ended.
    pub is_suspended: bool,
    /// The node that a pod is directed to (`status.nominatedNodeName`).
    pub nominated_node: Option<String>,
    /// The scheduling gates of a pod that other components remove.
    pub other_gates: Vec<String>,
    /// Whether it was started, and its controller has not acknowledged that yet.
    pub is_start_unconfirmed: bool,
    /// When its controller has acknowledged its last suspension, in seconds since 1970.
    pub suspended_at_s: Option<i64>,
    /// Whether it has a start time.
    pub has_start_time: bool,
    /// Whether a pod is marked as disrupted, so that it can be deleted.
    pub is_disrupted: bool,
    /// Whether a pod is marked for soft eviction.
    pub is_soft_evicted: bool,
    /// Whether none of its pods is active (pending or running, and not terminating), and its controller has
    /// acknowledged the suspension.
    pub is_quiescent: bool,
    /// Whether all its pods are ready or succeeded.
    pub is_ready: bool,
    /// The result, if it has finished.
    pub result: Option<JobResult>,
    /// Its pods.
    pub pod_sets: Vec<PodSetView>,
    /// The placement before flavors were added, from the annotation; `None` if none were added.
    pub saved_placement: Option<Vec<PodPlacement>>,
    /// The part of the spec with the pod templates.
    pub template_source: TemplateSource,
    /// The group of a pod that is queued with others.
    pub group: Option<Box<GroupClaim>>,
    /// Whether fewer pods of a group exist than it needs to start.
    pub is_incomplete: bool,
    /// What a job of a declared kind has besides.
    pub declared: Option<Box<DeclaredFields>>,
}

/// The fields of a job of a declared kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeclaredFields {
    /// The kind in lower case, as in the name of its workload.
    pub kind: Arc<str>,
    /// The jobs that its controller creates: the API group, the kind and the name.
    pub children: Vec<(Arc<str>, Arc<str>, String)>,
}

/// The part of the spec of a job that has its pod templates, as the user wrote it. Only its kind reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TemplateSource {
    /// The JSON text.
    Text(Box<str>),
    /// Not kept: the job has finished, or it is read again when the text is needed.
    #[default]
    NotKept,
    /// The spec is larger than the controller accepts, so that the job gets no workload.
    TooLarge,
}

impl TemplateSource {
    /// The text of a JSON value; nothing is kept of an absent one.
    fn from_json(value: Option<&Value>) -> Self {
        // The buffer of the serializer may have twice the capacity of the text.
        value.map_or(Self::NotKept, |it| {
            Self::Text(it.to_string().into_boxed_str())
        })
    }

    /// The text, if it is kept.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::NotKept | Self::TooLarge => None,
        }
    }
}

/// The result of a finished job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobResult {
    /// Whether it succeeded.
    pub is_success: bool,
    /// The message of its condition.
    pub message: String,
}

/// The pods of one template in a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodSetView {
    /// The name of the pod set in the workload.
    pub name: String,
    /// The number of pods.
    pub count: i32,
    /// The most pods that run at once from now on: fewer than `count` when most have succeeded.
    pub remaining: i32,
    /// The number of jobs that the pods are divided among; 0 for a kind that creates pods itself.
    pub job_count: i32,
    /// The minimum for partial admission.
    pub min_count: Option<i32>,
    /// The stripped pod template.
    pub template: Arc<PodTemplateSpec>,
}

/// The placement of a pod set: where its pods may run, and their number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodPlacement {
    /// The number of pods; `None` leaves it unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<i32>,
    /// In a saved placement with a count: the count of the start. Another count of the pods is a user's change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_count: Option<i32>,
    /// The whole node selector.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// All tolerations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
}

impl JobView {
    /// Whether its pods have the placement `placed`.
    #[must_use]
    pub fn has_placement(&self, placed: &[PodPlacement]) -> bool {
        self.pod_sets.len() == placed.len()
            && self.pod_sets.iter().zip(placed).all(|(have, want)| {
                want.count.is_none_or(|it| it == have.count)
                    && have.node_selector() == Some(&want.node_selector).filter(|it| !it.is_empty())
                    && have.tolerations() == want.tolerations
            })
    }

    /// The placement without flavors: the saved one, or else the current one.
    #[must_use]
    pub fn original_placement(&self) -> Vec<PodPlacement> {
        let as_it_is = |pod_set: &PodSetView| PodPlacement {
            count: Some(pod_set.count),
            started_count: None,
            node_selector: pod_set.node_selector().cloned().unwrap_or_default(),
            tolerations: pod_set.tolerations().to_vec(),
        };
        let original = self.saved_placement.clone();
        original.unwrap_or_else(|| self.pod_sets.iter().map(as_it_is).collect())
    }

    /// Whether it is suspended, without active pods, and restored to its state before the start.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_suspended
            && self.is_quiescent
            && !self.has_start_time
            && self.saved_placement.is_none()
    }

    /// The key of its workload: stable for one job, and different for a job created again under the same name,
    /// because it includes a digest of the uid. The name alone proves no ownership: the uid decides.
    #[must_use]
    pub fn workload_name(&self, kind: usize) -> ObjectKey {
        if let Some(claim) = &self.group {
            let prefix = kind_prefix(POD_GROUP);
            return workload_name(&prefix, &claim.group, &group_uid(&claim.group));
        }
        let declared = self.declared.as_ref().map(|it| Cow::Borrowed(&*it.kind));
        let prefix = declared.unwrap_or_else(|| Cow::Owned(kind_prefix(kind)));
        workload_name(&prefix, &self.name, &self.uid)
    }

    /// The job that its workload belongs to, with the uid: of a pod in a group, the group.
    #[must_use]
    pub fn workload_owner(&self, key: &JobKey) -> (JobKey, Cow<'_, str>) {
        match &self.group {
            Some(claim) => (claim.key(), Cow::Owned(group_uid(&claim.group))),
            None => (key.clone(), Cow::Borrowed(&self.uid)),
        }
    }
}

impl PodSetView {
    /// The node selector; `None` if there is none or it is empty.
    #[must_use]
    pub fn node_selector(&self) -> Option<&BTreeMap<String, String>> {
        let spec = self.template.spec.as_ref()?;
        spec.node_selector.as_ref().filter(|it| !it.is_empty())
    }

    /// The tolerations.
    #[must_use]
    pub fn tolerations(&self) -> &[Toleration] {
        let spec = self.template.spec.as_ref();
        spec.and_then(|it| it.tolerations.as_deref())
            .unwrap_or_default()
    }
}

/// Parses the text of a [`TemplateSource`].
fn parse_source(source: &str) -> Value {
    // The text was serialized from a value, so parsing does not fail.
    serde_json::from_str(source).unwrap_or_default()
}

/// The fields that all kinds of jobs have in their metadata.
fn job_view_from_metadata(metadata: &ObjectMeta) -> JobView {
    let labels = metadata.labels.as_ref();
    let label = |key: &str| labels.and_then(|it| it.get(key)).cloned();
    let annotations = metadata.annotations.as_ref();
    let original = annotations.and_then(|it| it.get(labels::ORIGINAL_PLACEMENT));
    let version = metadata.resource_version.as_deref();
    JobView {
        name: ObjectKey::from_metadata(metadata),
        uid: metadata.uid.clone().unwrap_or_default(),
        version: version.and_then(|it| it.parse().ok()).unwrap_or_default(),
        is_deleted: metadata.deletion_timestamp.is_some(),
        parent: job_controller(metadata).map(|(kind, owner)| {
            let namespace = metadata.namespace.as_deref().unwrap_or_default();
            let name = ObjectKey::new(namespace, &owner.name);
            (JobKey { kind, name }, owner.uid.clone())
        }),
        is_unchanged: metadata.generation == Some(1),
        queue: label(labels::QUEUE_NAME).unwrap_or_default(),
        priority_class: label(labels::PRIORITY_CLASS),
        preemption_priority_class: label(labels::PREEMPTION_PRIORITY_CLASS),
        disruption_mode: match label(labels::DISRUPTION_MODE).as_deref() {
            Some("Pod") => Some(DisruptionMode::Pod),
            Some("PodGroup") => Some(DisruptionMode::PodGroup),
            _ => None,
        },
        maximum_execution_time_s: label(labels::MAX_EXECUTION_TIME)
            .and_then(|it| it.parse().ok())
            .filter(|it| *it > 0),
        // A malformed annotation counts as absent: the current placement is then the original.
        saved_placement: original.and_then(|it| serde_json::from_str(it).ok()),
        ..JobView::default()
    }
}

fn decode<T: DeserializeOwned>(field: &'static str, value: Value) -> Result<T, JobParseError> {
    serde_json::from_value(value).map_err(|error| JobParseError {
        field,
        problem: error.to_string(),
    })
}

/// `spec.managedBy`, if it names another controller than that of the kind.
fn foreign_manager(kind: &dyn JobAdapter, managed_by: Option<String>) -> Option<String> {
    managed_by.filter(|it| it != kind.default_manager())
}

/// The most pods of a job that run at once.
fn max_running_pods(parallelism: Option<i32>, completions: Option<i32>) -> i32 {
    let parallelism = parallelism.unwrap_or(1);
    completions.map_or(parallelism, |it| parallelism.min(it))
}

/// The merge patch of a template's `spec` that gives its pods the placement `want`.
fn pod_template_patch(have: &PodSetView, want: &PodPlacement) -> Value {
    let mut selector = serde_json::Map::new();
    let none = BTreeMap::new();
    let before = have.node_selector().unwrap_or(&none);
    for key in before
        .keys()
        .filter(|key| !want.node_selector.contains_key(*key))
    {
        // A merge patch keeps keys that it does not name.
        selector.insert(key.clone(), Value::Null);
    }
    for (key, value) in &want.node_selector {
        if before.get(key) != Some(value) {
            selector.insert(key.clone(), json!(value));
        }
    }
    let mut out = serde_json::Map::new();
    if !selector.is_empty() {
        // An empty selector is removed rather than written as an empty object.
        let is_none = want.node_selector.is_empty();
        let selector = (!is_none).then_some(selector);
        out.insert("nodeSelector".to_owned(), json!(selector));
    }
    if have.tolerations() != want.tolerations {
        let tolerations = (!want.tolerations.is_empty()).then_some(&want.tolerations);
        out.insert("tolerations".to_owned(), json!(tolerations));
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests;
