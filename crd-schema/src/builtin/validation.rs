//! Validates objects of built-in kinds: the causes of a 422 answer.
//!
//! The semantics are those of the validation packages of `k8s.io/kubernetes/pkg/apis` 1.37 with the default feature
//! gates. Fields that have a default may be absent. Limits of a cluster, such as its ranges of addresses and ports, are
//! not validated.

mod addresses;
mod admission_policies;
mod autoscaling;
mod causes;
mod entry;
mod fields;
mod formats;
mod labels;
mod metadata;
mod networking;
mod pod_spec;
mod pods;
mod policies;
mod quantities;
mod service;
mod storage;
mod volume_claims;
mod webhook_clients;
mod webhooks;
mod workloads;

pub(crate) use entry::validate;

#[cfg(test)]
mod tests;
