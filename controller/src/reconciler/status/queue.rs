//! Statuses of queues and cohorts, and the patch that removes our finalizer.

use super::conditions::{Conditions, has_status, status_patch, timestamp};
use crate::key::ObjectKey;
use crate::reconciler::model::{holds_quota, is_nominated};
use crate::reconciler::output::{ObjectRef, WriteOp};
use crate::reconciler::queue_store::admitting_cluster_queue;
use crate::reconciler::state::ReconcilerState;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use lockkeeper_api::cluster_queue::{ClusterQueueStatus, StopPolicy};
use lockkeeper_api::cohort::CohortStatus;
use lockkeeper_api::local_queue::LocalQueueStatus;
use lockkeeper_api::quota::{FairSharingStatus, FlavorUsage, ResourceUsage};
use lockkeeper_api::{ClusterQueue, labels};
use lockkeeper_cluster_state::quantity;
use lockkeeper_policies::engine::{ReviewSubject, review};
use lockkeeper_policies::index::Index;
use lockkeeper_policies::rule::Context;
use lockkeeper_policies::settings::Settings as RuleSettings;
use lockkeeper_policies::validated_kind::ValidatedKind;
use lockkeeper_preemption::{Algorithm, Amount, FlavorResource, NodeId, State, TreeView};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The condition `Active` of a queue; `is_misconfigured` if its spec or a reference is the cause.
struct ActiveCondition {
    is_active: bool,
    is_misconfigured: bool,
    reason: &'static str,
    message: String,
    /// A rule that it breaks, and the finding. The queue stays active: the object may have been stored before the rule
    /// existed, or without the webhook.
    broken_rule: Option<(Cow<'static, str>, String)>,
}

impl ActiveCondition {
    fn active() -> Self {
        Self {
            is_active: true,
            is_misconfigured: false,
            reason: "Ready",
            message: "Can admit new workloads".to_owned(),
            broken_rule: None,
        }
    }

    fn stopped(reason: &'static str, message: &str) -> Self {
        Self {
            is_active: false,
            is_misconfigured: false,
            reason,
            message: message.to_owned(),
            broken_rule: None,
        }
    }

    fn misconfigured(reason: &'static str, message: String) -> Self {
        Self {
            is_active: false,
            is_misconfigured: true,
            reason,
            message,
            broken_rule: None,
        }
    }

