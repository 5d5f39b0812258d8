//! The controller of Jobs, and the pods of the Jobs.

use crate::fields::{condition_is_true, has, is_deleted, is_true, list, number, text, time};
use crate::objects::POD_FATE_ANNOTATION;
use crate::pods::wanted_pods;
use crate::simulation::Simulation;
use lockkeeper_controller::{Kind, ObjectKey};
use serde_json::{Value, json};
use std::rc::Rc;

pub const JOB: Kind = Kind::Job(0);

/// The delay of its status updates after a conflict, in milliseconds.
const STATUS_DELAY_MS: i64 = 300;

/// Whether a Job has ended.
pub fn has_ended(job: &Value) -> bool {
    condition_is_true(job, "Complete") || condition_is_true(job, "Failed")
}

/// Whether another controller manages a Job; none does here.
pub fn is_foreign(job: &Value) -> bool {
    has(job, "/spec/managedBy")
}

/// Whether the controller of a Job does not respond until it is repaired: never, or not to a suspension.
pub fn is_unresponsive(job: &Value) -> bool {
    matches!(text(job, POD_FATE_ANNOTATION), "silent" | "mute")
}

/// Whether the controller of a Job has responded to a start.
fn has_status(job: &Value) -> bool {
    has(job, "/status/startTime")
}

impl Simulation {
    /// Runs one step for one Job; false if there is nothing to do now.
    pub fn step_job(&mut self, name: &ObjectKey) -> bool {
        let Some(job) = self.api.get(JOB, name).map(Rc::clone) else {
            return false;
        };
        if has_ended(&job) || is_deleted(&job) || is_foreign(&job) {
            return false;
        }
        let fate = text(&job, POD_FATE_ANNOTATION);
        let is_mute = fate == "mute" && is_true(&job, "/spec/suspend") && has_status(&job);
        if !self.are_jobs_repaired && (fate == "silent" || is_mute) {
            return false;
        }
        let status = if is_true(&job, "/spec/suspend") {
            self.suspended(&job)
        } else {
            self.running(name, &job)
        };
        let Some(status) = status else {
            return false;
        };
        self.log(|| format!("  job {name}: {status}"));
        let patch = json!({"status": status});
        self.api.patch(JOB, name, &patch, true).unwrap();
        true
    }

    fn suspended(&mut self, job: &Value) -> Option<Value> {
        let unsaid = self
            .invariants
            .unreported_pods
            .remove(text(job, "/metadata/uid"));
        let unsaid = unsaid.map(|(made, _)| made);
        if let Some(made) = unsaid.filter(|made| *made > number(job, "/status/active")) {
            // It counts the pods; the conditions follow in a later update.
            return Some(json!({"active": made}));
        }
        if number(job, "/status/active") > 0 && self.rng.percent(50) {
            let left = number(job, "/status/active") - 1;
            // Some nodes are dead: their pods are never reported as gone.
            let hang = number(job, "/status/terminating") + i64::from(self.rng.percent(30));
            return Some(json!({"active": left, "ready": 0, "terminating": hang}));
        }
        let is_known = condition_is_true(job, "Suspended") && number(job, "/status/active") == 0;
        let conditions = self.with(job, "Suspended", "True", "JobSuspended");
        let mut status = json!({"active": 0, "ready": 0, "conditions": conditions});
        if self.api.declared.is_some() {
            // The start time of a Job is removed by its user; the controllers of other kinds do that.
            status["startTime"] = Value::Null;
        }
        (!is_known).then_some(status)
    }

    fn running(&mut self, name: &ObjectKey, job: &Value) -> Option<Value> {
        let now = time(self.api.now_ms);
        if !has(job, "/status/startTime") || condition_is_true(job, "Suspended") {
            let made = wanted_pods(job);
            if self.rng.percent(40) {
                // It creates the pods, but its status update comes late because of a conflict.
                let uid = text(job, "/metadata/uid").to_owned();
                let now_ms = self.api.now_ms;
                let unreported = &mut self.invariants.unreported_pods;
                let since_ms = unreported
                    .get(&uid)
                    .map_or(now_ms, |(_, since_ms)| *since_ms);
                unreported.insert(uid, (made, since_ms));
                self.job_timers
                    .insert((self.api.now_ms + STATUS_DELAY_MS, name.clone()));
                return None;
            }
            self.invariants
                .unreported_pods
                .remove(text(job, "/metadata/uid"));
            let conditions = self.with(job, "Suspended", "False", "JobResumed");
            return Some(json!({"startTime": now, "active": made, "conditions": conditions}));
        }
        let wanted = wanted_pods(job);
        let active = number(job, "/status/active");
        if active < wanted {
            let to = self.rng.range(active + 1, wanted);
            return Some(json!({"active": to}));
        }
        if active > wanted {
            let ready = number(job, "/status/ready").min(wanted);
            return Some(json!({"active": wanted, "ready": ready}));
        }
        let fate = text(job, POD_FATE_ANNOTATION).to_owned();
        let ready = number(job, "/status/ready");
        let uid = text(job, "/metadata/uid").to_owned();
        let started = text(job, "/status/startTime").to_owned();
        let key = (name.clone(), format!("{uid} {started} {ready}"));
        let pause_ms = match fate.as_str() {
            "unready" | "silent" => return None,
            "late" if ready < wanted => 9_000,
            "forever" | "late" | "mute" if ready == wanted => return None,
            "flaky" if ready == wanted => 4_000,
            _ if ready < wanted => 200,
            _ => 6_000,
        };
        if !self.is_due(key, pause_ms) {
            return None;
        }
        if ready < wanted {
            // A job that lost its pods once does not lose them again.
            return Some(json!({"ready": self.rng.range(ready + 1, wanted)}));
        }
        let has_lost = text(job, "/metadata/annotations/lost") == started;
        if fate == "flaky" && !has_lost {
            let lost = json!({"metadata": {"annotations": {"lost": started}}});
            self.api.patch(JOB, name, &lost, false).unwrap();
            return Some(json!({"ready": wanted - 1}));
        }
        if wanted > 1 && self.rng.percent(40) {
            // One of the last pods succeeds before the others.
            let succeeded = number(job, "/status/succeeded") + 1;
            return Some(
                json!({"active": wanted - 1, "ready": wanted - 1, "succeeded": succeeded}),
            );
        }
        let end = if fate == "fails" {
            "Failed"
        } else {
            "Complete"
        };
        let conditions = self.with(job, end, "True", "Ended");
        let succeeded = number(job, "/status/succeeded") + wanted;
        Some(json!({"active": 0, "ready": 0, "succeeded": succeeded, "conditions": conditions}))
    }

    fn with(&self, job: &Value, of: &str, status: &str, reason: &str) -> Vec<Value> {
        let mut conditions = list(job, "/status/conditions").to_vec();
        let is_new = status == "True" || conditions.iter().any(|it| it["type"] == of);
        conditions.retain(|it| it["type"] != of);
        if is_new {
            conditions.push(json!({
                "type": of, "status": status, "reason": reason, "message": "",
                "lastTransitionTime": time(self.api.now_ms),
            }));
        }
        conditions
    }
}
