//! Writes of adoptions to a fake API server, whose controller confirms every step at once.

use super::adoption::{ApplyOptions, Clients};
use super::apply::apply;
use super::candidate::job_key;
use super::objects::ClusterObjects;
use super::plan::Plan;
use super::progress::Progress;
use super::quota_check::Settings;
use super::selection::Selection;
use super::test_objects::{job, listed, merge, plain, results};
use http::Method;
use kube::Client;
use kube::client::Body;
use lockkeeper_api::config::Config;
use lockkeeper_controller::adoption_manifest;
use lockkeeper_controller::job_adapters::{JobKinds, KINDS};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tower::service_fn;

/// The objects of the API server by their path, and the writes.
#[derive(Default)]
struct ApiServer {
    objects: BTreeMap<String, Value>,
    writes: Vec<String>,
}

impl ApiServer {
    fn respond(&mut self, method: &Method, path: &str, body: &Value) -> (u16, Value) {
        if *method != Method::GET {
            let end = path.rsplit('/').next().unwrap();
            self.writes.push(format!("{method} {end}"));
        }
        match *method {
            Method::GET => self.read(path),
            Method::POST => {
                let name = body["metadata"]["name"].as_str().unwrap();
                let path = format!("{path}/{name}");
                if self.objects.contains_key(&path) {
                    return (
                        409,
                        json!({"kind": "Status", "code": 409, "reason": "AlreadyExists"}),
                    );
                }
                let mut object = body.clone();
                object["metadata"]["annotations"]["lockkeeper.dev/adoption"] = json!("Observed");
                self.objects.insert(path, object.clone());
                (201, object)
            }
            Method::DELETE => (200, self.objects.remove(path).unwrap()),
            _ => {
                let path = path.trim_end_matches("/status");
                let object = self.objects.get_mut(path).unwrap();
                merge(object, body);
                let step = object.pointer_mut("/metadata/annotations/lockkeeper.dev~1adoption");
                if let Some(step) = step.filter(|it| **it == "Requested") {
                    *step = json!("Observed");
                }
                let object = object.clone();
                if path.contains("/jobs/") {
                    self.complete(&object["metadata"]["uid"]);
                }
                (200, object)
            }
        }
    }

    fn read(&self, path: &str) -> (u16, Value) {
        if let Some(object) = self.objects.get(path) {
            return (200, object.clone());
        }
        let plural = path.rsplit('/').next().unwrap();
        let items = self.objects.iter();
        let items = items.filter(|(path, _)| path.rsplit('/').nth(1) == Some(plural));
        let items: Vec<&Value> = items.map(|it| it.1).collect();
        (200, json!({"metadata": {}, "items": items}))
    }

    /// The controller removes the annotation of the Workload of a labelled Job.
    fn complete(&mut self, job: &Value) {
        for object in self.objects.values_mut() {
            if object["metadata"]["ownerReferences"][0]["uid"] == *job {
                object["metadata"]["annotations"] = json!({});
            }
        }
    }

    fn add<T: Serialize>(&mut self, collection: &str, objects: &[T]) {
        for object in objects {
            let object = serde_json::to_value(object).unwrap();
            let name = object["metadata"]["name"].as_str().unwrap();
            self.objects.insert(format!("{collection}/{name}"), object);
        }
    }
}

fn client(server: &Arc<Mutex<ApiServer>>) -> Client {
    let server = Arc::clone(server);
    let service = service_fn(move |request: http::Request<Body>| {
        let server = Arc::clone(&server);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let mut server = server.lock().unwrap();
            let (code, body) = server.respond(&head.method, head.uri.path(), &body);
            let response = http::Response::builder().status(code);
            let body = Body::from(body.to_string().into_bytes());
            Ok::<_, Infallible>(response.body(body).unwrap())
        }
    });
    Client::new(service, "default")
}

fn server(objects: &ClusterObjects) -> ApiServer {
    let mut server = ApiServer::default();
    server.add("clusterqueues", &objects.cluster_queues);
    server.add("resourceflavors", &objects.flavors);
    server.add("localqueues", &objects.local_queues);
    server.add("namespaces", &objects.namespaces);
    let jobs: Vec<&Value> = objects.jobs.iter().map(|it| &it.object).collect();
    server.add("/apis/batch/v1/namespaces/team/jobs", &jobs);
    server
}

