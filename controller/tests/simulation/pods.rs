//! The pods of Jobs against the quota that their workloads hold, in thousandths of a CPU.

use crate::api::Api;
use crate::fields::{
    has, holds_quota, is_deleted, is_true, job_owner, list, milli_cpu, number, text, uid,
};
use crate::jobs::{JOB, has_ended, is_foreign};
use crate::queued_pods::{self, POD};
use crate::quota::usage;
use lockkeeper_controller::job_adapters::group_uid;
use lockkeeper_controller::{Kind, ObjectKey};
use serde_json::Value;
use std::collections::BTreeMap;

/// Pods of a Job that was deleted without them.
#[derive(Clone)]
pub struct OrphanedPods {
    pub milli_cpu: i64,
    /// When they end, in milliseconds.
    pub end_ms: i64,
}

/// Requests of pods without quota, by the uid of their Job.
pub type Excess = BTreeMap<String, i64>;

/// The requests of the pods that a Job has, or that its controller may create at any time.
pub fn requests(job: &Value, unreported: i64) -> i64 {
    // The pods of a Job that is deleted in the foreground are terminating.
    if has_ended(job) || is_deleted(job) {
        return 0;
    }
    let mut pods = number(job, "/status/active").max(unreported);
    if !is_true(job, "/spec/suspend") && !is_foreign(job) {
        pods = pods.max(wanted_pods(job));
    }
    let containers = list(job, "/spec/template/spec/containers").iter();
    let each: i64 = containers
        .map(|it| milli_cpu(&it["resources"]["requests"]["cpu"]))
        .sum();
    each * pods
}

/// The most pods of a Job at once, as its controller creates them.
pub fn wanted_pods(job: &Value) -> i64 {
    let parallelism = number(job, "/spec/parallelism");
    if has(job, "/spec/completions") {
        let left = number(job, "/spec/completions") - number(job, "/status/succeeded");
        parallelism.min(left.max(0))
    } else {
        parallelism
    }
}

/// The uid of the Job that a workload holds quota for.
pub fn job_uid(workload: &Value) -> &str {
    let label = text(workload, "/metadata/labels/lockkeeper.dev~1job-uid");
    if label.is_empty() {
        job_owner(workload).map_or("", |(_, uid)| uid)
    } else {
        label
    }
}

/// The uid in the label of the workload that holds the quota of a job. Pods of a group share it.
pub fn quota_uid(job: &Value) -> String {
    let group = queued_pods::group(job);
    // One that the controller neither manages nor has started uses no quota of the group.
    let is_member = is_managed(job) || has(job, "/metadata/annotations/lockkeeper.dev~1pod-set");
    if group.is_empty() || !is_member {
        return uid(job).to_owned();
    }
    group_uid(&ObjectKey::new(text(job, "/metadata/namespace"), group))
}

/// The requests of all pods beyond the quota of their workloads.
pub fn excess(api: &Api, unreported: &BTreeMap<String, (i64, i64)>) -> Excess {
    let mut out = Excess::new();
    for (_, job) in api.all(JOB) {
        let unreported = unreported.get(uid(job)).map_or(0, |(pods, _)| *pods);
        out.insert(uid(job).to_owned(), requests(job, unreported));
    }
    for (_, pod) in api.all(POD) {
        *out.entry(quota_uid(pod)).or_default() += queued_pods::requests(pod, api.now_ms);
    }
    for (uid, pods) in &api.orphaned_pods {
        let runs = pods.end_ms > api.now_ms;
        out.insert(uid.clone(), if runs { pods.milli_cpu } else { 0 });
    }
    for (_, workload) in api.all(Kind::Workload) {
        if holds_quota(workload)
            && let Some(excess) = out.get_mut(job_uid(workload))
        {
            *excess -= usage(workload).values().sum::<i64>();
        }
    }
    out.retain(|_, amount| *amount > 0);
    out
}

/// Whether the controller manages a Job.
pub fn is_managed(job: &Value) -> bool {
    has(job, "/metadata/labels/lockkeeper.dev~1queue-name")
}
