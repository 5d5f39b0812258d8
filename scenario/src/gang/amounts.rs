//! Amounts in scenarios of pods and gangs.

use super::error::GangError;
use super::scenario::Pod;
use crate::amount_text::AmountText;
use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_cluster_state::pod_requests;
use lockkeeper_preemption::Amount;
use std::collections::BTreeMap;

/// The resource of a key, and the amount in the unit of the core.
pub(super) fn parse_amount(key: &str, text: AmountText) -> (&str, Option<i64>) {
    let resource = match key {
        "cpu_milli" => "cpu",
        "memory_bytes" => "memory",
        key => key,
    };
    (resource, text.in_core_units(resource))
}

/// The requests of a pod's spec.
pub(super) fn pod_spec_requests(
    pod: &Pod,
    spec: &PodSpec,
    path: &str,
) -> Result<BTreeMap<String, Amount>, GangError> {
    let metadata = ObjectMeta {
        name: Some(pod.name.clone()),
        namespace: Some(pod.namespace.clone()).filter(|it| !it.is_empty()),
        ..ObjectMeta::default()
    };
    pod_requests(&metadata, spec).map_err(|error| GangError::Pod {
        at: format!("{path}.spec"),
        error: Box::new(error),
    })
}
