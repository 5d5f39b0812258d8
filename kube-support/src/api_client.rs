//! The client of the API server: it notices dead connections, and knows when each watch was last answered.

use http::{Method, Request, Response, StatusCode, Uri};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use std::collections::BTreeMap;
use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tower::{Layer, Service};

/// The time after which the API server ends a watch, in seconds. A healthy connection is never silent for longer.
pub const WATCH_TIMEOUT_SECONDS: u32 = 20;

/// The longest time without a byte while a response is expected; then the connection is dead. Longer than a watch
/// may be silent.
const READ_TIMEOUT: Duration = Duration::from_secs(25);

/// The longest time to the head of the response to a read. A restarted watch may get a connection that is dead,
/// too: with [`READ_TIMEOUT`] and the pause between two attempts, a silent failure is noticed within 45 seconds.
const READ_HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest time to establish a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Clients that notice dead connections.
#[derive(Clone)]
pub struct ApiClients {
    /// For requests that the caller does not retry: 429, 503 and 504 are retried for as long as the caller waits.
    pub requests: Client,
    /// For watches, writes and Leases, which their owners retry, with shorter pauses than kube's.
    pub watches: Client,
    /// When each watch was answered last.
    pub ages: WatchAges,
    config: Config,
}

impl ApiClients {
    /// Builds the clients of a cluster.
    ///
    /// # Errors
    ///
    /// If the configuration has invalid certificates or credentials.
    pub fn new(mut config: Config) -> Result<Self, kube::Error> {
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = Some(READ_TIMEOUT);
        // Otherwise the time that a connection was unused would count for the next request.
        config.reset_reader_on_write = true;
        let ages = WatchAges::default();
        let requests = build(config.clone(), ages.clone())?;
        // kube pauses for more than a minute after a few 503, below the pauses of the watches.
        config.default_retry = false;
        Ok(Self {
            requests,
            watches: build(config.clone(), ages.clone())?,
            ages,
            config,
        })
    }

    /// Builds another client like [`Self::watches`] for the runtime of this thread.
    ///
    /// # Errors
    ///
    /// If the credentials can no longer be read.
    pub fn for_this_runtime(&self) -> Result<Client, kube::Error> {
        build(self.config.clone(), self.ages.clone())
    }
}

fn build(config: Config, ages: WatchAges) -> Result<Client, kube::Error> {
    let builder = ClientBuilder::try_from(config)?;
    Ok(builder.with_layer(&ReadTimeoutLayer { ages }).build())
}

/// When each watched collection was answered last. Clones share the times.
///
/// A watch is answered when it starts, and it starts again at least every [`WATCH_TIMEOUT_SECONDS`].
#[derive(Clone, Debug, Default)]
pub struct WatchAges {
    answered: Arc<Mutex<BTreeMap<String, Instant>>>,
}

impl WatchAges {
    /// Returns the time since the last response to each watch, by collection, such as `jobs.batch`.
    #[must_use]
    pub fn ages(&self) -> Vec<(String, Duration)> {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let ages = answered.iter();
        ages.map(|(kind, at)| (kind.clone(), at.elapsed()))
            .collect()
    }

    /// Returns the watch that waits longest for a response, and for how long; `None` before the first response.
    #[must_use]
    pub fn oldest(&self) -> Option<(String, Duration)> {
        self.ages().into_iter().max_by_key(|(_, age)| *age)
    }

    /// Forgets a collection that is not watched any more.
    pub fn forget(&self, plural: &str, group: &str) {
        let collection = collection_name(plural, Some(group).filter(|it| !it.is_empty()));
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.remove(&collection);
    }

    /// Records the response to a read of a whole collection.
    pub fn record(&self, collection: String, code: StatusCode) {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if code.is_success() || code == StatusCode::GONE {
            answered.insert(collection, Instant::now());
        } else if code == StatusCode::NOT_FOUND {
            // The cluster does not have the kind, or no longer: there is nothing to wait for.
            answered.remove(&collection);
        }
    }
}

/// The collection that a request lists or watches, such as `jobs.batch`; `None` for other requests.
fn collection(method: &Method, uri: &Uri) -> Option<String> {
    let query = uri.query().unwrap_or_default();
    let is_watched = query
        .split('&')
        .any(|it| it.starts_with("limit=") || it == "watch=true" || it == "watch=1");
    if method != Method::GET || !is_watched {
        return None;
    }
    let mut parts = uri.path().trim_start_matches('/').split('/');
    let group = match parts.next()? {
        "apis" => parts.next(),
        _ => None,
    };
    let plural = parts.next_back()?;
    Some(collection_name(plural, group))
}

