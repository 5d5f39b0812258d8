//! Pods with the queue label, their kubelets, and what users do with them.

use crate::fields::{condition, has, is_deleted, list, milli_cpu, text, time, uid};
use crate::objects::{self, CLASSES, NAMESPACE, QUEUES};
use crate::simulation::Simulation;
use k8s_openapi::jiff::Timestamp;
use lockkeeper_api::labels;
use lockkeeper_controller::{Kind, ObjectKey};
use lockkeeper_testkit::Rng;
use serde_json::{Value, json};
use std::rc::Rc;

/// A pod is a job of its own.
pub const POD: Kind = Kind::Job(2);

/// The finalizer of a pod on a node that does not respond for a while.
const DEAD_NODE: &str = "example.com/dead-node";

/// The time until a dead node responds, in milliseconds.
const DEAD_NODE_MS: i64 = 30_000;

/// The grace period of pods, in milliseconds.
pub const GRACE_MS: i64 = 10_000;

pub fn is_gated(pod: &Value) -> bool {
    let mut gates = list(pod, "/spec/schedulingGates").iter();
    gates.any(|it| it["name"] == labels::ADMISSION_GATE)
}

pub fn has_ended(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

/// The requests of a pod that runs or may start at any time, in thousandths of a CPU. A pod that is being deleted runs
/// until its grace period is over.
pub fn requests(pod: &Value, now_ms: i64) -> i64 {
    let is_over = termination_end_ms(pod).is_some_and(|end_ms| end_ms <= now_ms);
    if is_gated(pod) || has_ended(pod) || is_over {
        return 0;
    }
    let containers = list(pod, "/spec/containers").iter();
    containers
        .map(|it| milli_cpu(&it["resources"]["requests"]["cpu"]))
        .sum()
}

fn termination_end_ms(pod: &Value) -> Option<i64> {
    let end: Timestamp = text(pod, "/metadata/deletionTimestamp").parse().ok()?;
    Some(end.as_millisecond())
}

/// Validates an update of a pod.
///
/// Source: Kubernetes `pkg/apis/core/validation`, `ValidatePodUpdate`.
pub fn validate_update(before: &Value, after: &Value) -> Result<(), String> {
    let gates = |pod: &Value| list(pod, "/spec/schedulingGates").to_vec();
    let (gates_before, gates_after) = (gates(before), gates(after));
    if gates_after.iter().any(|it| !gates_before.contains(it)) {
        return Err("spec.schedulingGates: only removals are allowed".to_owned());
    }
    let tolerations = list(after, "/spec/tolerations");
    if !list(before, "/spec/tolerations")
        .iter()
        .all(|it| tolerations.contains(it))
    {
        return Err("spec.tolerations: only additions are allowed".to_owned());
    }
    let selector = |pod: &Value| {
        let selector = pod["spec"]["nodeSelector"].as_object();
        selector.cloned().unwrap_or_default()
    };
    let (selector_before, selector_after) = (selector(before), selector(after));
    let is_kept = selector_before
        .iter()
        .all(|(key, value)| selector_after.get(key) == Some(value));
    let is_allowed = !gates_before.is_empty() && is_kept;
    if selector_before != selector_after && !is_allowed {
        return Err("spec.nodeSelector: only additions to a gated pod are allowed".to_owned());
    }
    Ok(())
}

/// The name of the group of a pod; empty if it has none.
/// The group of a pod; an empty text without one.
pub fn group(pod: &Value) -> &str {
    match text(pod, "/metadata/labels/lockkeeper.dev~1pod-group-name") {
        "" => text(pod, "/spec/schedulingGroup/podGroupName"),
        label => label,
    }
}

fn pod(dice: &mut Rng, name: &str) -> Value {
    let cpu = dice.range(1, 3);
    let fate = dice.pick(&["done", "done", "forever", "forever", "fails"]);
    let mut spec = objects::template(dice, cpu)["spec"].clone();
    // Without the gate: it was created while the webhook was down.
    if !dice.percent(10) {
        spec["schedulingGates"] = json!([{"name": labels::ADMISSION_GATE}]);
    }
    let mut object = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            "labels": {labels::QUEUE_NAME: dice.pick(&QUEUES)},
            "annotations": {"fate": fate},
        },
        "spec": spec,
    });
    if dice.percent(70) {
        let (class, _) = dice.pick(&CLASSES);
        object["metadata"]["labels"][labels::PRIORITY_CLASS] = json!(class);
    }
    if dice.percent(10) {
        object["metadata"]["finalizers"] = json!([DEAD_NODE]);
    }
    object
}

