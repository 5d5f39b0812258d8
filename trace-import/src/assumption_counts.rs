//! Counts of assumptions.

use lockkeeper_simulate::timeline::Assumption;
use std::collections::BTreeMap;

/// The assumptions of an import, and how often each was made.
#[derive(Clone, Debug, Default)]
pub(crate) struct AssumptionCounts {
    counts: BTreeMap<String, u64>,
}

impl AssumptionCounts {
    /// Counts an assumption once more.
    pub(crate) fn add(&mut self, text: &str) {
        self.add_times(text, 1);
    }

    /// Counts an assumption for a number of jobs; 0 has no effect.
    pub(crate) fn add_times(&mut self, text: &str, times: u64) {
        if times == 0 {
            return;
        }
        if let Some(count) = self.counts.get_mut(text) {
            *count = count.saturating_add(times);
        } else {
            self.counts.insert(text.to_owned(), times);
        }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the assumptions, sorted by text.
    pub(crate) fn into_assumptions(self) -> Vec<Assumption> {
        let counts = self.counts.into_iter();
        counts
            .map(|(text, count)| Assumption { text, count })
            .collect()
    }
}
