//! What the server counts and measures, in Prometheus' terms.
//!
//! A request costs a few additions: every child of every metric is made at the start. Numbers that
//! somebody else keeps (stores, certificate) are read when they are asked for.

mod builders;
mod configured_counters;
mod fixed_family;
mod labels;
mod request_observer;
mod rule_hits;
mod server;
mod text_format;

pub use server::serve;

#[cfg(feature = "otel")]
pub(crate) use labels::AdmissionOutcome;
pub(crate) use labels::{ConversionOutcome, LookupOutcome, ReviewPath};
pub(crate) use request_observer::RequestObserver;
pub(crate) use rule_hits::RuleHits;

use crate::stores::StoreReadiness;
use builders::{
    conversion_counters, counter_family, register_family, register_stores, request_counters,
    rule_hit_counters,
};
use configured_counters::ConfiguredCounters;
use fixed_family::{FixedFamily, PolledMetric};
use labels::ReloadOutcome;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::reference::entries;
use lockkeeper_policies::registry::{self, Registration};
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

/// What every name begins with.
const PREFIX: &str = "lockkeeper_webhook";

/// The bounds of the durations, in seconds: from what the cheapest request takes to what makes an API
/// server look slow.
const DURATION_BUCKETS_SECONDS: [f64; 14] = [
    50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3,
    1.0,
];

/// The bounds of the sizes of bodies, in bytes: 1 KiB to 8 MiB.
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

/// What is known of the serving certificate. The closures are called at each scrape.
pub struct CertificateProbe {
    /// When it expires, in seconds since 1970.
    pub not_after_seconds: Box<dyn Fn() -> i64 + Send + Sync>,
    /// How many times a new one was taken.
    pub reloads: Box<dyn Fn() -> i64 + Send + Sync>,
    /// How many times its files were looked at and could not be used.
    pub failures: Box<dyn Fn() -> i64 + Send + Sync>,
    /// How many clients were refused for their certificate.
    pub rejected_clients: Box<dyn Fn() -> i64 + Send + Sync>,
}

/// A kind that has a label value of its own.
#[derive(Debug, PartialEq, Eq)]
struct KindLabel {
    group: String,
    version: String,
    name: String,
    /// How it is counted: kinds of other projects may have the names of ours.
    label: String,
}

impl KindLabel {
    fn from_registration(registered: Registration) -> Self {
        let Registration { group, kind, .. } = registered;
        Self {
            label: match registered.foreign {
                None => kind.clone(),
                Some(_) => format!("{kind}.{group}"),
            },
            group,
            version: registered.version,
            name: kind,
        }
    }
}

/// The kinds that may be sent here.
fn kind_labels() -> Vec<KindLabel> {
    registry::known_registrations()
        .into_iter()
        .map(KindLabel::from_registration)
        .collect()
}

/// All metrics of the server.
pub struct Metrics {
    kinds: Vec<KindLabel>,
    rules: Vec<&'static str>,
    requests: Arc<FixedFamily<Counter>>,
    conversions: Arc<FixedFamily<Counter>>,
    rule_hits: Arc<FixedFamily<Counter>>,
    configured: ConfiguredCounters,
    durations: Arc<FixedFamily<Histogram>>,
    in_flight: Gauge,
    shed: Counter,
    body_bytes: Histogram,
    lookups: Arc<FixedFamily<Counter>>,
    config_reloads: Arc<FixedFamily<Counter>>,
    registry: Registry,
}

