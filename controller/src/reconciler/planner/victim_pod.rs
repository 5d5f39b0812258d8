//! Plans the eviction of pods for a nominated workload.
//!
//! The Eviction API respects disruption budgets. A pod whose eviction violates a budget although the plan has no better
//! victim is deleted, as kube-scheduler does; the condition `DisruptionTarget` precedes its deletion.

use crate::key::ObjectKey;
use crate::reconciler::plan::{Action, Plan, VictimPodAction};
use crate::reconciler::state::View;
use lockkeeper_preemption::job::VictimAction;

/// The pause before an eviction without effect is requested again, in milliseconds.
const REQUEST_PAUSE_MS: i64 = 30_000;

/// Plans the eviction of a pod.
pub(crate) fn plan_victim_pod<'a>(view: View<'a>, key: &ObjectKey) -> Plan<'a> {
    let victim = view.placement.and_then(|it| it.victims.get(key));
    let Some(victim) = victim else {
        return Plan::NOTHING;
    };
    let again_ms = victim
        .requested_at_ms
        .map(|at_ms| at_ms.saturating_add(REQUEST_PAUSE_MS));
    if let Some(at_ms) = again_ms.filter(|at_ms| *at_ms > view.now_ms) {
        return Plan::at(at_ms);
    }
    Plan::write(Action::VictimPod(
        if victim.action == VictimAction::SoftEvict {
            VictimPodAction::SoftEvict
        } else if !victim.violates_budget {
            VictimPodAction::Evict
        } else if victim.is_marked {
            VictimPodAction::Delete
        } else {
            VictimPodAction::MarkDisrupted
        },
    ))
}
