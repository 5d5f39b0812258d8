//! `status.requeueState`: the count and times that outlive an eviction.

/// The maximum count, which is an int32 in the API.
const COUNT_MAX: u32 = i32::MAX.unsigned_abs();

/// `status.requeueState`. The count only grows and the time only moves forward; a deactivation drops both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequeueState {
    /// How many times it was requeued because its pods were not ready (`count`); `None` means never.
    pub count: Option<u32>,
    /// The end of its backoff (`requeueAt`), in seconds since 1970.
    pub requeue_at_s: Option<i64>,
    /// When its pods were first not ready in time (`firstEvictedAt`), in seconds since 1970. Set only with a time
    /// limit, and only until its pods are ready.
    pub first_evicted_at_s: Option<i64>,
}

impl RequeueState {
    /// How many times it was requeued.
    #[must_use]
    pub fn requeue_count(&self) -> u32 {
        self.count.unwrap_or_default()
    }

    /// Defers the workload until a time, unless it is deferred for longer already, and optionally increments the count,
    /// which saturates at the largest int32. Returns whether anything changed.
    ///
    /// Source: Kueue `pkg/workload`, `SetRequeueState`.
    pub fn defer_until(&mut self, until_s: i64, is_counted: bool) -> bool {
        let mut changed = false;
        if self.requeue_at_s.is_none_or(|at_s| at_s < until_s) {
            self.requeue_at_s = Some(until_s);
            changed = true;
        }
        if is_counted {
            self.count = Some(self.requeue_count().saturating_add(1).min(COUNT_MAX));
            changed = true;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNT_MAX, RequeueState};

    #[test]
    fn defer_until_earlier_time_changes_nothing() {
        let mut state = RequeueState::default();
        assert!(state.defer_until(300, false));
        assert_eq!((state.count, state.requeue_at_s), (None, Some(300)));
        assert!(!state.defer_until(300, false));
        assert!(!state.defer_until(-1, false));
        assert!(state.defer_until(200, true));
        assert_eq!((state.count, state.requeue_at_s), (Some(1), Some(300)));
    }

    #[test]
    fn count_saturates_at_int32_max() {
        let mut state = RequeueState {
            count: Some(COUNT_MAX - 1),
            ..RequeueState::default()
        };
        state.defer_until(0, true);
        state.defer_until(0, true);
        assert_eq!(state.requeue_count(), 2_147_483_647);
    }
}
