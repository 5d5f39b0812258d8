//! One request, from its head to its answer.

use super::labels::{Conversion, Operation, Outcome, Path};
use crate::answer::Answer;
use crate::app::App;
use crate::envelope::Request;
use lockkeeper_policies::rule;
use prometheus_client::metrics::counter::Counter;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A request that is being answered. When it is dropped, it is counted: as an error unless it was
/// judged, also when the client has gone away in the middle or a handler has panicked.
#[must_use = "it measures until it is dropped"]
pub(crate) struct Observed {
    app: Arc<App>,
    path: Path,
    started: Instant,
    judged: OnceLock<(usize, Operation, Outcome)>,
    converted: OnceLock<Conversion>,
}

impl Observed {
    /// A request has come in.
    pub(crate) fn new(app: &Arc<App>, path: Path) -> Self {
        app.metrics().in_flight.inc();
        Self {
            app: Arc::clone(app),
            path,
            started: Instant::now(),
            judged: OnceLock::new(),
            converted: OnceLock::new(),
        }
    }

    /// The body has been read.
    pub(crate) fn body(&self, bytes: usize) {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a body is far smaller than 2^52 bytes"
        )]
        self.app.metrics().body_bytes.observe(bytes as f64);
    }

    /// This is the answer that will be sent.
    pub(crate) fn judged(&self, request: &Request<'_>, answer: &Answer) {
        let metrics = self.app.metrics();
        let asked = &request.kind;
        let known = metrics.kinds.iter().position(|kind| {
            kind.name == asked.name && kind.version == asked.version && kind.group == asked.group
        });
        let operation = match request.operation() {
            Some(rule::Operation::Create) => Operation::Create,
            Some(rule::Operation::Update) => Operation::Update,
            Some(rule::Operation::Delete) => Operation::Delete,
            None => Operation::Other,
        };
        let outcome = Outcome::of(answer);
        let kind = known.unwrap_or(metrics.kinds.len());
        if self.judged.set((kind, operation, outcome)).is_ok() {
            metrics.hit(answer.hits());
        }
    }
}

impl Observed {
    /// This is what came of a conversion, and will be sent.
    pub(crate) fn converted(&self, result: Conversion) {
        // Only the one thread that converts says so, once.
        let _ = self.converted.set(result);
    }
}

impl Outcome {
    pub(crate) fn of(answer: &Answer) -> Self {
        if answer.is_bad_request() {
            Self::Error
        } else if !answer.allowed() {
            Self::Denied
        } else if answer.warned() {
            Self::Warned
        } else {
            Self::Allowed
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        let metrics = self.app.metrics();
        let path = self.path.place();
        let counter = if self.path == Path::Convert {
            let result = self.converted.get().copied().unwrap_or(Conversion::Error);
            metrics.conversions.at([result.place()])
        } else {
            let unjudged = (metrics.kinds.len(), Operation::Other, Outcome::Error);
            let (kind, operation, outcome) = self.judged.get().copied().unwrap_or(unjudged);
            metrics
                .requests
                .at([kind, operation.place(), path, outcome.place()])
        };
        counter.map(Counter::inc);
        let seconds = self.started.elapsed().as_secs_f64();
        if let Some(durations) = metrics.durations.at([path]) {
            durations.observe(seconds);
        }
        metrics.in_flight.dec();
    }
}
