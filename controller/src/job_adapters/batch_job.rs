//! Kubernetes' own Job (`batch/v1`).

use super::{
    JobAdapter, JobParseError, JobResult, JobView, PodPlacement, PodSetView, Resource,
    TemplateSource, decode, foreign_manager, job_view_from_metadata, max_running_pods,
    pod_template_patch, strip_template,
};
use crate::key::ObjectKey;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use lockkeeper_api::labels;
use lockkeeper_api::workload::POD_SET_NAME_DEFAULT;
use serde_json::{Value, json};
use std::sync::Arc;

/// A Job has one pod set.
pub(super) struct BatchJob;

impl JobAdapter for BatchJob {
    fn resource(&self) -> Resource {
        Resource::new("batch", "v1", "Job", "jobs")
    }

    fn is_built_in(&self) -> bool {
        true
    }

    fn default_manager(&self) -> &'static str {
        "kubernetes.io/job-controller"
    }

    fn pod_selector(&self, _: Option<&ObjectKey>, uid: &str) -> Option<String> {
        Some(format!("batch.kubernetes.io/controller-uid={uid}"))
    }

    fn parse(&self, object: Value) -> Result<JobView, JobParseError> {
        let source = TemplateSource::from_json(object.pointer("/spec/template"));
        let job: Job = decode("job", object)?;
        let spec = job.spec.unwrap_or_default();
        let status = job.status.unwrap_or_default();
        let count = max_running_pods(spec.parallelism, spec.completions);
        let annotations = job.metadata.annotations.as_ref();
        let least = annotations.and_then(|it| it.get(labels::MIN_PARALLELISM));
        let least = least.and_then(|it| it.parse().ok());
        let condition = suspended_condition(&status);
        let says = condition.map(|it| it.status == "True");
        let suspended_at = condition.filter(|it| it.status == "True");
        let suspended_at = suspended_at.and_then(|it| it.last_transition_time.as_ref());
        let suspended_at_s = suspended_at.map(|it| it.0.as_second());
        // The condition follows `spec.suspend` only when the job controller has observed it.
        let is_known_suspended = says == Some(true) || status.start_time.is_none();
        let is_known_started = says == Some(false) || says.is_none() && status.start_time.is_some();
        // A pod that has just succeeded is no longer ready, and not counted as succeeded yet.
        let uncounted = status.uncounted_terminated_pods.as_ref();
        let uncounted = uncounted.and_then(|it| it.succeeded.as_ref());
        let uncounted = uncounted.map_or(0, |it| i32::try_from(it.len()).unwrap_or(i32::MAX));
        let ended = job_result(&status);
        // Without `completions` it is not known how many pods are left.
        let succeeded = status.succeeded.unwrap_or_default();
        let left = spec.completions.map(|it| it.saturating_sub(succeeded));
        let remaining = left.map_or(count, |it| it.clamp(0, count.max(0)));
        Ok(JobView {
            is_suspended: spec.suspend == Some(true),
            is_start_unconfirmed: spec.suspend != Some(true) && !is_known_started,
            suspended_at_s,
            foreign_manager: foreign_manager(self, spec.managed_by),
            has_start_time: status.start_time.is_some(),
            // `status.terminating` does not matter: a terminating pod is not active. It keeps its node's resources
            // until its grace period ends, and a workload admitted with its quota may have to wait for these resources
            // in the scheduler. But a pod on a dead node would keep its quota forever. KEP-83 accepts this ("while Pods
            // are terminating, a ClusterQueue's quota could be oversubscribed"), and Kueue reads `status.active` alone
            // (`OnTerminating` of KEP-10076, its default).
            is_quiescent: status.active.unwrap_or_default() == 0 && is_known_suspended,
            is_ready: status
                .ready
                .unwrap_or_default()
                .saturating_add(status.succeeded.unwrap_or_default())
                .saturating_add(uncounted)
                >= count,
            pod_sets: vec![PodSetView {
                name: POD_SET_NAME_DEFAULT.to_owned(),
                count,
                remaining,
                job_count: 0,
                min_count: least.filter(|it| (1..count).contains(it)),
                template: Arc::new(strip_template(spec.template)),
            }],
            template_source: if ended.is_none() {
                source
            } else {
                TemplateSource::NotKept
            },
            result: ended,
            ..job_view_from_metadata(&job.metadata)
        })
    }

    fn placement_patch(
        &self,
        job: &JobView,
        _source: Option<&str>,
        placed: &[PodPlacement],
    ) -> Option<Value> {
        let (Some(have), Some(want)) = (job.pod_sets.first(), placed.first()) else {
            return Some(json!({}));
        };
        let mut spec = json!({});
        let template = pod_template_patch(have, want);
        if template.as_object().is_some_and(|it| !it.is_empty()) {
            spec = json!({"template": {"spec": template}});
        }
        if let Some(count) = want.count
            && have.count != count
            && let Some(spec) = spec.as_object_mut()
        {
            spec.insert("parallelism".to_owned(), json!(count));
        }
        Some(spec)
    }
}

