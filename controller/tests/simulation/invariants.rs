//! Invariants that every write of a controller must keep.
//!
//! - **Quota.** A newly admitted workload fits: its queue has enough of every flavor and resource available, given
//!   all workloads that use quota at the API server at that moment, under the limits that the controller had
//!   observed when it began the write. So when a user has lowered quota below usage, no admission makes it worse.
//!   Writes of a controller that is not *sure* are not checked: another client has increased usage, and the
//!   controller has not observed that yet, or still has earlier decisions to write. Other clients are users who
//!   edit an admission by hand, and former leaders with late writes.
//! - No workload is admitted that uses quota already, is inactive or has finished, or into a queue that does not
//!   exist, is stopped, or is in a cohort cycle.
//! - A Job is started only while its workload is admitted and not evicted, as far as the controller has observed,
//!   and never after a controller has evicted it.
//! - **Pods.** The requests of the pods of a Job, and of those that its controller may create at any time, are at
//!   most the quota that its workloads hold. A user can break that: resume the Job, delete the workload, edit its
//!   status. The controller never does, and repairs it within a bound.
//! - When quota is released, the Job has its template and parallelism as the user wrote them, and no start time.
//! - Without faults no object is written more than [`OBJECT_MAX`] times.

use crate::api::Api;
use crate::fields::{
    condition, condition_is_true, has, holds_quota, is_deleted, is_true, job_owner, may_run,
    number, text, uid,
};
use crate::jobs::{JOB, has_ended, is_unresponsive};
use crate::pods::{Excess, excess, is_managed, job_uid};
use crate::process::ControllerProcess;
use crate::quota::{ReferenceTree, usage};
use crate::simulation::InFlight;
use lockkeeper_controller::{Kind, ObjectKey, ObjectRef, WritePurpose, WriteRequest};
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
    /// Workloads that users deleted while they held quota, by the uid of the Job, with the version.
    pub deleted_workloads: BTreeMap<String, (Value, u64)>,
    /// Since when the pods of a Job have exceeded its quota, in milliseconds.
    excess_since_ms: BTreeMap<String, i64>,
    pub preemptions: Vec<PreemptionRecord>,
    pub admissions: Vec<AdmissionRecord>,
    /// The version of the last change by a user, and of the last change of the leadership.
    pub last_user_version: u64,
    pub last_leader_change_version: u64,
    /// The last creation of a workload, which may be admitted before pending ones.
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
        let known = process.view.get(&(JOB, job.name.clone()));
        let of = known.map(|it| uid(it));
        let mut workloads = process
            .view
            .iter()
            .filter(|((kind, _), _)| *kind == Kind::Workload);
        let workload = workloads.find(|(_, it)| job_owner(it).map(|(_, uid)| uid) == of);
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
        flight: &InFlight,
        kind: Kind,
        name: &ObjectKey,
        before: Option<&Value>,
    ) -> Result<(), String> {
        self.writes += 1;
        self.count_write(&flight.write.object)?;
        let after = api.get(kind, name).map(|it| &**it);
        match kind {
            Kind::Workload => self.check_workload_write(api, flight, name, before, after),
            JOB => self.check_job_write(api, flight, name, before, after),
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

    fn check_workload_write(
        &mut self,
        api: &Api,
        flight: &InFlight,
        name: &ObjectKey,
        before: Option<&Value>,
        after: Option<&Value>,
    ) -> Result<(), String> {
        let held = before.is_some_and(holds_quota);
        let Some(after) = after else {
            let before = before.unwrap();
            return if held {
                self.check_release(api, flight, name, before)
            } else {
                Ok(())
            };
        };
        if before.is_none() {
            self.last_arrival_version = api.version();
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
                });
                self.check_admission(api, flight, name, after)
            }
            (true, true)
                if before.unwrap()["status"]["admission"] != after["status"]["admission"] =>
            {
                Err(format!("{name} is admitted again while it holds quota"))
            }
            (true, false) if !condition_is_true(after, "Finished") => {
                self.check_release(api, flight, name, after)
            }
            _ => Ok(()),
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
        name: &ObjectKey,
        workload: &Value,
    ) -> Result<(), String> {
        self.released_workloads.insert(uid(workload).to_owned());
        let Some((job, of)) = job_owner(workload) else {
            return Ok(());
        };
        let job = api.get(JOB, &ObjectKey::new(name.namespace(), job));
        let Some(job) = job.filter(|it| uid(it) == of && !has_ended(it)) else {
            return Ok(());
        };
        let has_seen_all = flight.is_up_to_date && flight.has_observed_users;
        if !has_seen_all || self.last_user_version > flight.begun_at_version || is_deleted(job) {
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
        let is_start = is_true(before, "/spec/suspend") && !is_true(after, "/spec/suspend");
        if !is_start || !flight.is_up_to_date {
            return Ok(());
        }
        let mut workloads = api.all(Kind::Workload);
        let of = uid(after);
        let workload = workloads.find(|(_, it)| job_owner(it).is_some_and(|(_, uid)| uid == of));
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

    /// No write of the controller takes quota from pods, or starts pods without quota. A user may have done so since
    /// the write began.
    pub fn check_excess(
        &self,
        api: &Api,
        flight: &InFlight,
        before: &Excess,
    ) -> Result<(), String> {
        let has_seen_all = flight.is_up_to_date && flight.has_observed_users;
        if !has_seen_all || self.last_user_version > flight.begun_at_version {
            return Ok(());
        }
        for (job, after) in self.excess(api) {
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
            .filter(|(_, it)| is_managed(it) && responds(it));
        let managed: BTreeSet<&str> = managed.map(|(_, it)| uid(it)).collect();
        let is_excess = |job: &String| excess.contains_key(job) && managed.contains(job.as_str());
        self.excess_since_ms.retain(|job, _| is_excess(job));
        for job in excess.keys().filter(|it| is_excess(it)) {
            let since_ms = self.excess_since_ms.entry(job.clone());
            if api.now_ms - *since_ms.or_insert(api.now_ms) > bound_ms {
                return Err(format!("the pods of {job} exceed its quota for too long"));
            }
        }
        Ok(())
    }

    /// The workloads that users deleted while their Jobs had pods: their quota is still in use.
    fn deleted_but_in_use<'a>(
        &'a self,
        api: &'a Api,
        flight: &'a InFlight,
    ) -> impl Iterator<Item = &'a Value> {
        let deleted = self.deleted_workloads.iter();
        deleted.filter_map(move |(of, (workload, version))| {
            let mut jobs = api.all(JOB);
            let (_, job) = jobs.find(|(_, it)| uid(it) == of)?;
            // A process that started later has never seen it.
            let is_known = flight.process_started_at < *version;
            let has_pods =
                number(job, "/status/active") > 0 || self.unreported_pods.contains_key(of);
            // Without a label a user may resume it after it has stopped: its pods have no quota then.
            let mut events = api.log(JOB).iter().filter(|it| it.version > *version);
            let has_stopped = events.any(|it| {
                it.object
                    .as_ref()
                    .is_some_and(|it| uid(it) == of && is_stopped(it))
            });
            // A Job gets another workload only when it has stopped.
            let mut workloads = api.all(Kind::Workload);
            let has_another = workloads.any(|(_, it)| job_uid(it) == of);
            let is_in_use = has_pods && !has_stopped && !has_another && !has_ended(job);
            (is_known && is_in_use).then_some(workload)
        })
    }

    fn check_admission(
        &self,
        api: &Api,
        flight: &InFlight,
        name: &ObjectKey,
        workload: &Value,
    ) -> Result<(), String> {
        if workload["spec"]["active"] == false {
            return Err(format!("{name} is admitted but not active"));
        }
        if !flight.is_up_to_date {
            return Ok(());
        }
        let others = api.all(Kind::Workload).filter(|(other, _)| *other != name);
        let others = others.map(|(_, it)| &**it);
        let all = others.chain(self.deleted_but_in_use(api, flight));
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

/// Whether its controller reports that a suspended Job has no pods.
fn is_stopped(job: &Value) -> bool {
    is_true(job, "/spec/suspend")
        && condition_is_true(job, "Suspended")
        && number(job, "/status/active") == 0
}
