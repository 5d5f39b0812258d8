//! Prometheus metrics of the controller.

use super::metric_labels::{
    DecisionLabels, EvictionLabels, PreemptionStepLabels, QueueLabels, QuotaLabels, ReasonLabels,
    Text, UnadmittedLabels, WatchLabels, WriteLabels,
};
use crate::{Counters, Eviction, Reconciler, WritePurpose, WriteResult};
use lockkeeper_kube_support::api_client::WatchAges;
use lockkeeper_preemption::{DampingView, State};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The prefix of all metric names.
const PREFIX: &str = "lockkeeper_controller";

type FloatGauge = Gauge<f64, AtomicU64>;

/// The values of the label `result`.
const RESULTS: [&str; 7] = [
    "done",
    "conflict",
    "already_exists",
    "not_found",
    "rejected",
    "failed",
    "dry_run",
];

/// All metrics of the controller.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    writes: Family<WriteLabels, Counter>,
    write_seconds: Histogram,
    decide_seconds: Histogram,
    wait_seconds: Histogram,
    lag_seconds: Histogram,
    cycles: Counter,
    decisions: Family<DecisionLabels, Counter>,
    admitted: Counter,
    backfilled: Counter,
    victims: Family<ReasonLabels, Counter>,
    dropped_events: Counter,
    decision_log_bytes: Counter,
    decision_log_gaps: Counter,
    preemption_steps: Family<PreemptionStepLabels, Gauge>,
    pending: Family<QueueLabels, Gauge>,
    reserving: Family<QueueLabels, Gauge>,
    unadmitted: Family<UnadmittedLabels, Gauge>,
    resource_usage: Family<QuotaLabels, FloatGauge>,
    nominal_quota: Family<QuotaLabels, FloatGauge>,
    evictions: Family<EvictionLabels, Counter>,
    first_evictions: Family<EvictionLabels, Counter>,
    /// The series of both families of evictions.
    eviction_labels: HashSet<EvictionLabels>,
    stuck_evictions: Gauge,
    watch_age: Family<WatchLabels, Gauge>,
    leading: Gauge,
    in_flight: Gauge,
    last_counters: Counters,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.000_1, 4.0, 10));
        let mut metrics = Self {
            writes: Family::default(),
            write_seconds: seconds(),
            decide_seconds: seconds(),
            wait_seconds: Histogram::new(exponential_buckets(0.5, 2.0, 16)),
            lag_seconds: seconds(),
            cycles: Counter::default(),
            decisions: Family::default(),
            admitted: Counter::default(),
            backfilled: Counter::default(),
            victims: Family::default(),
            dropped_events: Counter::default(),
            decision_log_bytes: Counter::default(),
            decision_log_gaps: Counter::default(),
            preemption_steps: Family::default(),
            pending: Family::default(),
            reserving: Family::default(),
            unadmitted: Family::default(),
            resource_usage: Family::default(),
            nominal_quota: Family::default(),
            evictions: Family::default(),
            first_evictions: Family::default(),
            eviction_labels: HashSet::new(),
            stuck_evictions: Gauge::default(),
            watch_age: Family::default(),
            leading: Gauge::default(),
            in_flight: Gauge::default(),
            last_counters: Counters::default(),
            registry: Registry::with_prefix(PREFIX),
        };
        metrics.register_counters();
        metrics.register_gauges();
        metrics.register_times();
        metrics.begin_at_zero();
        metrics
    }

    fn register_counters(&mut self) {
        let all = &mut self.registry;
        let help = "Writes, by purpose and result";
        all.register("writes", help, self.writes.clone());
        all.register("cycles", "Admission cycles", self.cycles.clone());
        let help = "Decisions of cycles about single workloads";
        all.register("decisions", help, self.decisions.clone());
        all.register("admitted", "Admissions written", self.admitted.clone());
        let help = "Workloads admitted ahead of the head of their ClusterQueue, by backfill";
        all.register("backfilled", help, self.backfilled.clone());
        let help = "Workloads preempted, by reason; with OnNodes also pods without a Workload";
        all.register("victims", help, self.victims.clone());
        let help = "Evictions, by the ClusterQueue that had admitted the workload and by reason";
        all.register("evictions", help, self.evictions.clone());
        let help = "Workloads evicted for this reason for the first time";
        all.register("first_evictions", help, self.first_evictions.clone());
        let help = "Bytes written to the decision log";
        all.register("decision_log_bytes", help, self.decision_log_bytes.clone());
        let help = "How often decisions are missing in the decision log: it could not be written, or not fast enough";
        all.register("decision_log_gaps", help, self.decision_log_gaps.clone());
        let help = "Events dropped because too many were pending";
        all.register("events_dropped", help, self.dropped_events.clone());
    }

    fn register_gauges(&mut self) {
        let all = &mut self.registry;
        let help = "Workloads preempted, of these admitted again, of those preempted again";
        all.register("preemption_repeats", help, self.preemption_steps.clone());
        let help = "Pending workloads, by ClusterQueue";
        all.register("pending_workloads", help, self.pending.clone());
        let help = "Workloads with reserved quota, by ClusterQueue";
        all.register("reserving_workloads", help, self.reserving.clone());
        let help = "Pending workloads, by ClusterQueue and reason of the condition QuotaReserved";
        all.register("unadmitted_workloads", help, self.unadmitted.clone());
        let help = "Quota that admitted workloads use, in cores, bytes or numbers";
        all.register("resource_usage", help, self.resource_usage.clone());
        let help = "Nominal quota, in cores, bytes or numbers";
        all.register("resource_nominal_quota", help, self.nominal_quota.clone());
        let help =
            "Workloads that have not released their quota within the bound after their eviction";
        all.register("stuck_evictions", help, self.stuck_evictions.clone());
        let help = "Seconds since the last response to a watch, by kind";
        all.register("watch_age_seconds", help, self.watch_age.clone());
        let help = "1 while this process is the leader";
        all.register("leading", help, self.leading.clone());
        let help = "In-flight writes";
        all.register("writes_under_way", help, self.in_flight.clone());
    }

    fn register_times(&mut self) {
        let times = [
            (
                "write",
                "Duration of a write, until its response",
                &self.write_seconds,
            ),
            (
                "decide",
                "Duration of a poll: scheduling cycles and planning",
                &self.decide_seconds,
            ),
            (
                "time_to_admission",
                "From the creation of a workload to its admission, each time it is admitted",
                &self.wait_seconds,
            ),
            (
                "watch_lag",
                "Time from the response to a write until the watch shows it",
                &self.lag_seconds,
            ),
        ];
        for (name, help, of) in times {
            self.registry
                .register_with_unit(name, help, Unit::Seconds, of.clone());
        }
    }

    /// Creates every series at zero, so that `rate()` counts the first event, too.
    fn begin_at_zero(&self) {
        for what in WritePurpose::ALL {
            for result in RESULTS {
                let what = Text(what.as_str());
                let result = Text(result);
                drop(self.writes.get_or_create(&WriteLabels { what, result }));
            }
        }
        let zero = Counters::default();
        for (reason, _) in zero.victims {
            let reason = Text(reason.as_str());
            drop(self.victims.get_or_create(&ReasonLabels { reason }));
        }
        for (decision, _) in zero.decisions {
            let decision = Text(decision);
            drop(self.decisions.get_or_create(&DecisionLabels { decision }));
        }
    }

    pub(super) fn record_write(&self, what: WritePurpose, result: &WriteResult, took: Duration) {
        let result = Text(match result {
            WriteResult::Done(_) | WriteResult::Read(_) => "done",
            WriteResult::Conflict => "conflict",
            WriteResult::AlreadyExists => "already_exists",
            WriteResult::NotFound => "not_found",
            WriteResult::Rejected(_) => "rejected",
            WriteResult::Failed(_) | WriteResult::ServerError(_) => "failed",
            WriteResult::DryRun => "dry_run",
        });
        let labels = WriteLabels {
            what: Text(what.as_str()),
            result,
        };
        self.writes.get_or_create(&labels).inc();
        self.write_seconds.observe(took.as_secs_f64());
    }

    pub(super) fn record_cycles(&mut self, reconciler: &mut Reconciler, took: Duration) {
        self.decide_seconds.observe(took.as_secs_f64());
        let now = reconciler.counters();
        // The reconciler has totals, and Prometheus counters are incremented.
        let before = std::mem::replace(&mut self.last_counters, now);
        self.cycles.inc_by(now.cycles.saturating_sub(before.cycles));
        self.admitted
            .inc_by(now.admitted.saturating_sub(before.admitted));
        self.backfilled
            .inc_by(now.backfilled.saturating_sub(before.backfilled));
        self.dropped_events
            .inc_by(now.dropped_events.saturating_sub(before.dropped_events));
        for ((decision, now), (_, before)) in now.decisions.into_iter().zip(before.decisions) {
            let more = now.saturating_sub(before);
            if more > 0 {
                let decision = Text(decision);
                let of = self.decisions.get_or_create(&DecisionLabels { decision });
                of.inc_by(more);
            }
        }
        for ((reason, now), (_, before)) in now.victims.iter().zip(before.victims) {
            let more = now.saturating_sub(before);
            if more > 0 {
                let labels = ReasonLabels {
                    reason: Text(reason.as_str()),
                };
                self.victims.get_or_create(&labels).inc_by(more);
            }
        }
        for eviction in reconciler.take_evictions() {
            self.record_eviction(eviction);
        }
        for waited_s in reconciler.take_admission_waits() {
            #[allow(clippy::cast_precision_loss, reason = "seconds of a wait")]
            self.wait_seconds.observe(waited_s as f64);
        }
        self.in_flight
            .set(i64::try_from(reconciler.in_flight_writes()).unwrap_or(i64::MAX));
    }

    fn record_eviction(&mut self, eviction: Eviction) {
        let (reason, cause) = eviction.reason.reason_and_cause();
        let labels = EvictionLabels {
            cluster_queue: eviction.cluster_queue,
            reason: Text(reason),
            underlying_cause: Text(cause),
        };
        self.evictions.get_or_create(&labels).inc();
        if eviction.is_first {
            self.first_evictions.get_or_create(&labels).inc();
        }
        self.eviction_labels.insert(labels);
    }

    /// Removes the series of deleted ClusterQueues.
    fn remove_eviction_series(&mut self, state: &State) {
        let (evictions, first_evictions) = (&self.evictions, &self.first_evictions);
        self.eviction_labels.retain(|labels| {
            let exists = state.queue(&labels.cluster_queue).is_some();
            if !exists {
                evictions.remove(labels);
                first_evictions.remove(labels);
            }
            exists
        });
    }

    fn set_usage(&self, reconciler: &Reconciler) {
        self.resource_usage.clear();
        self.nominal_quota.clear();
        for usage in reconciler.quota_usage() {
            let labels = QuotaLabels {
                cluster_queue: usage.cluster_queue.to_owned(),
                flavor: usage.flavor.to_owned(),
                resource: usage.resource.to_owned(),
            };
            self.resource_usage.get_or_create(&labels).set(usage.used);
            self.nominal_quota.get_or_create(&labels).set(usage.nominal);
        }
        self.unadmitted.clear();
        for ((cluster_queue, reason), count) in reconciler.unadmitted_workloads() {
            let labels = UnadmittedLabels {
                cluster_queue: cluster_queue.to_owned(),
                reason: Text(reason),
            };
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.unadmitted.get_or_create(&labels).set(count);
        }
    }

    /// Records the totals since the start of the process.
    pub(super) fn record_decision_log(&self, bytes: u64, gaps: u64) {
        let counters = [
            (&self.decision_log_bytes, bytes),
            (&self.decision_log_gaps, gaps),
        ];
        for (counter, total) in counters {
            counter.inc_by(total.saturating_sub(counter.get()));
        }
    }

    pub(super) fn record_watch_lag(&self, lag: Duration) {
        self.lag_seconds.observe(lag.as_secs_f64());
    }

    pub(super) fn set_leading(&self, is_leading: bool) {
        self.leading.set(i64::from(is_leading));
    }

    /// All metrics in the `OpenMetrics` text format.
    pub(super) fn encode_text(&mut self, reconciler: &Reconciler, watches: &WatchAges) -> String {
        // A kind that was removed from the cluster has no watch.
        self.watch_age.clear();
        for (kind, age) in watches.ages() {
            let seconds = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
            self.watch_age
                .get_or_create(&WatchLabels { kind })
                .set(seconds);
        }
        let state = reconciler.objects().state();
        // Series of deleted ClusterQueues must not stay.
        self.pending.clear();
        self.reserving.clear();
        for (name, queue) in state.queues() {
            let labels = QueueLabels {
                cluster_queue: name.to_owned(),
            };
            let pending = state.node_view(queue).pending_counts();
            let pending = pending.queued.saturating_add(pending.backing_off);
            let number = |it: usize| i64::try_from(it).unwrap_or(i64::MAX);
            self.pending.get_or_create(&labels).set(number(pending));
            self.reserving
                .get_or_create(&labels)
                .set(number(state.node_view(queue).admitted_count()));
        }
        self.remove_eviction_series(state);
        self.set_usage(reconciler);
        let stuck = reconciler.stuck_evictions();
        self.stuck_evictions
            .set(i64::try_from(stuck).unwrap_or(i64::MAX));
        let repeats = DampingView::new(state).repeat_stats();
        for (name, number) in [
            ("preempted", repeats.preempted),
            ("readmitted", repeats.readmitted),
            ("preempted_again", repeats.preempted_again),
        ] {
            let labels = PreemptionStepLabels { step: Text(name) };
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            self.preemption_steps.get_or_create(&labels).set(number);
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use lockkeeper_testkit::{documented_metrics, exposed_metrics};

    fn sample_text() -> String {
        let metrics = Metrics::new();
        // A family without a series is not encoded.
        let cluster_queue = "queue".to_owned();
        let of = QueueLabels { cluster_queue };
        drop(metrics.pending.get_or_create(&of));
        drop(metrics.reserving.get_or_create(&of));
        let kind = "jobs.batch".to_owned();
        drop(metrics.watch_age.get_or_create(&WatchLabels { kind }));
        let of = UnadmittedLabels {
            cluster_queue: "queue".to_owned(),
            reason: Text("Pending"),
        };
        drop(metrics.unadmitted.get_or_create(&of));
        let of = QuotaLabels {
            cluster_queue: "queue".to_owned(),
            flavor: "default".to_owned(),
            resource: "cpu".to_owned(),
        };
        drop(metrics.resource_usage.get_or_create(&of));
        drop(metrics.nominal_quota.get_or_create(&of));
        let of = EvictionLabels {
            cluster_queue: "queue".to_owned(),
            reason: Text("Preempted"),
            underlying_cause: Text(""),
        };
        drop(metrics.evictions.get_or_create(&of));
        drop(metrics.first_evictions.get_or_create(&of));
        let step = Text("preempted");
        drop(
            metrics
                .preemption_steps
                .get_or_create(&PreemptionStepLabels { step }),
        );
        encoded(&metrics)
    }

    fn encoded(metrics: &Metrics) -> String {
        let mut text = String::new();
        encode(&mut text, &metrics.registry).unwrap();
        text
    }

    #[test]
    fn metrics_match_documentation() {
        let exposed = exposed_metrics(&sample_text());
        assert_eq!(exposed, documented_metrics(PREFIX));
    }

    #[test]
    fn metrics_new_has_series_for_every_write_result() {
        let metrics = Metrics::new();
        let before = encoded(&metrics);
        let why = String::new();
        for outcome in [
            WriteResult::Done(1),
            WriteResult::Conflict,
            WriteResult::AlreadyExists,
            WriteResult::NotFound,
            WriteResult::Rejected(why.clone()),
            WriteResult::Failed(why),
            WriteResult::DryRun,
        ] {
            metrics.record_write(WritePurpose::Admit, &outcome, Duration::ZERO);
        }
        let after = encoded(&metrics);
        assert_eq!(before.lines().count(), after.lines().count());
    }
}
