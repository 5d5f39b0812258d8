//! Watches that restart after every error.

use crate::api_client::WATCH_TIMEOUT_SECONDS;
use futures_util::{Stream, StreamExt, stream};
use kube::runtime::utils::Backoff;
use kube::runtime::watcher;
use kube::runtime::watcher::{Config, DefaultBackoff, Error, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::sleep;

/// The longest pause before a failed watch is retried, in seconds. kube's own backoff grows to half a minute.
const BACKOFF_MAX_SECONDS: u64 = 5;

/// Pause before a kind that the cluster does not have is listed again, in seconds.
pub const ABSENT_RETRY_SECONDS: u64 = 30;

/// Returns the events of a watch that `begin` starts. After an error it is retried with exponential backoff.
///
/// kube lists again when an event in the stream reports 410 Gone, but not when the response to the watch
/// request does: it would request the same resource version for ever. In that case `begin` is called again.
pub fn restarting_watch<T, S>(
    begin: impl Fn() -> S + Send + 'static,
) -> impl Stream<Item = Result<T, Error>> + Send
where
    T: Send + 'static,
    S: Stream<Item = Result<T, Error>> + Send + 'static,
{
    events(begin, Duration::from_secs(BACKOFF_MAX_SECONDS))
}

/// Returns the events of a watch of a kind that may not be installed. While it is not, it is listed every
/// [`ABSENT_RETRY_SECONDS`]; [`is_kind_absent`] recognizes the error.
pub fn restarting_watch_if_installed<T, S>(
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
    let watch = RestartingWatch {
        begin,
        absent_retry: absent_pause,
        stream: None,
        backoff: DefaultBackoff::default(),
        next_delay: None,
    };
    stream::unfold(watch, async |mut watch| {
        let event = watch.next().await?;
        Some((event, watch))
    })
}

struct RestartingWatch<B, S> {
    begin: B,
    /// Pause before the list of a kind that the cluster does not have.
    absent_retry: Duration,
    stream: Option<Pin<Box<S>>>,
    backoff: DefaultBackoff,
    /// Pause before the next request.
    next_delay: Option<Duration>,
}

impl<T, S, B> RestartingWatch<B, S>
where
    S: Stream<Item = Result<T, Error>>,
    B: Fn() -> S,
{
    async fn next(&mut self) -> Option<Result<T, Error>> {
        // Here and not after the error, which the caller gets without a delay.
        if let Some(pause) = self.next_delay.take() {
            sleep(pause).await;
        }
        let begin = || Box::pin((self.begin)());
        let event = self.stream.get_or_insert_with(begin).next().await?;
        match &event {
            Ok(_) => self.backoff.reset(),
            Err(error) => {
                let longest = Duration::from_secs(BACKOFF_MAX_SECONDS);
                // kube's own maximum is longer than the stores may be stale.
                let backoff = self.backoff.next().unwrap_or(longest).min(longest);
                let is_absent = is_kind_absent(error);
                self.next_delay = Some(if is_absent {
                    self.absent_retry
                } else {
                    backoff
                });
                // Both must list again: kube would continue with the old resource version.
                if has_expired(error) || is_absent {
                    self.stream = None;
                }
            }
        }
        Some(event)
    }
}

/// The start of the API server's message about a version from the future.
const TOO_LARGE_VERSION: &str = "Too large resource version";

/// Whether a watch cannot continue at its resource version: the version has expired, or the API server does not
/// have it yet, as after etcd was restored from a backup.
fn has_expired(error: &Error) -> bool {
    match error {
        Error::WatchStartFailed(kube::Error::Api(status)) => {
            status.code == 410 || status.message.starts_with(TOO_LARGE_VERSION)
        }
        Error::WatchError(status) => status.message.starts_with(TOO_LARGE_VERSION),
        _ => false,
    }
}

/// Returns the configuration of a watch: how many objects a page of its list has, and how often it starts again.
#[must_use]
pub fn watch_config(page_size: u32) -> Config {
    Config::default()
        .page_size(page_size)
        .timeout(WATCH_TIMEOUT_SECONDS)
}

/// Returns true if the error means that the cluster does not have the kind, or no longer.
#[must_use]
pub fn is_kind_absent(error: &Error) -> bool {
    let (Error::InitialListFailed(error) | Error::WatchStartFailed(error)) = error else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Watches one object: its current version, or `None` while it does not exist. Like kube's function of this name, with
/// [`watch_config`].
pub fn watch_object<K>(
    api: Api<K>,
    name: &str,
) -> impl Stream<Item = Result<Option<K>, Error>> + Send + use<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let config = watch_config(1).fields(&format!("metadata.name={name}"));
    let mut is_listed = false;
    watcher(api, config).filter_map(move |event| {
        let object = match event {
            Ok(Event::Init) => {
                is_listed = false;
                None
            }
            Ok(Event::InitApply(object)) => {
                is_listed = true;
                Some(Ok(Some(object)))
            }
            Ok(Event::InitDone) => (!is_listed).then_some(Ok(None)),
            Ok(Event::Apply(object)) => Some(Ok(Some(object))),
            Ok(Event::Delete(_)) => Some(Ok(None)),
            Err(error) => Some(Err(error)),
        };
        std::future::ready(object)
    })
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

    /// Returns the events of these watches in sequence, and the time until the last one. The clock is
    /// paused, so that waiting costs no time.
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
            let events: Vec<_> = events(begin, absent_pause).map(Result::ok).collect().await;
            (events, before.elapsed())
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
    fn version_from_the_future_is_not_reused() {
        let status = Status::failure("Too large resource version: 9, current: 5", "Timeout");
        let error = Error::WatchStartFailed(kube::Error::Api(status.with_code(504).boxed()));
        let (events, _) = collect_events(vec![vec![Ok(1), Err(error), Ok(2)], vec![Ok(3)]]);
        assert_eq!(events, [Some(1), None, Some(3)]);
    }

    #[test]
    fn backoff_grows_to_maximum_and_resets() {
        let errors = |times| (0..times).map(|_| Err(failed(503)));
        let (_, after_many) = collect_events(vec![errors(20).chain([Ok(1)]).collect()]);
        let longest = Duration::from_secs(BACKOFF_MAX_SECONDS);
        assert!(
            longest * 15 < after_many && after_many <= longest * 20,
            "{after_many:?}"
        );
        let (_, after_few) = collect_events(vec![
            (0..20).flat_map(|_| [Err(failed(503)), Ok(1)]).collect(),
        ]);
        assert!(after_few < longest * 10, "{after_few:?}");
    }

    #[test]
    fn absent_kind_is_retried_rarely_with_full_list() {
        let pause = Duration::from_secs(ABSENT_RETRY_SECONDS);
        let gone = Error::WatchStartFailed(kube::Error::Api(
            Status::failure("", "").with_code(404).boxed(),
        ));
        // kube reports the start of a list before the first response.
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
