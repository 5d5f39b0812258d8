//! What users do to queues, cohorts, flavors and classes; and how they put it right again.

use crate::fields::{has, is_deleted, text};
use crate::objects::{self, CLASSES, COHORTS, FLAVORS, QUEUES};
use crate::world::World;
use lockkeeper_controller::{Kind, Name};
use serde_json::json;

impl World {
    pub fn user_of_queues(&mut self) {
        let weights = [4, 3, 4, 2, 2, 2, 2, 2];
        match self.dice.weighted(&weights).unwrap() {
            0 => self.stop(Kind::ClusterQueue),
            1 => self.stop(Kind::LocalQueue),
            2 => self.change_quota(),
            3 => self.change_cohort(),
            4 => self.make_or_delete(Kind::ClusterQueue, QUEUES[0]),
            5 => self.make_or_delete(Kind::ResourceFlavor, FLAVORS[0]),
            6 => self.make_or_delete(Kind::PriorityClass, "low"),
            _ => {
                let cohort = *self.dice.pick(&COHORTS);
                self.make_or_delete(Kind::Cohort, cohort);
            }
        }
    }

    fn stop(&mut self, kind: Kind) {
        if let Some(queue) = self.any(kind) {
            let is_stopped = !matches!(text(&queue, "/spec/stopPolicy"), "" | "None");
            let policy = if is_stopped {
                "None"
            } else {
                self.dice.pick(&["Hold", "HoldAndDrain"])
            };
            let patch = json!({"spec": {"stopPolicy": policy}});
            self.change(kind, &queue, &patch, false);
        }
    }

    fn change_quota(&mut self) {
        if let Some(queue) = self.any(Kind::ClusterQueue) {
            let in_cohort = has(&queue, "/spec/cohortName");
            let groups = objects::resource_groups(&mut self.dice, in_cohort);
            let patch = json!({"spec": {"resourceGroups": groups}});
            self.change(Kind::ClusterQueue, &queue, &patch, false);
        }
    }

    /// Another cohort, for a queue or a cohort; a circle, perhaps.
    fn change_cohort(&mut self) {
        let name = *self.dice.pick(&COHORTS);
        if self.dice.percent(50) {
            if let Some(queue) = self.any(Kind::ClusterQueue) {
                let patch = json!({"spec": {"cohortName": name}});
                self.change(Kind::ClusterQueue, &queue, &patch, false);
            }
        } else if let Some(cohort) = self.any(Kind::Cohort) {
            let patch = json!({"spec": {"parentName": name}});
            self.change(Kind::Cohort, &cohort, &patch, false);
        }
    }

    fn make_or_delete(&mut self, kind: Kind, name: &str) {
        if let Some(object) = self.api.get(kind, &Name::new("", name)).cloned() {
            self.delete(kind, &object, false);
        } else {
            self.make(kind, name);
        }
    }

    fn make(&mut self, kind: Kind, name: &str) {
        let object = match kind {
            Kind::ClusterQueue => objects::cluster_queue(&mut self.dice, name),
            Kind::Cohort => objects::cohort(&mut self.dice, name),
            Kind::ResourceFlavor => objects::flavor(name),
            _ => {
                let value = CLASSES.iter().find(|it| it.0 == name).unwrap().1;
                objects::class(name, value)
            }
        };
        if self.api.create(kind, object).is_ok() {
            self.tell(|| format!("user creates {kind:?} {name}"));
        }
    }

    /// Whatever was stopped, broken or deleted works again, and who was deactivated is active again.
    pub fn heal(&mut self) {
        for name in FLAVORS {
            self.make(Kind::ResourceFlavor, name);
        }
        for (name, _) in CLASSES {
            self.make(Kind::PriorityClass, name);
        }
        for name in QUEUES {
            self.make(Kind::ClusterQueue, name);
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
        let workloads: Vec<Name> = self.api.names(Kind::Workload);
        for name in workloads {
            let workload = self.api.get(Kind::Workload, &name).unwrap();
            if !is_deleted(workload) {
                let patch = json!({"spec": {"active": true}});
                let _ = self.api.patch(Kind::Workload, &name, &patch, false);
            }
        }
        self.watcher.user_at = self.api.version();
        self.tell(|| "users put it right again".to_owned());
    }
}
