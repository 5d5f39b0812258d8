//! Lists the objects of a cluster, page by page.

use crate::Failure;
use kube::Client;
use kube::api::ListParams;
use kube::core::Request;
use lockkeeper_check::report::CheckedFile;
use lockkeeper_check::{ListTarget, ReadError};
use lockkeeper_kube_support::error_chain::ErrorChain;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// Objects in one response.
const PAGE_SIZE: u32 = 250;

/// The most objects of a kind.
const OBJECTS_MAX: usize = 1_000_000;

/// The timeout of a page, in seconds.
const PAGE_TIMEOUT_SECONDS: u64 = 60;

/// The number of attempts of a list whose continue token expires.
const ATTEMPTS_MAX: usize = 3;

/// An error of listing the objects of a cluster.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListError {
    /// The user of the kubeconfig lacks the permission.
    #[error("the user of the kubeconfig may not list {what}; grant the verb list: {reason}")]
    Forbidden { what: String, reason: String },
    /// The API server did not respond in time.
    #[error("the API server took more than {PAGE_TIMEOUT_SECONDS} s to list {what}")]
    Timeout { what: String },
    /// Too many objects.
    #[error("there are more than {OBJECTS_MAX} {what}")]
    TooMany { what: String },
    /// Any other error.
    #[error("cannot list {what}: {reason}")]
    Failed { what: String, reason: String },
}

/// A cluster that cannot be listed counts as unreadable input: exit code 2.
pub(super) fn usage_failure(error: ListError) -> Failure {
    Failure::Usage(error.into())
}

/// A kind that may not be listed, for the report; other errors are returned.
pub(super) fn unreadable_kind(
    target: &ListTarget<'_>,
    error: ListError,
) -> Result<CheckedFile, ListError> {
    match error {
        ListError::Forbidden { .. } => Ok(CheckedFile {
            name: description(target),
            outcome: Err(ReadError::without_location(error.to_string())),
        }),
        other => Err(other),
    }
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(default)]
    items: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PageMetadata {
    #[serde(rename = "continue")]
    next: Option<String>,
}

/// The result of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListStatus {
    Complete,
    /// The cluster does not have the kind.
    NoSuchKind,
    /// The continue token has expired.
    Expired,
}

/// Calls `consume` with every object of a kind, with kind and apiVersion set. After an expired token the list starts
/// again, so an object may occur twice.
pub(super) async fn for_each_object(
    client: &Client,
    target: &ListTarget<'_>,
    consume: impl FnMut(Value),
) -> Result<ListStatus, ListError> {
    for_each_selected(client, target, None, consume).await
}

/// Like [`for_each_object`], for the objects that a label selector selects.
pub(crate) async fn for_each_selected(
    client: &Client,
    target: &ListTarget<'_>,
    selector: Option<&str>,
    mut consume: impl FnMut(Value),
) -> Result<ListStatus, ListError> {
    for _ in 0..ATTEMPTS_MAX {
        let listed = try_list(client, target, selector, &mut consume).await?;
        if listed != ListStatus::Expired {
            return Ok(listed);
        }
    }
    let what = description(target);
    let reason = format!("the list expired {ATTEMPTS_MAX} times; it changes too fast");
    Err(ListError::Failed { what, reason })
}

/// Whether the cluster serves a kind, by discovery, which every account may read. `version` is `group/version`.
pub(crate) async fn is_served(
    client: &Client,
    version: &str,
    plural: &str,
) -> Result<bool, ListError> {
    let what = || format!("the kinds of {version}");
    let limit = Duration::from_secs(PAGE_TIMEOUT_SECONDS);
    match timeout(limit, client.list_api_group_resources(version)).await {
        Ok(Ok(found)) => Ok(found.resources.iter().any(|it| it.name == plural)),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(false),
        Ok(Err(error)) => Err(ListError::Failed {
            what: what(),
            reason: ErrorChain(&error).to_string(),
        }),
        Err(_) => Err(ListError::Timeout { what: what() }),
    }
}

