//! Metrics with labels, with every child created at the start.
//!
//! A request needs no text lookup and no allocation, a series exists before its first event, and no
//! input can create a new one.

use crate::metric_labels::LabelValues;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;

/// One child for each combination of label values.
pub(crate) struct FixedFamily<M> {
    name: &'static str,
    help: &'static str,
    metric_type: MetricType,
    /// The number of values of each label.
    sizes: Vec<usize>,
    children: Vec<(Vec<(&'static str, String)>, M)>,
}

impl<M: EncodeMetric> FixedFamily<M> {
    /// Creates all children, in the order of the labels and of their values. `make` gets the index of each
    /// label's value.
    pub(super) fn new(
        name: &'static str,
        help: &'static str,
        metric_type: MetricType,
        labels: &[LabelValues],
        mut make: impl FnMut(&[usize]) -> M,
    ) -> Self {
        let mut combinations: Vec<Vec<usize>> = vec![Vec::new()];
        for (_, values) in labels {
            combinations = combinations
                .iter()
                .flat_map(|indexes| {
                    (0..values.len()).map(move |last| [indexes.as_slice(), &[last]].concat())
                })
                .collect();
        }
        let children = combinations.iter().map(|indexes| {
            let named = labels.iter().zip(indexes);
            let labels = named.filter_map(|((label, values), at)| {
                values.get(*at).map(|value| (*label, value.clone()))
            });
            (labels.collect(), make(indexes))
        });
        Self {
            name,
            help,
            metric_type,
            sizes: labels.iter().map(|(_, values)| values.len()).collect(),
            children: children.collect(),
        }
    }

    /// Returns the child for the indexes of its label values, in the order of the labels.
    pub(crate) fn get<const N: usize>(&self, indexes: [usize; N]) -> Option<&M> {
        let index = self
            .sizes
            .iter()
            .zip(indexes)
            .fold(0_usize, |index, (size, at)| {
                index.saturating_mul(*size).saturating_add(at)
            });
        self.children.get(index).map(|(_, child)| child)
    }
}

impl<M> fmt::Debug for FixedFamily<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FixedFamily").field(&self.name).finish()
    }
}

impl<M: EncodeMetric + Send + Sync + 'static> Collector for FixedFamily<M> {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut family = encoder.encode_descriptor(self.name, self.help, None, self.metric_type)?;
        for (labels, child) in &self.children {
            child.encode(family.encode_family(labels)?)?;
        }
        Ok(())
    }
}

/// A number that is read from another component at each scrape.
pub(super) struct PolledMetric {
    metric_type: MetricType,
    read: Box<dyn Fn() -> i64 + Send + Sync>,
}

impl PolledMetric {
    /// A value that can decrease.
    pub(super) fn gauge(read: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self {
            metric_type: MetricType::Gauge,
            read: Box::new(read),
        }
    }

    /// A value that never decreases.
    pub(super) fn counter(read: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self {
            metric_type: MetricType::Counter,
            read: Box::new(read),
        }
    }
}

impl fmt::Debug for PolledMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PolledMetric")
    }
}

impl EncodeMetric for PolledMetric {
    fn encode(&self, encoder: MetricEncoder) -> fmt::Result {
        let value = (self.read)();
        if matches!(self.metric_type, MetricType::Counter) {
            return ConstCounter::new(u64::try_from(value).unwrap_or_default()).encode(encoder);
        }
        ConstGauge::new(value).encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        self.metric_type
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::registry::Registry;
    use std::sync::Arc;

    #[test]
    fn family_has_one_child_per_label_combination() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let labels = [("a", words(&["x", "y"])), ("b", words(&["1", "2", "3"]))];
        let counters = FixedFamily::new("n", "Help.", MetricType::Counter, &labels, |_| {
            Counter::<u64>::default()
        });
        let counters = Arc::new(counters);
        counters.get([1, 2]).unwrap().inc();
        counters.get([0, 1]).unwrap().inc_by(7);
        assert!(counters.get([2, 0]).is_none());
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Arc::clone(&counters)));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let expected = "# HELP n Help.\n# TYPE n counter\n\
            n_total{a=\"x\",b=\"1\"} 0\nn_total{a=\"x\",b=\"2\"} 7\nn_total{a=\"x\",b=\"3\"} 0\n\
            n_total{a=\"y\",b=\"1\"} 0\nn_total{a=\"y\",b=\"2\"} 0\nn_total{a=\"y\",b=\"3\"} 1\n\
            # EOF\n";
        assert_eq!(text, expected);
    }
}
