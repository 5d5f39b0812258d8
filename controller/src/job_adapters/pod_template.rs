//! Strips pod templates to the fields that decisions use: requests, placement and preemptibility.

use k8s_openapi::api::core::v1::{
    Affinity, Container, ContainerPort, PodAffinity, PodAffinityTerm, PodAntiAffinity, PodSpec,
    PodTemplateSpec, ResourceRequirements, TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::labels;
use lockkeeper_cluster_state::inter_pod_fields::selected_label_keys;
use std::collections::{BTreeMap, BTreeSet};

/// The labels of pods that a decision reads.
const DECISION_LABELS: [&str; 2] = [labels::PREEMPTIBLE, labels::CAN_PREEMPT];

/// The template without the fields that no decision uses. Two stripped templates are equal if and only if
/// scheduling treats their pods alike.
#[must_use]
pub fn strip_template(template: PodTemplateSpec) -> PodTemplateSpec {
    let empty = PodSpec::default();
    let spec = template.spec.as_ref().unwrap_or(&empty);
    let metadata = template.metadata;
    PodTemplateSpec {
        metadata: metadata.and_then(|it| strip_metadata(it, spec)),
        spec: template.spec.map(|spec| PodSpec {
            containers: strip_containers(spec.containers, spec.host_network),
            init_containers: spec
                .init_containers
                .filter(|it| !it.is_empty())
                .map(|all| strip_containers(all, spec.host_network)),
            node_selector: spec.node_selector.filter(|it| !it.is_empty()),
            affinity: spec.affinity.and_then(strip_affinity),
            topology_spread_constraints: spec
                .topology_spread_constraints
                .and_then(strip_topology_spread),
            tolerations: spec.tolerations.filter(|it| !it.is_empty()),
            // The overhead is that of the class, if the template has none.
            runtime_class_name: spec
                .runtime_class_name
                .filter(|_| spec.overhead.as_ref().is_none_or(BTreeMap::is_empty)),
            overhead: spec.overhead.filter(|it| !it.is_empty()),
            // Any other policy permits preemption, as an absent one does.
            preemption_policy: spec.preemption_policy.filter(|it| it == "Never"),
            resources: spec.resources.and_then(strip_resources),
            ..PodSpec::default()
        }),
    }
}

/// The labels of pods with this spec that a decision reads: those about preemption, and those that their own pod affinity and
/// topology spread select. Other labels may differ between the pods of a group, which have one pod set.
pub(super) fn decision_labels(spec: &PodSpec) -> BTreeSet<&str> {
    let mut keys = selected_label_keys(spec);
    keys.extend(DECISION_LABELS);
    keys
}

/// The labels that a decision reads; `None` without any.
fn strip_metadata(metadata: ObjectMeta, spec: &PodSpec) -> Option<ObjectMeta> {
    let mut labels = metadata.labels?;
    let read = decision_labels(spec);
    labels.retain(|key, _| read.contains(key.as_str()));
    (!labels.is_empty()).then(|| ObjectMeta {
        labels: Some(labels),
        ..ObjectMeta::default()
    })
}

/// The affinity to nodes, and the required terms of that to pods; `None` without any.
fn strip_affinity(affinity: Affinity) -> Option<Affinity> {
    let required = |terms: Option<Vec<PodAffinityTerm>>| terms.filter(|it| !it.is_empty());
    let pods = affinity.pod_affinity;
    let pods = pods.and_then(|it| required(it.required_during_scheduling_ignored_during_execution));
    let anti = affinity.pod_anti_affinity;
    let anti = anti.and_then(|it| required(it.required_during_scheduling_ignored_during_execution));
    let stripped = Affinity {
        node_affinity: affinity.node_affinity,
        pod_affinity: pods.map(|it| PodAffinity {
            required_during_scheduling_ignored_during_execution: Some(it),
            ..PodAffinity::default()
        }),
        pod_anti_affinity: anti.map(|it| PodAntiAffinity {
            required_during_scheduling_ignored_during_execution: Some(it),
            ..PodAntiAffinity::default()
        }),
    };
    (stripped != Affinity::default()).then_some(stripped)
}

/// The constraints that reject nodes; `None` without any.
fn strip_topology_spread(
    mut constraints: Vec<TopologySpreadConstraint>,
) -> Option<Vec<TopologySpreadConstraint>> {
    constraints.retain(|it| it.when_unsatisfiable == "DoNotSchedule");
    (!constraints.is_empty()).then_some(constraints)
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
                && one.runtime_class_name == other.runtime_class_name
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
    use lockkeeper_cluster_state::inter_pod_fields::PodIdentity;
    use lockkeeper_cluster_state::scheduling_fields::pod_shape;
    use lockkeeper_cluster_state::{
        Flavors, PodDefaults, RequestRules, pod_sets, preemption_labels,
    };
    use lockkeeper_preemption::State;
    use lockkeeper_preemption::gang::{GangCluster, GangOptions};
    use lockkeeper_preemption::placement::Shape;
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

    /// Terms and constraints on the pods around a pod, of which decisions read the required ones.
    fn add_constraints(rng: &mut Rng, spec: &mut Value) {
        if rng.one_in(3) {
            let term =
                json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "train"}}});
            let weighted = json!([{"weight": 1, "podAffinityTerm": term}]);
            let kind = *rng.pick(&["podAffinity", "podAntiAffinity"]);
            let affinity = if rng.one_in(3) {
                json!({"preferredDuringSchedulingIgnoredDuringExecution": weighted})
            } else {
                json!({
                    "requiredDuringSchedulingIgnoredDuringExecution": [term],
                    "preferredDuringSchedulingIgnoredDuringExecution": weighted,
                })
            };
            spec["affinity"] = json!({kind: affinity});
        }
        if rng.one_in(3) {
            spec["topologySpreadConstraints"] = json!([{
                "maxSkew": rng.range(1, 3), "topologyKey": "zone", "matchLabelKeys": ["role"],
                "whenUnsatisfiable": rng.pick(&["DoNotSchedule", "ScheduleAnyway"]),
                "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
            }]);
        }
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
        add_constraints(rng, &mut spec);
        for (field, empty) in [
            ("initContainers", json!([])),
            ("overhead", json!({})),
            ("resources", json!({})),
            ("nodeSelector", json!({})),
            ("tolerations", json!([])),
            ("affinity", json!({})),
            ("affinity", json!({"podAffinity": {}})),
            ("topologySpreadConstraints", json!([])),
        ] {
            if rng.one_in(6) {
                spec[field] = empty;
            }
        }
        if rng.one_in(2) {
            spec["preemptionPolicy"] = (*rng.pick(&["Never", "PreemptLowerPriority"])).into();
        }
        let mut labels =
            json!({"app": "train", "role": "worker", "index": rng.range(0, 9).to_string()});
        for label in DECISION_LABELS {
            if rng.one_in(2) {
                labels[label] = (*rng.pick(&["true", "false", "", "False"])).into();
            }
        }
        json!({"metadata": {"labels": labels, "annotations": {"a": "b"}}, "spec": spec})
    }

    /// What the core's placement gets of a pod of a workload.
    fn shape_of(workload: &Workload) -> (Shape, Vec<(String, Option<String>)>) {
        let template = &workload.spec.pod_sets[0].template;
        let labels = template.metadata.as_ref().and_then(|it| it.labels.as_ref());
        let spec = template.spec.as_ref().unwrap();
        let mut cluster = GangCluster::new(GangOptions::default());
        let identity = PodIdentity {
            namespace: "team",
            labels,
        };
        let shape = pod_shape(&mut cluster, identity, spec);
        let keys = selected_label_keys(spec).into_iter();
        let values = keys.map(|key| (key.to_owned(), labels.and_then(|it| it.get(key).cloned())));
        (shape, values.collect())
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
                let rules = RequestRules {
                    excluded_prefixes: &[],
                    defaults: &PodDefaults::NONE,
                };
                let pods = pod_sets(workload, &mut state, groups, &flavors, rules).unwrap();
                let spec = workload.spec.pod_sets[0].template.spec.as_ref().unwrap();
                let ports: Vec<_> = host_ports(spec).collect();
                (pods, preemption_labels(workload), ports, shape_of(workload))
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
