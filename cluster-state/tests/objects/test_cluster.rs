//! A small cluster for the tests of fields: queues of cpu, workloads, and cycles at known times.

use crate::{lockkeeper_object, object, yaml};
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_cluster_state::{ClusterState, Completeness};
use lockkeeper_preemption::requeue::RequeueSettings;
use lockkeeper_preemption::{Decision, Entry, Options};
use serde_json::{Value, json};
use std::sync::Arc;

/// Objects, and the time of the next cycle. Flavors that are not set exist and have an empty spec.
pub struct Cluster {
    pub objects: ClusterState,
    pub now_ms: i64,
}

/// The fields of a YAML mapping without its braces.
pub fn fields(text: &str) -> Value {
    yaml(&format!("{{{text}}}"))
}

impl Cluster {
    pub fn new() -> Self {
        Self::with_options(Options::default())
    }

    pub fn with_options(options: Options) -> Self {
        let requeue = RequeueSettings::default();
        Self {
            objects: ClusterState::new(options, requeue, Completeness::Partial),
            now_ms: 100_000,
        }
    }

    /// Sets a ClusterQueue for cpu and a LocalQueue of the same name. `flavors` has names and quotas.
    pub fn set_queue(&mut self, name: &str, flavors: &[(&str, &str)], more: &str) {
        let mut spec = json!({"namespaceSelector": {}, "resourceGroups": resource_groups(flavors)});
        for (key, value) in fields(more).as_object().unwrap() {
            spec[key] = value.clone();
        }
        let queue: ClusterQueue = object(&lockkeeper_object("ClusterQueue", None, name, &spec));
        self.objects.set_cluster_queue(Arc::new(queue)).unwrap();
        let spec = json!({"clusterQueue": name});
        let local: LocalQueue = object(&lockkeeper_object("LocalQueue", Some("ns"), name, &spec));
        self.objects.set_local_queue(&local);
    }

    pub fn set_cohort(&mut self, name: &str, flavors: &[(&str, &str)], more: &str) {
        let mut spec = fields(more);
        if !flavors.is_empty() {
            spec["resourceGroups"] = resource_groups(flavors);
        }
        let cohort: Cohort = object(&lockkeeper_object("Cohort", None, name, &spec));
        self.objects.set_cohort(&cohort).unwrap();
    }

    pub fn set_flavor(&mut self, name: &str, spec: &str) {
        let spec = fields(spec);
        let flavor: ResourceFlavor =
            object(&lockkeeper_object("ResourceFlavor", None, name, &spec));
        self.objects.set_resource_flavor(&flavor);
    }

    pub fn set_workload(&mut self, workload: &Value) {
        let workload: Workload = object(workload);
        self.objects.set_workload(Arc::new(workload)).unwrap();
    }

    pub fn add_pending(&mut self, name: &str, queue: &str, cpu: u32, priority: i32) {
        self.set_workload(&pending(name, queue, cpu, priority));
    }

    /// Adds a workload that has been admitted since the 90th second.
    pub fn add_admitted(&mut self, name: &str, queue: &str, cpu: u32, priority: i32) {
        self.set_workload(&admitted(&pending(name, queue, cpu, priority), queue));
    }

    /// Runs a cycle one second later, and returns the decisions in order.
    pub fn run_cycle(&mut self) -> Vec<String> {
        self.now_ms += 1_000;
        let cycle = self.objects.next_cycle(self.now_ms, false);
        cycle.entries.iter().map(|it| self.text(it)).collect()
    }

    fn text(&self, entry: &Entry) -> String {
        let state = self.objects.state();
        let name = state.workload_name(entry.workload);
        let details: Vec<&str> = match &entry.decision {
            Decision::Preempt(victims) => {
                let victims = victims.iter();
                victims.map(|it| state.workload_name(it.workload)).collect()
            }
            Decision::Admit => {
                let usage = entry.assignment().usage.iter();
                usage.map(|(of, _)| state.flavor_name(of.flavor)).collect()
            }
            _ => Vec::new(),
        };
        let text = format!("{name} {} {}", entry.decision.as_str(), details.join(" "));
        text.replace("ns/", "").trim_end().to_owned()
    }
}

pub fn resource_groups(flavors: &[(&str, &str)]) -> Value {
    let flavors = flavors.iter().map(|(name, quota)| {
        let mut quota = fields(quota);
        quota["name"] = "cpu".into();
        json!({"name": name, "resources": [quota]})
    });
    json!([{"coveredResources": ["cpu"], "flavors": flavors.collect::<Vec<_>>()}])
}

pub fn pending(name: &str, queue: &str, cpu: u32, priority: i32) -> Value {
    let container = json!({"name": "a", "resources": {"requests": {"cpu": cpu}}});
    let spec = json!({"queueName": queue, "podSets": [{"template": {"spec": {"containers": [container]}}}]});
    let mut workload = lockkeeper_object("Workload", Some("ns"), name, &spec);
    workload["metadata"]["uid"] = name.into();
    workload["metadata"]["creationTimestamp"] = "1970-01-01T00:01:30Z".into();
    workload["status"] = json!({"priority": priority});
    workload
}

pub fn admitted(workload: &Value, queue: &str) -> Value {
    let mut workload = workload.clone();
    let container = &workload["spec"]["podSets"][0]["template"]["spec"]["containers"][0];
    let cpu = container["resources"]["requests"]["cpu"].to_string();
    workload["status"]["admission"] = json!({"clusterQueue": queue, "podSetAssignments": [
        {"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": cpu}},
    ]});
    workload["status"]["conditions"] = json!([{
        "type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "",
        "lastTransitionTime": "1970-01-01T00:01:30Z",
    }]);
    workload
}