/// A workload of two CPUs that was admitted after the plan.
fn other_workload() -> Value {
    json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Workload",
        "metadata": {"name": "other", "namespace": "team"},
        "spec": {"queueName": "q", "podSets": [{"name": "main", "count": 1, "template": {}}]},
        "status": {
            "admission": {"clusterQueue": "main", "podSetAssignments": [{
                "name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": 2},
            }]},
            "conditions": [{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    })
}

/// Adopts two Jobs of two CPUs into a queue of four; returns the results, and the writes.
async fn adopt(is_quota_taken: bool, is_partial: bool) -> (Vec<String>, Vec<String>) {
    let mut objects = plain(4);
    objects.jobs = listed(vec![job("a", 2, 1), job("b", 2, 2)]);
    let server = server(&objects);
    adopt_from(objects, server, is_quota_taken, is_partial).await
}

async fn adopt_from(
    objects: ClusterObjects,
    mut server: ApiServer,
    is_quota_taken: bool,
    is_partial: bool,
) -> (Vec<String>, Vec<String>) {
    let selection = Selection {
        queue: "q".to_owned(),
        namespace: Some("team".to_owned()),
        ..Selection::default()
    };
    let settings = Settings::new(&Config::default(), 1_800_000_000);
    let mut plan = Plan::new(objects, &selection, &settings);
    assert_eq!(results(&plan), ["a Fits", "b Fits"]);
    if is_quota_taken {
        server.add("workloads", &[other_workload()]);
    }
    let server = Arc::new(Mutex::new(server));
    let clients = Clients {
        reader: client(&server),
        writer: client(&server),
    };
    let options = ApplyOptions {
        settings: &settings,
        job_kinds: &JobKinds::default(),
        is_partial,
        timeout: Duration::from_secs(1),
    };
    let mut shown = Vec::new();
    let mut progress = Progress::new(Some(&mut shown));
    apply(&mut plan, &clients, &options, &mut progress).await;
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("2/2 create Workload: team/job/b"), "{shown}");
    let writes = server.lock().unwrap().writes.clone();
    let name = |it: String| match it.split_once("job-") {
        Some((method, rest)) => format!("{method}{}", rest.split('-').next().unwrap()),
        None => it,
    };
    (results(&plan), writes.into_iter().map(name).collect())
}

#[tokio::test]
async fn apply_writes_all_admissions_before_labels() {
    let (results, writes) = adopt(false, false).await;
    assert_eq!(results, ["a Adopted", "b Adopted"]);
    let expected = [
        "POST workloads",
        "POST workloads",
        "PATCH status",
        "PATCH status",
        "PATCH a",
        "PATCH b",
    ];
    assert_eq!(writes, expected);
}

#[tokio::test]
async fn apply_withdraws_jobs_whose_quota_was_taken_meanwhile() {
    for (is_partial, first, expected) in [
        (false, "a Fits", &["DELETE b", "DELETE a"][..]),
        (true, "a Adopted", &["DELETE b", "PATCH status", "PATCH a"]),
    ] {
        let (results, writes) = adopt(true, is_partial).await;
        assert_eq!(results[0], first);
        let reason = "b DoesNotFit its quota was taken meanwhile: Waiting for quota";
        assert!(results[1].starts_with(reason), "{results:?}");
        assert_eq!(writes[..2], ["POST workloads", "POST workloads"]);
        assert_eq!(writes[2..], *expected, "{is_partial}");
    }
}

/// An earlier run was interrupted after the controller had confirmed the Workload of `a`: its hold may have ended.
#[tokio::test]
async fn workload_of_an_earlier_run_is_confirmed_again() {
    let mut objects = plain(4);
    objects.jobs = listed(vec![job("a", 2, 1), job("b", 2, 2)]);
    let mut server = server(&objects);
    let view = KINDS[0].parse(job("a", 2, 1)).unwrap();
    let key = job_key(0, &view);
    let mut earlier = adoption_manifest(&JobKinds::default(), &key, &view).unwrap();
    earlier["metadata"]["annotations"]["lockkeeper.dev/adoption"] = json!("Observed");
    let namespace = "/apis/lockkeeper.dev/v1alpha1/namespaces/team/workloads";
    server.add(namespace, &[earlier]);
    let (results, writes) = adopt_from(objects, server, false, false).await;
    assert_eq!(results, ["a Adopted", "b Adopted"]);
    let expected = [
        "POST workloads",
        "PATCH a",
        "POST workloads",
        "PATCH status",
    ];
    assert_eq!(writes[..4], expected, "{writes:?}");
}
