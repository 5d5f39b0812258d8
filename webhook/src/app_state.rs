//! The state shared by all handlers.

use crate::caller_tokens::CallerTokens;
use crate::live_lookup::{LiveLookup, NegativeCache, ObjectLookup};
use crate::metrics::{CertificateProbe, Metrics};
use crate::pod_template_cache::PodTemplateCache;
use crate::preview::AdmissionPreview;
use crate::stores::StoreReadiness;
use arc_swap::ArcSwap;
use lockkeeper_conversion::Converters;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::registry;
use lockkeeper_policies::settings::Settings;
use std::sync::{Arc, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// The state of the server: settings, stores, live lookups and metrics.
pub struct AppState {
    settings: ArcSwap<Settings>,
    pub(crate) index: Arc<RwLock<Index>>,
    pub(crate) live_lookup: Option<LiveLookup>,
    pub(crate) readiness: StoreReadiness,
    pub(crate) body_limit_bytes: usize,
    pub(crate) metrics: Metrics,
    pub(crate) pod_templates: PodTemplateCache,
    pub(crate) converters: Converters,
    pub(crate) preview: Option<Box<dyn AdmissionPreview>>,
    pub(crate) caller_tokens: Option<Arc<CallerTokens>>,
    #[cfg(feature = "otel")]
    pub(crate) tracer: Option<opentelemetry_sdk::trace::SdkTracer>,
}

impl AppState {
    /// Returns a state with a fixed cluster view and without lookups.
    #[must_use]
    pub fn offline(settings: Settings, index: Index, body_limit_bytes: usize) -> Self {
        let index = Arc::new(RwLock::new(index));
        Self::new(settings, index, StoreReadiness::always(), body_limit_bytes)
    }

    /// Returns a state with stores that watches feed, and with lookups at `source` for objects that
    /// they miss.
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
            pod_templates: PodTemplateCache::default(),
            converters: Converters::default(),
            preview: None,
            caller_tokens: None,
            #[cfg(feature = "otel")]
            tracer: None,
        }
    }

    /// Sets the limits of the negative cache.
    #[must_use]
    pub fn with_negative_cache(mut self, limits: NegativeCache) -> Self {
        self.live_lookup = self
            .live_lookup
            .map(|live| live.with_negative_cache(limits));
        self
    }

    /// Sets the converters. lockkeeper's own kinds have one version each, so by default there are
    /// none.
    #[must_use]
    pub fn with_converters(mut self, converters: Converters) -> Self {
        self.converters = converters;
        self
    }

    /// Adds previews to the warnings of objects that are created.
    #[must_use]
    pub fn with_preview(mut self, preview: Box<dyn AdmissionPreview>) -> Self {
        self.preview = Some(preview);
        self
    }

    /// Requires a token of an API server with each admission review.
    #[must_use]
    pub fn with_caller_tokens(mut self, tokens: Arc<CallerTokens>) -> Self {
        self.caller_tokens = Some(tokens);
        self
    }

    /// Sets the tracer for spans of reviews.
    #[cfg(feature = "otel")]
    #[must_use]
    pub fn with_tracer(mut self, tracer: opentelemetry_sdk::trace::SdkTracer) -> Self {
        self.tracer = Some(tracer);
        self
    }

    /// Registers the metrics of the serving certificate.
    #[must_use]
    pub fn with_certificate(mut self, probe: CertificateProbe) -> Self {
        self.metrics.add_certificate(probe);
        self
    }

    /// Returns the current settings. A request loads them once, so that it is evaluated with one
    /// state.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// Returns the current settings without expired exceptions. Reads the clock only if an exception
    /// can expire.
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
        // Another thread may have replaced the settings meanwhile; the expiry applies to those as
        // well.
        self.settings
            .rcu(|current| Settings::clone(current).with_time(now));
        let later = self.settings();
        log_expired_exceptions(&later, Some(&settings));
        later
    }

    /// Replaces the settings, for requests that arrive from now on.
    pub fn set_settings(&self, settings: Settings) {
        self.metrics.apply_settings(&settings);
        log_relaxed_rules(&settings, Some(&self.settings()));
        log_expired_exceptions(&settings, Some(&self.settings()));
        // Last, so that the counters of new rules exist before a request can use the rules.
        self.settings.store(Arc::new(settings));
    }

    /// Returns the metrics.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

/// Returns the time in seconds since 1970.
fn unix_now_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| i64::try_from(it.as_secs()).unwrap_or(i64::MAX))
}

/// Logs the rules that are newly relaxed although the schemas still enforce them.
fn log_relaxed_rules(settings: &Settings, before: Option<&Settings>) {
    let logged = before.map(registry::enforced_by_schema).unwrap_or_default();
    for rule in registry::enforced_by_schema(settings).difference(&logged) {
        tracing::warn!(
            rule,
            "the configuration relaxes this rule, but the default CRDs of lockkeeper's kinds still enforce it: \
             apply the output of `lockkeeper crds definitions --config FILE`, or remove the setting"
        );
    }
}

/// Logs the exceptions that have newly expired.
fn log_expired_exceptions(settings: &Settings, before: Option<&Settings>) {
    for exception in settings.exceptions.expired() {
        let mut logged = before
            .into_iter()
            .flat_map(|settings| settings.exceptions.expired());
        if !logged.any(|expired| expired == exception) {
            tracing::warn!(
                exception = %exception.name,
                expires = %exception.config.expires,
                reason = %exception.config.reason,
                "exception expired; its rules apply again"
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
