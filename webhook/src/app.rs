//! What the handlers share.

use crate::live::{Live, Memory, Source};
use crate::metrics::{CertificateProbe, Metrics};
use crate::stores::Readiness;
use arc_swap::ArcSwap;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::settings::Settings;
use std::sync::{Arc, RwLock};

/// The state of the server: settings, stores, whom to ask when they miss something, and what was
/// counted.
pub struct App {
    settings: ArcSwap<Settings>,
    pub(crate) index: Arc<RwLock<Index>>,
    pub(crate) live: Option<Live>,
    pub(crate) readiness: Readiness,
    pub(crate) body_limit_bytes: usize,
    pub(crate) metrics: Metrics,
    #[cfg(feature = "otel")]
    pub(crate) tracer: Option<opentelemetry_sdk::trace::SdkTracer>,
}

impl App {
    /// A server that knows the world as it is given and asks nobody.
    #[must_use]
    pub fn offline(settings: Settings, index: Index, body_limit_bytes: usize) -> Self {
        let index = Arc::new(RwLock::new(index));
        Self::new(settings, index, Readiness::always(), body_limit_bytes)
    }

    /// A server whose stores are fed by others, and which asks `source` when they miss something.
    #[must_use]
    pub fn connected(
        settings: Settings,
        index: Arc<RwLock<Index>>,
        readiness: Readiness,
        source: Box<dyn Source>,
        body_limit_bytes: usize,
    ) -> Self {
        let app = Self::new(settings, index, readiness, body_limit_bytes);
        let live = Live::new(source).counted(app.metrics.lookups());
        Self {
            live: Some(live),
            ..app
        }
    }

    fn new(
        settings: Settings,
        index: Arc<RwLock<Index>>,
        readiness: Readiness,
        body_limit_bytes: usize,
    ) -> Self {
        Self {
            settings: ArcSwap::from_pointee(settings),
            metrics: Metrics::new(&index, &readiness),
            index,
            live: None,
            readiness,
            body_limit_bytes,
            #[cfg(feature = "otel")]
            tracer: None,
        }
    }

    /// Remembers in another way what the API server does not have.
    #[must_use]
    pub fn remembering(mut self, memory: Memory) -> Self {
        self.live = self.live.map(|live| live.remembering(memory));
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

    /// The settings that hold now. A request takes them once, so that it is judged by one state.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// Puts other settings in force, for the requests that come from now on.
    pub fn set_settings(&self, settings: Settings) {
        self.settings.store(Arc::new(settings));
    }

    /// What was counted and measured.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}