    fn set_conditions(&self, metadata: &ObjectMeta, list: &mut Vec<Condition>, now_ms: i64) {
        let mut conditions = Conditions {
            list,
            now: timestamp(now_ms),
            generation: metadata.generation,
        };
        conditions.set("Active", self.is_active, self.reason, &self.message);
        let (is_misconfigured, reason, message) = match &self.broken_rule {
            _ if self.is_misconfigured => (true, self.reason, self.message.as_str()),
            Some((rule, message)) => (true, &**rule, message.as_str()),
            None => (false, "Valid", "The spec and all references are valid"),
        };
        conditions.set("Misconfigured", is_misconfigured, reason, message);
    }
}

/// The most flavors that a message names.
const NAMES_MAX: usize = 5;

/// The status write of a queue or cohort; `None` if it has not changed or is gone. Counts as computed for the
/// throttle in both cases.
pub(crate) fn build_queue_status_write(
    state: &mut ReconcilerState,
    object: &ObjectRef,
    now_ms: i64,
) -> Option<WriteOp> {
    let patch = match object {
        ObjectRef::ClusterQueue(name) => {
            let seen = Arc::clone(&state.model.queues.cluster_queues.get(name)?.object);
            let status = cluster_queue_status(state, name, &seen, now_ms);
            let version = seen.metadata.resource_version.as_deref();
            status_patch(version, seen.status.as_ref(), &status)
        }
        ObjectRef::Cohort(name) => {
            let status = cohort_status(state, name, now_ms)?;
            let seen = &state.model.queues.cohorts.get(name)?.object;
            let version = seen.metadata.resource_version.as_deref();
            status_patch(version, seen.status.as_ref(), &status)
        }
        ObjectRef::LocalQueue(key) => {
            let status = local_queue_status(state, key, now_ms)?;
            let seen = &state.model.queues.local_queues.get(key)?.object;
            let version = seen.metadata.resource_version.as_deref();
            status_patch(version, seen.status.as_ref(), &status)
        }
        _ => return None,
    };
    throttled_write(state, object, now_ms, patch)
}

fn throttled_write(
    state: &mut ReconcilerState,
    object: &ObjectRef,
    now_ms: i64,
    patch: Option<Value>,
) -> Option<WriteOp> {
    let throttle = state.model.queues.status_throttle_mut(object)?;
    throttle.record_computed(now_ms, state.settings.status_interval_ms, patch.is_some());
    patch.map(WriteOp::PatchStatus)
}

/// The patch that adds or removes our finalizer of a ClusterQueue or `ResourceFlavor`.
pub(crate) fn build_finalizer_write(
    state: &ReconcilerState,
    object: &ObjectRef,
    is_added: bool,
) -> Option<WriteOp> {
    let queues = &state.model.queues;
    let metadata = match object {
        ObjectRef::ClusterQueue(name) => &queues.cluster_queues.get(name)?.object.metadata,
        ObjectRef::ResourceFlavor(name) => &queues.flavors.get(name)?.object.metadata,
        _ => return None,
    };
    let finalizers = metadata.finalizers.iter().flatten();
    let ours = is_added.then_some(labels::RESOURCE_IN_USE);
    let finalizers: Vec<&str> = finalizers
        .map(String::as_str)
        .filter(|it| *it != labels::RESOURCE_IN_USE)
        .chain(ours)
        .collect();
    Some(WriteOp::Patch(json!({"metadata": {
        "resourceVersion": metadata.resource_version,
        "finalizers": finalizers,
    }})))
}

fn cluster_queue_status(
    state: &mut ReconcilerState,
    name: &str,
    seen: &ClusterQueue,
    now_ms: i64,
) -> ClusterQueueStatus {
    let nominated = nominated_in(state, name);
    let core = state.cluster.state_mut();
    let node = core.queue(name);
    let mut status = seen.status.clone().unwrap_or_default();
    let usage = node.map(|node| usage(core, seen, node));
    status.flavors_reservation = usage.clone().unwrap_or_default();
    status.flavors_usage = usage.unwrap_or_default();
    let pending = node.map(|node| core.node_view(node).pending_counts());
    let pending = pending.unwrap_or_default();
    status.pending_workloads = saturating_count(pending.queued.saturating_add(pending.backing_off));
    // Quota is reserved and the workload admitted in one write, except for those that wait for their victims.
    let reserving = node.map_or(0, |node| core.node_view(node).admitted_count());
    status.reserving_workloads = saturating_count(reserving);
    status.admitted_workloads = saturating_count(reserving.saturating_sub(nominated));
    status.fair_sharing = node.and_then(|node| fair_sharing_status(state, node));
    status.observed_generation = seen.metadata.generation;
    let mut condition = cluster_queue_condition(state, name, seen);
    condition.broken_rule = broken_rule(&state.settings.rules, seen);
    condition.set_conditions(&seen.metadata, &mut status.conditions, now_ms);
    status
}

/// The usage of each flavor and resource, in the order of the spec.
fn usage(core: &mut State, seen: &ClusterQueue, node: NodeId) -> Vec<FlavorUsage> {
    let used: BTreeMap<FlavorResource, Amount> = core.node_view(node).usage().into_iter().collect();
    let flavors = seen.spec.resource_groups.iter().flat_map(|it| &it.flavors);
    let mut out = Vec::new();
    for flavor in flavors {
        let id = core.flavor(&flavor.name);
        let mut resources = Vec::with_capacity(flavor.resources.len());
        for resource in &flavor.resources {
            let cell = FlavorResource {
                flavor: id,
                resource: core.resource(&resource.name),
            };
            let total = used.get(&cell).copied().unwrap_or_default();
            resources.push(ResourceUsage {
                name: resource.name.clone(),
                total: quantity(&resource.name, total),
                borrowed: quantity(&resource.name, core.node_view(node).borrowed(cell)),
            });
        }
        out.push(FlavorUsage {
            name: flavor.name.clone(),
            resources,
        });
    }
    out
}

fn fair_sharing_status(state: &mut ReconcilerState, node: NodeId) -> Option<FairSharingStatus> {
    if state.settings.options.algorithm == Algorithm::Classical {
        return None;
    }
    let weighted_share = TreeView::new(state.cluster.state_mut()).weighted_share(node);
    Some(FairSharingStatus { weighted_share })
}

fn cluster_queue_condition(
    state: &mut ReconcilerState,
    name: &str,
    seen: &ClusterQueue,
) -> ActiveCondition {
    let entry = state.model.queues.cluster_queues.get(name);
    if let Some(error) = entry.and_then(|it| it.rejection.as_ref()) {
        return ActiveCondition::misconfigured(
            "Invalid",
            format!("{}: {}", error.field, error.problem),
        );
    }
    let mut missing = state.cluster.objects().missing_flavors(name);
    if !missing.is_empty() {
        // Sorted: the message must not change with the order of the resource groups.
        missing.sort_unstable();
        missing.dedup();
        missing.truncate(NAMES_MAX);
        let message = format!("ResourceFlavor not found: {}", missing.join(", "));
        return ActiveCondition::misconfigured("FlavorNotFound", message);
    }
    let core = state.cluster.state_mut();
    let node = core.queue(name);
    if node.is_some_and(|node| TreeView::new(core).is_in_cohort_cycle(node)) {
        let message = "Its cohorts form a cycle; change a parentName";
        return ActiveCondition::misconfigured("CohortCycle", message.to_owned());
    }
    if seen.metadata.deletion_timestamp.is_some() {
        return ActiveCondition::stopped(
            "Terminating",
            "Terminating: deleted once its admitted workloads have released their quota",
        );
    }
    match seen.spec.stop_policy.unwrap_or_default() {
        StopPolicy::None => ActiveCondition::active(),
        StopPolicy::Hold => ActiveCondition::stopped("Stopped", "Stopped (stopPolicy Hold)"),
        StopPolicy::HoldAndDrain => ActiveCondition::stopped(
            "Stopped",
            "Stopped, and admitted workloads are evicted (stopPolicy HoldAndDrain)",
        ),
    }
}

fn cohort_status(state: &mut ReconcilerState, name: &str, now_ms: i64) -> Option<CohortStatus> {
    let core = state.cluster.state_mut();
    let node = core.cohort(name);
    let is_in_cycle = node.is_some_and(|node| TreeView::new(core).is_in_cohort_cycle(node));
    let fair_sharing = node.and_then(|node| fair_sharing_status(state, node));
    let entry = state.model.queues.cohorts.get(name)?;
    let mut status = entry.object.status.clone().unwrap_or_default();
    status.fair_sharing = fair_sharing;
    status.observed_generation = entry.object.metadata.generation;
    let mut condition = if let Some(error) = &entry.rejection {
        ActiveCondition::misconfigured("Invalid", format!("{}: {}", error.field, error.problem))
    } else if is_in_cycle {
        let message = "The cohort is its own ancestor; change a parentName";
        ActiveCondition::misconfigured("CohortCycle", message.to_owned())
    } else {
        ActiveCondition {
            message: "Members can borrow unused quota".to_owned(),
            ..ActiveCondition::active()
        }
    };
    condition.broken_rule = broken_rule(&state.settings.rules, &*entry.object);
    condition.set_conditions(&entry.object.metadata, &mut status.conditions, now_ms);
    Some(status)
}

/// The first rule that would reject the object if it were created today, with the finding.
fn broken_rule<T: ValidatedKind>(
    settings: &RuleSettings,
    object: &T,
) -> Option<(Cow<'static, str>, String)> {
    // Without an index of other objects: only rules on the object alone have findings.
    let context = Context {
        settings,
        cluster: &Index::default(),
    };
    let verdict = review(&ReviewSubject::Create(object), &context);
    let first = verdict.denials.into_iter().next()?;
    let message = format!("{}: {}", first.field, first.message());
    Some((first.rule, message))
}

/// The number of workloads that hold quota of a ClusterQueue and wait for their victims.
fn nominated_in(state: &ReconcilerState, cluster_queue: &str) -> usize {
    let placement = state.placement.iter();
    let nominated = placement.flat_map(|it| it.nominated());
    let workloads = nominated.filter_map(|key| state.model.workloads.get(key));
    workloads
        .filter(|it| admitting_cluster_queue(&it.object) == Some(cluster_queue))
        .count()
}

fn local_queue_status(
    state: &ReconcilerState,
    key: &ObjectKey,
    now_ms: i64,
) -> Option<LocalQueueStatus> {
    let entry = state.model.queues.local_queues.get(key)?;
    let spec = &entry.object.spec;
    let mut status = entry.object.status.clone().unwrap_or_default();
    let (mut pending, mut reserving, mut nominated) = (0_usize, 0_usize, 0_usize);
    for workload in state
        .cluster
        .workloads_in_local_queue(key.namespace(), key.name())
    {
        if has_status(workload, "Finished", "True") {
            continue;
        }
        if holds_quota(workload) {
            reserving = reserving.saturating_add(1);
            nominated = nominated.saturating_add(usize::from(is_nominated(workload)));
        } else if workload.spec.active != Some(false) {
            pending = pending.saturating_add(1);
        }
    }
    status.pending_workloads = saturating_count(pending);
    status.reserving_workloads = saturating_count(reserving);
    status.admitted_workloads = saturating_count(reserving.saturating_sub(nominated));
    status.observed_generation = entry.object.metadata.generation;
    let queue = spec.cluster_queue.as_str();
    let condition = if !state.model.queues.cluster_queues.contains_key(queue) {
        let message = format!("ClusterQueue {queue} does not exist");
        ActiveCondition::misconfigured("ClusterQueueNotFound", message)
    } else if spec.stop_policy.unwrap_or_default() != StopPolicy::None {
        ActiveCondition::stopped("Stopped", "Stopped (stopPolicy)")
    } else {
        ActiveCondition::active()
    };
    condition.set_conditions(&entry.object.metadata, &mut status.conditions, now_ms);
    Some(status)
}

fn saturating_count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
