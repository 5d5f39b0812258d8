//! Checks of the final state, when nothing changes any more.

use crate::fields::{
    condition, condition_is_false, condition_is_true, has, holds_quota, is_deleted, is_true,
    job_owner, list, may_run, milli_cpu, number, text, uid,
};
use crate::jobs::{JOB, has_ended, is_foreign};
use crate::objects::NAMESPACE;
use crate::pods::{is_managed, job_uid, quota_uid};
use crate::queued_pods::{self, POD};
use crate::quota::{Cell, ReferenceTree, current_limits};
use crate::simulation::Simulation;
use lockkeeper_controller::{Kind, ObjectKey};
use serde_json::Value;

impl Simulation {
    pub fn check_quiescent(&self) -> Result<(), String> {
        let limits = current_limits(&self.api);
        let tree = ReferenceTree::from_objects(&limits, self.workloads());
        let excess = self.invariants.excess(&self.api);
        for (name, job) in self.api.all(JOB) {
            self.check_job(name, job)?;
            if is_managed(job) && excess.contains_key(uid(job)) {
                return Err(format!("job {name} has pods without quota"));
            }
        }
        for (name, pod) in self.api.all(POD) {
            self.check_pod(name, pod)?;
            if is_managed(pod) && excess.contains_key(&quota_uid(pod)) {
                return Err(format!("pod {name} runs without quota"));
            }
        }
        for (name, workload) in self.api.all(Kind::Workload) {
            self.check_owner(name, workload)?;
            self.check_workload(name, workload, &tree)?;
        }
        for (name, queue) in self.api.all(Kind::ClusterQueue) {
            self.check_queue(name, queue, &tree)?;
        }
        for (name, queue) in self.api.all(Kind::LocalQueue) {
            self.check_local_queue(name, queue)?;
        }
        self.check_preemptions()
    }

    pub fn workloads_of(&self, job: &Value) -> Vec<&Value> {
        let of = uid(job);
        let is_its = |it: &&Value| job_owner(it).is_some_and(|(_, uid)| uid == of);
        self.workloads().filter(is_its).collect()
    }

    fn check_job(&self, name: &ObjectKey, job: &Value) -> Result<(), String> {
        let is_ours = has(job, "/metadata/labels/lockkeeper.dev~1queue-name");
        if has_ended(job) || is_deleted(job) {
            return Ok(());
        }
        let workloads = self.workloads_of(job);
        if !is_ours {
            return if workloads.is_empty() {
                Ok(())
            } else {
                Err(format!("job {name} is not managed and has a workload"))
            };
        }
        let [workload] = workloads.as_slice() else {
            return Err(format!("job {name} has {} workloads", workloads.len()));
        };
        let runs = may_run(workload);
        if runs == is_true(job, "/spec/suspend") {
            return Err(format!(
                "job {name} is partly stopped: its workload is admitted: {runs}"
            ));
        }
        if runs {
            let given = &workload["status"]["admission"]["podSetAssignments"][0]["count"];
            let pods = number(job, "/spec/parallelism");
            if given.as_i64().is_none_or(|it| it < pods) {
                return Err(format!(
                    "job {name} has {pods} pods, and {given} were admitted"
                ));
            }
        }
        if !runs {
            if number(job, "/status/active") > 0 {
                return Err(format!("job {name} is stopped but has pods"));
            }
            self.invariants.check_restored(job)?;
        }
        Ok(())
    }

    fn check_owner(&self, name: &ObjectKey, workload: &Value) -> Result<(), String> {
        if job_owner(workload).is_none() {
            // One that the controller has created belongs to a job.
            let mut pods = self.api.all(POD);
            return match job_uid(workload) {
                "" => Ok(()),
                // The pods of a group own it together.
                of if pods.any(|(_, it)| quota_uid(it) == of) => Ok(()),
                _ if condition_is_true(workload, "Finished") => Ok(()),
                _ => Err(format!("{name} remains without an owner reference")),
            };
        }
        match self.api.owner(workload) {
            Some((kind, job)) => {
                let has_ended = if kind == POD {
                    queued_pods::has_ended(job)
                } else {
                    has_ended(job)
                };
                let is_running = !has_ended && !is_deleted(job);
                if !is_running && holds_quota(workload) && !is_deleted(job) {
                    return Err(format!("{name} holds quota, but its job has finished"));
                }
                Ok(())
            }
            None => Err(format!("{name} remains, but its job is gone")),
        }
    }

