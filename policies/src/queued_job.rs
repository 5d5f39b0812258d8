//! Rules of jobs with the queue label, of every kind: what must not change while a job is not suspended.
//!
//! The controller reserves quota for a job by its queue label, priority labels, owner and controller. A change of one of
//! them while pods run would release the quota of running pods, or give pods quota that was not reserved. The rules have a
//! CEL form in admission policies, so that they hold while the webhook is down.

pub(crate) mod foreign_controller;
pub(crate) mod manual_selector;
pub(crate) mod owner_changed;
pub(crate) mod priority_changed;
pub(crate) mod queue_changed;
pub(crate) mod queue_in_pod_template;

use crate::metadata_cel::has_label;
use crate::rule::Change;
use crate::validated_kind::ValidatedKind;
use k8s_openapi::api::batch::v1::Job;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::{JobSet, labels};
use std::collections::BTreeMap;

/// A kind of job that the controller starts and stops.
pub(crate) trait QueuedJob: ValidatedKind {
    /// The value of `spec.managedBy` for the kind's own controller.
    const CONTROLLER: &'static str;

    /// Whether no pod of the job may run.
    fn is_suspended(&self) -> bool;

    /// The controller that the job names.
    fn managed_by(&self) -> Option<&str>;

    /// The labels of its pod templates, with their paths.
    fn pod_template_labels(&self) -> Vec<(FieldPath, &BTreeMap<String, String>)>;
}

impl QueuedJob for Job {
    const CONTROLLER: &'static str = "kubernetes.io/job-controller";

    fn is_suspended(&self) -> bool {
        self.spec.as_ref().and_then(|it| it.suspend) == Some(true)
    }

    fn managed_by(&self) -> Option<&str> {
        self.spec.as_ref()?.managed_by.as_deref()
    }

    fn pod_template_labels(&self) -> Vec<(FieldPath, &BTreeMap<String, String>)> {
        let spec = self.spec.as_ref();
        let metadata = spec.and_then(|it| it.template.metadata.as_ref());
        let labels = metadata.and_then(|it| it.labels.as_ref());
        let path = || FieldPath::new("spec.template.metadata.labels");
        labels.map(|it| (path(), it)).into_iter().collect()
    }
}

impl QueuedJob for JobSet {
    const CONTROLLER: &'static str = "jobset.sigs.k8s.io/jobset-controller";

    fn is_suspended(&self) -> bool {
        self.spec.as_ref().and_then(|it| it.suspend) == Some(true)
    }

    fn managed_by(&self) -> Option<&str> {
        self.spec.as_ref()?.managed_by.as_deref()
    }

    fn pod_template_labels(&self) -> Vec<(FieldPath, &BTreeMap<String, String>)> {
        let spec = self.spec.as_ref();
        let jobs = spec.and_then(|it| it.replicated_jobs.as_deref());
        let jobs = jobs.unwrap_or_default().iter().enumerate();
        let labels = jobs.filter_map(|(position, job)| {
            let template = job.template.as_ref()?.spec.as_ref()?.template.as_ref()?;
            let labels = template.metadata.as_ref()?.labels.as_ref()?;
            let path = FieldPath::new("spec.replicatedJobs")
                .item(position, job.name.as_deref().unwrap_or_default())
                .field("template.spec.template.metadata.labels");
            Some((path, labels))
        });
        labels.collect()
    }
}

/// The value of a label.
fn label<'a, T: QueuedJob>(job: &'a T, key: &str) -> Option<&'a str> {
    let labels = job.meta().labels.as_ref()?;
    labels.get(key).map(String::as_str)
}

/// The path of a label.
fn label_path(key: &'static str) -> FieldPath {
    FieldPath::new("metadata.labels").key(key)
}

/// Whether the controller manages the job. An empty queue name counts.
fn is_queued<T: QueuedJob>(job: &T) -> bool {
    label(job, labels::QUEUE_NAME).is_some()
}

/// Whether an update concerns a queued job whose pods may run before or after it.
fn is_running_change<T: QueuedJob>(change: &Change<'_, T>) -> bool {
    let is_queued = is_queued(change.old) || is_queued(change.new);
    is_queued && !(change.old.is_suspended() && change.new.is_suspended())
}

/// The CEL of [`is_queued`].
fn is_queued_cel(object: &str) -> String {
    has_label(object, labels::QUEUE_NAME)
}

/// The CEL condition that an update is none of [`is_running_change`], or that `holds` is true.
fn while_running_cel(holds: &str) -> String {
    let suspended =
        |of: &str| format!("(has({of}.spec) && has({of}.spec.suspend) && {of}.spec.suspend)");
    format!(
        "!({} || {}) || ({} && {}) || ({holds})",
        is_queued_cel("self"),
        is_queued_cel("oldSelf"),
        suspended("self"),
        suspended("oldSelf"),
    )
}

/// The CEL of the message of [`label_changed`].
fn label_changed_cel(key: &str, remedy: &str) -> String {
    let (new, old) = (has_label("self", key), has_label("oldSelf", key));
    format!(
        "'\"' + ({new} ? self.metadata.labels['{key}'] : '') + '\": field is immutable while the job is not suspended; ' \
         + ({old} ? 'keep \"' + oldSelf.metadata.labels['{key}'] + '\"' : '{remedy}') \
         + ', or set spec.suspend to true first'"
    )
}

/// The remedy for a label that is added.
const LEAVE_OUT: &str = "leave it out";

/// The message for a label that changed while the job was not suspended; `remedy` is for one that was added.
fn label_changed(old: Option<&str>, remedy: &str) -> String {
    let kept = match old {
        Some(value) => format!("keep {}", crate::finding::quoted(value)),
        None => remedy.to_owned(),
    };
    format!(
        "field is immutable while the job is not suspended; {kept}, or set spec.suspend to true first"
    )
}
