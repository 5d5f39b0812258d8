//! The objects from which new pods get requests. A change of one changes the requests of the workloads that it concerns.

use crate::cluster_event::ObjectChange;
use crate::cluster_state::ClusterState;
use k8s_openapi::api::core::v1::LimitRange;
use k8s_openapi::api::node::v1::RuntimeClass;

/// Adds or updates a `LimitRange`: the default requests of containers in its namespace.
pub fn set_limit_range(cluster: &mut ClusterState, limit_range: &LimitRange) {
    if cluster.objects.pod_defaults.set_limit_range(limit_range) {
        cluster
            .journal
            .object(|| ObjectChange::LimitRange(Box::new(limit_range.clone())));
        let namespace = limit_range.metadata.namespace.as_deref();
        refresh_namespace(cluster, namespace.unwrap_or_default());
    }
}

/// Removes a `LimitRange`.
pub fn remove_limit_range(cluster: &mut ClusterState, namespace: &str, name: &str) {
    let defaults = &mut cluster.objects.pod_defaults;
    if defaults.remove_limit_range(namespace, name) {
        cluster.journal.object(|| ObjectChange::LimitRangeRemoved {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        });
        refresh_namespace(cluster, namespace);
    }
}

/// Adds or updates a `RuntimeClass`: the overhead of its pods.
pub fn set_runtime_class(cluster: &mut ClusterState, class: &RuntimeClass) {
    if cluster.objects.pod_defaults.set_runtime_class(class) {
        cluster
            .journal
            .object(|| ObjectChange::RuntimeClass(Box::new(class.clone())));
        refresh_runtime_class(cluster, class.metadata.name.as_deref().unwrap_or_default());
    }
}

/// Removes a `RuntimeClass`.
pub fn remove_runtime_class(cluster: &mut ClusterState, name: &str) {
    if cluster.objects.pod_defaults.remove_runtime_class(name) {
        cluster
            .journal
            .object(|| ObjectChange::RuntimeClassRemoved(name.to_owned()));
        refresh_runtime_class(cluster, name);
    }
}

fn refresh_namespace(cluster: &mut ClusterState, namespace: &str) {
    let keys = cluster.workloads.keys_in_namespace(namespace);
    cluster.sync().sync_all(&keys);
}

fn refresh_runtime_class(cluster: &mut ClusterState, name: &str) {
    let keys = cluster.workloads.keys_using_runtime_class(name);
    cluster.sync().sync_all(&keys);
}
