//! Watch events of the objects from which new pods get requests.

use crate::reconciler::Change;
use k8s_openapi::api::core::v1::LimitRange;
use k8s_openapi::api::node::v1::RuntimeClass;
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_cluster_state::pod_default_objects::{
    remove_limit_range, remove_runtime_class, set_limit_range, set_runtime_class,
};

pub(crate) fn observe_limit_range(cluster: &mut ClusterState, change: Change<Box<LimitRange>>) {
    match change {
        Change::Applied(limit_range) => set_limit_range(cluster, &limit_range),
        Change::Deleted(key) => remove_limit_range(cluster, key.namespace(), key.name()),
    }
}

pub(crate) fn observe_runtime_class(cluster: &mut ClusterState, change: Change<Box<RuntimeClass>>) {
    match change {
        Change::Applied(class) => set_runtime_class(cluster, &class),
        Change::Deleted(key) => remove_runtime_class(cluster, key.name()),
    }
}
