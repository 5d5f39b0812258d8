//! What users do to Jobs and workloads.

use crate::fields::{holds, is, is_true, list, number, owner, text, uid};
use crate::jobs::{JOB, has_ended};
use crate::objects::{self, NAMESPACE, QUEUES};
use crate::world::World;
use lockkeeper_controller::{Kind, Name};
use serde_json::{Value, json};
use std::rc::Rc;

const QUEUE_LABEL: &str = "lockkeeper.dev/queue-name";
const CLASS_LABEL: &str = "lockkeeper.dev/priority-class";

impl World {
    /// A user does something.
    pub fn user(&mut self) {
        let weights = [8, 3, 2, 2, 3, 3, 2, 2, 4, 6];
        match self.dice.weighted(&weights).unwrap() {
            0 => self.create_job(),
            1 => self.create_workload(),
            2 => self.delete_job(),
            3 => self.delete_workload(),
            4 => self.relabel_job(),
            5 => self.toggle_active(),
            6 => self.scale_job(),
            7 => self.meddle_with_job(),
            8 => self.edit_workload(),
            _ => self.user_of_queues(),
        }
        self.watcher.user_at = self.api.version();
    }

    pub fn create_job(&mut self) {
        let name = if self.names > 0 && self.dice.percent(10) {
            // One that was there, perhaps.
            format!(
                "j{}",
                self.dice.within(1, i64::try_from(self.names).unwrap())
            )
        } else {
            self.new_name("j")
        };
        let job = objects::job(&mut self.dice, &name);
        self.tell(|| format!("user creates {job}"));
        let key = Name::new(NAMESPACE, &name);
        if self.api.create(JOB, job).is_ok() {
            let job = &self.api.get(JOB, &key).unwrap();
            let truth = (
                job["spec"]["template"].clone(),
                number(job, "/spec/parallelism"),
            );
            self.watcher.truth.insert(uid(job).to_owned(), truth);
        }
    }

    fn create_workload(&mut self) {
        let name = self.new_name("w");
        let workload = objects::workload(&mut self.dice, &name);
        self.tell(|| format!("user creates {workload}"));
        self.api.create(Kind::Workload, workload).unwrap();
    }

    pub fn any(&mut self, kind: Kind) -> Option<Rc<Value>> {
        let names = self.api.names(kind);
        if names.is_empty() {
            return None;
        }
        let name = self.dice.pick(&names);
        self.api.get(kind, name).map(Rc::clone)
    }

    fn delete_job(&mut self) {
        if let Some(job) = self.any(JOB) {
            let is_foreground = self.dice.percent(30);
            self.delete(JOB, &job, is_foreground);
        }
    }

    fn delete_workload(&mut self) {
        if let Some(workload) = self.any(Kind::Workload) {
            if let Some((_, job)) = owner(&workload)
                && holds(&workload)
            {
                self.watcher.meddled.insert(job.to_owned());
            }
            self.delete(Kind::Workload, &workload, false);
        }
    }

    pub fn delete(&mut self, kind: Kind, object: &Value, is_foreground: bool) {
        let name = crate::fields::name_of(object);
        self.tell(|| format!("user deletes {kind:?} {name}"));
        let _ = self.api.delete(kind, &name, None, is_foreground);
    }

    /// A change by a user. What is refused is his own fault.
    pub fn change(&mut self, kind: Kind, object: &Value, patch: &Value, is_status: bool) -> bool {
        let name = crate::fields::name_of(object);
        let done = self.api.patch(kind, &name, patch, is_status);
        self.tell(|| format!("user changes {kind:?} {name}: {patch}: {done:?}"));
        done.is_ok()
    }

    fn relabel_job(&mut self) {
        let Some(job) = self.any(JOB) else {
            return;
        };
        let labels = match self.dice.below(6) {
            0 => {
                // It is no longer ours, and runs on.
                self.watcher.meddled.insert(uid(&job).to_owned());
                json!({QUEUE_LABEL: null})
            }
            1 => json!({CLASS_LABEL: self.dice.pick(&["low", "mid", "high"])}),
            2 => json!({"anything": self.dice.below(99).to_string()}),
            3 => json!({QUEUE_LABEL: "nowhere"}),
            _ => json!({QUEUE_LABEL: self.dice.pick(&QUEUES)}),
        };
        self.change(JOB, &job, &json!({"metadata": {"labels": labels}}), false);
    }

