//! What the handlers share.

use crate::live_lookup::{LiveLookup, NegativeCache, ObjectLookup};
use crate::metrics::{CertificateProbe, Metrics};
use crate::stores::StoreReadiness;
use arc_swap::ArcSwap;
use lockkeeper_conversion::Converters;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::registry;
use lockkeeper_policies::settings::Settings;
use std::sync::{Arc, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// The state of the server: settings, stores, whom to ask when they miss something, and what was
/// counted.
pub struct AppState {
    settings: ArcSwap<Settings>,
    pub(crate) index: Arc<RwLock<Index>>,
    pub(crate) live_lookup: Option<LiveLookup>,
    pub(crate) readiness: StoreReadiness,
    pub(crate) body_limit_bytes: usize,
    pub(crate) metrics: Metrics,
    pub(crate) converters: Converters,
    #[cfg(feature = "otel")]
    pub(crate) tracer: Option<opentelemetry_sdk::trace::SdkTracer>,
}

impl AppState {
    /// A server that knows the world as it is given and asks nobody.
    #[must_use]
    pub fn offline(settings: Settings, index: Index, body_limit_bytes: usize) -> Self {
        let index = Arc::new(RwLock::new(index));
        Self::new(settings, index, StoreReadiness::always(), body_limit_bytes)
    }

    /// A server whose stores are fed by others, and which asks `source` when they miss something.
    #[must_use]
    pub fn connected(
        settings: Settings,
        index: Arc<RwLock<Index>>,
        readiness: StoreReadiness,
        source: Box<dyn ObjectLookup>,
        body_limit_bytes: usize,
    ) -> Self {
        let app = Self::new(settings, index, readiness, body_limit_bytes);
        let live = LiveLookup::new(source).with_counters(app.metrics.lookup_counters());
        Self {
            live_lookup: Some(live),
            ..app
        }
    }

    fn new(
        settings: Settings,
        index: Arc<RwLock<Index>>,
        readiness: StoreReadiness,
        body_limit_bytes: usize,
    ) -> Self {
        let metrics = Metrics::new(&index, &readiness);
        metrics.apply_settings(&settings);
        log_relaxed_rules(&settings, None);
        log_expired_exceptions(&settings, None);
        Self {
            settings: ArcSwap::from_pointee(settings),
            metrics,
            index,
            live_lookup: None,
            readiness,
            body_limit_bytes,
            converters: Converters::default(),
            #[cfg(feature = "otel")]
            tracer: None,
        }
    }

    /// Remembers in another way what the API server does not have.
    #[must_use]
    pub fn with_negative_cache(mut self, memory: NegativeCache) -> Self {
        self.live_lookup = self
            .live_lookup
            .map(|live| live.with_negative_cache(memory));
        self
    }

    /// Converts objects of these kinds. lockkeeper's own have one version each, so that there are none at first.
    #[must_use]
    pub fn with_converters(mut self, converters: Converters) -> Self {
        self.converters = converters;
        self
    }

    /// Makes spans of the reviews with this tracer.
    #[cfg(feature = "otel")]
    #[must_use]
    pub fn with_tracer(mut self, tracer: opentelemetry_sdk::trace::SdkTracer) -> Self {
        self.tracer = Some(tracer);
        self
    }

    /// Adds the serving certificate to what is measured.
    #[must_use]
    pub fn with_certificate(mut self, probe: CertificateProbe) -> Self {
        self.metrics.add_certificate(probe);
        self
    }

    /// The settings that are in force. A request takes them once, so that it is judged by one state.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// The same, without the exceptions that have ended by now. The clock is looked at only if one of them can.
    pub(crate) fn current_settings(&self) -> Arc<Settings> {
        let settings = self.settings();
        match settings.exceptions.next_expiry() {
            Some(end) => self.settings_at(settings, end, unix_now_seconds()),
            None => settings,
        }
    }

    fn settings_at(&self, settings: Arc<Settings>, end: i64, now: i64) -> Arc<Settings> {
        if now < end {
            return settings;
        }
        // Others may have been put in force in between: what time it is holds for those as well.
        self.settings.rcu(|it| Settings::clone(it).with_time(now));
        let later = self.settings();
        log_expired_exceptions(&later, Some(&settings));
        later
    }

    /// Puts other settings in force, for the requests that come from now on.
    pub fn set_settings(&self, settings: Settings) {
        self.metrics.apply_settings(&settings);
        log_relaxed_rules(&settings, Some(&self.settings()));
        log_expired_exceptions(&settings, Some(&self.settings()));
        self.settings.store(Arc::new(settings));
    }

    /// What was counted and measured.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

/// In seconds since 1970.
fn unix_now_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| i64::try_from(it.as_secs()).unwrap_or(i64::MAX))
}

/// Logs which rules are softened that had not been before, and that schemas refuse by all the same.
fn log_relaxed_rules(settings: &Settings, before: Option<&Settings>) {
    let told = before.map(registry::enforced_by_schema).unwrap_or_default();
    for rule in registry::enforced_by_schema(settings).difference(&told) {
        tracing::warn!(
            rule,
            "the configuration softens this rule, but by default the CRDs of lockkeeper's kinds refuse by it all the \
             same: apply what `lockkeeper crds definitions --config FILE` prints, or leave the rule as it is"
        );
    }
}

/// Logs which exceptions have ended that had not before.
fn log_expired_exceptions(settings: &Settings, before: Option<&Settings>) {
    for exception in settings.exceptions.expired() {
        let mut told = before.into_iter().flat_map(|it| it.exceptions.expired());
        if !told.any(|it| it == exception) {
            tracing::warn!(
                exception = %exception.name,
                expires = %exception.config.expires,
                reason = %exception.config.reason,
                "an exception has ended: what it covered counts again"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use serde_json::json;

    #[test]
    fn exception_expires_without_reload() {
        let exception = json!({
            "rules": ["CQ007"], "selector": {"names": ["a"]}, "reason": "r", "expires": "1970-01-01T00:00:10Z",
        });
        let config = serde_json::from_value(json!({"rules": {"exceptions": [exception]}})).unwrap();
        let settings = registry::settings(&config).unwrap().with_time(9);
        let app = AppState::offline(settings, Index::default(), 65_536);
        let expired = |settings: &Settings| settings.exceptions.expired().count();
        let before = app.settings();
        assert_eq!(expired(&app.settings_at(Arc::clone(&before), 10, 9)), 0);
        assert_eq!(expired(&app.settings_at(before, 10, 10)), 1);
        assert_eq!(expired(&app.settings()), 1);
        assert_eq!(app.settings().exceptions.next_expiry(), None);
    }
}
