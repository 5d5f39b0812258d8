//! `JobSet` (`jobset.x-k8s.io`): jobs of several templates that run together.

use super::{
    JobAdapter, JobParseError, JobResult, JobView, PodPlacement, PodSetView, Resource,
    TemplateSource, decode, foreign_manager, has_same_requests, job_view_from_metadata,
    max_running_pods, parse_source, pod_template_patch, strip_template,
};
use crate::key::ObjectKey;
use k8s_openapi::api::batch::v1::JobTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// A `JobSet` has one pod set for each of its replicated jobs.
pub(super) struct JobSet;

#[derive(Default, Deserialize)]
struct JobSetObject {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: JobSetSpec,
    #[serde(default)]
    status: JobSetStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobSetSpec {
    suspend: bool,
    managed_by: Option<String>,
    replicated_jobs: Vec<ReplicatedJob>,
    failure_policy: Option<FailurePolicy>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FailurePolicy {
    max_restarts: i32,
    rules: Vec<FailurePolicyRule>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FailurePolicyRule {
    action: String,
}

impl FailurePolicy {
    /// Whether finished Jobs may run again. A rule may restart all of them without counting.
    fn may_restart(&self) -> bool {
        self.max_restarts > 0 || self.rules.iter().any(|it| it.action.starts_with("Restart"))
    }
}

#[derive(Deserialize)]
struct ReplicatedJob {
    name: String,
    #[serde(default = "one")]
    replicas: i32,
    template: JobTemplateSpec,
}

const fn one() -> i32 {
    1
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobSetStatus {
    conditions: Vec<Condition>,
    replicated_jobs_status: Vec<ReplicatedJobStatus>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReplicatedJobStatus {
    name: String,
    ready: i32,
    succeeded: i32,
    active: i32,
}

impl JobAdapter for JobSet {
    fn resource(&self) -> Resource {
        Resource::new("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets")
    }

    fn is_built_in(&self) -> bool {
        false
    }

    fn default_manager(&self) -> &'static str {
        "jobset.sigs.k8s.io/jobset-controller"
    }

    fn pod_selector(&self, _: Option<&ObjectKey>, uid: &str) -> Option<String> {
        Some(format!("jobset.sigs.k8s.io/jobset-uid={uid}"))
    }

    /// Each of its jobs has a name of its own, and together they have the pods of the pod sets: so a further job
    /// with an owner reference to it is not covered.
    fn creates_jobs(&self) -> bool {
        true
    }

    fn covers(&self, parent: &JobView, child_kind: &Resource, child: &JobView) -> bool {
        // Its controller creates Jobs only.
        if child_kind.group != "batch" || child_kind.kind != "Job" {
            return false;
        }
        let prefix = [parent.name.name(), "-"].concat();
        let suffix = child.name.name().strip_prefix(&prefix);
        let Some((pod_set, index)) = suffix.and_then(|it| it.rsplit_once('-')) else {
            return false;
        };
        let mut pod_sets = parent.pod_sets.iter();
        let (Some(covering), [pods]) = (
            pod_sets.find(|it| it.name == pod_set),
            child.pod_sets.as_slice(),
        ) else {
            return false;
        };
        // The parsed number is written back: "00" is another name than "0".
        let index = index
            .parse()
            .ok()
            .filter(|it: &i32| it.to_string() == index);
        index.is_some_and(|it| (0..covering.job_count).contains(&it))
            && pods.count.saturating_mul(covering.job_count) <= covering.count
            && has_same_requests(pods.template.spec.as_ref(), covering.template.spec.as_ref())
    }

    fn parse(&self, object: Value) -> Result<JobView, JobParseError> {
        let source = TemplateSource::from_json(object.pointer("/spec/replicatedJobs"));
        let JobSetObject {
            metadata,
            spec,
            status,
        } = decode("jobset", object)?;
        let jobs = &status.replicated_jobs_status;
        let may_restart = spec.failure_policy.is_some_and(|it| it.may_restart());
        let is_up = |job: &ReplicatedJob| {
            let mut jobs = jobs.iter().filter(|of| of.name == job.name);
            jobs.any(|of| of.ready.saturating_add(of.succeeded) >= job.replicas)
        };
        let is_ready = spec.replicated_jobs.iter().all(is_up);
        let end = status.conditions.iter().filter(|it| it.status == "True");
        let mut end = end.filter(|it| it.type_ == "Completed" || it.type_ == "Failed");
        let ended = end.next().map(|it| JobResult {
            is_success: it.type_ == "Completed",
            message: it.message.clone(),
        });
        let mut suspended = status
            .conditions
            .iter()
            .filter(|it| it.type_ == "Suspended");
        // A JobSet that was never suspended has no such condition, but counts of its jobs.
        let suspended = suspended.next();
        let suspended_at = suspended.filter(|it| it.status == "True");
        let suspended_at_s = suspended_at.map(|it| it.last_transition_time.0.as_second());
        let suspended = suspended.map(|it| it.status == "True");
        let is_known_started = suspended == Some(false) || suspended.is_none() && !jobs.is_empty();
        Ok(JobView {
            is_suspended: spec.suspend,
            suspended_at_s,
            foreign_manager: foreign_manager(self, spec.managed_by),
            is_start_unconfirmed: !spec.suspend && !is_known_started,
            is_quiescent: jobs.iter().all(|it| it.active == 0) && suspended != Some(false),
            is_ready,
            pod_sets: spec
                .replicated_jobs
                .into_iter()
                .map(|job| {
                    let mut of_job = jobs.iter().filter(|of| of.name == job.name);
                    // A restart runs the finished jobs again.
                    let ended = of_job.next().filter(|_| !may_restart);
                    pod_set(job, ended.map_or(0, |it| it.succeeded))
                })
                .collect(),
            template_source: if ended.is_none() {
                source
            } else {
                TemplateSource::NotKept
            },
            result: ended,
            ..job_view_from_metadata(&metadata)
        })
    }

    fn templates(&self, source: &str) -> Vec<Value> {
        let jobs = parse_source(source);
        let jobs = jobs.as_array().into_iter().flatten();
        let template = |it: &Value| it.pointer("/template/spec/template").cloned();
        jobs.map(|it| template(it).unwrap_or_default()).collect()
    }

    fn needs_templates_for_placement(&self) -> bool {
        true
    }

    fn placement_patch(
        &self,
        job: &JobView,
        source: Option<&str>,
        placed: &[PodPlacement],
    ) -> Option<Value> {
        // A merge patch replaces whole lists, so all replicated jobs are written.
        let mut jobs = parse_source(source?);
        let there = jobs.as_array_mut().into_iter().flatten();
        for ((it, have), want) in there.zip(&job.pod_sets).zip(placed) {
            let template = pod_template_patch(have, want);
            if let Some(pod) = it.pointer_mut("/template/spec/template/spec") {
                apply_merge_patch(pod, &template);
            }
        }
        Some(json!({"replicatedJobs": jobs}))
    }
}

/// A merge patch (RFC 7386).
fn apply_merge_patch(into: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        into.clone_from(patch);
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    let Some(object) = into.as_object_mut() else {
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            object.remove(key);
        } else {
            apply_merge_patch(object.entry(key.as_str()).or_insert(Value::Null), value);
        }
    }
}

/// The pod set of a replicated job of which `succeeded` jobs have ended and will not run again.
fn pod_set(job: ReplicatedJob, succeeded: i32) -> PodSetView {
    let spec = job.template.spec.unwrap_or_default();
    let each = max_running_pods(spec.parallelism, spec.completions);
    PodSetView {
        name: job.name,
        count: each.saturating_mul(job.replicas),
        remaining: each.saturating_mul(job.replicas.saturating_sub(succeeded).max(0)),
        job_count: job.replicas,
        min_count: None,
        template: Arc::new(strip_template(spec.template)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::super::{JobAdapter, batch_job::BatchJob};
    use super::JobSet;
    use serde_json::json;

    #[test]
    fn job_parent_is_its_controller_of_a_known_kind() {
        let parent = |owners| {
            let object = json!({
                "metadata": {"name": "j", "namespace": "n", "ownerReferences": owners,
                    "labels": {"lockkeeper.dev/queue-name": "q"}},
                "spec": {"template": {"spec": {"containers": []}}},
            });
            BatchJob.parse(object).unwrap().parent
        };
        let owner = |kind: &str, group: &str, controls: bool| {
            json!([{"apiVersion": format!("{group}/v1"), "kind": kind, "name": "o", "uid": "u",
                "controller": controls}])
        };
        let (key, uid) = parent(owner("JobSet", "jobset.x-k8s.io", true)).unwrap();
        assert_eq!((key.kind, key.name.key(), uid.as_str()), (1, "n/o", "u"));
        assert_eq!(parent(owner("JobSet", "jobset.x-k8s.io", false)), None);
        assert_eq!(parent(owner("CronJob", "batch", true)), None);
        assert_eq!(parent(json!(null)), None);
    }

    fn pods(cpu: u32) -> serde_json::Value {
        let requests = json!({"requests": {"cpu": cpu}});
        json!({"spec": {"containers": [{"name": "c", "resources": requests}]}})
    }

    /// The job set creates `s-w-0` and `s-w-1`, of two pods each.
    #[test]
    fn job_set_covers_only_the_jobs_that_it_creates() {
        let set = JobSet.parse(json!({
            "metadata": {"name": "s", "namespace": "n"},
            "spec": {"replicatedJobs": [{"name": "w", "replicas": 2, "template":
                {"spec": {"parallelism": 2, "template": pods(1)}}}]},
        }));
        let set = set.unwrap();
        for (name, parallelism, cpu, expected) in [
            ("s-w-0", 2, 1, true),
            ("s-w-1", 1, 1, true),
            ("s-w-2", 2, 1, false),
            ("s-w-00", 2, 1, false),
            ("s-w--1", 2, 1, false),
            ("s-x-0", 2, 1, false),
            ("other", 2, 1, false),
            ("s-w-0", 3, 1, false),
            ("s-w-0", 2, 2, false),
        ] {
            let child = BatchJob.parse(json!({
                "metadata": {"name": name, "namespace": "n"},
                "spec": {"parallelism": parallelism, "template": pods(cpu)},
            }));
            let is_covered = JobSet.covers(&set, &BatchJob.resource(), &child.unwrap());
            assert_eq!(is_covered, expected, "{name} {parallelism} {cpu}");
        }
    }

    #[test]
    fn foreign_manager_is_any_but_the_controller_of_the_kind() {
        let manager = |kind: &dyn JobAdapter, managed_by: serde_json::Value| {
            let template = json!({"spec": {"containers": []}});
            let object = json!({
                "metadata": {"name": "j", "namespace": "n"},
                "spec": {"managedBy": managed_by, "template": template},
            });
            kind.parse(object).unwrap().foreign_manager
        };
        let kinds: [(&dyn JobAdapter, &str); 2] = [
            (&BatchJob, "kubernetes.io/job-controller"),
            (&JobSet, "jobset.sigs.k8s.io/jobset-controller"),
        ];
        for (kind, own) in kinds {
            assert_eq!(manager(kind, json!(null)), None);
            assert_eq!(manager(kind, json!(own)), None);
            let foreign = manager(kind, json!("example.com/none"));
            assert_eq!(foreign.as_deref(), Some("example.com/none"));
        }
    }

    #[test]
    fn job_set_start_and_stop_are_confirmed_by_its_controller() {
        for (suspend, condition, counts, is_start_unknown, is_quiet) in [
            (true, None, false, false, true),
            (true, Some("True"), true, false, true),
            // Its controller has not observed the suspension yet.
            (true, Some("False"), true, false, false),
            // It was started, and its status is from before the start.
            (false, None, false, true, true),
            (false, Some("True"), true, true, true),
            (false, Some("False"), true, false, false),
            // It was never suspended.
            (false, None, true, false, true),
        ] {
            let mut status = json!({});
            if let Some(it) = condition {
                status["conditions"] = json!([{
                    "type": "Suspended", "status": it, "reason": "Updated", "message": "",
                    "lastTransitionTime": "2024-05-01T00:00:00Z",
                }]);
            }
            if counts {
                status["replicatedJobsStatus"] =
                    json!([{"name": "w", "ready": 0, "succeeded": 0, "active": 0}]);
            }
            let set = json!({
                "metadata": {"name": "s", "namespace": "n"},
                "spec": {"suspend": suspend, "replicatedJobs": []},
                "status": status,
            });
            let seen = JobSet.parse(set).unwrap();
            assert_eq!(
                (seen.is_start_unconfirmed, seen.is_quiescent),
                (is_start_unknown, is_quiet),
                "{suspend} {condition:?} {counts}"
            );
        }
    }

    #[test]
    fn job_set_pod_set_counts_pods_of_all_replicas() {
        let set = json!({
            "metadata": {"name": "s", "namespace": "n"},
            "spec": {"suspend": true, "replicatedJobs": [{"name": "w", "replicas": 3, "template":
                {"spec": {"parallelism": 4, "completions": 2,
                    "template": {"spec": {"containers": []}}}}}]},
            "status": {"replicatedJobsStatus": [{"name": "w", "ready": 2, "succeeded": 1, "active": 1}]},
        });
        let seen = JobSet.parse(set).unwrap();
        assert!(seen.is_suspended && seen.is_ready && !seen.is_quiescent);
        assert_eq!((seen.pod_sets.len(), seen.pod_sets[0].count), (1, 6));
    }
}
