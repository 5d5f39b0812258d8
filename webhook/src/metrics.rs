//! What the server counts and measures, in Prometheus' terms.
//!
//! A request costs a few additions: every child of every metric is made at the start. Numbers that
//! somebody else keeps (stores, certificate) are read when they are asked for.

mod hits;
mod labels;
mod listed;
mod made;
mod observed;
mod port;
mod series;
mod text;

pub use port::{PortLimits, serve, serve_router};

pub(crate) use hits::Hits;
#[cfg(feature = "otel")]
pub(crate) use labels::Outcome;
pub(crate) use labels::{Conversion, Lookup, Path};
pub(crate) use observed::Observed;

use crate::stores::Readiness;
use labels::Reload;
use listed::Configured;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::reference::entries;
use lockkeeper_policies::registry::{self, Registration};
use lockkeeper_policies::settings::Settings;
use made::{conversions, counters, requests, rule_hits, series, stores};
use prometheus_client::encoding::text as openmetrics;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use series::{Probe, Series};
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
    pub applied: Box<dyn Fn() -> i64 + Send + Sync>,
    /// How many times its files were looked at and could not be used.
    pub refused: Box<dyn Fn() -> i64 + Send + Sync>,
    /// How many clients were refused for their certificate.
    pub refused_clients: Box<dyn Fn() -> i64 + Send + Sync>,
}

/// A kind that has a label value of its own.
#[derive(Debug, PartialEq, Eq)]
struct Kind {
    group: String,
    version: String,
    name: String,
    /// How it is counted: kinds of other projects may have the names of ours.
    label: String,
}

impl Kind {
    fn of(registered: Registration) -> Self {
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
fn kinds() -> Vec<Kind> {
    registry::guarded().into_iter().map(Kind::of).collect()
}

/// All metrics of the server.
pub struct Metrics {
    kinds: Vec<Kind>,
    rules: Vec<&'static str>,
    requests: Arc<Series<Counter>>,
    conversions: Arc<Series<Counter>>,
    rule_hits: Arc<Series<Counter>>,
    configured: Configured,
    durations: Arc<Series<Histogram>>,
    in_flight: Gauge,
    shed: Counter,
    body_bytes: Histogram,
    lookups: Arc<Series<Counter>>,
    config_reloads: Arc<Series<Counter>>,
    registry: Registry,
}

impl Metrics {
    /// All at zero. The stores are looked at when somebody asks.
    pub(crate) fn new(index: &Arc<RwLock<Index>>, readiness: &Readiness) -> Self {
        let kinds = kinds();
        // A rule that holds for several kinds is counted once.
        let rules: Vec<&'static str> = entries().iter().map(|it| it.rule.id).collect();
        let mut registry = Registry::with_prefix(PREFIX);
        let requests = requests(&mut registry, &kinds);
        let conversions = conversions(&mut registry);
        let rule_hits = rule_hits(&mut registry, &rules);
        let durations = series(
            &mut registry,
            Series::new(
                "request_duration_seconds",
                "Time from the head of a request to its answer.",
                MetricType::Histogram,
                &[Path::label()],
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
        stores(&mut registry, index, readiness);
        let lookups = counters(
            &mut registry,
            "live_lookups",
            "Objects that the stores did not have when a rule asked, by what the API server said.",
            &[Lookup::label()],
        );
        let config_reloads = counters(
            &mut registry,
            "config_reloads",
            "Changes of the configuration file that were read.",
            &[Reload::label()],
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
            configured: Configured::new(&mut registry),
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
            Probe::gauge(probe.not_after_seconds),
        );
        let mut reads = [Some(probe.applied), Some(probe.refused)].into_iter();
        let reloads = Series::new(
            "certificate_reloads",
            "Looks at the certificate's files or its Secret: a new one was taken, or it could not be used.",
            MetricType::Counter,
            &[Reload::label()],
            |_| Probe::counter(reads.next().flatten().unwrap_or_else(|| Box::new(|| 0))),
        );
        series(&mut self.registry, reloads);
        self.registry.register(
            "clients_refused",
            "Clients refused for their certificate, or for having none",
            Probe::counter(probe.refused_clients),
        );
    }

    fn hit(&self, hits: &Hits) {
        for (rule, action) in hits.iter() {
            match self.rules.iter().position(|known| known == rule) {
                Some(rule) => {
                    let counter = self.rule_hits.at([rule, action.place()]);
                    counter.map(Counter::inc);
                }
                None => self.configured.rule_hit(rule, action),
            }
        }
        for exception in hits.exceptions() {
            self.configured.exception_used(&exception.name);
        }
    }

    /// Counts for the rules of users and the exceptions that there are from now on.
    pub(crate) fn follow(&self, settings: &Settings) {
        self.configured.follow(settings);
    }

    /// A request was turned away because there are too many.
    pub(crate) fn shed(&self) {
        self.shed.inc();
    }

    /// The counters of live lookups, for whoever makes them.
    pub(crate) fn lookups(&self) -> Lookups {
        Lookups(Some(Arc::clone(&self.lookups)))
    }

    /// A change of the configuration was read: does it hold from now on?
    pub fn config_reloaded(&self, applied: bool) {
        let reload = if applied {
            Reload::Applied
        } else {
            Reload::Refused
        };
        self.config_reloads.at([reload.place()]).map(Counter::inc);
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
        text::prometheus(&self.openmetrics())
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// The counters of live lookups; the default counts nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lookups(Option<Arc<Series<Counter>>>);

impl Lookups {
    /// One more came to this.
    pub(crate) fn count(&self, result: Lookup) {
        let counters = self.0.as_ref();
        counters
            .and_then(|counters| counters.at([result.place()]))
            .map(Counter::inc);
    }
}