fn suspended_condition(status: &JobStatus) -> Option<&JobCondition> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|it| it.type_ == "Suspended")
}

fn job_result(status: &JobStatus) -> Option<JobResult> {
    let conditions = status.conditions.iter().flatten();
    let mut conditions = conditions.filter(|it| it.status == "True");
    // `SuccessCriteriaMet` and `FailureTarget` do not count: pods may still be terminating.
    let end = conditions.find(|it| it.type_ == "Complete" || it.type_ == "Failed")?;
    Some(JobResult {
        is_success: end.type_ == "Complete",
        message: end.message.clone().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::BatchJob;
    use crate::job_adapters::JobAdapter;
    use serde_json::json;

    fn is_quiet(active: i32, terminating: i32, suspended: Option<bool>, has_started: bool) -> bool {
        let conditions: Vec<_> = suspended
            .map(|it| json!({"type": "Suspended", "status": if it { "True" } else { "False" }}))
            .into_iter()
            .collect();
        let mut status = json!({
            "active": active, "terminating": terminating, "conditions": conditions,
        });
        if has_started {
            status["startTime"] = json!("2024-05-01T00:00:00Z");
        }
        let job = json!({
            "metadata": {"name": "j", "namespace": "team"},
            "spec": {"suspend": true, "template": {"spec": {"containers": []}}},
            "status": status,
        });
        BatchJob.parse(job).unwrap().is_quiescent
    }

    #[test]
    fn batch_job_start_is_confirmed_by_its_controller() {
        for (suspend, condition, has_started, expected) in [
            (true, None, false, false),
            // It was started, and its status is from before the start.
            (false, Some("True"), false, true),
            (false, Some("True"), true, true),
            (false, None, false, true),
            (false, Some("False"), true, false),
            // It was never suspended.
            (false, None, true, false),
        ] {
            let mut status = json!({});
            if let Some(it) = condition {
                status["conditions"] = json!([{"type": "Suspended", "status": it}]);
            }
            if has_started {
                status["startTime"] = json!("2024-05-01T00:00:00Z");
            }
            let job = json!({
                "metadata": {"name": "j", "namespace": "team"},
                "spec": {"suspend": suspend, "template": {"spec": {"containers": []}}},
                "status": status,
            });
            let is_unknown = BatchJob.parse(job).unwrap().is_start_unconfirmed;
            assert_eq!(
                is_unknown, expected,
                "{suspend} {condition:?} {has_started}"
            );
        }
    }

    #[test]
    fn batch_job_without_active_pods_and_suspended_is_quiescent() {
        for (active, terminating, suspended, has_started, expected) in [
            (0, 0, None, false, true),
            (0, 0, Some(true), true, true),
            // A terminating pod, or one on a dead node that is never reported as gone.
            (0, 2, Some(true), true, true),
            (1, 0, Some(true), true, false),
            (1, 2, Some(true), true, false),
            // Its controller has not observed the suspension yet.
            (0, 0, None, true, false),
            (0, 0, Some(false), true, false),
        ] {
            assert_eq!(
                is_quiet(active, terminating, suspended, has_started),
                expected,
                "{active} {terminating} {suspended:?} {has_started}"
            );
        }
    }
}
