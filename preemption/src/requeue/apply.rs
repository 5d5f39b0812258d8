//! The effect of a step on a workload's state.

use super::lifecycle::{AdmissionCheckStates, EvictedCondition, LifecycleState};
use super::reason::EvictionReason;
use super::step::LifecycleStep;
use super::time;

impl LifecycleState {
    /// Applies a step, as the API server would store it.
    pub fn apply(&mut self, step: &LifecycleStep, now_ms: i64) {
        match *step {
            LifecycleStep::Idle | LifecycleStep::Wait(_) => {}
            LifecycleStep::SetRequeueState(state) => self.requeue_state = state,
            LifecycleStep::SetDeactivationTarget(target) => {
                self.deactivation_target = Some(target.cause());
            }
            LifecycleStep::Deactivate => self.is_active = false,
            LifecycleStep::Evict(eviction) => {
                let at_s = time::to_second(now_ms);
                let reason = eviction.reason;
                self.evicted = Some(EvictedCondition { reason, at_s });
                self.requeue_state = eviction.requeue_state;
                // The eviction resets all checks to `Pending`, as in Kueue.
                self.admission_checks = AdmissionCheckStates::default();
                if matches!(reason, EvictionReason::Deactivated(_)) {
                    self.deactivation_target = None;
                }
            }
            LifecycleStep::ClearRequeueState => {
                self.requeue_state = None;
                self.deactivation_target = None;
            }
            LifecycleStep::Requeue(requeue) => {
                self.not_requeued_reason = None;
                self.requeue_state = requeue.requeue_state;
            }
        }
    }
}
