//! What a step does to a workload.

use super::instant;
use super::reason::EvictionReason;
use super::standing::{Checks, Evicted, Standing};
use super::step::Step;

impl Standing {
    /// What a step writes, and what the API server holds after it.
    pub fn apply(&mut self, step: &Step, now_ms: i64) {
        match *step {
            Step::Rest | Step::Wait(_) => {}
            Step::Record(state) => self.state = state,
            Step::Target(target) => self.target = Some(target.cause()),
            Step::Deactivate => self.is_active = false,
            Step::Evict(eviction) => {
                let at_s = instant::second(now_ms);
                let reason = eviction.reason;
                self.evicted = Some(Evicted { reason, at_s });
                self.state = eviction.state;
                self.checks = Checks::default();
                if matches!(reason, EvictionReason::Deactivated(_)) {
                    self.target = None;
                }
            }
            Step::Forget => {
                self.state = None;
                self.target = None;
            }
            Step::Requeue(requeue) => {
                self.held_for = None;
                self.state = requeue.state;
            }
        }
    }
}
