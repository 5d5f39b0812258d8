//! Watch streams that restart after errors.

use futures_util::{Stream, StreamExt, stream};
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{DefaultBackoff, Error};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::sleep;

/// The longest pause before a broken watch is restarted, in seconds. Meanwhile decisions use outdated objects;
/// kube's own pauses grow to half a minute.
const BACKOFF_MAX_SECONDS: u64 = 5;

/// The events of a watch that is restarted after errors, with growing pauses.
///
/// kube lists again when the stream reports an expired resource version, but not when the response to the watch
/// request does (410): it would request that version forever. In that case the watch is created again.
pub(super) fn restarting_watch<T, S>(
    begin: impl Fn() -> S + Send + 'static,
) -> impl Stream<Item = Result<T, Error>> + Send
where
    T: Send + 'static,
    S: Stream<Item = Result<T, Error>> + Send + 'static,
{
    let start = RestartingWatch {
        start: begin,
        stream: None,
        backoff: DefaultBackoff::default(),
        next_delay: None,
    };
    stream::unfold(start, async |mut watch| {
        let event = watch.next().await?;
        Some((event, watch))
    })
}

struct RestartingWatch<B, S> {
    start: B,
    stream: Option<Pin<Box<S>>>,
    backoff: DefaultBackoff,
    /// The pause before the next request.
    next_delay: Option<Duration>,
}

impl<T, S, B> RestartingWatch<B, S>
where
    S: Stream<Item = Result<T, Error>>,
    B: Fn() -> S,
{
    async fn next(&mut self) -> Option<Result<T, Error>> {
        if let Some(pause) = self.next_delay.take() {
            sleep(pause).await;
        }
        let begin = || Box::pin((self.start)());
        let event = self.stream.get_or_insert_with(begin).next().await?;
        match &event {
            Ok(_) => self.backoff.reset(),
            Err(error) => {
                let most = Duration::from_secs(BACKOFF_MAX_SECONDS);
                self.next_delay = Some(self.backoff.next().unwrap_or(most).min(most));
                if has_expired(error) {
                    self.stream = None;
                }
            }
        }
        Some(event)
    }
}

fn has_expired(error: &Error) -> bool {
    matches!(error, Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use kube::core::Status;
    use std::sync::Mutex;

    fn watch_error(code: u16) -> Error {
        let status = Status::failure("", "").with_code(code).boxed();
        Error::WatchStartFailed(kube::Error::Api(status))
    }

    /// The events of watches that return these items, one watch after the other. The clock is paused: pauses take no
    /// time.
    fn collect_events(watches: Vec<Vec<Result<u8, Error>>>) -> Vec<Option<u8>> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let watches = Mutex::new(watches.into_iter());
            let begin = move || stream::iter(watches.lock().unwrap().next().unwrap_or_default());
            restarting_watch(begin).map(Result::ok).collect().await
        })
    }

    #[test]
    fn expired_resource_version_is_not_reused() {
        let events = collect_events(vec![vec![Ok(1), Err(watch_error(410)), Ok(2)], vec![Ok(3)]]);
        assert_eq!(events, [Some(1), None, Some(3)]);
        let of_list = Error::InitialListFailed(kube::Error::Api(
            Status::failure("", "").with_code(410).boxed(),
        ));
        let events = collect_events(vec![vec![Err(of_list), Ok(2)], vec![Ok(3)]]);
        assert_eq!(events, [None, Some(2)]);
    }
}