    fn toggle_active(&mut self) {
        let Some(workload) = self.any(Kind::Workload) else {
            return;
        };
        let is_active = workload["spec"]["active"] != false;
        let patch = json!({"spec": {"active": !is_active}});
        self.change(Kind::Workload, &workload, &patch, false);
    }

    fn scale_job(&mut self) {
        let Some(job) = self.any(JOB).filter(|it| !has_ended(it)) else {
            return;
        };
        let count = self.dice.within(1, 4);
        let patch = json!({"spec": {"parallelism": count, "completions": count}});
        // What its admission has scaled comes back when it stops, but for a number that was changed since; that
        // is for single lives.
        let noted = text(
            &job,
            "/metadata/annotations/lockkeeper.dev~1original-placement",
        );
        if !noted.contains("count")
            && self.change(JOB, &job, &patch, false)
            && let Some(truth) = self.watcher.truth.get_mut(uid(&job))
        {
            truth.1 = count;
        }
    }

    fn meddle_with_job(&mut self) {
        let Some(job) = self.any(JOB).filter(|it| !has_ended(it)) else {
            return;
        };
        self.watcher.meddled.insert(uid(&job).to_owned());
        let is_suspended = is_true(&job, "/spec/suspend");
        let patch = json!({"spec": {"suspend": !is_suspended}});
        self.change(JOB, &job, &patch, false);
    }

    /// By hand, where nobody should.
    fn edit_workload(&mut self) {
        let Some(workload) = self.any(Kind::Workload) else {
            return;
        };
        let meddled = owner(&workload).map(|(_, job)| job.to_owned());
        let is_owned = meddled.is_some();
        let (patch, is_status) = match self.dice.below(8) {
            0 => (json!({"status": null}), true),
            1 => (json!({"status": {"admission": null}}), true),
            2 => (without(&workload, &[*self.dice.pick(&CONDITIONS)]), true),
            3 => (
                json!({"spec": {"queueName": self.dice.pick(&QUEUES)}}),
                false,
            ),
            4 => (with_count(&workload, self.dice.within(1, 4)), false),
            5 => (self.evicted_by_hand(&workload), true),
            6 if !is_owned && !is(&workload, "Finished") => (self.finished(&workload), true),
            6 => (without(&workload, &CONDITIONS), true),
            _ => (self.moved(&workload), true),
        };
        self.watcher.meddled.extend(meddled);
        if self.change(Kind::Workload, &workload, &patch, is_status) {
            self.doubt();
        }
    }

    fn condition(&self, workload: &Value, of: &str, reason: &str) -> Value {
        let mut conditions = list(workload, "/status/conditions").to_vec();
        conditions.retain(|it| it["type"] != of);
        conditions.push(json!({
            "type": of, "status": "True", "reason": reason, "message": "by hand",
            "lastTransitionTime": crate::fields::time(self.api.now_ms),
        }));
        json!({"status": {"conditions": conditions}})
    }

    fn evicted_by_hand(&self, workload: &Value) -> Value {
        self.condition(workload, "Evicted", "ByHand")
    }

    fn finished(&self, workload: &Value) -> Value {
        self.condition(workload, "Finished", "Succeeded")
    }

    /// Its admission names another queue.
    fn moved(&mut self, workload: &Value) -> Value {
        if !holds(workload) {
            return json!({"status": {"priority": 5}});
        }
        json!({"status": {"admission": {"clusterQueue": self.dice.pick(&QUEUES)}}})
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

fn without(workload: &Value, of: &[&str]) -> Value {
    let mut conditions = list(workload, "/status/conditions").to_vec();
    conditions.retain(|it| !of.contains(&text(it, "/type")));
    json!({"status": {"conditions": conditions}})
}

fn with_count(workload: &Value, count: i64) -> Value {
    let mut pod_sets = workload["spec"]["podSets"].clone();
    pod_sets[0]["count"] = json!(count);
    json!({"spec": {"podSets": pod_sets}})
}
