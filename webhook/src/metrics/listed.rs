//! Counters whose label values the configuration names. They change when it does, and by nothing that a client
//! sends.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

/// The labels of a counter with their values.
pub(super) type Labels = Vec<(&'static str, String)>;

/// One counter for each of the label sets that are listed.
pub(super) struct Listed {
    name: &'static str,
    help: &'static str,
    counters: RwLock<BTreeMap<Labels, Counter>>,
}

impl Listed {
    pub(super) fn new(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            help,
            counters: RwLock::default(),
        }
    }

    /// From now on there are these. What was counted for one that stays is kept.
    pub(super) fn list(&self, all: impl Iterator<Item = Labels>) {
        let mut counters = self
            .counters
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *counters);
        let kept = all.map(|labels| {
            let counter = before.remove(&labels).unwrap_or_default();
            (labels, counter)
        });
        *counters = kept.collect();
    }

    /// One more of these. What is not listed is not counted.
    pub(super) fn count(&self, labels: &Labels) {
        let counters = self.counters.read().unwrap_or_else(PoisonError::into_inner);
        counters.get(labels).map(Counter::inc);
    }
}

impl fmt::Debug for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listed").field(&self.name).finish()
    }
}

impl Collector for Listed {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let counters = self.counters.read().unwrap_or_else(PoisonError::into_inner);
        let counter = MetricType::Counter;
        let mut family = encoder.encode_descriptor(self.name, self.help, None, counter)?;
        for (labels, child) in &*counters {
            child.encode(family.encode_family(labels)?)?;
        }
        Ok(())
    }
}
