//! A fake API server with any number of objects, from which the stores are filled.
//!
//! Lists come in pages, watches stay silent, and a single PriorityClass can be read. The objects
//! have the size of real ones. Pods are served as metadata only, as the webhook requests them.
#![allow(clippy::print_stdout, reason = "prints when it is ready")]

use anyhow::{Result, ensure};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use clap::Parser;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The namespaces that objects are spread over.
const NAMESPACES: usize = 100;

/// The kinds without objects.
const NONE: [(&str, &str); 4] = [
    ("ClusterQueueList", "clusterqueues"),
    ("CohortList", "cohorts"),
    ("ResourceFlavorList", "resourceflavors"),
    ("LocalQueueList", "localqueues"),
];

/// The pods of one job.
const PODS_PER_JOB: usize = 8;

/// The Workload that all are copies of.
const REVIEW: &str = include_str!("../../payloads/workload.json");

/// The `managedFields` of a Workload as the API server stores them. Pods get the same size.
const MANAGED_FIELDS: &str = include_str!("../../payloads/managed-fields.json");

/// Answers lists and watches as an API server does.
#[derive(Parser)]
struct Arguments {
    /// PriorityClasses
    #[arg(long, default_value_t = 0)]
    priority_classes: usize,
    /// Workloads, of about 8 KB each
    #[arg(long, default_value_t = 0)]
    workloads: usize,
    /// Pods, of about 2 KB metadata each
    #[arg(long, default_value_t = 0)]
    pods: usize,
    /// File to write a kubeconfig into
    #[arg(long)]
    kubeconfig: PathBuf,
}

/// All objects of a kind: copies of one, with a name of their own.
struct Objects {
    list_kind: &'static str,
    list_version: &'static str,
    object: fn(&Templates, usize) -> String,
    count: usize,
    templates: Arc<Templates>,
}

/// Objects as JSON, with places for what differs.
struct Templates {
    class: String,
    workload: String,
    pod: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let templates = Arc::new(Templates::new()?);
    let objects = |list_kind, list_version, object, count| {
        Arc::new(Objects {
            list_kind,
            list_version,
            object,
            count,
            templates: Arc::clone(&templates),
        })
    };
    let classes = objects(
        "PriorityClassList",
        "scheduling.k8s.io/v1",
        Templates::class as fn(&Templates, usize) -> String,
        arguments.priority_classes,
    );
    let workloads = objects(
        "WorkloadList",
        "lockkeeper.dev/v1alpha1",
        Templates::workload,
        arguments.workloads,
    );
    let pods = objects(
        "PartialObjectMetadataList",
        "meta.k8s.io/v1",
        Templates::pod,
        arguments.pods,
    );
    let classes_path = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let mut router = Router::new();
    for (list_kind, plural) in NONE {
        let none = objects(list_kind, "lockkeeper.dev/v1alpha1", Templates::workload, 0);
        let path = format!("/apis/lockkeeper.dev/v1alpha1/{plural}");
        router = router.route(&path, get(list).with_state(none));
    }
    let router = router
        .route(classes_path, get(list).with_state(Arc::clone(&classes)))
        .route(
            &format!("{classes_path}/{{name}}"),
            get(get_class).with_state(classes),
        )
        .route(
            "/apis/lockkeeper.dev/v1alpha1/workloads",
            get(list).with_state(workloads),
        )
        .route("/api/v1/pods", get(list).with_state(pods));
    serve(&arguments, router).await
}

async fn serve(arguments: &Arguments, router: Router) -> Result<()> {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
    let key =
        PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(anyhow::Error::msg)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let tls = TlsAcceptor::from(Arc::new(config));
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = tcp.local_addr()?;
    let ca = arguments.kubeconfig.with_extension("crt");
    std::fs::write(&ca, made.cert.pem())?;
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {
            "server": format!("https://{address}"), "certificate-authority": ca,
        }}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    });
    std::fs::write(&arguments.kubeconfig, kubeconfig.to_string())?;
    println!("serving on https://{address}");
    loop {
        let (connection, _) = tcp.accept().await?;
        let (tls, router) = (tls.clone(), router.clone());
        tokio::spawn(async move {
            if let Ok(connection) = tls.accept(connection).await {
                let service = TowerToHyperService::new(router);
                let builder = Builder::new(TokioExecutor::new());
                // A client may close its connection at any time.
                let served = builder.serve_connection(TokioIo::new(connection), service);
                let _ = served.await;
            }
        });
    }
}

