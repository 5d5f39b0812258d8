//! Counters with label values from the configuration. The series change only with it, never by a request.

use crate::metric_labels::HitAction;
use lockkeeper_policies::settings::Settings;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Counters of user rules and exceptions.
#[derive(Debug)]
pub(super) struct ConfiguredCounters {
    user_rule_hits: Arc<LabelSetCounters>,
    exceptions: Arc<LabelSetCounters>,
}

impl ConfiguredCounters {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let mut register = |name, help| {
            let counters = Arc::new(LabelSetCounters::new(name, help));
            registry.register_collector(Box::new(Arc::clone(&counters)));
            counters
        };
        Self {
            user_rule_hits: register(
                "user_rule_hits",
                "Admission reviews in which a user rule had a finding, by action.",
            ),
            exceptions: register(
                "exceptions_used",
                "Admission reviews in which an exception applied to a finding.",
            ),
        }
    }

    /// Sets the rules and exceptions that are counted.
    pub(super) fn apply_settings(&self, settings: &Settings) {
        let rules = settings.user_rules.iter().flat_map(|rule| {
            let actions = HitAction::ALL.iter();
            actions.map(|action| rule_labels(&rule.id, *action))
        });
        self.user_rule_hits.set_label_sets(rules);
        let exceptions = settings.exceptions.all().iter();
        self.exceptions
            .set_label_sets(exceptions.map(|exception| exception_labels(&exception.name)));
    }

    pub(super) fn count_rule_hit(&self, id: &str, action: HitAction) {
        self.user_rule_hits.count(&rule_labels(id, action));
    }

    pub(super) fn count_exception(&self, name: &str) {
        self.exceptions.count(&exception_labels(name));
    }
}

fn rule_labels(id: &str, action: HitAction) -> Labels {
    vec![
        ("rule", id.to_owned()),
        ("action", action.as_str().to_owned()),
    ]
}

fn exception_labels(name: &str) -> Labels {
    vec![("exception", name.to_owned())]
}

/// The labels of a counter with their values.
type Labels = Vec<(&'static str, String)>;

/// One counter for each configured label set.
struct LabelSetCounters {
    name: &'static str,
    help: &'static str,
    counters: RwLock<BTreeMap<Labels, Counter>>,
}

impl LabelSetCounters {
    fn new(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            help,
            counters: RwLock::default(),
        }
    }

    /// Sets the label sets. A counter that stays keeps its value.
    fn set_label_sets(&self, all: impl Iterator<Item = Labels>) {
        let mut counters = self
            .counters
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        // A counter must not go back to zero at a reload, as long as its labels are configured.
        let mut previous = std::mem::take(&mut *counters);
        let kept = all.map(|labels| {
            let counter = previous.remove(&labels).unwrap_or_default();
            (labels, counter)
        });
        *counters = kept.collect();
    }

    /// Increments a counter. A label set that is not configured is ignored.
    fn count(&self, labels: &Labels) {
        let counters = self.counters.read().unwrap_or_else(PoisonError::into_inner);
        counters.get(labels).map(Counter::inc);
    }
}

impl fmt::Debug for LabelSetCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LabelSetCounters").field(&self.name).finish()
    }
}

impl Collector for LabelSetCounters {
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