    fn check_workload(
        &self,
        name: &ObjectKey,
        workload: &Value,
        tree: &ReferenceTree,
    ) -> Result<(), String> {
        if condition_is_true(workload, "Finished") || is_deleted(workload) {
            return Ok(());
        }
        let has_admission = has(workload, "/status/admission");
        if has_admission != condition_is_true(workload, "QuotaReserved") {
            return Err(format!("{name}: admission and QuotaReserved differ"));
        }
        if holds_quota(workload) {
            return if condition_is_true(workload, "Evicted") {
                Err(format!("{name} is evicted but keeps its quota"))
            } else {
                Ok(())
            };
        }
        let quota_reserved = condition(workload, "QuotaReserved");
        if !quota_reserved.is_some_and(|it| it["status"] == "False" && it["message"] != "") {
            return Err(format!("{name} has no pending reason: {quota_reserved:?}"));
        }
        let class = text(workload, "/spec/priorityClassName");
        let has_class = class.is_empty() || self.has(Kind::PriorityClass, "", class);
        if has_class && !has(workload, "/status/priority") {
            return Err(format!("{name} has no priority"));
        }
        if workload["spec"]["active"] == false {
            return Ok(());
        }
        if self.has_foreign_manager(workload) {
            let reason = &quota_reserved.unwrap()["reason"];
            return if reason == "ManagedExternally" {
                Ok(())
            } else {
                Err(format!("{name} is managed by another controller: {reason}"))
            };
        }
        if quota_reserved.is_some_and(|it| it["reason"] == "PodGroupIncomplete") {
            return if self.is_incomplete_group(workload) {
                Ok(())
            } else {
                Err(format!("{name} waits for pods, and all exist"))
            };
        }
        let queue = self.queue_if_schedulable(workload);
        if condition_is_false(workload, "Requeued") && queue.is_some() {
            let why = condition(workload, "Requeued").unwrap();
            return Err(format!("{name} is active but never requeued: {why}"));
        }
        match queue {
            Some(queue) if has_class => self.check_pending(name, workload, queue, tree),
            _ => Ok(()),
        }
    }

    fn has_foreign_manager(&self, workload: &Value) -> bool {
        let job = job_owner(workload).map(|(job, _)| ObjectKey::new(NAMESPACE, job));
        let job = job.and_then(|name| self.api.get(JOB, &name));
        job.is_some_and(|it| is_foreign(it))
    }

    /// Checks that evicted workloads with Jobs that do not stop are reported.
    pub fn check_stuck_evictions(&self) -> Result<(), String> {
        for (name, workload) in self.api.all(Kind::Workload) {
            let evicted = condition(workload, "Evicted").filter(|it| it["status"] == "True");
            let Some(evicted) = evicted.filter(|_| holds_quota(workload)) else {
                continue;
            };
            let at: k8s_openapi::jiff::Timestamp =
                text(evicted, "/lastTransitionTime").parse().unwrap();
            let age_ms = self.api.now_ms - at.as_millisecond();
            let is_late = age_ms > self.settings.stuck_eviction_ms + 30_000;
            if is_late && !condition_is_true(workload, "EvictionStuck") {
                return Err(format!(
                    "{name} keeps its quota, and no condition reports it"
                ));
            }
        }
        Ok(())
    }

    fn has(&self, kind: Kind, namespace: &str, name: &str) -> bool {
        self.api
            .get(kind, &ObjectKey::new(namespace, name))
            .is_some()
    }

    /// The ClusterQueue of a pending workload; none if a user has to change something first.
    fn queue_if_schedulable(&self, workload: &Value) -> Option<&Value> {
        let door = text(workload, "/spec/queueName");
        let door = self
            .api
            .get(Kind::LocalQueue, &ObjectKey::new(NAMESPACE, door))?;
        let queue = text(door, "/spec/clusterQueue");
        let queue = self
            .api
            .get(Kind::ClusterQueue, &ObjectKey::new("", queue))?;
        let works = |it: &Value| matches!(text(it, "/spec/stopPolicy"), "" | "None");
        let mut flavors = cells(queue).into_iter();
        let has_flavors = flavors.all(|(flavor, _)| self.has(Kind::ResourceFlavor, "", &flavor));
        // A ClusterQueue that is being deleted admits no further workloads.
        let stays = !is_deleted(queue);
        (works(door) && works(queue) && stays && has_flavors).then_some(queue)
    }

    /// Checks that no pending workload fits.
    fn check_pending(
        &self,
        name: &ObjectKey,
        workload: &Value,
        queue: &Value,
        tree: &ReferenceTree,
    ) -> Result<(), String> {
        let settings = &self.settings.requeue;
        let is_blocked = settings.is_enabled && settings.block_admission;
        let queue_name = text(queue, "/metadata/name");
        if is_blocked || tree.is_on_cycle(queue_name) {
            return Ok(());
        }
        // The pending head of a StrictFIFO queue blocks the workloads behind it, and reserves quota of the whole tree.
        let root = tree.root(queue_name);
        let mut others = self
            .workloads()
            .filter(|it| !holds_quota(it) && !condition_is_true(it, "Finished"));
        let is_behind = others.any(|other| {
            let queue = self
                .queue_if_schedulable(other)
                .filter(|_| uid(other) != uid(workload));
            queue.is_some_and(|queue| {
                text(queue, "/spec/queueingStrategy") == "StrictFIFO"
                    && tree.root(text(queue, "/metadata/name")) == root
            })
        });
        if is_behind {
            return Ok(());
        }
        let wanted: i64 = list(workload, "/spec/podSets")
            .iter()
            .map(requested_cpu)
            .sum();
        let fits = |cell: &Cell| tree.available(queue_name, cell) >= wanted;
        if cells(queue).iter().any(fits) {
            let quota_reserved = condition(workload, "QuotaReserved");
            return Err(format!(
                "{name} fits into {queue_name} but is pending: {quota_reserved:?}"
            ));
        }
        Ok(())
    }