/// A page of a list, or a watch in which nothing happens.
async fn list(
    State(objects): State<Arc<Objects>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let query = query.unwrap_or_default();
    let parameter = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let number = |name| parameter(name).and_then(|value| value.parse::<usize>().ok());
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let wants_metadata = accepted.is_some_and(|accept| accept.contains("PartialObjectMetadata"));
    if wants_metadata != (objects.list_kind == "PartialObjectMetadataList") {
        return StatusCode::NOT_ACCEPTABLE.into_response();
    }
    let json = [(CONTENT_TYPE, "application/json")];
    if matches!(parameter("watch"), Some("true" | "1")) {
        let silence = futures_util::stream::pending::<Result<Vec<u8>, Infallible>>();
        return (json, Body::from_stream(silence)).into_response();
    }
    let first = number("continue").unwrap_or_default();
    let limit = number("limit").unwrap_or(objects.count);
    (json, objects.page(first, limit)).into_response()
}

/// A single PriorityClass.
async fn get_class(State(classes): State<Arc<Objects>>, Path(name): Path<String>) -> Response {
    let number = name.strip_prefix("class-");
    let number = number.and_then(|number| number.parse::<usize>().ok());
    let json = [(CONTENT_TYPE, "application/json")];
    if let Some(number) = number.filter(|number| *number < classes.count) {
        return (json, classes.templates.class(number)).into_response();
    }
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound",
        "message": "not found", "code": 404,
    });
    (StatusCode::NOT_FOUND, json, status.to_string()).into_response()
}

impl Objects {
    fn page(&self, first: usize, limit: usize) -> String {
        let end = first.saturating_add(limit).min(self.count);
        let items: Vec<String> = (first..end)
            .map(|number| (self.object)(&self.templates, number))
            .collect();
        let rest = self.count.saturating_sub(end);
        let metadata = if rest > 0 {
            json!({"resourceVersion": "1", "continue": end.to_string(), "remainingItemCount": rest})
        } else {
            json!({"resourceVersion": "1"})
        };
        format!(
            r#"{{"kind":"{}","apiVersion":"{}","metadata":{metadata},"items":[{}]}}"#,
            self.list_kind,
            self.list_version,
            items.join(",")
        )
    }
}

impl Templates {
    fn new() -> Result<Self> {
        let managed: Value = serde_json::from_str(MANAGED_FIELDS)?;
        let review: Value = serde_json::from_str(REVIEW)?;
        let mut workload = review
            .pointer("/request/object")
            .cloned()
            .unwrap_or_default();
        ensure!(workload.is_object(), "the review has no object");
        let metadata = |labels: Value| {
            json!({
                "name": "@NAME", "namespace": "@NAMESPACE", "labels": labels,
                "uid": "0f1b7a9e-53c4-4f0b-9d6c-@NUMBER", "resourceVersion": "@NUMBER", "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": managed,
            })
        };
        if let Some(fields) = workload.as_object_mut() {
            fields.insert("metadata".to_owned(), metadata(json!({"app": "trainer"})));
            let condition = json!({
                "type": "QuotaReserved", "status": "True", "reason": "QuotaReserved",
                "message": "admitted", "lastTransitionTime": "2026-01-01T00:00:00Z",
            });
            fields.insert("status".to_owned(), json!({"conditions": [condition]}));
        }
        if let Some(class) = workload.pointer_mut("/spec/priorityClassName") {
            *class = json!("@CLASS");
        }
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000,
            "metadata": {"name": "@NAME", "uid": "0f1b7a9e-53c4-4f0b-9d6c-@NUMBER"},
            "globalDefault": false, "description": "Jobs that may wait until the night.",
        });
        let labels =
            json!({"pod-group.scheduling.sigs.k8s.io": "@JOB", "app": "trainer", "role": "worker"});
        let pod = json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": metadata(labels),
        });
        Ok(Self {
            class: class.to_string(),
            workload: workload.to_string(),
            pod: pod.to_string(),
        })
    }

    fn class(&self, number: usize) -> String {
        render(&self.class, number, &format!("class-{number:06}"))
    }

    fn workload(&self, number: usize) -> String {
        render(&self.workload, number, &format!("job-trainer-{number:06}"))
    }

    fn pod(&self, number: usize) -> String {
        render(&self.pod, number, &format!("trainer-worker-0-{number:06}"))
    }
}

fn render(template: &str, number: usize, name: &str) -> String {
    let job = number / PODS_PER_JOB;
    template
        .replace("@NAMESPACE", &format!("team-{:03}", job % NAMESPACES))
        .replace("@NAME", name)
        .replace("@NUMBER", &format!("{number:012}"))
        .replace("@CLASS", &format!("class-{:06}", number % NAMESPACES))
        .replace("@JOB", &format!("trainer-{job:06}"))
}
