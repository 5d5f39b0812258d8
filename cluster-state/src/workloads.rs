//! Conversion of workloads: requests, reservation and life-cycle state.

use crate::error::{ObjectError, ObjectProblem, Subject, object_key};
use crate::flavor_eligibility::{Flavors, ineligible_flavors};
use crate::pod_requests::{RequestRules, pod_set};
use crate::quantities::amount_from_quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use lockkeeper_api::Workload;
use lockkeeper_api::cluster_queue;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::labels;
use lockkeeper_api::quota::ResourceGroup;
use lockkeeper_api::workload::{self, Admission, PodSetAssignment};
use lockkeeper_preemption::job::{LabelValue, PreemptionLabels};
use lockkeeper_preemption::requeue::{
    DeactivationCause, EvictedCondition, EvictionReason, LifecycleState, NotReadyReason, PodsReady,
    RequeueState, StopPolicy,
};
use lockkeeper_preemption::{Amount, FlavorResource, PodSet, Reservation, State};
use std::collections::{BTreeMap, BTreeSet};

/// The name of a workload in the state: `namespace/name`.
#[must_use]
pub fn workload_key(workload: &Workload) -> String {
    object_key(&workload.metadata)
}

/// The pod sets of a workload, with the flavors among those of its queue that its pods cannot run on.
///
/// # Errors
///
/// An [`ObjectError`] for a request that is not a quantity, negative or too large, too many resources, a count out of
/// range, and a duplicate pod set.
pub fn pod_sets(
    workload: &Workload,
    state: &mut State,
    groups: &[ResourceGroup],
    flavors: &Flavors,
    rules: RequestRules<'_>,
) -> Result<Vec<PodSet>, ObjectError> {
    let subject = Subject::new("Workload", &workload.metadata);
    let mut seen = BTreeSet::new();
    let mut out = Vec::with_capacity(workload.spec.pod_sets.len());
    for (at, item) in workload.spec.pod_sets.iter().enumerate() {
        if !seen.insert(item.name()) {
            let field = FieldPath::new("spec.podSets").index(at).field("name");
            return Err(subject.error(&field, ObjectProblem::Duplicate(item.name().to_owned())));
        }
        let pod = item.template.spec.as_ref();
        let kept_away = pod.map(|pod| ineligible_flavors(pod, groups, flavors));
        let kept_away = kept_away.into_iter().flatten();
        let kept_away = kept_away.map(|name| state.flavor(name)).collect();
        let pod_set = pod_set(subject, state, item, at, kept_away, rules)?;
        out.push(pod_set);
    }
    Ok(out)
}

/// The quota that `status.admission` of a workload reserves; `None` without an admission.
///
/// # Errors
///
/// An [`ObjectError`] for an amount that is negative or too large or has no flavor, and for a pod set that does not
/// exist or is duplicated.
pub fn reservation(
    workload: &Workload,
    state: &mut State,
) -> Result<Option<Reservation>, ObjectError> {
    let Some(admission) = recorded_admission(workload) else {
        return Ok(None);
    };
    let subject = Subject::new("Workload", &workload.metadata);
    let names = workload.spec.pod_sets.iter().map(workload::PodSet::name);
    let names: BTreeSet<&str> = names.collect();
    let mut seen = BTreeSet::new();
    let mut usage = BTreeMap::new();
    for (at, assignment) in admission.pod_set_assignments.iter().enumerate() {
        let path = || FieldPath::new("status.admission.podSetAssignments").index(at);
        let name = || assignment.name.clone();
        if !names.contains(assignment.name.as_str()) {
            return Err(subject.error(&path().field("name"), ObjectProblem::UnknownPodSet(name())));
        }
        if !seen.insert(assignment.name.as_str()) {
            return Err(subject.error(&path().field("name"), ObjectProblem::Duplicate(name())));
        }
        // The recorded amount, not the requests: partial admission may have reduced them.
        let reclaimed = workload.status.as_ref();
        let reclaimed = reclaimed.map_or(0, |it| it.reclaimed(assignment));
        add_usage(subject, state, &mut usage, assignment, reclaimed, path)?;
    }
    let since = |of| condition(workload, of, "True").map(transition_time_s);
    let created = workload.metadata.creation_timestamp.as_ref();
    let reserved_at_s = since("QuotaReserved").or_else(|| since("Admitted"));
    Ok(Some(Reservation {
        usage: usage.into_iter().collect(),
        reserved_at_s: reserved_at_s.or(created.map(time_s)).unwrap_or_default(),
        is_evicted: condition(workload, "Evicted", "True").is_some(),
    }))
}

fn add_usage(
    subject: Subject<'_>,
    state: &mut State,
    usage: &mut BTreeMap<FlavorResource, Amount>,
    assignment: &PodSetAssignment,
    reclaimed: i32,
    path: impl Fn() -> FieldPath,
) -> Result<(), ObjectError> {
    for (resource, quantity) in &assignment.resource_usage {
        let path = || path().field("resourceUsage").key(resource.as_str());
        let amount = amount_from_quantity(subject, resource, *quantity, path)?;
        let amount = remaining(amount, assignment.count, reclaimed);
        let Some(flavor) = assignment.flavors.get(resource) else {
            if amount == Amount::ZERO {
                continue;
            }
            return Err(subject.error(&path(), ObjectProblem::NoFlavor(resource.clone())));
        };
        let of = FlavorResource {
            flavor: state.flavor(flavor),
            resource: state.resource(resource),
        };
        let sum: &mut Amount = usage.entry(of).or_default();
        *sum = sum.plus(amount);
        // `Amount::plus` returns unlimited on overflow.
        if sum.is_unlimited() {
            return Err(subject.error(&path(), ObjectProblem::TooLarge));
        }
    }
    Ok(())
}

