//! What `PodGroup` objects of Kubernetes (`scheduling.k8s.io/v1beta1`) say about the pods that name them in
//! `spec.schedulingGroup`: how many start together, and how they are preempted.

use crate::job_adapters::{GroupSource, JobView, TemplateSource};
use crate::key::ObjectKey;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use lockkeeper_api::workload::DisruptionMode;
use std::collections::BTreeMap;

/// The policies by the names of their `PodGroup` objects.
pub(in crate::reconciler) type PodGroupPolicies = BTreeMap<ObjectKey, PodGroupPolicy>;

/// What a `PodGroup` says about its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reconciler) struct PodGroupPolicy {
    /// The least pods that start together; `None` with the policy `basic`, so that each pod starts on its own.
    min_count: Option<i32>,
    /// Whether pods are preempted alone or all together.
    disruption_mode: Option<DisruptionMode>,
}

impl PodGroupPolicy {
    pub(in crate::reconciler) fn new(group: &PodGroup) -> Self {
        let gang = group.spec.scheduling_policy.gang.as_ref();
        let mode = group.spec.disruption_mode.as_ref();
        let mode = mode.and_then(|it| {
            let single = it.single.as_ref().map(|_| DisruptionMode::Pod);
            single.or_else(|| it.all.as_ref().map(|_| DisruptionMode::PodGroup))
        });
        Self {
            min_count: gang.map(|it| it.min_count.max(1)),
            disruption_mode: mode,
        }
    }
}

/// Completes the group of a pod that names a `PodGroup` by what that says. Without the object the pod stays as it is known;
/// one that was started on its own stays on its own.
pub(in crate::reconciler) fn apply_pod_group(
    policies: &PodGroupPolicies,
    known: Option<&JobView>,
    pod: &mut JobView,
) {
    let is_started = !pod.is_suspended;
    let Some(claim) = &mut pod.group else {
        return;
    };
    let GroupSource::PodGroup { total } = claim.source else {
        return;
    };
    let known = known.filter(|it| it.uid == pod.uid);
    if is_started && known.is_some_and(|it| it.group.is_none()) {
        pod.group = None;
        return;
    }
    match policies.get(&claim.group) {
        Some(policy) => match policy.min_count {
            None => pod.group = None,
            Some(least) => {
                claim.needed = least;
                claim.total = Some(total.unwrap_or(least).max(least));
                pod.disruption_mode = pod.disruption_mode.or(policy.disruption_mode);
            }
        },
        None => match known.map(|it| &it.group) {
            Some(Some(before)) => {
                claim.needed = before.needed;
                claim.total = before.total;
            }
            Some(None) => pod.group = None,
            None if is_started && claim.started_in.is_none() => pod.group = None,
            None => {}
        },
    }
    if pod.group.is_some() {
        // The templates of a group are those of its pod sets.
        pod.template_source = TemplateSource::NotKept;
    }
}