impl Metrics {
    /// All at zero. The stores are looked at when somebody asks.
    pub(crate) fn new(index: &Arc<RwLock<Index>>, readiness: &StoreReadiness) -> Self {
        let kinds = kind_labels();
        // A rule that holds for several kinds is counted once.
        let rules: Vec<&'static str> = entries().iter().map(|it| it.rule.id).collect();
        let mut registry = Registry::with_prefix(PREFIX);
        let requests = request_counters(&mut registry, &kinds);
        let conversions = conversion_counters(&mut registry);
        let rule_hits = rule_hit_counters(&mut registry, &rules);
        let durations = register_family(
            &mut registry,
            FixedFamily::new(
                "request_duration_seconds",
                "Time from the head of a request to its answer.",
                MetricType::Histogram,
                &[ReviewPath::label()],
                |_| Histogram::new(DURATION_BUCKETS_SECONDS),
            ),
        );
        let (in_flight, shed) = (Gauge::default(), Counter::default());
        let body_bytes = Histogram::new(BODY_BUCKETS_BYTES);
        registry.register(
            "requests_in_flight",
            "Requests that are being answered",
            in_flight.clone(),
        );
        registry.register(
            "requests_shed",
            "Requests turned away because too many were in flight",
            shed.clone(),
        );
        registry.register(
            "body_bytes",
            "Size of the bodies that were read",
            body_bytes.clone(),
        );
        register_stores(&mut registry, index, readiness);
        let lookups = counter_family(
            &mut registry,
            "live_lookups",
            "Objects that the stores did not have when a rule asked, by what the API server said.",
            &[LookupOutcome::label()],
        );
        let config_reloads = counter_family(
            &mut registry,
            "config_reloads",
            "Changes of the configuration file that were read.",
            &[ReloadOutcome::label()],
        );
        registry.register(
            "build",
            "The version that runs; always 1",
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
            body_bytes,
            lookups,
            config_reloads,
            registry,
        }
    }

    /// Adds what is known of the serving certificate.
    pub(crate) fn add_certificate(&mut self, probe: CertificateProbe) {
        self.registry.register(
            "certificate_not_after_seconds",
            "When the serving certificate expires, in seconds since 1970",
            PolledMetric::gauge(probe.not_after_seconds),
        );
        let mut reads = [Some(probe.reloads), Some(probe.failures)].into_iter();
        let reloads = FixedFamily::new(
            "certificate_reloads",
            "Looks at the certificate's files or its Secret: a new one was taken, or it could not be used.",
            MetricType::Counter,
            &[ReloadOutcome::label()],
            |_| PolledMetric::counter(reads.next().flatten().unwrap_or_else(|| Box::new(|| 0))),
        );
        register_family(&mut self.registry, reloads);
        self.registry.register(
            "clients_refused",
            "Clients refused for their certificate, or for having none",
            PolledMetric::counter(probe.rejected_clients),
        );
    }

    fn count_hits(&self, hits: &RuleHits) {
        for (rule, action) in hits.iter() {
            match self.rules.iter().position(|known| known == rule) {
                Some(rule) => {
                    let counter = self.rule_hits.get([rule, action.place()]);
                    counter.map(Counter::inc);
                }
                None => self.configured.count_rule_hit(rule, action),
            }
        }
        for exception in hits.exceptions() {
            self.configured.count_exception(&exception.name);
        }
    }

    /// Counts for the rules of users and the exceptions that there are from now on.
    pub(crate) fn apply_settings(&self, settings: &Settings) {
        self.configured.apply_settings(settings);
    }

    /// A request was turned away because there are too many.
    pub(crate) fn count_shed(&self) {
        self.shed.inc();
    }

    /// The counters of live lookups, for whoever makes them.
    pub(crate) fn lookup_counters(&self) -> LookupCounters {
        LookupCounters(Some(Arc::clone(&self.lookups)))
    }

    /// A change of the configuration was read: does it hold from now on?
    pub fn config_reloaded(&self, applied: bool) {
        let reload = if applied {
            ReloadOutcome::Applied
        } else {
            ReloadOutcome::Rejected
        };
        self.config_reloads.get([reload.place()]).map(Counter::inc);
    }

    /// All of them in the text format of `OpenMetrics`.
    #[must_use]
    pub fn openmetrics(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail, and neither does reading a number.
        let _ = openmetrics::encode(&mut out, &self.registry);
        out
    }

    /// All of them in Prometheus' own text format.
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

/// The counters of live lookups; the default counts nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct LookupCounters(Option<Arc<FixedFamily<Counter>>>);

impl LookupCounters {
    /// One more came to this.
    pub(crate) fn count(&self, result: LookupOutcome) {
        let counters = self.0.as_ref();
        counters
            .and_then(|counters| counters.get([result.place()]))
            .map(Counter::inc);
    }
}