async fn try_list(
    client: &Client,
    target: &ListTarget<'_>,
    selector: Option<&str>,
    consume: &mut impl FnMut(Value),
) -> Result<ListStatus, ListError> {
    let mut parameters = ListParams::default().limit(PAGE_SIZE);
    parameters.label_selector = selector.map(str::to_owned);
    let mut count = 0_usize;
    loop {
        let page = match fetch_page(client, target, &parameters).await? {
            PageResult::Page(page) => page,
            PageResult::Stopped(other) => return Ok(other),
        };
        count = count.saturating_add(page.items.len());
        if count > OBJECTS_MAX {
            return Err(ListError::TooMany {
                what: description(target),
            });
        }
        for mut item in page.items {
            if let Some(fields) = item.as_object_mut() {
                // Items of lists of built-in kinds have neither apiVersion nor kind.
                fields.insert("apiVersion".to_owned(), target.version.into());
                fields.insert("kind".to_owned(), target.kind.into());
            }
            consume(item);
        }
        match page.metadata.next.filter(|it| !it.is_empty()) {
            Some(next) => parameters.continue_token = Some(next),
            None => return Ok(ListStatus::Complete),
        }
    }
}

enum PageResult {
    Page(Page),
    Stopped(ListStatus),
}

async fn fetch_page(
    client: &Client,
    target: &ListTarget<'_>,
    parameters: &ListParams,
) -> Result<PageResult, ListError> {
    let what = description(target);
    let failed = |reason: String| ListError::Failed {
        what: description(target),
        reason,
    };
    let request = Request::new(path(target)).list(parameters);
    let request = request.map_err(|error| failed(error.to_string()))?;
    let limit = Duration::from_secs(PAGE_TIMEOUT_SECONDS);
    let Ok(response) = timeout(limit, client.request::<Page>(request)).await else {
        return Err(ListError::Timeout { what });
    };
    match response {
        Ok(page) => Ok(PageResult::Page(page)),
        Err(kube::Error::Api(status)) => match status.code {
            403 => Err(ListError::Forbidden {
                what,
                reason: status.message.clone(),
            }),
            // The path of a kind exists only while its CRD is installed and serves the version.
            404 => Ok(PageResult::Stopped(ListStatus::NoSuchKind)),
            // Gone: the API server has compacted the revision of the continue token.
            410 => Ok(PageResult::Stopped(ListStatus::Expired)),
            _ => Err(failed(status.message.clone())),
        },
        Err(error) => Err(failed(ErrorChain(&error).to_string())),
    }
}

fn path(target: &ListTarget<'_>) -> String {
    let ListTarget {
        version, plural, ..
    } = target;
    if version.contains('/') {
        format!("/apis/{version}/{plural}")
    } else {
        format!("/api/{version}/{plural}")
    }
}

fn description(target: &ListTarget<'_>) -> String {
    format!("{} ({})", target.plural, target.version)
}

