//! Quota and requests against what nodes hold.

use crate::catalogue::{
    FLAVOR_WITHOUT_NODES, POD_ABOVE_NODES, QUOTA_ABOVE_NODES, WORKLOAD_ABOVE_QUOTA,
};
use crate::diagnosis::Diagnosis;
use crate::finding::Finding;
use crate::snapshot::Snapshot;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::quantity::Quantity;
use lockkeeper_cluster_state::{pod_requests, quantity};
use lockkeeper_explain::{
    PendingPodSet, Project, World, WorldSettings, pending_pod_sets, quota_rows,
};
use std::collections::{BTreeMap, BTreeSet};

/// The labels of a node or flavor.
type Labels = BTreeMap<String, String>;

pub(crate) fn check(snapshot: &Snapshot, settings: &WorldSettings, out: &mut Diagnosis) {
    for project in [Project::Lockkeeper, Project::Kueue] {
        if !snapshot.queues.has_objects_of(project) {
            continue;
        }
        let settings = WorldSettings {
            project: Some(project),
            ..settings.clone()
        };
        let world = snapshot.queues.clone().build(settings);
        let pod_sets = pending_pod_sets(&world);
        check_quota(&pod_sets, out);
        if snapshot.nodes.is_empty() {
            out.skip("quota against the capacity of nodes: there are no nodes in the input");
        } else {
            check_flavors(snapshot, &world, out);
            check_pods(snapshot, &world, &pod_sets, out);
        }
    }
}

fn check_quota(pod_sets: &[PendingPodSet], out: &mut Diagnosis) {
    for pod_set in pod_sets {
        for excess in &pod_set.excesses {
            out.findings.push(Finding {
                check: &WORKLOAD_ABOVE_QUOTA,
                object: format!("Workload/{}", pod_set.workload),
                field: format!("spec.podSets[{}]", pod_set.name),
                evidence: format!(
                    "it requests {} {}; ClusterQueue {} can use at most {} of one flavor, even if it is idle",
                    excess.requested, excess.resource, pod_set.cluster_queue, excess.most
                ),
            });
        }
    }
}

fn check_flavors(snapshot: &Snapshot, world: &World, out: &mut Diagnosis) {
    // Roots of trees contain the quota of all members.
    let rows = quota_rows(world).into_iter();
    let rows = rows.filter(|it| it.path.matches('/').count() == 1);
    let mut totals: BTreeMap<(String, String), Quantity> = BTreeMap::new();
    for row in rows {
        let nominal: Quantity = row.nominal.parse().unwrap_or(Quantity::from(0));
        let total = totals
            .entry((row.flavor, row.resource))
            .or_insert(Quantity::from(0));
        *total = total.checked_add(nominal).unwrap_or(*total);
    }
    let mut without_nodes = BTreeSet::new();
    for ((flavor, resource), total) in totals {
        let Some(spec) = world.cluster().objects().flavor(&flavor) else {
            continue;
        };
        if total.is_zero() || without_nodes.contains(&flavor) {
            continue;
        }
        let nodes = snapshot.nodes.iter();
        let nodes: Vec<&Node> = nodes
            .filter(|it| has_labels(it, &spec.node_labels))
            .collect();
        let object = format!("ResourceFlavor/{flavor}");
        if nodes.is_empty() {
            out.findings.push(Finding {
                check: &FLAVOR_WITHOUT_NODES,
                object,
                field: "spec.nodeLabels".to_owned(),
                evidence: format!(
                    "none of {} nodes has the labels {}",
                    snapshot.nodes.len(),
                    label_text(&spec.node_labels)
                ),
            });
            without_nodes.insert(flavor);
            continue;
        }
        // A resource that no node has may exist in quota only.
        if snapshot
            .nodes
            .iter()
            .all(|it| allocatable(it, &resource).is_none())
        {
            out.skip(format!(
                "the quota of {resource}: no node has this resource"
            ));
            continue;
        }
        let held = nodes.iter().filter_map(|it| allocatable(it, &resource));
        let held = held.fold(Quantity::from(0), |sum, it| {
            sum.checked_add(it).unwrap_or(sum)
        });
        if total > held {
            out.findings.push(Finding {
                check: &QUOTA_ABOVE_NODES,
                object,
                field: "spec.nodeLabels".to_owned(),
                evidence: format!(
                    "queues have {total} {resource} in all; {} can allocate {held}",
                    nodes_text(nodes.len())
                ),
            });
        }
    }
}

fn check_pods(snapshot: &Snapshot, world: &World, pod_sets: &[PendingPodSet], out: &mut Diagnosis) {
    for pod_set in pod_sets {
        let Some(pod) = &pod_set.template.spec else {
            continue;
        };
        let requests = pod_requests(&ObjectMeta::default(), pod);
        let requests: BTreeMap<String, Quantity> = requests
            .unwrap_or_default()
            .into_iter()
            .map(|(resource, amount)| {
                let amount = quantity(&resource, amount);
                (resource, amount)
            })
            .collect();
        let objects = world.cluster().objects();
        let flavors = pod_set.flavors.iter().filter_map(|it| objects.flavor(it));
        let flavors: Vec<&Labels> = flavors.map(|it| &it.node_labels).collect();
        let own = pod.node_selector.clone().unwrap_or_default();
        let nodes = snapshot
            .nodes
            .iter()
            .filter(|node| has_labels(node, &own) && flavors.iter().any(|it| has_labels(node, it)));
        let nodes: Vec<&Node> = nodes.collect();
        // The flavor is the finding, or the pods' own selector.
        if nodes.is_empty() || nodes.iter().any(|it| holds(it, &requests)) {
            continue;
        }
        out.findings.push(Finding {
            check: &POD_ABOVE_NODES,
            object: format!("Workload/{}", pod_set.workload),
            field: format!("spec.podSets[{}].template", pod_set.name),
            evidence: too_large(&requests, &nodes),
        });
    }
}

fn too_large(requests: &BTreeMap<String, Quantity>, nodes: &[&Node]) -> String {
    let exceeded = requests.iter().find_map(|(resource, requested)| {
        let most = nodes
            .iter()
            .filter_map(|it| allocatable(it, resource))
            .max();
        let most = most.unwrap_or(Quantity::from(0));
        (*requested > most).then(|| {
            format!(
                "each pod requests {requested} {resource}; the largest of {} can allocate {most}",
                nodes_text(nodes.len())
            )
        })
    });
    exceeded.unwrap_or_else(|| {
        let requests = requests
            .iter()
            .map(|(resource, it)| format!("{it} {resource}"));
        let requests: Vec<String> = requests.collect();
        format!(
            "none of {} can allocate {} together",
            nodes_text(nodes.len()),
            requests.join(" and ")
        )
    })
}

fn nodes_text(count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} node{plural} of its flavors")
}

fn holds(node: &Node, requests: &BTreeMap<String, Quantity>) -> bool {
    requests
        .iter()
        .all(|(resource, requested)| allocatable(node, resource).is_some_and(|it| it >= *requested))
}

fn has_labels(node: &Node, labels: &Labels) -> bool {
    let own = node.metadata.labels.as_ref();
    labels
        .iter()
        .all(|(key, value)| own.and_then(|it| it.get(key)) == Some(value))
}

fn label_text(labels: &Labels) -> String {
    let labels = labels.iter().map(|(key, value)| format!("{key}={value}"));
    labels.collect::<Vec<String>>().join(",")
}

fn allocatable(node: &Node, resource: &str) -> Option<Quantity> {
    let allocatable = node.status.as_ref()?.allocatable.as_ref()?;
    allocatable.get(resource)?.0.parse().ok()
}