impl Simulation {
    /// Runs one step of the kubelet of a pod; false if there is nothing to do now.
    pub fn step_pod(&mut self, name: &ObjectKey) -> bool {
        let Some(pod) = self.api.get(POD, name).map(Rc::clone) else {
            return false;
        };
        let key = |step: &str| (name.clone(), format!("{} {step}", uid(&pod)));
        if is_deleted(&pod) {
            if self.is_due(key("gone"), DEAD_NODE_MS) {
                let patch = json!({"metadata": {"finalizers": null}});
                self.api.patch(POD, name, &patch, false).unwrap();
                return true;
            }
            return false;
        }
        if has_ended(&pod) || has(&pod, "/spec/schedulingGates/0") {
            return false;
        }
        let ready = |status: &str| {
            json!([{"type": "Ready", "status": status, "reason": "Kubelet", "message": "",
                "lastTransitionTime": time(self.api.now_ms)}])
        };
        let status = match (
            text(&pod, "/status/phase"),
            text(&pod, "/metadata/annotations/fate"),
        ) {
            ("Running", "forever") => return false,
            ("Running", fate) => {
                let phase = if fate == "fails" {
                    "Failed"
                } else {
                    "Succeeded"
                };
                json!({"phase": phase, "conditions": ready("False")})
            }
            _ => json!({"phase": "Running", "conditions": ready("True")}),
        };
        let is_start = status["phase"] == "Running";
        let (step, pause_ms) = if is_start {
            ("start", 200)
        } else {
            ("end", 6_000)
        };
        if !self.is_due(key(step), pause_ms) {
            return false;
        }
        self.log(|| format!("  pod {name}: {status}"));
        let patch = json!({"status": status});
        self.api.patch(POD, name, &patch, true).unwrap();
        true
    }

    /// Executes a random change of pods by a user.
    pub fn pod_action(&mut self) {
        match self.rng.below(10) {
            0..=3 => self.create_pod(),
            8 | 9 => self.replace_pod(),
            4 | 5 => {
                if let Some(pod) = self.pick_object(POD) {
                    self.delete(POD, &pod, false);
                }
            }
            6 => {
                let patch = json!({"spec": {"schedulingGates": null}});
                if let Some(pod) = self.pick_object(POD) {
                    self.user_patch(POD, &pod, &patch, false);
                }
            }
            _ => {
                let queue =
                    *self
                        .rng
                        .pick(&[None, Some(QUEUES[0]), Some(QUEUES[1]), Some("nowhere")]);
                let patch = json!({"metadata": {"labels": {labels::QUEUE_NAME: queue}}});
                if let Some(pod) = self.pick_object(POD) {
                    self.user_patch(POD, &pod, &patch, false);
                }
            }
        }
    }