    fn check_queue(
        &self,
        name: &ObjectKey,
        queue: &Value,
        tree: &ReferenceTree,
    ) -> Result<(), String> {
        let status = &queue["status"];
        let holders: Vec<&Value> = self
            .workloads()
            .filter(|entry| {
                holds_quota(entry) && text(entry, "/status/admission/clusterQueue") == name.name()
            })
            .collect();
        if is_deleted(queue) && holders.is_empty() {
            return Err(format!("ClusterQueue {name} is deleted but remains"));
        }
        let count = i64::try_from(holders.len()).unwrap();
        for field in ["/reservingWorkloads", "/admittedWorkloads"] {
            if number(status, field) != count {
                return Err(format!(
                    "ClusterQueue {name}: {field} is not {count}: {status}"
                ));
            }
        }
        for flavor in list(status, "/flavorsReservation") {
            for resource in list(flavor, "/resources") {
                let cell = (text(flavor, "/name").into(), text(resource, "/name").into());
                let used = tree.usage_of(name.name(), &cell);
                if milli_cpu(&resource["total"]) != used {
                    return Err(format!(
                        "ClusterQueue {name}: {cell:?} is used {used}: {status}"
                    ));
                }
            }
        }
        let works = condition_is_true(queue, "Active");
        let mut flavors = cells(queue).into_iter();
        let is_whole = flavors.all(|(flavor, _)| self.has(Kind::ResourceFlavor, "", &flavor));
        let is_stopped = !matches!(text(queue, "/spec/stopPolicy"), "" | "None");
        let is_on_circle = tree.is_on_cycle(name.name());
        if works != (is_whole && !is_stopped && !is_on_circle && !is_deleted(queue)) {
            return Err(format!("ClusterQueue {name}: Active is {works}"));
        }
        Ok(())
    }

    fn check_local_queue(&self, name: &ObjectKey, queue: &Value) -> Result<(), String> {
        let behind = self
            .workloads()
            .filter(|it| text(it, "/spec/queueName") == name.name());
        let behind: Vec<&Value> = behind
            .filter(|it| !condition_is_true(it, "Finished"))
            .collect();
        let held = behind.iter().filter(|it| holds_quota(it)).count();
        let waits = |it: &&&Value| !holds_quota(it) && it["spec"]["active"] != false;
        let waiting = behind.iter().filter(waits).count();
        let status = &queue["status"];
        let expected = [
            ("/reservingWorkloads", held),
            ("/pendingWorkloads", waiting),
        ];
        for (field, count) in expected {
            if number(status, field) != i64::try_from(count).unwrap() {
                return Err(format!(
                    "LocalQueue {name}: {field} is not {count}: {status}"
                ));
            }
        }
        Ok(())
    }

    /// Checks that no preemption was useless.
    fn check_preemptions(&self) -> Result<(), String> {
        for preemption in &self.invariants.preemptions {
            let watcher = &self.invariants;
            let later = watcher
                .last_user_version
                .max(watcher.last_leader_change_version);
            let later = later.max(watcher.last_arrival_version);
            if preemption.version <= later {
                continue;
            }
            let mut workloads = self.workloads();
            let preemptor = workloads.find(|of| {
                uid(of) == preemption.preemptor
                    && number(of, "/metadata/generation") == preemption.generation
            });
            let waits = preemptor.is_some_and(|preemptor| {
                !condition_is_true(preemptor, "Finished")
                    && preemptor["spec"]["active"] != false
                    && !condition_is_true(preemptor, "Evicted")
            });
            let mut admitted = self.invariants.admissions.iter();
            let is_admitted = admitted
                .any(|of| of.uid == preemption.preemptor && of.version > preemption.version);
            let mut admitted = self.invariants.admissions.iter();
            let has_successor = admitted.any(|of| of.version > preemption.version);
            if waits && !is_admitted && !has_successor {
                let (victim, preemptor) = (&preemption.victim, &preemption.preemptor);
                return Err(format!(
                    "{victim} was preempted for {preemptor}, which is still pending"
                ));
            }
        }
        Ok(())
    }
}

/// The flavors and resources of a queue.
fn cells(queue: &Value) -> Vec<Cell> {
    let groups = list(queue, "/spec/resourceGroups").iter();
    let flavors = groups.flat_map(|it| list(it, "/flavors"));
    let cells = flavors.map(|it| (text(it, "/name").to_owned(), "cpu".to_owned()));
    cells.collect()
}

/// The requests of a pod set.
fn requested_cpu(pod_set: &Value) -> i64 {
    let containers = list(pod_set, "/template/spec/containers").iter();
    let each: i64 = containers
        .map(|it| milli_cpu(&it["resources"]["requests"]["cpu"]))
        .sum();
    each * pod_set["count"].as_i64().unwrap_or(1)
}
