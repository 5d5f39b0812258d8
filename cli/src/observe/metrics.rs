//! The metrics of observe mode.

use lockkeeper_kube_support::api_client::WatchAges;
use lockkeeper_observe::{DecisionKind, Report, ResultKind};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::fmt::{self, Write};

/// A label value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Text(&'static str);

impl EncodeLabelValue for Text {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        encoder.write_str(self.0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    decision: Text,
    result: Text,
}

/// The values at one time.
#[derive(Clone, Debug)]
struct Observed {
    report: Report,
    /// Seconds since the last response to each watch.
    ages: Vec<(String, f64)>,
}

/// The metrics of a report, in the `OpenMetrics` text format; `None` if they cannot be written.
pub(super) fn metrics_text(report: Report, ages: &WatchAges) -> Option<String> {
    let ages = ages.ages().into_iter();
    let ages = ages.map(|(kind, age)| (kind, age.as_secs_f64())).collect();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Observed { report, ages }));
    let mut text = String::new();
    encode(&mut text, &registry).ok()?;
    Some(text)
}

impl Collector for Observed {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut decisions = encoder.encode_descriptor(
            "lockkeeper_observed_decisions",
            "Decisions of Kueue that were compared with those of the core, by result.",
            None,
            MetricType::Counter,
        )?;
        for decision in DecisionKind::ALL {
            for result in ResultKind::ALL {
                let labels = DecisionLabels {
                    decision: Text(decision.as_str()),
                    result: Text(result.as_str()),
                };
                let count = ConstCounter::new(self.report.counts(decision).get(result));
                count.encode(decisions.encode_family(&labels)?)?;
            }
        }
        let waiting = u64::try_from(self.report.waiting).unwrap_or(u64::MAX);
        let waiting = ConstGauge::new(i64::try_from(waiting).unwrap_or(i64::MAX));
        waiting.encode(encoder.encode_descriptor(
            "lockkeeper_observed_waiting_decisions",
            "Decisions of Kueue that are not compared yet.",
            None,
            MetricType::Gauge,
        )?)?;
        let unreadable = ConstCounter::new(self.report.unreadable);
        unreadable.encode(encoder.encode_descriptor(
            "lockkeeper_observed_unreadable_objects",
            "Objects of Kueue that could not be read.",
            None,
            MetricType::Counter,
        )?)?;
        let mut ages = encoder.encode_descriptor(
            "lockkeeper_observed_watch_age",
            "Seconds since the last response to a watch, by kind.",
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        for (kind, age) in &self.ages {
            let labels = [("kind", kind.as_str())];
            ConstGauge::new(*age).encode(ages.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::metrics_text;
    use lockkeeper_kube_support::api_client::WatchAges;
    use lockkeeper_observe::Report;
    use lockkeeper_testkit::{documented_metrics, exposed_metrics};

    fn text(report: Report) -> String {
        metrics_text(report, &WatchAges::default()).unwrap()
    }

    #[test]
    fn counts_of_a_report_are_in_the_metrics() {
        let mut report = Report::default();
        report.admissions.agreed = 3;
        report.preemptions.different = 2;
        report.missing.explained = 1;
        let text = text(report);
        for line in [
            "lockkeeper_observed_decisions_total{decision=\"admission\",result=\"agreed\"} 3",
            "lockkeeper_observed_decisions_total{decision=\"preemption\",result=\"different\"} 2",
            "lockkeeper_observed_decisions_total{decision=\"missing\",result=\"explained\"} 1",
            "lockkeeper_observed_waiting_decisions 0",
        ] {
            assert!(text.contains(line), "{line}:\n{text}");
        }
    }

    #[test]
    fn metrics_match_documentation() {
        let exposed = exposed_metrics(&text(Report::default()));
        assert_eq!(exposed, documented_metrics("lockkeeper_observed"));
    }
}
