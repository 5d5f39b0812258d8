//! What users have changed, for the invariants: what a controller could not know when it began a write.

use crate::api::Api;
use crate::fields::{condition_is_true, holds_quota, is_true, number, object_key, uid};
use crate::jobs::{JOB, has_ended};
use crate::pods::{is_managed, job_uid, quota_uid};
use crate::queued_pods::{self, POD};
use crate::simulation::InFlight;
use lockkeeper_controller::Kind;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// An admission that a user has edited by hand.
struct AdmissionEdit {
    before: Rc<Value>,
    admission: Value,
    version: u64,
    /// The leader has observed the edit, and still has earlier decisions to write.
    is_observed: bool,
}

/// A workload that a user deleted while it held quota.
#[derive(Clone)]
pub struct DeletedWorkload {
    pub object: Value,
    /// The processes that knew it.
    pub processes: BTreeSet<u64>,
    /// The version of the API server after the deletion.
    pub version: u64,
}

/// The changes of users.
#[derive(Default)]
pub struct UserHistory {
    /// Workloads that users deleted while they held quota, by the uid of the Job.
    pub deleted_workloads: BTreeMap<String, DeletedWorkload>,
    /// By the uid of a workload.
    edits: BTreeMap<String, AdmissionEdit>,
    /// By the uid of a Job: the version of the last change of it or of its workloads by a user.
    user_versions: BTreeMap<String, u64>,
    /// By the uid of a Job: the newest version when the controller last read it. A Job without a label is not watched.
    read_versions: BTreeMap<String, u64>,
}

impl UserHistory {
    /// Records the changes that a user has made since this version.
    pub fn record_changes(&mut self, api: &Api, since: u64) {
        for kind in [JOB, POD, Kind::Workload] {
            let log = api.log(kind);
            let begin = log.partition_point(|it| it.version <= since);
            for (at, event) in log.iter().enumerate().skip(begin) {
                let versions = log[..=at].iter().rev().filter(|it| it.name == event.name);
                let objects = versions.take(2).filter_map(|it| it.object.as_deref());
                for object in objects {
                    let job = if kind == Kind::Workload {
                        job_uid(object).to_owned()
                    } else {
                        quota_uid(object)
                    };
                    self.user_versions.insert(job, event.version);
                }
            }
        }
    }

    /// Records that a user has edited a workload.
    pub fn record_edit(&mut self, api: &Api, before: Rc<Value>) {
        let Some(after) = api.get(Kind::Workload, &object_key(&before)) else {
            return;
        };
        let admission = &after["status"]["admission"];
        if !holds_quota(after) || *admission == before["status"]["admission"] {
            return;
        }
        let edit = self.edits.remove(uid(after)).unwrap_or(AdmissionEdit {
            before,
            admission: Value::Null,
            version: 0,
            is_observed: false,
        });
        let edit = AdmissionEdit {
            admission: admission.clone(),
            version: api.version(),
            ..edit
        };
        self.edits.insert(uid(after).to_owned(), edit);
    }

    /// The leader has observed this version. When no write of it is in flight, it has written its earlier decisions.
    pub fn observe_edits(&mut self, observed_version: u64, is_idle: bool) {
        self.edits
            .retain(|_, it| !is_idle || it.version > observed_version);
        for edit in self.edits.values_mut() {
            edit.is_observed |= edit.version <= observed_version;
        }
    }

    /// The workload that counts: that of the API server, unless a user has edited its admission.
    pub fn counted<'a>(&'a self, workload: &'a Value) -> Option<&'a Value> {
        let edit = self.edits.get(uid(workload));
        match edit.filter(|it| it.admission == workload["status"]["admission"]) {
            Some(edit) if edit.is_observed => None,
            Some(edit) => Some(&edit.before),
            None => Some(workload),
        }
    }

    /// Records that the controller has read a Job.
    pub fn record_read(&mut self, api: &Api, job: &str) {
        self.read_versions.insert(job.to_owned(), api.version());
    }

    /// Whether a write was begun before its process had observed the last change of a Job by a user.
    pub fn is_before_user(&self, api: &Api, flight: &InFlight, of: &str) -> bool {
        let Some(last) = self.user_versions.get(of) else {
            return false;
        };
        let jobs = api.all(JOB).chain(api.all(POD));
        let unmanaged = jobs.filter(|(_, it)| quota_uid(it) == of && !is_managed(it));
        let read_versions = unmanaged.map(|(_, it)| {
            let read_version = self.read_versions.get(uid(it)).copied();
            read_version.unwrap_or_default()
        });
        let read_version = read_versions.min().unwrap_or(u64::MAX);
        let observed = flight.observed_version.min(read_version);
        *last > observed
    }

    /// The workloads that users deleted while their Jobs had pods: their quota is still in use.
    pub fn deleted_but_in_use<'a>(
        &'a self,
        api: &'a Api,
        flight: &'a InFlight,
        unreported_pods: &'a BTreeMap<String, (i64, i64)>,
    ) -> impl Iterator<Item = &'a Value> {
        let deleted = self.deleted_workloads.iter();
        deleted.filter_map(move |(of, workload)| {
            let pods: Vec<_> = api
                .all(POD)
                .filter(|(_, it)| quota_uid(it) == *of)
                .collect();
            if !pods.is_empty() {
                let is_known = workload.processes.contains(&flight.process);
                let mut pods = pods.iter();
                let is_used =
                    is_known && pods.any(|(_, it)| queued_pods::requests(it, api.now_ms) > 0);
                return is_used.then_some(&workload.object);
            }
            let mut jobs = api.all(JOB);
            let (_, job) = jobs.find(|(_, it)| uid(it) == of)?;
            // Another process has never seen it.
            let is_known = workload.processes.contains(&flight.process);
            let has_pods = number(job, "/status/active") > 0 || unreported_pods.contains_key(of);
            // Without a label a user may resume it after it has stopped: its pods have no quota then.
            let events = api
                .log(JOB)
                .iter()
                .filter(|it| it.object.as_ref().is_some_and(|job| uid(job) == of));
            let (before, mut after): (Vec<_>, Vec<_>) =
                events.partition(|it| it.version <= workload.version);
            after.extend(before.last());
            let has_stopped = after
                .iter()
                .any(|it| it.object.as_deref().is_some_and(is_stopped));
            (is_known && has_pods && !has_stopped && !has_ended(job)).then_some(&workload.object)
        })
    }
}

/// Whether its controller reports that a suspended Job has no pods.
fn is_stopped(job: &Value) -> bool {
    is_true(job, "/spec/suspend")
        && condition_is_true(job, "Suspended")
        && number(job, "/status/active") == 0
}
