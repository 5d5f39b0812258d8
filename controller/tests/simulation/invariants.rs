//! Invariants that every write of a controller must keep.
//!
//! - **Quota.** A newly admitted workload fits: its queue has enough of every flavor and resource available, given
//!   all workloads that use quota at the API server at that moment, and the earlier admissions in flight, under the
//!   limits that the controller had observed when it began the write. A later admission that is executed first counts
//!   in its own check only. So when a user has lowered quota below usage, no admission makes it worse.
//!   An admission that a user has edited by hand counts as it was before, until the leader has observed the edit. Then
//!   it does not count until the leader has written its earlier decisions.
//! - No workload is admitted that uses quota already, is inactive or has finished, or into a queue that does not
//!   exist, is stopped, or is in a cohort cycle.
//! - A Job is started only while its workload is admitted and not evicted, as far as the controller has observed,
//!   and never after a controller has evicted it.
//! - **Pods.** The requests of the pods of a Job, and of those that its controller may create at any time, are at
//!   most the quota that its workloads hold. A user can break that: resume the Job, delete the workload, edit its
//!   status. The controller never does, unless it had not observed a user's change of that Job or of its workloads
//!   when it began the write, and repairs it within a bound.
//! - When quota is released, the Job has its template and parallelism as the user wrote them, and no start time.
//! - Without faults no object is written more than [`OBJECT_MAX`] times.

