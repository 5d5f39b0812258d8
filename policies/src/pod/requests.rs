//! The requests of a pod.

use k8s_openapi::api::core::v1::{Container, Pod};
use lockkeeper_api::quantity::Quantity;

/// The request of a pod for a resource, as in Kubernetes: the sum of its containers and sidecars, or the largest sum
/// of an init container and the sidecars before it, whichever is larger; plus the overhead. An invalid quantity counts as 0: the
/// API server rejects it.
pub(super) fn total_request(pod: &Pod, resource: &str) -> Quantity {
    let Some(spec) = &pod.spec else {
        return Quantity::ZERO;
    };
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
    let overhead = spec
        .overhead
        .as_ref()
        .and_then(|it| it.get(resource)?.0.parse().ok());
    sum(running.max(starting), overhead.unwrap_or(Quantity::ZERO))
}

fn container_request(container: &Container, resource: &str) -> Quantity {
    let resources = container.resources.as_ref();
    let amount = resources.and_then(|it| it.requests.as_ref()?.get(resource));
    amount
        .and_then(|amount| amount.0.parse().ok())
        .unwrap_or(Quantity::ZERO)
}

/// A sum that overflows is one of its parts, which is more than any node has.
fn sum(left: Quantity, right: Quantity) -> Quantity {
    left.checked_add(right).unwrap_or(left)
}
