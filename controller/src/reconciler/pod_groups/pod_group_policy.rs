//! What `PodGroup` objects of Kubernetes (`scheduling.k8s.io/v1beta1`) say about the pods that name them in
//! `spec.schedulingGroup`: how many start together, and how they are preempted.

use crate::job_adapters::{JobView, TemplateSource};
use crate::key::ObjectKey;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use lockkeeper_api::workload::DisruptionMode;
use lockkeeper_cluster_state::PodGroupSource;
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

/// Completes the group of a pod that names a `PodGroup` by what that says. A pod that was started stays what it was: one of its
/// group, or alone. One that waits without the object stays as it is known.
pub(in crate::reconciler) fn apply_pod_group(
    policies: &PodGroupPolicies,
    known: Option<&JobView>,
    pod: &mut JobView,
) {
    let Some(claim) = &mut pod.group else {
        return;
    };
    let PodGroupSource::PodGroup { total } = claim.source else {
        return;
    };
    let known = known.filter(|it| it.uid == pod.uid).map(|it| &it.group);
    let policy = policies.get(&claim.group);
    let is_gang = policy.map(|it| it.min_count.is_some());
    let is_started = !pod.is_suspended;
    let is_alone = match known {
        Some(group) if is_started || is_gang.is_none() => group.is_none(),
        None if is_started => claim.started_in.is_none(),
        _ => is_gang == Some(false),
    };
    if is_alone {
        pod.group = None;
        return;
    }
    if let Some(least) = policy.and_then(|it| it.min_count) {
        claim.needed = least;
        claim.total = Some(total.unwrap_or(least).max(least));
    } else if let Some(Some(before)) = known {
        claim.needed = before.needed;
        claim.total = before.total;
    } else if is_started {
        // Enough pods of its group exist: they were admitted.
        claim.needed = 1;
    }
    let mode = policy.and_then(|it| it.disruption_mode);
    pod.disruption_mode = pod.disruption_mode.or(mode);
    // The templates of a group are those of its pod sets.
    pod.template_source = TemplateSource::NotKept;
}
