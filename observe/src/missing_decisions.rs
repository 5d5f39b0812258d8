//! Decisions of the core that Kueue does not make.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A decision that the core makes and Kueue does not.
#[derive(Clone, Debug)]
struct Expected {
    /// Since when, in milliseconds since 1970.
    since_ms: i64,
    is_reported: bool,
}

/// The decisions of the core on the present state, since when it makes each of them without a break.
#[derive(Clone, Debug, Default)]
pub(crate) struct MissingDecisions {
    expected: BTreeMap<Arc<str>, Expected>,
    next_ms: i64,
}

/// A workload on which Kueue has not decided within the bound.
pub(crate) struct MissingDecision {
    pub(crate) key: Arc<str>,
    /// Since when the core decides so, in milliseconds since 1970.
    pub(crate) since_ms: i64,
    /// The decision of the core, as text.
    pub(crate) text: String,
}

impl MissingDecisions {
    /// Whether the present state should be decided on, at most a dozen times within the bound.
    pub(crate) const fn is_due(&mut self, now_ms: i64, missing_after_ms: i64) -> bool {
        if now_ms < self.next_ms {
            return false;
        }
        self.next_ms = now_ms.saturating_add(missing_after_ms.saturating_div(12));
        true
    }

    /// Takes the decisions of the core on the present state, and returns those that are overdue since now.
    pub(crate) fn update(
        &mut self,
        mut decisions: BTreeMap<Arc<str>, String>,
        now_ms: i64,
        missing_after_ms: i64,
    ) -> Vec<MissingDecision> {
        self.expected.retain(|key, _| decisions.contains_key(key));
        let mut found = Vec::new();
        for (key, text) in std::mem::take(&mut decisions) {
            let expected = self.expected.entry(Arc::clone(&key));
            let expected = expected.or_insert(Expected {
                since_ms: now_ms,
                is_reported: false,
            });
            let since_ms = expected.since_ms;
            if now_ms.saturating_sub(since_ms) >= missing_after_ms && !expected.is_reported {
                expected.is_reported = true;
                found.push(MissingDecision {
                    key,
                    since_ms,
                    text,
                });
            }
        }
        found
    }

    /// Begins again for a workload: Kueue has decided on it.
    pub(crate) fn forget(&mut self, key: &str) {
        self.expected.remove(key);
    }
}
