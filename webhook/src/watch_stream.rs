//! Watches that go on for ever.

use futures_util::{Stream, StreamExt, stream};
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{DefaultBackoff, Error};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::sleep;

/// Longest before a broken watch is tried again, in seconds. Until it is back its reader answers from what
/// it has, and that grows old: kube's own pauses grow to half a minute.
const BACKOFF_MAX_SECONDS: u64 = 5;

/// How often a kind that the cluster does not have is looked for, in seconds.
pub(crate) const ABSENT_RETRY_SECONDS: u64 = 30;

/// The events of a watch. After an error it is tried again, with growing pauses.
///
/// kube lists anew when the stream says that the version from which it goes on is no more, but not when
/// the answer to its request does: it would ask for that version for ever. Then the watch begins anew.
pub(crate) fn restarting_watch<T, S>(
    begin: impl Fn() -> S + Send + 'static,
) -> impl Stream<Item = Result<T, Error>> + Send
where
    T: Send + 'static,
    S: Stream<Item = Result<T, Error>> + Send + 'static,
{
    events(begin, Duration::from_secs(BACKOFF_MAX_SECONDS))
}

/// The events of a watch of a kind that the cluster need not have. As long as it does not, it is looked for
/// rarely; whether it does is told by [`is_absent`].
pub(crate) fn restarting_watch_if_installed<T, S>(
    begin: impl Fn() -> S + Send + 'static,
) -> impl Stream<Item = Result<T, Error>> + Send
where
    T: Send + 'static,
    S: Stream<Item = Result<T, Error>> + Send + 'static,
{
    events(begin, Duration::from_secs(ABSENT_RETRY_SECONDS))
}

fn events<T, S>(
    begin: impl Fn() -> S + Send + 'static,
    absent_pause: Duration,
) -> impl Stream<Item = Result<T, Error>> + Send
where
    T: Send + 'static,
    S: Stream<Item = Result<T, Error>> + Send + 'static,
{
    let start = RestartingWatch {
        start: begin,
        absent_retry: absent_pause,
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
    /// How long to wait for a kind that the cluster does not have.
    absent_retry: Duration,
    stream: Option<Pin<Box<S>>>,
    backoff: DefaultBackoff,
    /// Before anything more is asked.
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
                let usual = self.backoff.next().unwrap_or(most).min(most);
                let is_absent = is_kind_absent(error);
                self.next_delay = Some(if is_absent { self.absent_retry } else { usual });
                if has_expired(error) || is_absent {
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

/// Whether the cluster does not have the kind, or not any more.
pub(crate) fn is_kind_absent(error: &Error) -> bool {
    let (Error::InitialListFailed(error) | Error::WatchStartFailed(error)) = error else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use kube::core::Status;
    use std::sync::Mutex;
    use tokio::time::Instant;

    fn failed(code: u16) -> Error {
        let status = Status::failure("", "").with_code(code).boxed();
        Error::WatchStartFailed(kube::Error::Api(status))
    }

    fn absent() -> Error {
        let status = Status::failure("404 page not found", "").with_code(404);
        Error::InitialListFailed(kube::Error::Api(status.boxed()))
    }

    /// What is told of watches that come to this, one after the other, and how long it took. The clock
    /// jumps: pauses cost nothing.
    fn collect_events(watches: Vec<Vec<Result<u8, Error>>>) -> (Vec<Option<u8>>, Duration) {
        collect_events_and_pauses(watches, Duration::from_secs(BACKOFF_MAX_SECONDS))
    }

    fn collect_events_and_pauses(
        watches: Vec<Vec<Result<u8, Error>>>,
        absent_pause: Duration,
    ) -> (Vec<Option<u8>>, Duration) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let watches = Mutex::new(watches.into_iter());
            let begin = move || stream::iter(watches.lock().unwrap().next().unwrap_or_default());
            let before = Instant::now();
            let told: Vec<_> = events(begin, absent_pause).map(Result::ok).collect().await;
            (told, before.elapsed())
        })
    }

    #[test]
    fn watch_restarts_after_error() {
        let first = vec![Ok(1), Err(failed(503)), Ok(2)];
        let (events, took) = collect_events(vec![first, vec![Ok(3)]]);
        assert_eq!(events, [Some(1), None, Some(2)]);
        assert!(took > Duration::from_millis(100), "{took:?}");
    }

    #[test]
    fn expired_resource_version_is_not_reused() {
        let (events, _) = collect_events(vec![vec![Ok(1), Err(failed(410)), Ok(2)], vec![Ok(3)]]);
        assert_eq!(events, [Some(1), None, Some(3)]);
        let of_list = Error::InitialListFailed(kube::Error::Api(
            Status::failure("", "").with_code(410).boxed(),
        ));
        let (events, _) = collect_events(vec![vec![Err(of_list), Ok(2)], vec![Ok(3)]]);
        assert_eq!(events, [None, Some(2)]);
    }

    #[test]
    fn backoff_grows_to_maximum_and_resets() {
        let errors = |times| (0..times).map(|_| Err(failed(503)));
        let (_, after_many) = collect_events(vec![errors(20).chain([Ok(1)]).collect()]);
        let most = Duration::from_secs(BACKOFF_MAX_SECONDS);
        assert!(
            most * 15 < after_many && after_many <= most * 20,
            "{after_many:?}"
        );
        let (_, after_few) = collect_events(vec![
            (0..20).flat_map(|_| [Err(failed(503)), Ok(1)]).collect(),
        ]);
        assert!(after_few < most * 10, "{after_few:?}");
    }

    #[test]
    fn absent_kind_is_retried_rarely_with_full_list() {
        let pause = Duration::from_secs(ABSENT_RETRY_SECONDS);
        let gone = Error::WatchStartFailed(kube::Error::Api(
            Status::failure("", "").with_code(404).boxed(),
        ));
        // kube says that it begins before it knows whether there is anything.
        let watches = vec![
            vec![Ok(0), Err(absent()), Ok(9)],
            vec![Ok(0), Err(absent()), Ok(9)],
            vec![Ok(1), Err(gone), Ok(9)],
            vec![Ok(2)],
        ];
        let (events, took) = collect_events_and_pauses(watches, pause);
        let expected = [Some(0), None, Some(0), None, Some(1), None, Some(2)];
        assert_eq!(events, expected);
        assert_eq!(took, pause * 3);
    }
}
