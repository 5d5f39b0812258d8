//! What the handlers share.

use crate::live::{Live, Source};
use crate::stores::Readiness;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::settings::Settings;
use std::sync::{Arc, RwLock};

/// The state of the server: settings, stores, and whom to ask when they miss something.
pub struct App {
    pub(crate) settings: Settings,
    pub(crate) index: Arc<RwLock<Index>>,
    pub(crate) live: Option<Live>,
    pub(crate) readiness: Readiness,
    pub(crate) body_limit_bytes: usize,
}

impl App {
    /// A server that knows the world as it is given and asks nobody.
    #[must_use]
    pub fn offline(settings: Settings, index: Index, body_limit_bytes: usize) -> Self {
        Self {
            settings,
            index: Arc::new(RwLock::new(index)),
            live: None,
            readiness: Readiness::always(),
            body_limit_bytes,
        }
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
        Self {
            settings,
            index,
            live: Some(Live::new(source)),
            readiness,
            body_limit_bytes,
        }
    }
}
