//! The fields of a Workload or PodGroup that an API server drops before validation (Kubernetes
//! `pkg/registry/scheduling`): fields without their feature gate, and fields that a request may not set.

use super::feature_gates::{PREEMPTION, RESOURCE_CLAIMS, TOPOLOGY, is_enabled_in};
use crate::settings::Settings;
use lockkeeper_api::foreign::scheduling::{Group, PodGroup, PodGroupStatus, Workload};

/// Prepares a Workload that is created, or updated from `old`. Each template keeps the gated fields that the stored
/// template at the same position uses.
pub fn prepare_workload(new: &mut Workload, old: Option<&Workload>, settings: &Settings) {
    let before = old.map(|old| old.spec.pod_group_templates.as_slice());
    let mut before = before.unwrap_or_default().iter();
    for template in &mut new.spec.pod_group_templates {
        let before = before.next().map(|template| &template.group);
        drop_disabled(&mut template.group, before, settings);
    }
}

/// Prepares a PodGroup that is created, or whose specification or metadata are updated from `old`. The request cannot
/// set its status.
pub fn prepare_pod_group(new: &mut PodGroup, old: Option<&PodGroup>, settings: &Settings) {
    new.status = old.map_or_else(PodGroupStatus::default, |old| old.status.clone());
    drop_disabled(
        &mut new.spec.group,
        old.map(|old| &old.spec.group),
        settings,
    );
}

/// Prepares a PodGroup whose status is updated from `old`. The request can only set the status.
pub fn prepare_pod_group_status(new: &mut PodGroup, old: &PodGroup, settings: &Settings) {
    new.spec = old.spec.clone();
    let (metadata, before) = (&mut new.metadata, &old.metadata);
    metadata
        .deletion_timestamp
        .clone_from(&before.deletion_timestamp);
    metadata.generation = before.generation;
    metadata.self_link.clone_from(&before.self_link);
    metadata.labels.clone_from(&before.labels);
    metadata.annotations.clone_from(&before.annotations);
    metadata.finalizers.clone_from(&before.finalizers);
    metadata
        .owner_references
        .clone_from(&before.owner_references);
    let in_use = !old.spec.group.resource_claims.is_empty();
    if !is_enabled_in(RESOURCE_CLAIMS, settings) && !in_use {
        new.status.resource_claim_statuses.clear();
    }
}

/// Drops the fields whose gate is off, but not those that were used before.
fn drop_disabled(group: &mut Group, old: Option<&Group>, settings: &Settings) {
    let used = |is_used: fn(&Group) -> bool| old.is_some_and(is_used);
    if !is_enabled_in(TOPOLOGY, settings) && !used(|old| old.scheduling_constraints.is_some()) {
        group.scheduling_constraints = None;
    }
    if !is_enabled_in(RESOURCE_CLAIMS, settings) && !used(|old| !old.resource_claims.is_empty()) {
        group.resource_claims.clear();
    }
    if is_enabled_in(PREEMPTION, settings) {
        return;
    }
    if !used(|old| old.disruption_mode.is_some()) {
        group.disruption_mode = None;
    }
    if !used(|old| !old.priority_class_name.is_empty()) {
        group.priority_class_name.clear();
    }
    if !used(|old| old.priority.is_some()) {
        group.priority = None;
    }
}
