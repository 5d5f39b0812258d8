//! Prometheus metrics of the webhook.
//!
//! A request costs a few additions, because all children of all metrics are created at the start. Values of
//! other components (stores, certificate) are read at each scrape.

mod builders;
mod configured_counters;
mod fixed_family;
mod kind_label;
mod text_format;

pub(crate) use text_format::TextFormat;

use crate::metric_labels::{LookupOutcome, ReloadOutcome, ReviewPath};
use crate::rule_hits::RuleHits;
use crate::stores::StoreReadiness;
use builders::{
    conversion_counters, counter_family, register_family, register_stores, request_counters,
    rule_hit_counters,
};
use configured_counters::ConfiguredCounters;
use fixed_family::{FixedFamily, PolledMetric};
use kind_label::{KindLabel, kind_labels};
use lockkeeper_policies::index::Index;
use lockkeeper_policies::reference::entries;
use lockkeeper_policies::settings::Settings;
use prometheus_client::encoding::text as openmetrics;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::{Arc, RwLock};

/// The prefix of every metric name.
const PREFIX: &str = "lockkeeper_webhook";

/// Bucket bounds of durations, in seconds: from the fastest requests to those that slow the API server
/// noticeably.
const DURATION_BUCKETS_SECONDS: [f64; 14] = [
    50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3,
    1.0,
];

/// Bucket bounds of body sizes, in bytes: 1 KiB to 8 MiB.
const BODY_BUCKETS_BYTES: [f64; 8] = [
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    8_388_608.0,
];

/// Metrics of the serving certificate. The closures are called at each scrape.
pub struct CertificateProbe {
    /// The expiry time, in seconds since 1970.
    pub not_after_seconds: Box<dyn Fn() -> i64 + Send + Sync>,
    /// The number of new certificates that were loaded.
    pub reloads: Box<dyn Fn() -> i64 + Send + Sync>,
    /// The number of checks of the files or the Secret that found an unusable certificate.
    pub failures: Box<dyn Fn() -> i64 + Send + Sync>,
    /// The number of clients that were rejected for their certificate.
    pub rejected_clients: Box<dyn Fn() -> i64 + Send + Sync>,
}

/// All metrics of the webhook.
pub struct Metrics {
    pub(crate) kinds: Vec<KindLabel>,
    rules: Vec<&'static str>,
    pub(crate) requests: Arc<FixedFamily<Counter>>,
    pub(crate) conversions: Arc<FixedFamily<Counter>>,
    rule_hits: Arc<FixedFamily<Counter>>,
    configured: ConfiguredCounters,
    pub(crate) durations: Arc<FixedFamily<Histogram>>,
    pub(crate) in_flight: Gauge,
    shed: Counter,
    rejected_tokens: Counter,
    pub(crate) body_bytes: Histogram,
    lookups: Arc<FixedFamily<Counter>>,
    config_reloads: Arc<FixedFamily<Counter>>,
    registry: Registry,
}

