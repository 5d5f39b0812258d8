//! The requests of one connection: the open ones, and how long there is none.

use super::ConnectionLimits;
use hyper::body::{Body, Frame, SizeHint};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// The requests of one connection so far.
#[derive(Default)]
pub(super) struct ConnectionRequests {
    pub(super) has_received_any: bool,
    /// Requests without a response.
    open: usize,
    /// Since when responses wait to be read by the client, the oldest first.
    pending_responses: BTreeMap<u64, Instant>,
    responses: u64,
}

/// A request in flight; ends when dropped, also by a panic.
pub(super) struct OpenRequest(watch::Sender<ConnectionRequests>);

impl OpenRequest {
    pub(super) fn new(requests: &watch::Sender<ConnectionRequests>) -> Self {
        requests.send_modify(|requests| {
            requests.has_received_any = true;
            requests.open = requests.open.saturating_add(1);
        });
        Self(requests.clone())
    }

    /// Marks the response as ready; it now waits to be read.
    pub(super) fn into_pending_response(self) -> PendingResponse {
        let mut number = 0;
        self.0.send_modify(|requests| {
            number = requests.responses;
            requests.responses = number.wrapping_add(1);
            // Numbers increase, so the first entry is the oldest response.
            requests.pending_responses.insert(number, Instant::now());
        });
        PendingResponse {
            requests: self.0.clone(),
            number,
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0
            .send_modify(|requests| requests.open = requests.open.saturating_sub(1));
    }
}

/// A response that the client has not read; read when dropped.
pub(super) struct PendingResponse {
    requests: watch::Sender<ConnectionRequests>,
    number: u64,
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        self.requests.send_modify(|requests| {
            requests.pending_responses.remove(&self.number);
        });
    }
}

/// The body of a response, which hyper drops after sending all of it.
pub(super) struct TrackedBody<B> {
    body: B,
    _pending: PendingResponse,
}

impl<B> TrackedBody<B> {
    pub(super) fn new(body: B, waiting: PendingResponse) -> Self {
        Self {
            body,
            _pending: waiting,
        }
    }
}

impl<B: Body + Unpin> Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Completes when the client had no open request for longer than the limit.
pub(super) async fn wait_until_idle(
    mut requests: watch::Receiver<ConnectionRequests>,
    limits: &ConnectionLimits,
) {
    loop {
        // The guard is dropped before the await: it blocks every `send_modify`.
        let (any, open) = {
            let now = requests.borrow_and_update();
            (now.has_received_any, now.open)
        };
        let changed = requests.changed();
        let changed = if open > 0 {
            // The deadlines of the requests limit this wait.
            Ok(changed.await)
        } else if any {
            timeout(limits.idle_timeout, changed).await
        } else {
            // The timeout of hyper includes `idle_timeout` and is too long for the first head.
            timeout(limits.header_timeout, changed).await
        };
        match changed {
            Ok(Ok(())) => {}
            // The service was dropped, and the connection with it.
            Ok(Err(_)) => std::future::pending().await,
            Err(_) => return,
        }
    }
}

/// Completes when a response waited for longer than the limit.
pub(super) async fn wait_until_overdue(
    mut requests: watch::Receiver<ConnectionRequests>,
    limits: &ConnectionLimits,
) {
    loop {
        let oldest = {
            let now = requests.borrow_and_update();
            now.pending_responses
                .first_key_value()
                .map(|(_, since)| *since)
        };
        let changed = requests.changed();
        let changed = match oldest {
            None => Ok(changed.await),
            Some(since) if since.elapsed() >= limits.answer_timeout => return,
            Some(since) => {
                timeout(
                    limits.answer_timeout.saturating_sub(since.elapsed()),
                    changed,
                )
                .await
            }
        };
        match changed {
            Ok(Ok(())) => {}
            Ok(Err(_)) => std::future::pending().await,
            Err(_) => return,
        }
    }
}