/// The part of an amount for `count` pods that is left when `reclaimed` of them have released theirs, rounded up.
fn remaining(amount: Amount, count: i32, reclaimed: i32) -> Amount {
    if reclaimed <= 0 || amount.is_unlimited() {
        return amount;
    }
    let (count, reclaimed) = (i128::from(count.max(1)), i128::from(reclaimed));
    let total = i128::from(amount.get());
    // Rounding the released part down rounds the rest up.
    let released = total.saturating_mul(reclaimed).div_euclid(count);
    i64::try_from(total.saturating_sub(released)).map_or(amount, Amount::new)
}

/// The end of the maximum execution time of an admitted workload, in seconds since 1970: it counts from the admission.
#[must_use]
pub fn latest_end_s(workload: &Workload) -> Option<i64> {
    let max_s = i64::from(workload.spec.maximum_execution_time_seconds?);
    let admitted = condition(workload, "Admitted", "True")?;
    Some(transition_time_s(admitted).saturating_add(max_s))
}

/// The admission, unless the quota was released.
pub(crate) fn recorded_admission(workload: &Workload) -> Option<&Admission> {
    let status = workload.status.as_ref()?;
    let is_back = condition(workload, "QuotaReserved", "False").is_some();
    status.admission.as_ref().filter(|_| !is_back)
}

/// The life-cycle state of a workload, without its queues.
#[must_use]
pub fn lifecycle_state(
    workload: &Workload,
    cluster_queue: StopPolicy,
    local_queue: StopPolicy,
) -> LifecycleState {
    let is = |of| condition(workload, of, "True");
    let is_not = |of| condition(workload, of, "False");
    let created = workload.metadata.creation_timestamp.as_ref();
    // Only this reason changes the order in the queue (Kueue `GetQueueOrderTimestamp`).
    let preempted = is("Preempted").filter(|it| it.reason == "InCohortReclaimWhileBorrowing");
    let status = workload.status.as_ref();
    let state = status.and_then(|it| it.requeue_state.as_ref());
    let has_quota = recorded_admission(workload).is_some();
    LifecycleState {
        created_at_s: created.map(time_s).unwrap_or_default(),
        is_active: workload.spec.active != Some(false),
        is_finished: is("Finished").is_some(),
        has_quota,
        admitted_at_s: is("Admitted").map(transition_time_s),
        pods_ready: match (is("PodsReady"), is_not("PodsReady")) {
            (Some(_), _) => PodsReady::Yes,
            (None, Some(it)) => PodsReady::No {
                reason: NotReadyReason::from_reason(&it.reason),
                since_s: transition_time_s(it),
            },
            (None, None) => PodsReady::Unknown,
        },
        evicted: is("Evicted").map(|it| EvictedCondition {
            reason: EvictionReason::from_reason(&it.reason),
            at_s: transition_time_s(it),
        }),
        reclaimed_while_borrowing_at_s: preempted.map(transition_time_s),
        not_requeued_reason: is_not("Requeued").map(|it| EvictionReason::from_reason(&it.reason)),
        deactivation_target: is("DeactivationTarget")
            .map(|it| DeactivationCause::from_reason(&it.reason)),
        requeue_state: state.map(|it| RequeueState {
            count: u32::try_from(it.count).ok().filter(|count| *count > 0),
            requeue_at_s: it.requeue_at.as_ref().map(time_s),
            first_evicted_at_s: it.first_evicted_at.as_ref().map(time_s),
        }),
        cluster_queue,
        local_queue,
        ..LifecycleState::default()
    }
}

/// The preemption labels and policies of the pod templates of a workload. If the templates differ, the strictest value
/// applies.
#[must_use]
pub fn preemption_labels(workload: &Workload) -> PreemptionLabels {
    let mut all: Option<PreemptionLabels> = None;
    for pod_set in &workload.spec.pod_sets {
        let template = &pod_set.template;
        let own = template.metadata.as_ref().and_then(|it| it.labels.as_ref());
        let value = |key: &str| own.and_then(|own| own.get(key)).map(String::as_str);
        let policy = template.spec.as_ref();
        let policy = policy.and_then(|it| it.preemption_policy.as_deref());
        let says = PreemptionLabels {
            preemptible: LabelValue::from_value(value(labels::PREEMPTIBLE)),
            can_preempt: LabelValue::from_value(value(labels::CAN_PREEMPT)),
            never_preempts: policy == Some("Never"),
        };
        let before = all.get_or_insert(says);
        // One non-preemptible template, or one that may not preempt, determines the result.
        before.preemptible = before.preemptible.stricter(says.preemptible);
        before.can_preempt = before.can_preempt.stricter(says.can_preempt);
        before.never_preempts |= says.never_preempts;
    }
    all.unwrap_or_default()
}

/// The stop policy of a queue as a core value.
#[must_use]
pub fn stop_policy(policy: Option<cluster_queue::StopPolicy>) -> StopPolicy {
    match policy.unwrap_or_default() {
        cluster_queue::StopPolicy::None => StopPolicy::None,
        cluster_queue::StopPolicy::Hold => StopPolicy::Hold,
        cluster_queue::StopPolicy::HoldAndDrain => StopPolicy::HoldAndDrain,
    }
}

fn condition<'a>(workload: &'a Workload, of: &str, status: &str) -> Option<&'a Condition> {
    let conditions = workload.status.iter().flat_map(|it| &it.conditions);
    let mut conditions = conditions.filter(|it| it.type_ == of);
    conditions.next().filter(|it| it.status == status)
}

fn transition_time_s(condition: &Condition) -> i64 {
    time_s(&condition.last_transition_time)
}

fn time_s(time: &Time) -> i64 {
    time.0.as_second()
}
