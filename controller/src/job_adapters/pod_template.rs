//! Strips pod templates to the fields that decisions use: requests, placement and preemptibility.

use k8s_openapi::api::core::v1::{Affinity, Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::labels;

/// The labels of pods that a decision reads.
const DECISION_LABELS: [&str; 2] = [labels::PREEMPTIBLE, labels::CAN_PREEMPT];

/// The template without the fields that no decision uses. Two stripped templates are equal if and only if
/// scheduling treats their pods alike.
#[must_use]
pub fn strip_template(template: PodTemplateSpec) -> PodTemplateSpec {
    PodTemplateSpec {
        metadata: template.metadata.and_then(strip_metadata),
        spec: template.spec.map(|spec| PodSpec {
            containers: spec.containers.into_iter().map(strip_container).collect(),
            init_containers: spec
                .init_containers
                .map(|all| all.into_iter().map(strip_container).collect()),
            node_selector: spec.node_selector.filter(|it| !it.is_empty()),
            affinity: spec
                .affinity
                .and_then(|it| it.node_affinity)
                .map(|nodes| Affinity {
                    node_affinity: Some(nodes),
                    ..Affinity::default()
                }),
            tolerations: spec.tolerations.filter(|it| !it.is_empty()),
            overhead: spec.overhead,
            // Any other policy permits preemption, as an absent one does.
            preemption_policy: spec.preemption_policy.filter(|it| it == "Never"),
            resources: spec.resources,
            ..PodSpec::default()
        }),
    }
}

/// Whether a decision reads a label of pods.
pub(super) fn is_decision_label(key: &str) -> bool {
    DECISION_LABELS.contains(&key)
}

/// The labels that a decision reads; `None` without any.
fn strip_metadata(metadata: ObjectMeta) -> Option<ObjectMeta> {
    let mut labels = metadata.labels?;
    labels.retain(|key, _| is_decision_label(key));
    (!labels.is_empty()).then(|| ObjectMeta {
        labels: Some(labels),
        ..ObjectMeta::default()
    })
}

fn strip_container(container: Container) -> Container {
    Container {
        resources: container.resources,
        restart_policy: container.restart_policy,
        ..Container::default()
    }
}

/// Whether two pods have the same requests; where they may run is not compared. Both are stripped templates.
pub(crate) fn has_same_requests(one: Option<&PodSpec>, other: Option<&PodSpec>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            one.containers == other.containers
                && one.init_containers == other.init_containers
                && one.overhead == other.overhead
                && one.resources == other.resources
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "tests fail by panicking"
    )]

    use super::*;
    use lockkeeper_api::{ClusterQueue, Workload};
    use lockkeeper_cluster_state::{Flavors, pod_sets, preemption_labels};
    use lockkeeper_preemption::State;
    use lockkeeper_testkit::Rng;
    use serde_json::{Value, json};
    use std::sync::Arc;

    const CASES: usize = 2_000;

    fn random_container(rng: &mut Rng) -> Value {
        let mut container =
            json!({"name": "a", "image": "registry.example.com/train:1", "env": [{"name": "A"}]});
        if !rng.one_in(4) {
            let list = if rng.one_in(3) { "limits" } else { "requests" };
            let resources = json!({list: {"cpu": rng.range(0, 4), "memory": "1Gi"}});
            container["resources"] = resources;
        }
        container
    }

    fn random_template(rng: &mut Rng) -> Value {
        let mut spec = json!({"restartPolicy": "Never", "containers": [random_container(rng)]});
        if rng.one_in(3) {
            let mut sidecar = random_container(rng);
            if rng.one_in(2) {
                sidecar["restartPolicy"] = "Always".into();
            }
            spec["initContainers"] = json!([sidecar]);
        }
        if rng.one_in(3) {
            spec["overhead"] = json!({"cpu": "250m"});
        }
        if rng.one_in(3) {
            spec["resources"] = json!({"requests": {"cpu": rng.range(1, 9)}});
        }
        if rng.one_in(3) {
            spec["nodeSelector"] = json!({"zone": rng.pick(&["a", "b"])});
        }
        if rng.one_in(3) {
            spec["tolerations"] = json!([{"key": "spot", "operator": "Exists"}]);
        }
        if rng.one_in(3) {
            let term =
                json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]});
            spec["affinity"] = json!({
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}},
                "podAntiAffinity": {},
            });
        }
        if rng.one_in(2) {
            spec["preemptionPolicy"] = (*rng.pick(&["Never", "PreemptLowerPriority"])).into();
        }
        let mut labels = json!({"app": "train"});
        for label in DECISION_LABELS {
            if rng.one_in(2) {
                labels[label] = (*rng.pick(&["true", "false", "", "False"])).into();
            }
        }
        json!({"metadata": {"labels": labels, "annotations": {"a": "b"}}, "spec": spec})
    }

    /// Everything that the core gets of the pods of a workload.
    #[test]
    fn strip_template_keeps_what_the_core_reads() {
        let queue: ClusterQueue = serde_json::from_value(json!({
            "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "ClusterQueue", "metadata": {"name": "q"},
            "spec": {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
                {"name": "a", "resources": [{"name": "cpu", "nominalQuota": 1}]},
                {"name": "b", "resources": [{"name": "cpu", "nominalQuota": 1}]},
            ]}]},
        }))
        .unwrap();
        let flavors: Flavors = serde_json::from_value(json!({
            "a": {"nodeLabels": {"zone": "a"}},
            "b": {"nodeLabels": {"zone": "b"}, "nodeTaints": [{"key": "spot", "value": "yes", "effect": "NoSchedule"}]},
        }))
        .unwrap();
        let mut rng = Rng::new(7);
        let mut classes = std::collections::BTreeSet::new();
        for case in 0..CASES {
            let template = random_template(&mut rng);
            let whole: Workload = serde_json::from_value(json!({
                "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Workload", "metadata": {"name": "w"},
                "spec": {"podSets": [{"count": 2, "template": template}]},
            }))
            .unwrap();
            let mut stripped = whole.clone();
            let pod_set = &mut stripped.spec.pod_sets[0];
            pod_set.template = Arc::new(strip_template((*pod_set.template).clone()));
            let read = |workload: &Workload| {
                let groups = &queue.spec.resource_groups;
                let mut state = State::default();
                for name in ["cpu", "memory"] {
                    state.resource(name);
                }
                let pods = pod_sets(workload, &mut state, groups, &flavors, &[]).unwrap();
                (pods, preemption_labels(workload))
            };
            assert_eq!(read(&whole), read(&stripped), "case {case}: {template:#}");
            classes.insert(preemption_labels(&whole));
        }
        assert_eq!(
            classes.len(),
            18,
            "every combination of labels and policy occurs"
        );
    }
}