    /// Creates a pod, or the pods of a group, of which one may be missing or differ.
    pub fn create_pod(&mut self) {
        let name = self.new_name("p");
        let pod = pod(&mut self.rng, &name);
        if self.rng.percent(60) {
            return self.create_queued_pod(pod);
        }
        let total = 2 + self.rng.below(2);
        let group = self.new_name("g");
        let created = if self.rng.percent(20) {
            total - 1
        } else {
            total
        };
        let has_object = self.rng.percent(30);
        let is_object_first = self.rng.percent(50);
        if has_object && is_object_first {
            self.create_pod_group(&group, total);
        }
        for at in 0..created {
            let mut member = pod.clone();
            if has_object {
                member["spec"]["schedulingGroup"] = json!({"podGroupName": group});
            }
            let metadata = &mut member["metadata"];
            metadata["name"] = format!("{name}-{at}").into();
            if !has_object {
                metadata["labels"][labels::POD_GROUP_NAME] = group.clone().into();
            }
            metadata["annotations"][labels::POD_GROUP_TOTAL_COUNT] = total.to_string().into();
            if self.rng.percent(30) {
                metadata["annotations"]["fate"] = (*self.rng.pick(&["done", "fails"])).into();
            }
            if self.rng.percent(20) {
                member["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1".into();
            }
            if self.rng.percent(5) {
                let labels = &mut member["metadata"]["labels"];
                labels[labels::QUEUE_NAME] = QUEUES[0].into();
            }
            self.create_queued_pod(member);
        }
        if has_object && !is_object_first {
            self.create_pod_group(&group, total);
        }
    }

    fn create_pod_group(&mut self, name: &str, min_count: usize) {
        let group = json!({
            "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
        });
        self.log(|| format!("user creates {group}"));
        self.api.create(Kind::PodGroup, group).unwrap();
    }

    fn create_queued_pod(&mut self, pod: Value) {
        self.log(|| format!("user creates {pod}"));
        self.api.create(POD, pod).unwrap();
    }

    /// Creates a pod like another one of a group, as the owner of the group replaces it.
    fn replace_pod(&mut self) {
        let pod = self.pick_object(POD);
        let Some(pod) = pod.filter(|it| !group(it).is_empty()) else {
            return;
        };
        let mut metadata = json!({
            "name": self.new_name("p"), "namespace": NAMESPACE,
            "labels": pod["metadata"]["labels"],
            "annotations": pod["metadata"]["annotations"],
        });
        if let Some(annotations) = metadata["annotations"].as_object_mut() {
            annotations.remove(labels::POD_SET);
        }
        let mut spec = pod["spec"].clone();
        spec["schedulingGates"] = json!([{"name": labels::ADMISSION_GATE}]);
        if let Some(fields) = spec.as_object_mut() {
            // Those of the flavor.
            fields.remove("nodeSelector");
            fields.remove("tolerations");
        }
        self.create_queued_pod(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}),
        );
    }

    /// Checks a pod when nothing changes any more.
    pub fn check_pod(&self, name: &ObjectKey, pod: &Value) -> Result<(), String> {
        if has_ended(pod) || is_deleted(pod) {
            return Ok(());
        }
        if !group(pod).is_empty() {
            return self.check_member(name, pod);
        }
        let workloads = self.workloads_of(pod);
        if !crate::pods::is_managed(pod) {
            return match workloads.len() {
                0 => Ok(()),
                _ => Err(format!("pod {name} is not managed and has a workload")),
            };
        }
        let [workload] = workloads.as_slice() else {
            return Err(format!("pod {name} has {} workloads", workloads.len()));
        };
        let runs = crate::fields::may_run(workload);
        if runs == is_gated(pod) {
            return Err(format!(
                "pod {name} and its workload differ: admitted is {runs}"
            ));
        }
        Ok(())
    }

    /// Whether fewer pods of the group of a workload wait or have succeeded than it needs.
    pub fn is_incomplete_group(&self, workload: &Value) -> bool {
        let of = crate::pods::job_uid(workload);
        let pods = self.api.all(POD);
        let pods = pods.filter(|(_, it)| crate::pods::quota_uid(it) == of);
        let takes_part = |pod: &Value| {
            is_gated(pod) && !is_deleted(pod) || text(pod, "/status/phase") == "Succeeded"
        };
        let mut total = usize::MAX;
        let mut present = 0;
        let mut queues = std::collections::BTreeSet::new();
        for (_, pod) in pods.filter(|(_, it)| crate::pods::is_managed(it) && takes_part(it)) {
            let annotation = &pod["metadata"]["annotations"][labels::POD_GROUP_TOTAL_COUNT];
            total = annotation.as_str().unwrap_or_default().parse().unwrap();
            present += 1;
            queues.insert(text(pod, "/metadata/labels/lockkeeper.dev~1queue-name"));
        }
        // Those of another queue do not take part.
        present < total || queues.len() > 1
    }

    /// Checks a pod of a group: it runs only while its group is admitted. One that waits has a workload, or a reason.
    fn check_member(&self, name: &ObjectKey, pod: &Value) -> Result<(), String> {
        if !crate::pods::is_managed(pod) {
            return Ok(());
        }
        let of = crate::pods::quota_uid(pod);
        let mut workloads = self.api.all(Kind::Workload);
        let workload = workloads.find(|(_, it)| crate::pods::job_uid(it) == of);
        let runs = workload.is_some_and(|(_, it)| crate::fields::may_run(it));
        if !is_gated(pod) && !runs {
            return Err(format!("pod {name} runs, and its group does not"));
        }
        let report = condition(pod, labels::POD_GROUP_CONDITION);
        let is_excluded = report.is_some_and(|it| it["status"] == "False");
        match workload {
            None if !is_excluded => Err(format!("pod {name} has neither a workload nor a reason")),
            Some(_) if runs && is_gated(pod) && !is_excluded => {
                Err(format!("pod {name} waits, and its group is admitted"))
            }
            _ => Ok(()),
        }
    }
}