fn collection_name(plural: &str, group: Option<&str>) -> String {
    match group {
        Some(group) => format!("{plural}.{group}"),
        None => plural.to_owned(),
    }
}

/// Limits the time to the head of responses to reads, and records responses to watches.
#[derive(Clone)]
struct ReadTimeoutLayer {
    ages: WatchAges,
}

impl<S> Layer<S> for ReadTimeoutLayer {
    type Service = ReadTimeout<S>;

    fn layer(&self, inner: S) -> ReadTimeout<S> {
        ReadTimeout {
            inner,
            ages: self.ages.clone(),
        }
    }
}

#[derive(Clone)]
struct ReadTimeout<S> {
    inner: S,
    ages: WatchAges,
}

type BoxError = Box<dyn Error + Send + Sync>;

impl<S, B> Service<Request<Body>> for ReadTimeout<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let is_read = request.method() == Method::GET;
        let collection = collection(request.method(), request.uri());
        let ages = self.ages.clone();
        let response = self.inner.call(request);
        Box::pin(async move {
            // A write may wait for webhooks; its sender limits its time.
            let response = if is_read {
                let response = timeout(READ_HEAD_TIMEOUT, response).await;
                response.map_err(|_| BoxError::from(NoResponse))?
            } else {
                response.await
            };
            let response = response.map_err(Into::into)?;
            if let Some(collection) = collection {
                ages.record(collection, response.status());
            }
            Ok(response)
        })
    }
}

/// The API server did not respond in time.
#[derive(Debug)]
struct NoResponse;

impl std::fmt::Display for NoResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the API server did not respond within {} s",
            READ_HEAD_TIMEOUT.as_secs()
        )
    }
}

impl Error for NoResponse {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use std::convert::Infallible;

    fn watch(uri: &str) -> Request<Body> {
        Request::get(uri).body(Body::empty()).unwrap()
    }

    #[test]
    fn collection_is_named_for_lists_and_watches_only() {
        for (uri, expected) in [
            ("/apis/batch/v1/jobs?watch=true&a=b", Some("jobs.batch")),
            ("/apis/batch/v1/jobs?&limit=20", Some("jobs.batch")),
            ("/api/v1/pods?limit=5", Some("pods")),
            ("/api/v1/namespaces/n/secrets?&watch=true", Some("secrets")),
            ("/apis/batch/v1/namespaces/n/jobs/j", None),
            ("/apis/batch/v1/jobs", None),
        ] {
            let found = collection(&Method::GET, &uri.parse().unwrap());
            assert_eq!(found.as_deref(), expected, "{uri}");
        }
        let uri = "/apis/batch/v1/jobs?limit=1".parse().unwrap();
        assert_eq!(collection(&Method::DELETE, &uri), None);
    }

    /// A server that answers with these codes, and then never.
    fn client(
        codes: Vec<u16>,
        ages: WatchAges,
    ) -> impl Service<Request<Body>, Response = Response<()>, Error = BoxError> {
        let mut codes = codes.into_iter();
        let inner = tower::service_fn(move |_: Request<Body>| {
            let code = codes.next();
            async move {
                match code {
                    Some(code) => {
                        Ok::<_, Infallible>(Response::builder().status(code).body(()).unwrap())
                    }
                    None => std::future::pending().await,
                }
            }
        });
        ReadTimeoutLayer { ages }.layer(inner)
    }

    #[tokio::test(start_paused = true)]
    async fn read_without_response_fails_after_timeout() {
        let mut client = client(Vec::new(), WatchAges::default());
        let started = Instant::now();
        let error = client.call(watch("/apis/batch/v1/jobs?watch=true")).await;
        assert!(error.unwrap_err().to_string().contains("within 10 s"));
        assert_eq!(started.elapsed(), READ_HEAD_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn watch_age_grows_until_next_successful_response() {
        let ages = WatchAges::default();
        let mut client = client(vec![200, 200, 503, 404], ages.clone());
        let (jobs, pods) = ("/apis/batch/v1/jobs?watch=true", "/api/v1/pods?limit=5");
        assert_eq!(ages.oldest(), None);
        client.call(watch(jobs)).await.unwrap();
        tokio::time::advance(Duration::from_secs(7)).await;
        client.call(watch(pods)).await.unwrap();
        let of_jobs = ("jobs.batch".to_owned(), Duration::from_secs(7));
        assert_eq!(ages.oldest(), Some(of_jobs.clone()));
        client.call(watch(jobs)).await.unwrap();
        assert_eq!(ages.oldest(), Some(of_jobs));
        client.call(watch(jobs)).await.unwrap();
        assert_eq!(ages.ages(), [("pods".to_owned(), Duration::ZERO)]);
    }
}
