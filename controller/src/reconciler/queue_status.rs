//! What queues and cohorts say of themselves, and when they may go.

use super::conditions::{Conditions, has_status, status_patch, timestamp};
use super::input::ObjectKey;
use super::output::{WriteOp, WritePurpose};
use super::status_throttle::StatusThrottle;
use super::workload::holds_quota;
use super::{Plan, Reconciler};
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
use lockkeeper_policies::validated_kind::ValidatedKind;
use lockkeeper_preemption::{Algorithm, Amount, FlavorResource, NodeId};
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whether a queue works: a reason and a message; `is_mistake` if its spec or what it names is to blame.
struct ActiveCondition {
    is_active: bool,
    is_misconfigured: bool,
    reason: &'static str,
    message: String,
    /// A rule that it breaks, and how. It works all the same: the object is older than the rule, or than the
    /// webhook.
    broken_rule: Option<(Cow<'static, str>, String)>,
}

impl ActiveCondition {
    fn active() -> Self {
        Self {
            is_active: true,
            is_misconfigured: false,
            reason: "Ready",
            message: "Can admit workloads".to_owned(),
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
        let (is_mistake, reason, message) = match &self.broken_rule {
            _ if self.is_misconfigured => (true, self.reason, self.message.as_str()),
            Some((rule, message)) => (true, &**rule, message.as_str()),
            None => (false, "Valid", "Its spec and all that it names can be used"),
        };
        conditions.set("Misconfigured", is_mistake, reason, message);
    }
}

/// The most flavors that a message names.
const NAMES_MAX: usize = 5;

impl Reconciler {
    pub(super) fn plan_cluster_queue(&self, name: &str, now_ms: i64) -> Plan {
        let Some(entry) = self.queues.cluster_queues.get(name) else {
            return Plan::NOTHING;
        };
        if is_only_our_finalizer_left(&entry.object.metadata) && self.reserving_workloads(name) == 0
        {
            return Plan::write(WritePurpose::Finalizer);
        }
        self.plan_status(&entry.status_throttle, now_ms)
    }

    /// A status is made up no more often than it may be written: it costs the number of workloads. Whether
    /// there is anything to write is seen then.
    fn plan_status(&self, pace: &StatusThrottle, now_ms: i64) -> Plan {
        let due_ms = pace.due_ms(self.settings.status_interval_ms);
        match due_ms.filter(|due_ms| *due_ms > now_ms) {
            Some(due_ms) => Plan::at(due_ms),
            None => Plan::write(WritePurpose::QueueStatus),
        }
    }

    pub(super) fn build_cluster_queue_write(
        &mut self,
        name: &str,
        what: WritePurpose,
        now_ms: i64,
    ) -> Option<WriteOp> {
        let entry = self.queues.cluster_queues.get(name)?;
        let seen = Arc::clone(&entry.object);
        if what == WritePurpose::Finalizer {
            return Some(remove_finalizer_patch(&seen.metadata));
        }
        let status = self.cluster_queue_status(name, &seen, now_ms);
        let entry = self.queues.cluster_queues.get_mut(name)?;
        let (seen, interval_ms) = (&entry.object, self.settings.status_interval_ms);
        let version = seen.metadata.resource_version.as_deref();
        let patch = status_patch(version, seen.status.as_ref(), &status);
        entry
            .status_throttle
            .throttled_patch(now_ms, interval_ms, patch)
    }

    fn cluster_queue_status(
        &mut self,
        name: &str,
        seen: &ClusterQueue,
        now_ms: i64,
    ) -> ClusterQueueStatus {
        let node = self.objects.state().queue(name);
        let mut status = seen.status.clone().unwrap_or_default();
        let usage = node.map(|node| self.usage(seen, node));
        status.flavors_reservation = usage.clone().unwrap_or_default();
        status.flavors_usage = usage.unwrap_or_default();
        let waiting = node.map(|node| self.objects.state().pending_counts(node));
        let waiting = waiting.unwrap_or_default();
        status.pending_workloads =
            saturating_count(waiting.queued.saturating_add(waiting.backing_off));
        let holders = saturating_count(self.reserving_workloads(name));
        status.reserving_workloads = holders;
        status.admitted_workloads = holders;
        status.fair_sharing = node.and_then(|node| self.fair_sharing_status(node));
        status.observed_generation = seen.metadata.generation;
        let mut verdict = self.cluster_queue_condition(name, seen);
        verdict.broken_rule = self.broken_rule(seen);
        verdict.set_conditions(&seen.metadata, &mut status.conditions, now_ms);
        status
    }

    /// How many workloads hold quota of a ClusterQueue.
    fn reserving_workloads(&self, name: &str) -> usize {
        let state = self.objects.state();
        state
            .queue(name)
            .map_or(0, |node| state.admitted_count(node))
    }

