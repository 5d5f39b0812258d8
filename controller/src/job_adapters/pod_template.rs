//! Strips pod templates to the fields that decisions use: requests, placement and preemptibility.

use k8s_openapi::api::core::v1::{
    Affinity, Container, ContainerPort, PodSpec, PodTemplateSpec, ResourceRequirements,
};
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
            containers: strip_containers(spec.containers, spec.host_network),
            init_containers: spec
                .init_containers
                .filter(|it| !it.is_empty())
                .map(|all| strip_containers(all, spec.host_network)),
            node_selector: spec.node_selector.filter(|it| !it.is_empty()),
            affinity: spec
                .affinity
                .and_then(|it| it.node_affinity)
                .map(|nodes| Affinity {
                    node_affinity: Some(nodes),
                    ..Affinity::default()
                }),
            tolerations: spec.tolerations.filter(|it| !it.is_empty()),
            overhead: spec.overhead.filter(|it| !it.is_empty()),
            // Any other policy permits preemption, as an absent one does.
            preemption_policy: spec.preemption_policy.filter(|it| it == "Never"),
            resources: spec.resources.and_then(strip_resources),
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

fn strip_containers(containers: Vec<Container>, host_network: Option<bool>) -> Vec<Container> {
    let is_on_host = host_network == Some(true);
    let containers = containers.into_iter();
    containers
        .map(|it| strip_container(it, is_on_host))
        .collect()
}

fn strip_container(container: Container, is_on_host: bool) -> Container {
    let ports = container.ports.into_iter().flatten();
    let mut host_ports: Vec<ContainerPort> =
        ports.filter_map(|it| strip_port(it, is_on_host)).collect();
    host_ports.sort_by(|a, b| (a.host_port, &a.protocol).cmp(&(b.host_port, &b.protocol)));
    // The list of ports of a Workload has no duplicates.
    host_ports.dedup();
    Container {
        resources: container.resources.and_then(strip_resources),
        restart_policy: container.restart_policy,
        ports: (!host_ports.is_empty()).then_some(host_ports),
        ..Container::default()
    }
}

/// The port of the node that a port of a container is, without its name and address; `None` if it is none. In the network of the
/// node each port is one.
fn strip_port(port: ContainerPort, is_on_host: bool) -> Option<ContainerPort> {
    let given = port.host_port.filter(|it| *it > 0);
    let host_port = given.or_else(|| is_on_host.then_some(port.container_port))?;
    Some(ContainerPort {
        container_port: host_port,
        host_port: Some(host_port),
        protocol: port.protocol.filter(|it| !it.is_empty() && it != "TCP"),
        ..ContainerPort::default()
    })
}

/// The requests and limits; `None` without any, so that an empty object and none are alike.
fn strip_resources(resources: ResourceRequirements) -> Option<ResourceRequirements> {
    let stripped = ResourceRequirements {
        requests: resources.requests.filter(|it| !it.is_empty()),
        limits: resources.limits.filter(|it| !it.is_empty()),
        claims: None,
    };
    (stripped != ResourceRequirements::default()).then_some(stripped)
}

/// Whether two pods have the same requests; where they may run is not compared. Both are stripped templates.
pub(crate) fn has_same_requests(one: Option<&PodSpec>, other: Option<&PodSpec>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            let inits = |it: &PodSpec| it.init_containers.clone().unwrap_or_default();
            has_equal_requests(&one.containers, &other.containers)
                && has_equal_requests(&inits(one), &inits(other))
                && one.overhead == other.overhead
                && one.resources == other.resources
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}

fn has_equal_requests(one: &[Container], other: &[Container]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| {
            one.resources == other.resources && one.restart_policy == other.restart_policy
        })
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "tests fail by panicking"
    )]

    use super::*;
    use lockkeeper_api::{ClusterQueue, Workload};
    use lockkeeper_cluster_state::host_ports::host_ports;
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
        } else if rng.one_in(2) {
            let empty = [
                json!({}),
                json!({"limits": {}}),
                json!({"requests": {}, "claims": []}),
            ];
            container["resources"] = rng.pick(&empty).clone();
        }
        if rng.one_in(3) {
            let mut port = json!({"name": "web", "containerPort": rng.range(1, 4)});
            if rng.one_in(2) {
                port["hostPort"] = rng.range(0, 4).into();
            }
            container["ports"] = json!([port, {"containerPort": 9, "protocol": "UDP"}]);
        }
        container
    }

    /// A template with all fields that decisions read, empty ones included.
    pub(in crate::job_adapters) fn random_template(rng: &mut Rng) -> Value {
        let mut spec = json!({"restartPolicy": "Never", "containers": [random_container(rng)]});
        if rng.one_in(3) {
            let mut sidecar = random_container(rng);
            if rng.one_in(2) {
                sidecar["restartPolicy"] = "Always".into();
            }
            spec["initContainers"] = json!([sidecar]);
        }
        if rng.one_in(3) {
            spec["hostNetwork"] = rng.one_in(2).into();
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
        for (field, empty) in [
            ("initContainers", json!([])),
            ("overhead", json!({})),
            ("resources", json!({})),
            ("nodeSelector", json!({})),
            ("tolerations", json!([])),
            ("affinity", json!({})),
        ] {
            if rng.one_in(6) {
                spec[field] = empty;
            }
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
                let spec = workload.spec.pod_sets[0].template.spec.as_ref().unwrap();
                let ports: Vec<_> = host_ports(spec).collect();
                (pods, preemption_labels(workload), ports)
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
