//! One review, from its bytes to its answer.

use super::{Received, Refused, Server, turn};
use crate::answer::Answer;
use crate::deadline::{self, missed};
use crate::envelope::{self, EnvelopeError, Request, Review};
use crate::route::{Basis, Judged, Route, is_for_users, validate_by_users};
use crate::trace::Step;
use crate::world::Fetched;
use axum::body::Bytes;
use lockkeeper_api::GROUP;
use lockkeeper_policies::settings::Settings;
use std::sync::Arc;
use tokio::time::Instant;

/// Which of the two questions about an object is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Validate,
    Mutate,
}

/// What is to be done.
pub(super) struct Work {
    received: Received,
    settings: Arc<Settings>,
    question: Question,
}

impl Work {
    /// A review is judged by the settings that are in force when it has arrived.
    pub(super) fn new(received: Received, question: Question) -> Self {
        Self {
            settings: received.app.settings_now(),
            received,
            question,
        }
    }

    /// Judges; asks the API server for what the stores missed, and judges again.
    pub(super) async fn run(self, server: &Server) -> Result<Bytes, Refused> {
        let work = Arc::new(self);
        if Instant::now() >= work.received.deadline {
            return work.give_up();
        }
        let Some(judged) =
            Self::step(&work, server, Fetched::new(), work.received.deadline).await?
        else {
            return work.give_up();
        };
        let judged = match &work.received.app.live {
            Some(live) if !judged.missed.is_empty() => {
                let lookup = work.received.trace.begin(Step::Lookup);
                let fetched = live.fetch(judged.missed, work.received.deadline).await;
                lookup.found(&fetched);
                // The API server may have taken all the time there was.
                let reserve = &server.load.bounds().reserve;
                let deadline = deadline::for_second_look(
                    work.received.started,
                    work.received.deadline,
                    reserve,
                );
                match Self::step(&work, server, fetched, deadline).await? {
                    Some(judged) => judged,
                    // What the stores missed may exist: the first answer does not count.
                    None => return work.give_up(),
                }
            }
            _ => judged,
        };
        let bytes = judged.answer.encode().map_err(Refused::Encoding)?;
        Ok(bytes.into())
    }

    /// Judges once; `None` when that was not done in time.
    async fn step(
        work: &Arc<Self>,
        server: &Server,
        fetched: Fetched,
        deadline: Instant,
    ) -> Result<Option<Judged>, Refused> {
        let (trace, bytes) = (&work.received.trace, work.received.body.bytes().len());
        let judging = Arc::clone(work);
        let judge = move || judging.judge(&fetched);
        let judged = turn::done(server, trace, bytes, deadline, judge).await;
        Ok(judged.transpose()?)
    }

    fn judge(&self, fetched: &Fetched) -> Result<Judged, EnvelopeError> {
        let envelope = self.received.trace.begin(Step::Envelope);
        let (review, request) = envelope::decode(self.received.body.bytes())?;
        envelope.end();
        let basis = Basis {
            trace: &self.received.trace,
            settings: &self.settings,
            index: &self.received.app.index,
            fetched,
        };
        let judged = judge(&basis, self.question, &review, &request);
        let is_last =
            judged.missed.is_empty() || self.received.app.live.is_none() || !fetched.is_empty();
        if is_last {
            self.received.observed.judged(&request, &judged.answer);
            self.received.trace.judged(&request, &judged.answer);
            self.log(&request, &judged.answer);
        }
        Ok(judged)
    }

    /// The time is over, and what was checked does not count.
    fn give_up(&self) -> Result<Bytes, Refused> {
        let uid = missed::uid_of(self.received.body.bytes()).ok_or(EnvelopeError::NoUid)?;
        let waited = self.received.started.elapsed();
        self.received.trace.late(&uid);
        tracing::warn!(%uid, question = ?self.question, "the rules were not done in time");
        Ok(missed::answer(&uid, waited).into())
    }

    /// Names what was judged, never what it holds.
    fn log(&self, request: &Request<'_>, answer: &Answer) {
        let duration_ms = self.received.started.elapsed().as_secs_f64() * 1e3;
        macro_rules! event {
            ($level:ident, $text:literal) => {
                tracing::$level!(
                    uid = %request.uid,
                    kind = %request.kind.name,
                    namespace = %request.namespace,
                    name = %request.name,
                    operation = %request.operation,
                    question = ?self.question,
                    rules = answer.denied_by(),
                    duration_ms,
                    $text
                )
            };
        }
        if answer.allowed() {
            event!(debug, "allowed");
        } else {
            event!(info, "denied");
        }
    }
}

fn judge(
    basis: &Basis<'_>,
    question: Question,
    review: &Review<'_>,
    request: &Request<'_>,
) -> Judged {
    let version = review.api_version.as_deref().unwrap_or_default();
    if version != envelope::API_VERSION {
        let spoken = envelope::API_VERSION;
        let message = format!("apiVersion {version:?} is not spoken here; send {spoken}");
        return Answer::bad_request(&request.uid, message).into();
    }
    let has_subresource = request
        .sub_resource
        .as_ref()
        .is_some_and(|name| !name.is_empty());
    let Some(operation) = request.operation().filter(|_| !has_subresource) else {
        // Rules are about whole objects that are made, changed or deleted.
        return Answer::allow(&request.uid).into();
    };
    match (Route::find(request), question) {
        (Some(route), Question::Validate) => (route.validate)(basis, request, operation),
        (Some(route), Question::Mutate) => (route.mutate)(basis, request, operation),
        (None, _) if is_for_users(basis, request) => match question {
            Question::Validate => validate_by_users(basis, request, operation),
            Question::Mutate => Answer::allow(&request.uid).into(),
        },
        (None, _) => unknown_kind(request).into(),
    }
}

/// A kind that no rule is about. One of another group passes: somebody registered more than needed.
/// One of our own group is of a version or kind that this build does not know, and must not pass
/// unguarded.
fn unknown_kind(request: &Request<'_>) -> Answer {
    let kind = &request.kind;
    let what = format!("{}/{} {}", kind.group, kind.version, kind.name);
    if kind.group == GROUP {
        let message = format!("{what} is not known to this version of lockkeeper; upgrade it");
        return Answer::bad_request(&request.uid, message);
    }
    let mut answer = Answer::allow(&request.uid);
    answer.warn(format!(
        "lockkeeper has no rule for {what}; do not register it"
    ));
    answer
}