    /// What is used, in the order of the spec.
    fn usage(&mut self, seen: &ClusterQueue, node: NodeId) -> Vec<FlavorUsage> {
        let state = self.objects.state_mut();
        let used: BTreeMap<FlavorResource, Amount> = state.usage(node).into_iter().collect();
        let flavors = seen.spec.resource_groups.iter().flat_map(|it| &it.flavors);
        let mut out = Vec::new();
        for flavor in flavors {
            let id = state.flavor(&flavor.name);
            let mut resources = Vec::with_capacity(flavor.resources.len());
            for it in &flavor.resources {
                let of = FlavorResource {
                    flavor: id,
                    resource: state.resource(&it.name),
                };
                let total = used.get(&of).copied().unwrap_or_default();
                resources.push(ResourceUsage {
                    name: it.name.clone(),
                    total: quantity(&it.name, total),
                    borrowed: quantity(&it.name, state.borrowed(node, of)),
                });
            }
            out.push(FlavorUsage {
                name: flavor.name.clone(),
                resources,
            });
        }
        out
    }

    fn fair_sharing_status(&mut self, node: NodeId) -> Option<FairSharingStatus> {
        if self.settings.options.algorithm == Algorithm::Classical {
            return None;
        }
        let weighted_share = self.objects.state_mut().weighted_share(node);
        Some(FairSharingStatus { weighted_share })
    }

    fn cluster_queue_condition(&mut self, name: &str, seen: &ClusterQueue) -> ActiveCondition {
        let entry = self.queues.cluster_queues.get(name);
        if let Some(error) = entry.and_then(|it| it.rejection.as_ref()) {
            return ActiveCondition::misconfigured(
                "Invalid",
                format!("{}: {}", error.field, error.problem),
            );
        }
        let missing = self.objects.missing_flavors(name);
        if !missing.is_empty() {
            let mut names = missing;
            names.sort_unstable();
            names.dedup();
            names.truncate(NAMES_MAX);
            let message = format!("There is no ResourceFlavor {}", names.join(", "));
            return ActiveCondition::misconfigured("FlavorNotFound", message);
        }
        let node = self.objects.state().queue(name);
        if node.is_some_and(|node| self.objects.state_mut().is_in_cohort_cycle(node)) {
            let message = "Its cohorts are each other's parents; break the circle of parentName";
            return ActiveCondition::misconfigured("CohortCycle", message.to_owned());
        }
        if seen.metadata.deletion_timestamp.is_some() {
            return ActiveCondition::stopped("Terminating", "It goes when nobody holds its quota");
        }
        match seen.spec.stop_policy.unwrap_or_default() {
            StopPolicy::None => ActiveCondition::active(),
            StopPolicy::Hold => {
                ActiveCondition::stopped("Stopped", "It is stopped (stopPolicy Hold)")
            }
            StopPolicy::HoldAndDrain => ActiveCondition::stopped(
                "Stopped",
                "It is stopped, and who runs is evicted (stopPolicy HoldAndDrain)",
            ),
        }
    }

    pub(super) fn plan_cohort(&self, name: &str, now_ms: i64) -> Plan {
        let entry = self.queues.cohorts.get(name);
        entry.map_or(Plan::NOTHING, |it| {
            self.plan_status(&it.status_throttle, now_ms)
        })
    }

    pub(super) fn build_cohort_write(&mut self, name: &str, now_ms: i64) -> Option<WriteOp> {
        let status = self.cohort_status(name, now_ms)?;
        let entry = self.queues.cohorts.get_mut(name)?;
        let (seen, interval_ms) = (&entry.object, self.settings.status_interval_ms);
        let version = seen.metadata.resource_version.as_deref();
        let patch = status_patch(version, seen.status.as_ref(), &status);
        entry
            .status_throttle
            .throttled_patch(now_ms, interval_ms, patch)
    }

    fn cohort_status(&mut self, name: &str, now_ms: i64) -> Option<CohortStatus> {
        let node = self.objects.state().cohort(name);
        let fair_sharing = node.and_then(|node| self.fair_sharing_status(node));
        let is_on_circle =
            node.is_some_and(|node| self.objects.state_mut().is_in_cohort_cycle(node));
        let entry = self.queues.cohorts.get(name)?;
        let mut status = entry.object.status.clone().unwrap_or_default();
        status.fair_sharing = fair_sharing;
        status.observed_generation = entry.object.metadata.generation;
        let mut verdict = if let Some(error) = &entry.rejection {
            ActiveCondition::misconfigured("Invalid", format!("{}: {}", error.field, error.problem))
        } else if is_on_circle {
            let message = "It is its own ancestor; break the circle of parentName";
            ActiveCondition::misconfigured("CohortCycle", message.to_owned())
        } else {
            ActiveCondition {
                message: "Its members share what is unused".to_owned(),
                ..ActiveCondition::active()
            }
        };
        verdict.broken_rule = self.broken_rule(&*entry.object);
        verdict.set_conditions(&entry.object.metadata, &mut status.conditions, now_ms);
        Some(status)
    }

