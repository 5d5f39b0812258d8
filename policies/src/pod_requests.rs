//! The requests of a pod.

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};
use lockkeeper_api::quantity::Quantity;

/// The request of a pod for a resource, as in Kubernetes: that of the pod as a whole, if set. Otherwise the sum of its
/// containers and sidecars, or the largest sum of an init container and the sidecars before it, whichever is larger. In
/// both cases plus the overhead. An invalid quantity counts as 0: the API server rejects it.
pub(crate) fn total_request(spec: &PodSpec, resource: &str) -> Quantity {
    let overhead = spec
        .overhead
        .as_ref()
        .and_then(|it| it.get(resource)?.0.parse().ok());
    let own = requested(spec.resources.as_ref(), resource);
    let own = own.unwrap_or_else(|| containers_request(spec, resource));
    sum(own, overhead.unwrap_or(Quantity::ZERO))
}

/// The request of a pod for a resource; see [`total_request`].
pub(crate) fn pod_request(pod: &Pod, resource: &str) -> Quantity {
    let spec = pod.spec.as_ref();
    spec.map_or(Quantity::ZERO, |spec| total_request(spec, resource))
}

/// The resources that a pod requests and `is_wanted` returns true for, each once, sorted.
pub(crate) fn requested_resources(spec: &PodSpec, is_wanted: impl Fn(&str) -> bool) -> Vec<&str> {
    let containers = spec.init_containers.iter().flatten();
    let containers = containers.chain(&spec.containers);
    let lists = containers.map(|it| it.resources.as_ref());
    let lists = lists.chain([spec.resources.as_ref()]).flatten();
    let amounts = lists.flat_map(|it| [&it.requests, &it.limits]);
    let mut names: Vec<&str> = Vec::new();
    for amounts in amounts.chain([&spec.overhead]).flatten() {
        for name in amounts.keys() {
            // Most containers request the same resources. Names that are left twice are removed below.
            let mut known = names.iter().take(COMPARED_NAMES_MAX);
            if is_wanted(name) && !known.any(|it| it == name) {
                names.push(name);
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// The most names that each name is compared with before it is added.
const COMPARED_NAMES_MAX: usize = 8;

fn containers_request(spec: &PodSpec, resource: &str) -> Quantity {
    let mut sidecars = Quantity::ZERO;
    let mut starting = Quantity::ZERO;
    for container in spec.init_containers.iter().flatten() {
        let own = container_request(container, resource);
        // A sidecar keeps running beside all containers that start after it.
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars = sum(sidecars, own);
            starting = starting.max(sidecars);
        } else {
            starting = starting.max(sum(sidecars, own));
        }
    }
    let running = spec
        .containers
        .iter()
        .map(|it| container_request(it, resource))
        .fold(sidecars, sum);
    running.max(starting)
}

fn container_request(container: &Container, resource: &str) -> Quantity {
    requested(container.resources.as_ref(), resource).unwrap_or(Quantity::ZERO)
}

/// The request; without one the limit, which the API server sets as the request of a pod.
fn requested(resources: Option<&ResourceRequirements>, resource: &str) -> Option<Quantity> {
    let resources = resources?;
    let mut lists = [&resources.requests, &resources.limits]
        .into_iter()
        .flatten();
    let amount = lists.find_map(|it| it.get(resource))?;
    amount.0.parse().ok()
}

/// A sum that overflows is one of its parts, which is more than any node has.
fn sum(left: Quantity, right: Quantity) -> Quantity {
    left.checked_add(right).unwrap_or(left)
}
