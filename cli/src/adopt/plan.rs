//! The plan of an adoption: which jobs, whether they fit, and the results of the writes.

use super::candidate::{Candidacy, candidacy, parse};
use super::objects::{ClusterObjects, ListedJob};
use super::quota_check::{QuotaCheck, Settings};
use super::selection::{JobName, Selection};
use lockkeeper_api::Workload;
use lockkeeper_api::workload::Admission;
use lockkeeper_cluster_state::{pod_requests, quantity, workload_key};
use lockkeeper_controller::job_adapters::JobView;
use lockkeeper_preemption::Amount;
use serde_json::Value;
use std::collections::BTreeMap;

/// The plan for all selected jobs.
#[derive(Debug)]
pub(crate) struct Plan {
    /// In the order of creation.
    pub(crate) jobs: Vec<PlannedJob>,
    /// Whether all selected jobs are named, so that a skipped one is a failure.
    is_by_name: bool,
}

/// A selected job.
#[derive(Debug)]
pub(crate) struct PlannedJob {
    pub(crate) namespace: String,
    pub(crate) name: JobName,
    pub(crate) queue: String,
    /// The total requests of its pods, as quantities.
    pub(crate) requests: BTreeMap<String, String>,
    pub(crate) verdict: Verdict,
    /// `None` if it does not exist, or cannot be decoded.
    pub(crate) job: Option<Box<JobView>>,
}

/// Whether a job can be adopted, and whether it was.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It fits, with this admission.
    Fits(Box<Admission>),
    /// Its quota is reserved already: an earlier run was interrupted.
    Reserved,
    /// It was adopted by an earlier run.
    AlreadyAdopted,
    /// This run has adopted it.
    Adopted,
    /// It does not fit, or another state has to end first, with the reason.
    DoesNotFit(String),
    /// It is not considered, with the reason.
    Skipped(String),
    /// It was not adopted, with the error.
    Failed(String),
}

impl Plan {
    /// Plans the selected jobs, in the order of their creation: each gets the quota that those before it leave.
    pub(crate) fn new(objects: ClusterObjects, selection: &Selection, settings: &Settings) -> Self {
        let mut check = QuotaCheck::new(&objects, &selection.job_kinds, settings);
        let workloads = objects.workloads.into_iter();
        let workloads: BTreeMap<String, Workload> =
            workloads.map(|it| (workload_key(&it), it)).collect();
        let mut listed = objects.jobs;
        listed.sort_by_cached_key(creation_order);
        let mut jobs = Vec::new();
        let mut missing = selection.jobs.clone();
        for job in &listed {
            if !selection.jobs.is_empty() && !missing.remove(&job_name(selection, job)) {
                continue;
            }
            jobs.push(plan_job(job, selection, settings, &workloads, &mut check));
        }
        let missing = missing.into_iter().map(|name| PlannedJob {
            namespace: selection.namespace.clone().unwrap_or_default(),
            name,
            queue: selection.queue.clone(),
            requests: BTreeMap::new(),
            verdict: Verdict::DoesNotFit("does not exist, or the selector excludes it".to_owned()),
            job: None,
        });
        jobs.extend(missing);
        Self {
            jobs,
            is_by_name: !selection.jobs.is_empty(),
        }
    }

    /// Whether the jobs that fit may be adopted: all fit, or `is_partial` allows that some do not.
    pub(crate) fn may_apply(&self, is_partial: bool) -> bool {
        is_partial || self.is_success()
    }

    /// Sets the verdict of the job at a position.
    pub(crate) fn set_verdict(&mut self, position: usize, verdict: Verdict) {
        if let Some(planned) = self.jobs.get_mut(position) {
            planned.verdict = verdict;
        }
    }

    /// Whether no selected job is left out.
    pub(crate) fn is_success(&self) -> bool {
        self.jobs.iter().all(|it| match it.verdict {
            Verdict::DoesNotFit(_) | Verdict::Failed(_) => false,
            Verdict::Skipped(_) => !self.is_by_name,
            _ => true,
        })
    }
}

fn plan_job(
    listed: &ListedJob,
    selection: &Selection,
    settings: &Settings,
    workloads: &BTreeMap<String, Workload>,
    check: &mut QuotaCheck,
) -> PlannedJob {
    let (kind, object) = (listed.kind, &listed.object);
    let mut planned = PlannedJob {
        namespace: text(object, "/metadata/namespace").to_owned(),
        name: job_name(selection, listed),
        queue: selection.queue.clone(),
        requests: BTreeMap::new(),
        verdict: Verdict::Reserved,
        job: None,
    };
    let mut job = match parse(&selection.job_kinds, kind, object) {
        Ok(job) => job,
        Err(problem) => {
            planned.verdict = Verdict::DoesNotFit(format!("cannot be decoded: {problem}"));
            return planned;
        }
    };
    planned.requests = requests(&job);
    planned.verdict = match candidacy(listed, &job, selection, workloads) {
        Candidacy::Skipped(reason) => Verdict::Skipped(reason),
        Candidacy::Blocked(reason) => Verdict::DoesNotFit(reason),
        Candidacy::Adopted => Verdict::AlreadyAdopted,
        Candidacy::HasQuota => Verdict::Reserved,
        Candidacy::NeedsQuota => {
            job.queue.clone_from(&selection.queue);
            match too_large(object, settings).map_or_else(|| check.admit(kind, &job), Err) {
                Ok(admission) => Verdict::Fits(Box::new(admission)),
                Err(reason) => Verdict::DoesNotFit(reason),
            }
        }
    };
    job.queue.clone_from(&selection.queue);
    planned.job = Some(Box::new(job));
    planned
}

/// The reason if the spec of a job is larger than the controller accepts.
fn too_large(object: &Value, settings: &Settings) -> Option<String> {
    let bytes = object.get("spec").map_or(0, |it| it.to_string().len());
    let max = settings.job_spec_max_bytes;
    (bytes > max).then(|| {
        format!("its spec has {bytes} bytes, and the limit is {max} (controller.jobSpecMaxBytes)")
    })
}

/// The total requests of the pods of a job; none if they are invalid.
fn requests(job: &JobView) -> BTreeMap<String, String> {
    let mut sums: BTreeMap<String, Amount> = BTreeMap::new();
    for pod_set in &job.pod_sets {
        let template = &pod_set.template;
        let metadata = template.metadata.clone().unwrap_or_default();
        let Some(each) = template.spec.as_ref() else {
            continue;
        };
        for (resource, each) in pod_requests(&metadata, each).unwrap_or_default() {
            let all = each.get().saturating_mul(i64::from(pod_set.count));
            let sum = sums.entry(resource).or_default();
            *sum = sum.plus(Amount::new(all));
        }
    }
    let text = |(resource, sum): (String, Amount)| {
        let sum = quantity(&resource, sum).to_string();
        (resource, sum)
    };
    sums.into_iter().map(text).collect()
}

/// The time of creation, namespace and name. Times in RFC 3339 with seconds sort as text.
fn creation_order(job: &ListedJob) -> [String; 3] {
    let fields = [
        "/metadata/creationTimestamp",
        "/metadata/namespace",
        "/metadata/name",
    ];
    fields.map(|field| text(&job.object, field).to_owned())
}

fn job_name(selection: &Selection, job: &ListedJob) -> JobName {
    let name = text(&job.object, "/metadata/name");
    JobName::new(&selection.job_kinds, job.kind, name)
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object
        .pointer(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
