//! The reasons of the condition `QuotaReserved=False`, and the messages that depend on objects only.

use crate::object_store::ObjectStore;
use crate::pending_message::pending_message;
use crate::workload_phase::NotQueuedReason;
use lockkeeper_api::Workload;
use lockkeeper_preemption::{Decision, Entry, SkipReason, State, Victim};

/// All reasons of `QuotaReserved=False`, and the reason of others for metrics.
pub const PENDING_REASONS: [&str; 9] = [
    PENDING,
    WAITING_FOR_NODES,
    POD_GROUP_INCOMPLETE,
    MANAGED_EXTERNALLY,
    WAITING_FOR_QUOTA,
    WAITING_FOR_VICTIMS,
    RESOURCE_NOT_COVERED,
    INADMISSIBLE,
    "Other",
];

/// The reason before a cycle has considered the workload, or after it lost the quota to others.
pub const PENDING: &str = "Pending";

/// The reason if the free quota does not suffice.
pub const WAITING_FOR_QUOTA: &str = "WaitingForQuota";

/// The reason while pods of the group are missing.
pub const POD_GROUP_INCOMPLETE: &str = "PodGroupIncomplete";

/// The reason while a controller that may never stop the job manages it.
pub const MANAGED_EXTERNALLY: &str = "ManagedExternally";

/// The reason if there is quota, but no room on nodes.
pub const WAITING_FOR_NODES: &str = "WaitingForNodes";

/// The reason until victims have released their quota.
pub const WAITING_FOR_VICTIMS: &str = "WaitingForPreemptedWorkloads";

/// The reason when only a change of an object helps.
pub const INADMISSIBLE: &str = "Inadmissible";

/// The reason when the ClusterQueue does not cover a requested resource.
pub const RESOURCE_NOT_COVERED: &str = "ResourceNotCovered";

/// The message of a workload outside the scope of its ClusterQueue.
pub const NAMESPACE_MISMATCH: &str =
    "The namespace does not match the ClusterQueue's spec.namespaceSelector";

/// The most victims that a message names.
const NAMES_MAX: usize = 5;

/// The message of a workload that has quota and does not fit on nodes.
#[must_use]
pub fn waiting_for_nodes_message(obstacles: &str) -> String {
    format!("Waiting for room on nodes: {obstacles}")
}

/// The reason for a decision of a cycle.
#[must_use]
pub const fn decision_reason(decision: &Decision) -> &'static str {
    match decision {
        Decision::Admit => "QuotaReserved",
        Decision::Preempt(_) | Decision::DeferredFit => WAITING_FOR_VICTIMS,
        Decision::Skip(_) => PENDING,
        Decision::NoCandidates | Decision::NoFit => WAITING_FOR_QUOTA,
    }
}

/// The message for a decision of a cycle; empty for an admission. Victims in other namespaces are named by uid. Requires a
/// trace, and the state after the cycle.
#[must_use]
pub fn decision_message(state: &State, entry: &Entry) -> String {
    match &entry.decision {
        Decision::Admit => String::new(),
        Decision::Preempt(victims) => {
            let own = namespace_of(state.workload_name(entry.workload));
            let name_or_uid = |it: &Victim| {
                let name = state.workload_name(it.workload);
                // A name would reveal an object of another tenant.
                if namespace_of(name) == own {
                    name
                } else {
                    state.workload_view(it.workload).uid()
                }
            };
            let mut names: Vec<&str> = victims.iter().map(name_or_uid).collect();
            let more = names.len().saturating_sub(NAMES_MAX);
            names.truncate(NAMES_MAX);
            let more = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(
                "Waiting for preempted workloads to release quota: {}{more}",
                names.join(", ")
            )
        }
        Decision::DeferredFit => {
            "Waiting for the victims of other workloads to release quota".to_owned()
        }
        Decision::Skip(reason) => skip_message(*reason).to_owned(),
        Decision::NoCandidates | Decision::NoFit => pending_message(state, entry),
    }
}

/// The namespace of a workload in the core's state.
fn namespace_of(key: &str) -> &str {
    key.split_once('/').map_or("", |(namespace, _)| namespace)
}

/// The message of an entry that was skipped in its cycle.
const fn skip_message(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::NoLongerFits => "Lost the quota to workloads ahead of it in this cycle",
        SkipReason::OverlappingVictims => {
            "Its victims overlap with those of a workload ahead of it; retried in the next cycle"
        }
        SkipReason::BorrowingGate => {
            "Borrowing in its cohort is not allowed in this cycle: a workload that does not borrow came first"
        }
        SkipReason::VictimLimit => {
            "The limit on preemptions per cycle is reached (maxVictimsPerCycle)"
        }
    }
}

/// The message of a workload that is not in a queue.
#[must_use]
pub fn not_queued_message(
    objects: &ObjectStore,
    workload: &Workload,
    reason: NotQueuedReason,
) -> String {
    let spec = &workload.spec;
    match reason {
        NotQueuedReason::Finished => "The workload has finished".to_owned(),
        NotQueuedReason::Inactive => {
            "The workload is deactivated (spec.active is false)".to_owned()
        }
        NotQueuedReason::NoLocalQueue => match spec.queue_name.as_deref() {
            Some(name) => format!("LocalQueue {name} does not exist in its namespace"),
            None => "No LocalQueue is set (spec.queueName)".to_owned(),
        },
        NotQueuedReason::NoClusterQueue => no_cluster_queue_message(objects, workload),
        NotQueuedReason::LocalQueueStopped => format!(
            "LocalQueue {} is stopped (spec.stopPolicy)",
            spec.queue_name.as_deref().unwrap_or_default()
        ),
        NotQueuedReason::NoPriorityClass => {
            let class = spec.priority_class_name.as_deref();
            let missing = match objects.priority_for_class(class) {
                None => class,
                Some(_) => spec.preemption_priority_class_name.as_deref(),
            };
            format!(
                "PriorityClass {} does not exist",
                missing.unwrap_or_default()
            )
        }
        NotQueuedReason::PriorityClassNotAllowed => format!(
            "PriorityClass {} is not allowed in LocalQueue {} (spec.allowedPriorityClasses of both queues); use another",
            objects
                .disallowed_priority_class(workload)
                .unwrap_or_default(),
            spec.queue_name.as_deref().unwrap_or_default()
        ),
    }
}

fn no_cluster_queue_message(objects: &ObjectStore, workload: &Workload) -> String {
    let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
    let local_queue = workload.spec.queue_name.as_deref().unwrap_or_default();
    let queue = objects.local_queue(namespace, local_queue);
    let queue = queue.map_or("", |it| it.cluster_queue.as_str());
    format!("ClusterQueue {queue} of LocalQueue {local_queue} does not exist or is invalid")
}
