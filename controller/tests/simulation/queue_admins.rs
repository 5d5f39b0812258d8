//! Changes of queues, cohorts, flavors and classes by administrators, and their repair.

use crate::fields::{has, is_deleted, text};
use crate::objects::{self, CLASSES, COHORTS, FLAVORS, QUEUES};
use crate::simulation::Simulation;
use lockkeeper_controller::{Kind, ObjectKey};
use serde_json::json;

impl Simulation {
    pub fn queue_admin_action(&mut self) {
        let weights = [4, 3, 4, 2, 2, 2, 2, 2];
        match self.rng.pick_weighted(&weights).unwrap() {
            0 => self.toggle_stop_policy(Kind::ClusterQueue),
            1 => self.toggle_stop_policy(Kind::LocalQueue),
            2 => self.change_quota(),
            3 => self.change_cohort(),
            4 => self.create_or_delete(Kind::ClusterQueue, QUEUES[0]),
            5 => self.create_or_delete(Kind::ResourceFlavor, FLAVORS[0]),
            6 => self.create_or_delete(Kind::PriorityClass, "low"),
            _ => {
                let cohort = *self.rng.pick(&COHORTS);
                self.create_or_delete(Kind::Cohort, cohort);
            }
        }
    }

    fn toggle_stop_policy(&mut self, kind: Kind) {
        if let Some(queue) = self.pick_object(kind) {
            let is_stopped = !matches!(text(&queue, "/spec/stopPolicy"), "" | "None");
            let policy = if is_stopped {
                "None"
            } else {
                self.rng.pick(&["Hold", "HoldAndDrain"])
            };
            let patch = json!({"spec": {"stopPolicy": policy}});
            self.user_patch(kind, &queue, &patch, false);
        }
    }

    fn change_quota(&mut self) {
        if let Some(queue) = self.pick_object(Kind::ClusterQueue) {
            let in_cohort = has(&queue, "/spec/cohortName");
            let groups = objects::resource_groups(&mut self.rng, in_cohort);
            let patch = json!({"spec": {"resourceGroups": groups}});
            self.user_patch(Kind::ClusterQueue, &queue, &patch, false);
        }
    }

    /// Moves a queue or cohort to another cohort, possibly into a cycle.
    fn change_cohort(&mut self) {
        let name = *self.rng.pick(&COHORTS);
        if self.rng.percent(50) {
            if let Some(queue) = self.pick_object(Kind::ClusterQueue) {
                let patch = json!({"spec": {"cohortName": name}});
                self.user_patch(Kind::ClusterQueue, &queue, &patch, false);
            }
        } else if let Some(cohort) = self.pick_object(Kind::Cohort) {
            let patch = json!({"spec": {"parentName": name}});
            self.user_patch(Kind::Cohort, &cohort, &patch, false);
        }
    }

    fn create_or_delete(&mut self, kind: Kind, name: &str) {
        if let Some(object) = self.api.get(kind, &ObjectKey::new("", name)).cloned() {
            self.delete(kind, &object, false);
        } else {
            self.create_object(kind, name);
        }
    }

    fn create_object(&mut self, kind: Kind, name: &str) {
        let object = match kind {
            Kind::ClusterQueue => objects::cluster_queue(&mut self.rng, name),
            Kind::Cohort => objects::cohort(&mut self.rng, name),
            Kind::ResourceFlavor => objects::flavor(name),
            _ => {
                let value = CLASSES.iter().find(|it| it.0 == name).unwrap().1;
                objects::class(name, value)
            }
        };
        if self.api.create(kind, object).is_ok() {
            self.log(|| format!("user creates {kind:?} {name}"));
        }
    }

    /// Repairs all queues, and activates all workloads.
    pub fn repair_objects(&mut self) {
        for name in FLAVORS {
            self.create_object(Kind::ResourceFlavor, name);
        }
        for (name, _) in CLASSES {
            self.create_object(Kind::PriorityClass, name);
        }
        for name in QUEUES {
            self.create_object(Kind::ClusterQueue, name);
        }
        for kind in [Kind::ClusterQueue, Kind::LocalQueue] {
            for name in self.api.names(kind) {
                let patch = json!({"spec": {"stopPolicy": "None"}});
                let _ = self.api.patch(kind, &name, &patch, false);
            }
        }
        for name in self.api.names(Kind::Cohort) {
            let patch = json!({"spec": {"parentName": null}});
            let _ = self.api.patch(Kind::Cohort, &name, &patch, false);
        }
        let workloads: Vec<ObjectKey> = self.api.names(Kind::Workload);
        for name in workloads {
            let workload = self.api.get(Kind::Workload, &name).unwrap();
            if !is_deleted(workload) {
                let patch = json!({"spec": {"active": true}});
                let _ = self.api.patch(Kind::Workload, &name, &patch, false);
            }
        }
        self.invariants.last_user_version = self.api.version();
        self.log(|| "users repair the objects".to_owned());
    }
}