    /// The first rule that an object breaks for which it would be refused today.
    fn broken_rule<T: ValidatedKind>(&self, object: &T) -> Option<(Cow<'static, str>, String)> {
        let context = Context {
            settings: &self.settings.rules,
            cluster: &Index::default(),
        };
        let found = review(&ReviewSubject::Create(object), &context);
        let first = found.denials.into_iter().next()?;
        let message = format!("{}: {}", first.field, first.message());
        Some((first.rule, message))
    }

    pub(super) fn plan_local_queue(&self, name: &ObjectKey, now_ms: i64) -> Plan {
        let entry = self.queues.local_queues.get(name);
        entry.map_or(Plan::NOTHING, |it| {
            self.plan_status(&it.status_throttle, now_ms)
        })
    }

    pub(super) fn build_local_queue_write(
        &mut self,
        name: &ObjectKey,
        now_ms: i64,
    ) -> Option<WriteOp> {
        let status = self.local_queue_status(name, now_ms)?;
        let entry = self.queues.local_queues.get_mut(name)?;
        let (seen, interval_ms) = (&entry.object, self.settings.status_interval_ms);
        let version = seen.metadata.resource_version.as_deref();
        let patch = status_patch(version, seen.status.as_ref(), &status);
        entry
            .status_throttle
            .throttled_patch(now_ms, interval_ms, patch)
    }

    fn local_queue_status(&self, name: &ObjectKey, now_ms: i64) -> Option<LocalQueueStatus> {
        let entry = self.queues.local_queues.get(name)?;
        let spec = &entry.object.spec;
        let mut status = entry.object.status.clone().unwrap_or_default();
        let (mut pending, mut holding) = (0_usize, 0_usize);
        for workload in self
            .objects
            .workloads_in_local_queue(name.namespace(), name.name())
        {
            if has_status(workload, "Finished", "True") {
                continue;
            }
            if holds_quota(workload) {
                holding = holding.saturating_add(1);
            } else if workload.spec.active != Some(false) {
                pending = pending.saturating_add(1);
            }
        }
        status.pending_workloads = saturating_count(pending);
        status.reserving_workloads = saturating_count(holding);
        status.admitted_workloads = saturating_count(holding);
        status.observed_generation = entry.object.metadata.generation;
        let queue = spec.cluster_queue.as_str();
        let is_known = self.queues.cluster_queues.contains_key(queue);
        let verdict = if !is_known {
            let message = format!("There is no ClusterQueue {queue}");
            ActiveCondition::misconfigured("ClusterQueueNotFound", message)
        } else if spec.stop_policy.unwrap_or_default() != StopPolicy::None {
            ActiveCondition::stopped("Stopped", "It is stopped (stopPolicy)")
        } else {
            ActiveCondition::active()
        };
        verdict.set_conditions(&entry.object.metadata, &mut status.conditions, now_ms);
        Some(status)
    }

    /// A flavor goes when no ClusterQueue names it.
    pub(super) fn plan_flavor(&self, name: &str) -> Plan {
        let entry = self.queues.flavors.get(name);
        let may_go = entry.is_some_and(|it| is_only_our_finalizer_left(&it.object.metadata));
        if may_go && self.objects.queues_using_flavor(name).is_empty() {
            Plan::write(WritePurpose::Finalizer)
        } else {
            Plan::NOTHING
        }
    }

    pub(super) fn build_flavor_write(&self, name: &str) -> Option<WriteOp> {
        let entry = self.queues.flavors.get(name)?;
        Some(remove_finalizer_patch(&entry.object.metadata))
    }
}

/// Whether it is being deleted, and only our finalizer is in the way.
fn is_only_our_finalizer_left(metadata: &ObjectMeta) -> bool {
    let finalizers = metadata.finalizers.iter().flatten();
    let mut finalizers = finalizers.map(String::as_str);
    metadata.deletion_timestamp.is_some() && finalizers.any(|it| it == labels::RESOURCE_IN_USE)
}

fn remove_finalizer_patch(metadata: &ObjectMeta) -> WriteOp {
    let finalizers = metadata.finalizers.iter().flatten();
    let rest: Vec<&String> = finalizers
        .filter(|it| *it != labels::RESOURCE_IN_USE)
        .collect();
    WriteOp::Patch(json!({"metadata": {
        "resourceVersion": metadata.resource_version,
        "finalizers": rest,
    }}))
}

fn saturating_count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
