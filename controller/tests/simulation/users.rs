//! Changes of Jobs and workloads by users.

use crate::fields::{condition_is_true, holds_quota, is_deleted, is_true, list, number, text, uid};
use crate::jobs::{JOB, has_ended};
use crate::objects::{self, NAMESPACE, QUEUES};
use crate::pods::{OrphanedPods, job_uid, requests};
use crate::process::ControllerProcess;
use crate::simulation::Simulation;
use crate::user_history::DeletedWorkload;
use lockkeeper_controller::{Kind, ObjectKey};
use serde_json::{Value, json};
use std::rc::Rc;

const QUEUE_LABEL: &str = "lockkeeper.dev/queue-name";
const CLASS_LABEL: &str = "lockkeeper.dev/priority-class";

impl Simulation {
    /// Executes a random change by a user.
    pub fn user_action(&mut self) {
        let pods = if self.has_pods() { 6 } else { 0 };
        let weights = [8, 3, 2, 2, 3, 3, 2, 2, 4, 6, 2, 2, 2, pods];
        let version = self.api.version();
        match self.rng.pick_weighted(&weights).unwrap() {
            0 => self.create_job(),
            1 => self.create_workload(),
            2 => self.delete_job(),
            3 => self.delete_workload(),
            4 => self.relabel_job(),
            5 => self.toggle_active(),
            6 => self.scale_job(),
            7 => self.toggle_job_suspend(),
            8 => self.edit_workload(),
            10 => self.edit_job_owner(),
            11 => self.edit_workload_owner(),
            12 => self.orphan_job(),
            13 => self.pod_action(),
            _ => self.queue_admin_action(),
        }
        self.invariants.users.record_changes(&self.api, version);
        self.invariants.last_user_version = self.api.version();
    }

    pub fn create_job(&mut self) {
        let name = if self.last_name_number > 0 && self.rng.percent(10) {
            // Sometimes the name of an earlier object.
            format!(
                "j{}",
                self.rng
                    .range(1, i64::try_from(self.last_name_number).unwrap())
            )
        } else {
            self.new_name("j")
        };
        let job = objects::job(&mut self.rng, &name);
        self.log(|| format!("user creates {job}"));
        self.create_given_job(&ObjectKey::new(NAMESPACE, &name), job);
    }

    /// Creates a job, unless one of its name exists.
    pub fn create_given_job(&mut self, key: &ObjectKey, job: Value) {
        if self.api.create(JOB, job).is_ok() {
            let job = &self.api.get(JOB, key).unwrap();
            let truth = (
                job["spec"]["template"].clone(),
                number(job, "/spec/parallelism"),
            );
            self.invariants
                .original_jobs
                .insert(uid(job).to_owned(), truth);
        }
    }

    fn create_workload(&mut self) {
        let name = self.new_name("w");
        let workload = objects::workload(&mut self.rng, &name);
        self.log(|| format!("user creates {workload}"));
        self.api.create(Kind::Workload, workload).unwrap();
    }

    pub fn pick_object(&mut self, kind: Kind) -> Option<Rc<Value>> {
        let names = self.api.names(kind);
        if names.is_empty() {
            return None;
        }
        let name = self.rng.pick(&names);
        self.api.get(kind, name).map(Rc::clone)
    }

    fn delete_job(&mut self) {
        if let Some(job) = self.pick_object(JOB) {
            let is_foreground = self.rng.percent(30);
            self.delete(JOB, &job, is_foreground);
        }
    }

    fn delete_workload(&mut self) {
        if let Some(workload) = self.pick_object(Kind::Workload) {
            self.delete(Kind::Workload, &workload, false);
            if holds_quota(&workload) {
                let key = (Kind::Workload, crate::fields::object_key(&workload));
                let knows = |it: &&ControllerProcess| {
                    let known = it.view.get(&key);
                    known.is_some_and(|it| uid(it) == uid(&workload))
                };
                let processes = self.processes.iter().filter(knows);
                let deleted = DeletedWorkload {
                    object: (*workload).clone(),
                    processes: processes.map(|it| it.number).collect(),
                    version: self.api.version(),
                };
                let job = job_uid(&workload).to_owned();
                self.invariants.users.deleted_workloads.insert(job, deleted);
            }
        }
    }

