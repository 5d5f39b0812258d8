//! The build without the feature `otel`: no spans.
#![allow(
    clippy::unused_self,
    reason = "the same calls as in the build with spans"
)]

use lockkeeper_webhook::app_state::AppState;

pub(crate) struct Traces;

impl Traces {
    /// Logs that no spans are exported, if an endpoint is set.
    pub(crate) fn start() -> Self {
        if let Some((variable, _)) = super::endpoint() {
            tracing::info!(
                variable,
                "no spans are exported: this binary was built without the feature otel"
            );
        }
        Self
    }

    pub(crate) fn attach(&self, app: AppState) -> AppState {
        app
    }

    pub(crate) fn shutdown(self) {}
}
