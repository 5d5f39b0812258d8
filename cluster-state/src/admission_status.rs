//! Status changes of the objects for the decisions of the core.

use crate::preemption_message::{PREFIX, UNKNOWN_UID};
use crate::quantities::quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use lockkeeper_api::workload::{Admission, PodSetAssignment};
use lockkeeper_preemption::requeue::EvictionReason;
use lockkeeper_preemption::{
    Amount, Assignment, Mode, PreemptionReason, ResourceId, State, WorkloadId,
};

/// `status.admission` of a workload that is admitted with this assignment; `None` if the assignment does not fit, or
/// the state has no such workload. [`super::reservation`] reads the same quota from it.
#[must_use]
pub fn admission(state: &State, id: WorkloadId, assignment: &Assignment) -> Option<Admission> {
    if assignment.mode != Mode::Fit {
        return None;
    }
    admission_after_preemption(state, id, assignment)
}

/// [`admission`] for an assignment that fits as it is or after preemption.
#[must_use]
pub fn admission_after_preemption(
    state: &State,
    id: WorkloadId,
    assignment: &Assignment,
) -> Option<Admission> {
    let wanted = state.workload_view(id).pod_sets();
    if assignment.pod_sets.len() != wanted.len() {
        return None;
    }
    let mut pod_set_assignments = Vec::with_capacity(wanted.len());
    for given in &assignment.pod_sets {
        let pod_set = wanted.get(given.pod_set)?;
        let mut out = PodSetAssignment {
            name: pod_set.name.clone().into(),
            count: i32::try_from(given.count).ok()?,
            ..PodSetAssignment::default()
        };
        for assigned in &given.flavors {
            let resource = state.resource_name(assigned.resource);
            let mut requests = pod_set.requests.iter();
            let request = requests.find(|(request, _)| *request == assigned.resource);
            let amount = match request {
                // If pods are a counted resource, each pod uses one.
                _ if assigned.resource == ResourceId::PODS => Amount::new(given.count),
                // Partial admission may have reduced the count.
                Some((_, total)) => pod_set.scaled_request(*total, given.count),
                None => Amount::ZERO,
            };
            let flavor = state.flavor_name(assigned.flavor);
            out.flavors.insert(resource.to_owned(), flavor.to_owned());
            let used = quantity(resource, amount);
            out.resource_usage.insert(resource.to_owned(), used);
        }
        pod_set_assignments.push(out);
    }
    Some(Admission {
        cluster_queue: state
            .node_view(state.workload_view(id).queue()?)
            .name()
            .to_owned(),
        pod_set_assignments,
    })
}

/// What a preemptor needs from its victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreemptionCause {
    /// Its quota.
    Quota(PreemptionReason),
    /// Its room on nodes.
    Nodes,
}

impl PreemptionCause {
    /// The reason of the condition `Preempted`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quota(reason) => reason.as_str(),
            Self::Nodes => "OnNodes",
        }
    }
}

/// The conditions of a victim: `Evicted` with reason `Preempted`, and `Preempted` with the reason of the cause.
/// `preemptor_uid` and `job_uid` are empty if unknown.
///
/// Source: Kueue `pkg/scheduler/preemption`, `preemptionMessage`, without the queue paths.
#[must_use]
pub fn preemption_conditions(
    cause: PreemptionCause,
    preemptor_uid: &str,
    job_uid: &str,
    now: &Time,
    generation: Option<i64>,
) -> [Condition; 2] {
    let known = |uid: &str| if uid.is_empty() { UNKNOWN_UID } else { uid }.to_owned();
    let (preemptor, job) = (known(preemptor_uid), known(job_uid));
    let why = match cause {
        PreemptionCause::Quota(PreemptionReason::InClusterQueue) => {
            "prioritization in the ClusterQueue"
        }
        PreemptionCause::Quota(PreemptionReason::InCohortReclamation) => {
            "reclamation within the cohort"
        }
        PreemptionCause::Quota(PreemptionReason::InCohortReclaimWhileBorrowing) => {
            "reclamation within the cohort while borrowing"
        }
        PreemptionCause::Quota(PreemptionReason::InCohortFairSharing) => {
            "Fair Sharing within the cohort"
        }
        PreemptionCause::Nodes => "prioritization on nodes",
    };
    let message = format!("{PREFIX}{preemptor}, JobUID: {job}) due to {why}");
    let condition = |type_: &str, reason: &str| Condition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        reason: reason.to_owned(),
        message: message.clone(),
        last_transition_time: now.clone(),
        observed_generation: generation,
    };
    [
        condition("Evicted", EvictionReason::Preempted.as_str()),
        condition("Preempted", cause.as_str()),
    ]
}