    pub fn delete(&mut self, kind: Kind, object: &Value, is_foreground: bool) {
        let name = crate::fields::object_key(object);
        self.log(|| format!("user deletes {kind:?} {name}"));
        let _ = self.api.delete(kind, &name, None, is_foreground);
    }

    /// A change by a user; a rejection is ignored.
    pub fn user_patch(
        &mut self,
        kind: Kind,
        object: &Value,
        patch: &Value,
        is_status: bool,
    ) -> bool {
        let name = crate::fields::object_key(object);
        let done = self.api.patch(kind, &name, patch, is_status);
        self.log(|| format!("user changes {kind:?} {name}: {patch}: {done:?}"));
        done.is_ok()
    }

    fn relabel_job(&mut self) {
        let Some(job) = self.pick_object(JOB) else {
            return;
        };
        let labels = match self.rng.below(6) {
            0 => json!({QUEUE_LABEL: null}),
            1 => json!({CLASS_LABEL: self.rng.pick(&["low", "mid", "high"])}),
            2 => json!({"anything": self.rng.below(99).to_string()}),
            3 => json!({QUEUE_LABEL: "nowhere"}),
            _ => json!({QUEUE_LABEL: self.rng.pick(&QUEUES)}),
        };
        self.user_patch(JOB, &job, &json!({"metadata": {"labels": labels}}), false);
    }

    fn toggle_active(&mut self) {
        let Some(workload) = self.pick_object(Kind::Workload) else {
            return;
        };
        let is_active = workload["spec"]["active"] != false;
        let patch = json!({"spec": {"active": !is_active}});
        self.user_patch(Kind::Workload, &workload, &patch, false);
    }

    fn scale_job(&mut self) {
        let Some(job) = self.pick_object(JOB).filter(|it| !has_ended(it)) else {
            return;
        };
        let count = self.rng.range(1, 4);
        let patch = json!({"spec": {"parallelism": count, "completions": count}});
        // Stopping restores the fields that the admission changed, except for a count that was changed since;
        // `job_resize` tests that.
        let noted = text(
            &job,
            "/metadata/annotations/lockkeeper.dev~1original-placement",
        );
        if !noted.contains("count")
            && self.user_patch(JOB, &job, &patch, false)
            && let Some(truth) = self.invariants.original_jobs.get_mut(uid(&job))
        {
            truth.1 = count;
        }
    }

    fn toggle_job_suspend(&mut self) {
        let Some(job) = self.pick_object(JOB).filter(|it| !has_ended(it)) else {
            return;
        };
        let is_suspended = is_true(&job, "/spec/suspend");
        let patch = json!({"spec": {"suspend": !is_suspended}});
        self.user_patch(JOB, &job, &patch, false);
    }

    /// Edits fields by hand that belong to the controller.
    fn edit_workload(&mut self) {
        let Some(workload) = self.pick_object(Kind::Workload) else {
            return;
        };
        let is_owned = !job_uid(&workload).is_empty();
        let (patch, is_status) = match self.rng.below(8) {
            0 => (json!({"status": null}), true),
            1 => (json!({"status": {"admission": null}}), true),
            2 => (
                without_conditions_patch(&workload, &[*self.rng.pick(&CONDITIONS)]),
                true,
            ),
            3 => (
                json!({"spec": {"queueName": self.rng.pick(&QUEUES)}}),
                false,
            ),
            4 => (pod_count_patch(&workload, self.rng.range(1, 4)), false),
            5 => (self.evicted_patch(&workload), true),
            6 if !is_owned && !condition_is_true(&workload, "Finished") => {
                (self.finished_patch(&workload), true)
            }
            6 => (without_conditions_patch(&workload, &CONDITIONS), true),
            _ => (self.moved_admission_patch(&workload), true),
        };
        if self.user_patch(Kind::Workload, &workload, &patch, is_status) {
            self.invariants.users.record_edit(&self.api, workload);
        }
    }