impl Metrics {
    /// Registers all metrics with the value zero. Those of the stores are read at each scrape.
    pub(crate) fn new(index: &Arc<RwLock<Index>>, readiness: &StoreReadiness) -> Self {
        let kinds = kind_labels();
        // A rule that applies to several kinds has one label value.
        let rules: Vec<&'static str> = entries().iter().map(|entry| entry.rule.id).collect();
        let mut registry = Registry::with_prefix(PREFIX);
        let requests = request_counters(&mut registry, &kinds);
        let conversions = conversion_counters(&mut registry);
        let rule_hits = rule_hit_counters(&mut registry, &rules);
        let durations = register_family(
            &mut registry,
            FixedFamily::new(
                "request_duration_seconds",
                "Time from the head of a request to its response.",
                MetricType::Histogram,
                &[ReviewPath::label()],
                |_| Histogram::new(DURATION_BUCKETS_SECONDS),
            ),
        );
        let (in_flight, shed) = (Gauge::default(), Counter::default());
        let body_bytes = Histogram::new(BODY_BUCKETS_BYTES);
        registry.register(
            "requests_in_flight",
            "Requests in flight",
            in_flight.clone(),
        );
        registry.register(
            "requests_shed",
            "Requests rejected with 429 because too many were in flight",
            shed.clone(),
        );
        let rejected_tokens = Counter::default();
        registry.register(
            "rejected_tokens",
            "Reviews rejected because no token shows that an API server sends them",
            rejected_tokens.clone(),
        );
        registry.register("body_bytes", "Size of request bodies", body_bytes.clone());
        register_stores(&mut registry, index, readiness);
        let lookups = counter_family(
            &mut registry,
            "live_lookups",
            "Lookups of objects that a rule needed and the stores did not have, by result.",
            &[LookupOutcome::label()],
        );
        let config_reloads = counter_family(
            &mut registry,
            "config_reloads",
            "Reloads of the configuration file, by result.",
            &[ReloadOutcome::label()],
        );
        registry.register(
            "build",
            "The running version; always 1",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        Self {
            kinds,
            rules,
            requests,
            conversions,
            rule_hits,
            configured: ConfiguredCounters::new(&mut registry),
            durations,
            in_flight,
            shed,
            rejected_tokens,
            body_bytes,
            lookups,
            config_reloads,
            registry,
        }
    }

    /// Registers the metrics of the serving certificate.
    pub(crate) fn add_certificate(&mut self, probe: CertificateProbe) {
        self.registry.register(
            "certificate_not_after_seconds",
            "When the serving certificate expires, in seconds since 1970",
            PolledMetric::gauge(probe.not_after_seconds),
        );
        // In the order of the values of `ReloadOutcome`.
        let mut reads = [Some(probe.reloads), Some(probe.failures)].into_iter();
        let reloads = FixedFamily::new(
            "certificate_reloads",
            "Reloads of the certificate from its files or its Secret, by result.",
            MetricType::Counter,
            &[ReloadOutcome::label()],
            |_| PolledMetric::counter(reads.next().flatten().unwrap_or_else(|| Box::new(|| 0))),
        );
        register_family(&mut self.registry, reloads);
        self.registry.register(
            "clients_rejected",
            "Clients rejected for an invalid or missing certificate",
            PolledMetric::counter(probe.rejected_clients),
        );
    }

    pub(crate) fn count_hits(&self, hits: &RuleHits) {
        for (rule, action) in hits.iter() {
            match self.rules.iter().position(|id| id == rule) {
                Some(rule) => {
                    let counter = self.rule_hits.get([rule, action.index()]);
                    counter.map(Counter::inc);
                }
                // Not a built-in rule, so a user rule.
                None => self.configured.count_rule_hit(rule, action),
            }
        }
        for exception in hits.exceptions() {
            self.configured.count_exception(&exception.name);
        }
    }

    /// Sets the user rules and exceptions that are counted.
    pub(crate) fn apply_settings(&self, settings: &Settings) {
        self.configured.apply_settings(settings);
    }

    /// Counts a request that was rejected with 429.
    pub(crate) fn count_rejected_token(&self) {
        self.rejected_tokens.inc();
    }

    pub(crate) fn count_shed(&self) {
        self.shed.inc();
    }

    /// Returns the counters of live lookups.
    pub(crate) fn lookup_counters(&self) -> LookupCounters {
        LookupCounters(Some(Arc::clone(&self.lookups)))
    }

    /// Counts a reload of the configuration; `applied` is false if it was invalid.
    pub fn config_reloaded(&self, applied: bool) {
        let reload = if applied {
            ReloadOutcome::Applied
        } else {
            ReloadOutcome::Rejected
        };
        self.config_reloads.get([reload.index()]).map(Counter::inc);
    }

    /// Returns all metrics in the text format of `OpenMetrics`.
    #[must_use]
    pub fn openmetrics(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = openmetrics::encode(&mut out, &self.registry);
        out
    }

    /// Returns all metrics in the Prometheus text format.
    #[must_use]
    pub fn prometheus(&self) -> String {
        text_format::to_prometheus(&self.openmetrics())
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// The counters of live lookups; the default has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct LookupCounters(Option<Arc<FixedFamily<Counter>>>);

impl LookupCounters {
    /// Counts one lookup.
    pub(crate) fn count(&self, result: LookupOutcome) {
        let counters = self.0.as_ref();
        counters
            .and_then(|counters| counters.get([result.index()]))
            .map(Counter::inc);
    }
}