use crate::api::{Api, merge};
use crate::declared_jobs::simulated_kind;
use crate::fields::{
    condition, condition_is_true, has, holds_quota, is_deleted, is_true, may_run, number, text, uid,
};
use crate::jobs::{JOB, has_ended, is_unresponsive};
use crate::pods::{Excess, excess, is_managed, job_uid, quota_uid};
use crate::process::ControllerProcess;
use crate::queued_pods::{POD, is_gated};
use crate::quota::{ReferenceTree, usage};
use crate::simulation::InFlight;
use crate::user_history::UserHistory;
use crate::write::written_object;
use lockkeeper_controller::{
    Kind, ObjectKey, ObjectRef, WriteId, WriteOp, WritePurpose, WriteRequest,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Writes of one workload or Job without faults.
const WRITES_PER_OBJECT_MAX: usize = 60;

/// The same of the status of one queue, and of all events.
const WRITES_PER_QUEUE_MAX: usize = 600;

/// A victim of a preemption.
pub struct PreemptionRecord {
    pub victim: ObjectKey,
    pub preemptor: String,
    /// The preemptor's uid at that time: another uid is another workload.
    pub generation: i64,
    pub version: u64,
}

/// An admission.
pub struct AdmissionRecord {
    pub uid: String,
    pub version: u64,
    /// The process and its write.
    write: (u64, WriteId),
}

#[derive(Default)]
pub struct InvariantChecker {
    pub writes: u64,
    pub has_faults: bool,
    pub violation: Option<String>,
    /// By the uid of a Job: template and parallelism as set by its user.
    pub original_jobs: BTreeMap<String, (Value, i64)>,
    /// By the uid of a Job: pods that its controller created and did not count in its status yet, and since when.
    pub unreported_pods: BTreeMap<String, (i64, i64)>,
    /// What users have changed.
    pub users: UserHistory,
    /// Since when the pods of a Job have exceeded its quota, in milliseconds.
    excess_since_ms: BTreeMap<String, i64>,
    pub preemptions: Vec<PreemptionRecord>,
    pub admissions: Vec<AdmissionRecord>,
    /// The version of the last change by a user, and of the last change of the leadership.
    pub last_user_version: u64,
    pub last_leader_change_version: u64,
    /// The last creation of a workload, which may be admitted before pending ones, or loss of a queue's quota.
    pub last_arrival_version: u64,
    /// The uids of workloads that a controller has evicted.
    released_workloads: BTreeSet<String>,
    writes_since_calm: Option<BTreeMap<ObjectRef, usize>>,
}

impl InvariantChecker {
    pub fn start_calm(&mut self) {
        self.writes_since_calm = Some(BTreeMap::new());
    }

    pub fn record_leader_change(&mut self, version: u64) {
        self.last_leader_change_version = version;
    }

    pub fn most_written(&self) -> String {
        let calm = self.writes_since_calm.iter().flatten();
        let busiest = calm.max_by_key(|(_, writes)| **writes);
        format!("most writes: {busiest:?}")
    }

    /// Checks a write when it begins.
    pub fn check_issued(&mut self, process: &ControllerProcess, write: &WriteRequest) {
        let ObjectRef::Job(job) = &write.object else {
            return;
        };
        if write.purpose != WritePurpose::StartJob {
            return;
        }
        let known = process
            .view
            .get(&(Kind::Job(simulated_kind(job.kind)), job.name.clone()));
        let of = known.map(|it| quota_uid(it));
        let mut workloads = process
            .view
            .iter()
            .filter(|((kind, _), _)| *kind == Kind::Workload);
        let workload = workloads.find(|(_, it)| of.as_deref() == Some(job_uid(it)));
        if !workload.is_some_and(|(_, it)| may_run(it)) {
            let name = &job.name;
            self.violation = Some(format!(
                "job {name} is started, but its workload is not admitted"
            ));
        }
    }

    /// Checks a write when it was executed.
    pub fn check_applied(
        &mut self,
        api: &Api,
        in_flight: &[InFlight],
        flight: &InFlight,
        name: &ObjectKey,
        before: Option<&Value>,
    ) -> Result<(), String> {
        self.writes += 1;
        self.count_write(&flight.write.object)?;
        let (kind, _) = written_object(&flight.write);
        let after = kind.and_then(|kind| api.get(kind, name));
        let after = after.map(|it| &**it);
        match kind {
            Some(Kind::Workload) => {
                let is_admission = self.check_workload_write(api, flight, name, before, after)?;
                match after.filter(|_| is_admission) {
                    Some(after) => self.check_admission(api, in_flight, flight, name, after),
                    None => Ok(()),
                }
            }
            // A user has deleted it before; its quota is gone now, also that which others were to borrow.
            Some(Kind::ClusterQueue) if after.is_none() => {
                self.last_arrival_version = api.version();
                Ok(())
            }
            Some(JOB | POD) => self.check_job_write(api, flight, name, before, after),
            _ => Ok(()),
        }
    }

    fn count_write(&mut self, target: &ObjectRef) -> Result<(), String> {
        let Some(calm) = &mut self.writes_since_calm else {
            return Ok(());
        };
        let writes = calm.entry(target.clone()).or_default();
        *writes += 1;
        let is_single = matches!(target, ObjectRef::Workload(_) | ObjectRef::Job(_));
        let most = if is_single {
            WRITES_PER_OBJECT_MAX
        } else {
            WRITES_PER_QUEUE_MAX
        };
        if *writes > most {
            return Err(format!("{target:?} has too many writes"));
        }
        Ok(())
    }

    /// Returns whether the write has admitted the workload.
    fn check_workload_write(
        &mut self,
        api: &Api,
        flight: &InFlight,
        name: &ObjectKey,
        before: Option<&Value>,
        after: Option<&Value>,
    ) -> Result<bool, String> {
        let held = before.is_some_and(holds_quota);
        let Some(after) = after else {
            let before = before.unwrap();
            if held {
                self.check_release(api, flight, before)?;
            }
            return Ok(false);
        };
        if before.is_none() {
            self.last_arrival_version = api.version();
            // A Job gets another workload only when it has stopped.
            self.users.deleted_workloads.remove(job_uid(after));
        }
        let was_evicted = before.is_some_and(|it| condition_is_true(it, "Evicted"));
        if condition_is_true(after, "Evicted") && !was_evicted {
            self.record_eviction(api, flight, name, after);
        }
        match (held, holds_quota(after)) {
            (false, true) => {
                self.released_workloads.remove(uid(after));
                self.admissions.push(AdmissionRecord {
                    uid: uid(after).to_owned(),
                    version: api.version(),
                    write: (flight.process, flight.write.id),
                });
                Ok(true)
            }
            (true, true)
                if before.unwrap()["status"]["admission"] != after["status"]["admission"] =>
            {
                Err(format!("{name} is admitted again while it holds quota"))
            }
            (true, false) if !condition_is_true(after, "Finished") => {
                self.check_release(api, flight, after)?;
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    fn record_eviction(
        &mut self,
        api: &Api,
        flight: &InFlight,
        name: &ObjectKey,
        workload: &Value,
    ) {
        let evicted = condition(workload, "Evicted").unwrap();
        if evicted["reason"] != "Preempted" || !flight.has_observed_users {
            return;
        }
        let message = text(evicted, "/message");
        let (_, from) = message.split_once("(UID: ").unwrap_or_default();
        let (preemptor, _) = from.split_once(',').unwrap_or_default();
        let mut workloads = api.all(Kind::Workload);
        let found = workloads.find(|(_, it)| uid(it) == preemptor);
        let generation = found.map(|(_, it)| number(it, "/metadata/generation"));
        self.preemptions.push(PreemptionRecord {
            victim: name.clone(),
            preemptor: preemptor.to_owned(),
            generation: generation.unwrap_or_default(),
            version: flight.begun_at_version,
        });
    }

    fn check_release(
        &mut self,
        api: &Api,
        flight: &InFlight,
        workload: &Value,
    ) -> Result<(), String> {
        self.released_workloads.insert(uid(workload).to_owned());
        let Some((JOB, job)) = api.owner(workload).filter(|(_, it)| !has_ended(it)) else {
            return Ok(());
        };
        let of = uid(job);
        if self.users.is_before_user(api, flight, of) || is_deleted(job) {
            return Ok(());
        }
        self.check_restored(job)
    }

    /// Checks that a stopped Job has the template and parallelism of its user.
    pub fn check_restored(&self, job: &Value) -> Result<(), String> {
        let name = text(job, "/metadata/name");
        if has(job, "/status/startTime") {
            return Err(format!("stopped job {name} has a start time"));
        }
        let Some((template, parallelism)) = self.original_jobs.get(uid(job)) else {
            return Ok(());
        };
        if job["spec"]["template"] != *template || number(job, "/spec/parallelism") != *parallelism
        {
            let spec = &job["spec"];
            return Err(format!("stopped job {name} is not restored: {spec}"));
        }
        Ok(())
    }

    fn check_job_write(
        &mut self,
        api: &Api,
        flight: &InFlight,
        name: &ObjectKey,
        before: Option<&Value>,
        after: Option<&Value>,
    ) -> Result<(), String> {
        let (Some(before), Some(after)) = (before, after) else {
            return Ok(());
        };
        let waits = |it: &Value| is_true(it, "/spec/suspend") || is_gated(it);
        let is_start = waits(before) && !waits(after);
        let of = &*quota_uid(after);
        if !is_start || self.users.is_before_user(api, flight, of) {
            return Ok(());
        }
        let mut workloads = api.all(Kind::Workload);
        let workload = workloads.find(|(_, it)| job_uid(it) == of);
        let is_taken = |it: &Value| !holds_quota(it) && self.released_workloads.contains(uid(it));
        if workload.is_some_and(|(_, it)| is_taken(it)) {
            return Err(format!("job {name} starts after its quota was released"));
        }
        Ok(())
    }
}

impl InvariantChecker {
    pub fn excess(&self, api: &Api) -> Excess {
        excess(api, &self.unreported_pods)
    }

    /// No write of the controller takes quota from pods, or starts pods without quota.
    pub fn check_excess(
        &self,
        api: &Api,
        flight: &InFlight,
        before: &Excess,
    ) -> Result<(), String> {
        for (job, after) in self.excess(api) {
            if self.users.is_before_user(api, flight, &job) {
                continue;
            }
            if after > before.get(&job).copied().unwrap_or_default() {
                let what = flight.write.purpose.as_str();
                let object = &flight.write.object;
                return Err(format!(
                    "{what} of {object:?} leaves pods of {job} without quota: {after}m"
                ));
            }
        }
        Ok(())
    }

    /// The pods of a managed Job exceed its quota for a limited time only, from when its controller responds.
    pub fn check_excess_ends(
        &mut self,
        api: &Api,
        bound_ms: i64,
        are_jobs_repaired: bool,
    ) -> Result<(), String> {
        let excess = self.excess(api);
        let responds = |job: &Value| are_jobs_repaired || !is_unresponsive(job);
        let managed = api
            .all(JOB)
            .chain(api.all(POD))
            .filter(|(_, it)| is_managed(it) && responds(it));
        let managed: BTreeSet<String> = managed.map(|(_, it)| quota_uid(it)).collect();
        let is_excess = |job: &String| excess.contains_key(job) && managed.contains(job);
        self.excess_since_ms.retain(|job, _| is_excess(job));
        for job in excess.keys().filter(|it| is_excess(it)) {
            let since_ms = self.excess_since_ms.entry(job.clone());
            if api.now_ms - *since_ms.or_insert(api.now_ms) > bound_ms {
                return Err(format!("the pods of {job} exceed its quota for too long"));
            }
        }
        Ok(())
    }

    /// Whether a stored admission was decided after that of this write, and counted it.
    fn is_later(&self, flight: &InFlight, workload: &Value) -> bool {
        let mut admissions = self.admissions.iter().rev();
        let last = admissions.find(|it| it.uid == uid(workload));
        let (process, write) = (flight.process, flight.write.id);
        last.is_some_and(|it| it.write.0 == process && it.write.1 > write)
    }

    fn check_admission(
        &self,
        api: &Api,
        in_flight: &[InFlight],
        flight: &InFlight,
        name: &ObjectKey,
        workload: &Value,
    ) -> Result<(), String> {
        if workload["spec"]["active"] == false {
            return Err(format!("{name} is admitted but not active"));
        }
        let others = api.all(Kind::Workload).filter(|(other, _)| *other != name);
        let others = others.filter(|(_, it)| !self.is_later(flight, it));
        let others = others.filter_map(|(_, it)| self.users.counted(it));
        let earlier = earlier_admissions(api, in_flight, flight);
        let all = others.chain(&earlier);
        let all = all.chain(
            self.users
                .deleted_but_in_use(api, flight, &self.unreported_pods),
        );
        let tree = ReferenceTree::from_objects(&flight.limits, all);
        let queue = text(workload, "/status/admission/clusterQueue");
        let known = flight
            .limits
            .get(&(Kind::ClusterQueue, ObjectKey::new("", queue)));
        let Some(known) = known else {
            return Err(format!(
                "{name} is admitted to {queue}, which does not exist"
            ));
        };
        let stop = text(known, "/spec/stopPolicy");
        if !matches!(stop, "" | "None") || tree.is_on_cycle(queue) {
            return Err(format!(
                "{name} is admitted to {queue}, which is stopped or in a cohort cycle"
            ));
        }
        for (cell, amount) in usage(workload) {
            let available = tree.available(queue, &cell);
            if amount > available {
                return Err(format!(
                    "{name} is admitted with {amount} of {cell:?}, and {queue} has {available}"
                ));
            }
        }
        Ok(())
    }
}

/// The workloads with the admissions that the process began to write before this one, and that may still be executed.
fn earlier_admissions(api: &Api, in_flight: &[InFlight], flight: &InFlight) -> Vec<Value> {
    let earlier = in_flight
        .iter()
        .filter(|it| it.process == flight.process && it.write.id < flight.write.id);
    let admissions = earlier.filter_map(|it| match (&it.write.object, &it.write.op) {
        (ObjectRef::Workload(key), WriteOp::PatchStatus(patch)) => Some((key, patch)),
        _ => None,
    });
    let admitted = admissions.filter_map(|(key, patch)| {
        let workload = api.get(Kind::Workload, key)?;
        let version = |it| text(it, "/metadata/resourceVersion");
        if version(patch) != version(workload) || holds_quota(workload) {
            return None;
        }
        let mut workload = (**workload).clone();
        merge(&mut workload["status"], &patch["status"]);
        Some(workload)
    });
    admitted.collect()
}