    /// Claims that another object controls a Job, or withdraws the claim.
    fn edit_job_owner(&mut self) {
        let (Some(job), Some(other)) = (self.pick_object(JOB), self.pick_object(JOB)) else {
            return;
        };
        let owners = match self.rng.below(3) {
            0 => json!(null),
            1 => json!([objects::foreign_owner(&mut self.rng)]),
            _ => json!([{
                "apiVersion": "batch/v1", "kind": "Job", "controller": true,
                "name": text(&other, "/metadata/name"), "uid": uid(&other),
            }]),
        };
        let patch = json!({"metadata": {"ownerReferences": owners}});
        self.user_patch(JOB, &job, &patch, false);
    }

    fn edit_workload_owner(&mut self) {
        let Some(workload) = self.pick_object(Kind::Workload) else {
            return;
        };
        let owners = if self.rng.percent(50) {
            json!(null)
        } else {
            json!([objects::foreign_owner(&mut self.rng)])
        };
        let patch = json!({"metadata": {"ownerReferences": owners}});
        self.user_patch(Kind::Workload, &workload, &patch, false);
    }

    /// Deletes a Job without its pods and its workload.
    fn orphan_job(&mut self) {
        let Some(job) = self.pick_object(JOB).filter(|it| !is_deleted(it)) else {
            return;
        };
        let unreported = self.invariants.unreported_pods.remove(uid(&job));
        let mut left = (*job).clone();
        // No controller creates further pods.
        left["spec"]["suspend"] = json!(true);
        let pods = OrphanedPods {
            milli_cpu: requests(&left, unreported.map_or(0, |(pods, _)| pods)),
            end_ms: self.api.now_ms + self.rng.range(1, 100_000),
        };
        let name = crate::fields::object_key(&job);
        self.log(|| {
            format!(
                "user deletes {name} without its {}m of pods",
                pods.milli_cpu
            )
        });
        self.api.delete_with_orphans(&name, pods);
    }

    fn condition_patch(&self, workload: &Value, of: &str, reason: &str) -> Value {
        let mut conditions = list(workload, "/status/conditions").to_vec();
        conditions.retain(|it| it["type"] != of);
        conditions.push(json!({
            "type": of, "status": "True", "reason": reason, "message": "by hand",
            "lastTransitionTime": crate::fields::time(self.api.now_ms),
        }));
        json!({"status": {"conditions": conditions}})
    }

    fn evicted_patch(&self, workload: &Value) -> Value {
        self.condition_patch(workload, "Evicted", "ByHand")
    }

    fn finished_patch(&self, workload: &Value) -> Value {
        self.condition_patch(workload, "Finished", "Succeeded")
    }

    /// The patch of an admission to another queue.
    fn moved_admission_patch(&mut self, workload: &Value) -> Value {
        if !holds_quota(workload) {
            return json!({"status": {"priority": 5}});
        }
        json!({"status": {"admission": {"clusterQueue": self.rng.pick(&QUEUES)}}})
    }
}

const CONDITIONS: [&str; 6] = [
    "QuotaReserved",
    "Admitted",
    "Evicted",
    "Requeued",
    "PodsReady",
    "Preempted",
];

fn without_conditions_patch(workload: &Value, of: &[&str]) -> Value {
    let mut conditions = list(workload, "/status/conditions").to_vec();
    conditions.retain(|it| !of.contains(&text(it, "/type")));
    json!({"status": {"conditions": conditions}})
}

fn pod_count_patch(workload: &Value, count: i64) -> Value {
    let mut pod_sets = workload["spec"]["podSets"].clone();
    pod_sets[0]["count"] = json!(count);
    json!({"spec": {"podSets": pod_sets}})
}