#[cfg(test)]
pub(super) mod tests {
    use super::{ListError, ListStatus, ListTarget, for_each_object, is_served};
    use kube::Client;
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};
    use tower::service_fn;

    type RequestLog = Arc<Mutex<Vec<String>>>;

    /// An API server with these pages at these paths, and the log of its requests.
    pub(in crate::check) fn fake_api_server(
        pages: &[(&str, Vec<Vec<Value>>)],
    ) -> (Client, RequestLog) {
        let pages: BTreeMap<String, Vec<Vec<Value>>> = pages
            .iter()
            .map(|(path, pages)| ((*path).to_owned(), pages.clone()))
            .collect();
        serve_responses(move |path, from| {
            let Some(pages) = pages.get(path) else {
                return (404, status(404, "not found"));
            };
            let next = (from + 1 < pages.len()).then(|| (from + 1).to_string());
            let page = json!({"metadata": {"continue": next}, "items": pages[from]});
            (200, page)
        })
    }

    pub(in crate::check) fn status(code: u16, message: &str) -> Value {
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message,
               "reason": ""})
    }

    /// An API server with this response for a path and page number.
    pub(in crate::check) fn serve_responses(
        respond: impl Fn(&str, usize) -> (u16, Value) + Send + Sync + 'static,
    ) -> (Client, RequestLog) {
        let requests = RequestLog::default();
        let (respond, log) = (Arc::new(respond), Arc::clone(&requests));
        let service = service_fn(move |request: http::Request<Body>| {
            let (respond, log) = (Arc::clone(&respond), Arc::clone(&log));
            async move {
                let uri = request.uri().to_string();
                let (path, query) = uri.split_once('?').unwrap_or((&uri, ""));
                let next = query.split('&').find_map(|it| it.strip_prefix("continue="));
                let from = next.map_or(0, |it| it.parse().unwrap());
                let (code, body) = respond(path, from);
                log.lock().unwrap().push(uri);
                let response = http::Response::builder().status(code);
                Ok::<_, Infallible>(
                    response
                        .body(Body::from(body.to_string().into_bytes()))
                        .unwrap(),
                )
            }
        });
        (Client::new(service, "default"), requests)
    }

    const PODS: ListTarget<'static> = ListTarget {
        version: "v1",
        kind: "Pod",
        plural: "pods",
    };

    #[tokio::test]
    async fn list_requests_every_page() {
        let pod = |name: &str| json!({"metadata": {"name": name}});
        let (client, requests) = fake_api_server(&[(
            "/api/v1/pods",
            vec![vec![pod("a"), pod("b")], vec![pod("c")]],
        )]);
        let mut pods = Vec::new();
        let listed = for_each_object(&client, &PODS, |it| pods.push(it))
            .await
            .unwrap();
        assert_eq!(listed, ListStatus::Complete);
        let names: Vec<_> = pods
            .iter()
            .map(|it| it["metadata"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(
            pods.iter()
                .all(|it| it["kind"] == "Pod" && it["apiVersion"] == "v1")
        );
        let requests = requests.lock().unwrap();
        assert_eq!(
            requests[..],
            [
                "/api/v1/pods?&limit=250",
                "/api/v1/pods?&limit=250&continue=1"
            ]
        );
    }

    #[tokio::test]
    async fn kind_is_served_if_discovery_lists_it() {
        let resources = json!({"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": [
            {"name": "jobsets", "singularName": "", "namespaced": true, "kind": "JobSet", "verbs": []},
        ]});
        for (code, body, plural, expected) in [
            (200, resources.clone(), "jobsets", Ok(true)),
            (200, resources, "others", Ok(false)),
            (404, status(404, "not found"), "jobsets", Ok(false)),
            (
                500,
                status(500, "etcd is down"),
                "jobsets",
                Err("cannot list the kinds of example.com/v1"),
            ),
        ] {
            let (client, _) = serve_responses(move |_, _| (code, body.clone()));
            let served = is_served(&client, "example.com/v1", plural).await;
            match (served, expected) {
                (Ok(served), Ok(expected)) => assert_eq!(served, expected, "{code} {plural}"),
                (Err(error), Err(expected)) => {
                    assert!(error.to_string().starts_with(expected), "{error}");
                }
                (served, _) => panic!("{code} {plural}: {served:?}"),
            }
        }
    }

    #[tokio::test]
    async fn list_failure_reports_cause() {
        let (client, _) = fake_api_server(&[]);
        let listed = for_each_object(&client, &PODS, |_| ()).await.unwrap();
        assert_eq!(listed, ListStatus::NoSuchKind);

        let (client, _) = serve_responses(|_, _| (403, status(403, "pods is forbidden")));
        let error = for_each_object(&client, &PODS, |_| ()).await.unwrap_err();
        assert!(matches!(error, ListError::Forbidden { .. }), "{error}");

        let (client, requests) = serve_responses(|_, _| (410, status(410, "expired")));
        let error = for_each_object(&client, &PODS, |_| ()).await.unwrap_err();
        assert!(error.to_string().contains("expired 3 times"), "{error}");
        assert_eq!(requests.lock().unwrap().len(), 3);

        let (client, _) = serve_responses(|_, _| (500, status(500, "etcd is down")));
        let error = for_each_object(&client, &PODS, |_| ()).await.unwrap_err();
        assert_eq!(error.to_string(), "cannot list pods (v1): etcd is down");
    }

    #[tokio::test]
    async fn list_expired_continue_token_restarts() {
        let tries = Mutex::new(0);
        let (client, _) = serve_responses(move |_, from| {
            let mut tries = tries.lock().unwrap();
            *tries += 1;
            match (from, *tries) {
                (1, 2) => (410, status(410, "expired")),
                (0, _) => (
                    200,
                    json!({"metadata": {"continue": "1"}, "items": [{"metadata": {"name": "a"}}]}),
                ),
                _ => (200, json!({"items": [{"metadata": {"name": "b"}}]})),
            }
        });
        let mut names = Vec::new();
        let consume = |it: Value| names.push(it["metadata"]["name"].as_str().unwrap().to_owned());
        let listed = for_each_object(&client, &PODS, consume).await.unwrap();
        assert_eq!(listed, ListStatus::Complete);
        assert_eq!(names, ["a", "a", "b"]);
    }
}
