//! Executes writes at the API server.

use super::api_resource::api_resource;
use crate::job_adapters::JobKinds;
use crate::{JobKey, ObjectKey, ObjectRef, WriteOp, WritePurpose, WriteRequest, WriteResult};
use http::header::ACCEPT;
use http::{HeaderValue, Request};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{
    DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions, ValidationDirective,
};
use kube::core::{ApiResource, DynamicObject, Request as Builder, Status};
use kube::{Client, Error};
use lockkeeper_api::{ClusterQueue, Cohort, JobKind, LocalQueue, ResourceFlavor, Workload};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// The field manager, as `kubectl get --show-managed-fields` shows it.
const FIELD_MANAGER: &str = "lockkeeper-controller";

/// Requests only the metadata of the written object: the watch delivers the rest.
const METADATA_ONLY: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// Executes a write within `limit`.
pub(super) async fn execute(
    client: &Client,
    kinds: &JobKinds,
    write: &WriteRequest,
    limit: Duration,
) -> WriteResult {
    let request = match build_request(kinds, write) {
        Ok(request) => with_timeout(request, limit),
        Err(error) => return WriteResult::Rejected(error.to_string()),
    };
    match timeout(limit, client.request_text(request)).await {
        Err(_) => WriteResult::Failed(format!("no response within {} s", limit.as_secs())),
        Ok(Err(error)) => result_from_error(write, error),
        Ok(Ok(text)) => {
            let version = serde_json::from_str::<WriteResponse>(&text);
            let version = version.ok().and_then(|it| it.metadata.resource_version);
            let version = version.and_then(|it| it.parse().ok());
            // Version 0: the next write does not wait for the watch, and conflicts if it is behind.
            WriteResult::Done(version.unwrap_or_default())
        }
    }
}

/// Adds the time limit for the API server. Without it, a write that waits in the API server could be executed after
/// the leadership of its sender.
fn with_timeout(mut request: Request<Vec<u8>>, limit: Duration) -> Request<Vec<u8>> {
    // Rounded down to milliseconds; the API server takes 0 for no limit.
    let limit_ms = limit.as_millis().max(1);
    let uri = request.uri().to_string();
    let separator = if !uri.contains('?') {
        "?"
    } else if uri.ends_with('?') {
        ""
    } else {
        "&"
    };
    if let Ok(uri) = format!("{uri}{separator}timeout={limit_ms}ms").parse() {
        *request.uri_mut() = uri;
    }
    request
}

/// The part of the response that is used.
#[derive(Deserialize)]
struct WriteResponse {
    #[serde(default)]
    metadata: ResponseMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseMetadata {
    resource_version: Option<String>,
}

pub(super) fn result_from_error(write: &WriteRequest, error: Error) -> WriteResult {
    let Error::Api(status) = error else {
        // No response, or an invalid one: the outcome is unknown.
        return WriteResult::Failed(error.to_string());
    };
    let is_create = matches!(write.op, WriteOp::Create(_));
    match status.code {
        404 => {
            // A create gets 404 if its namespace or kind does not exist.
            if is_create {
                WriteResult::Rejected(status.message)
            } else {
                WriteResult::NotFound
            }
        }
        409 if is_create && status.reason == "AlreadyExists" => WriteResult::AlreadyExists,
        409 => WriteResult::Conflict,
        // 429 is not a rejection: the same write succeeds when the API server has capacity.
        400..=428 | 430..=499 => WriteResult::Rejected(status.message),
        // A disruption budget forbids the eviction: no sign of overload.
        429 if is_budget_violation(&status) => WriteResult::Rejected(status.message),
        429 | 503 => WriteResult::Failed(status.message),
        _ => WriteResult::ServerError(status.message),
    }
}

fn is_budget_violation(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|it| &it.causes);
    let mut reasons = causes.map(|it| it.reason.as_str());
    reasons.any(|it| it == "DisruptionBudget")
}

fn build_request(
    kinds: &JobKinds,
    write: &WriteRequest,
) -> Result<Request<Vec<u8>>, kube::core::request::Error> {
    let (collection, name) = collection_and_name(kinds, write);
    let builder = Builder::new(collection);
    // The patches are typed, and warnings about unknown fields would not be read; the validation costs the API
    // server time.
    let by = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        field_validation: Some(ValidationDirective::Ignore),
        ..PatchParams::default()
    };
    let mut request = match &write.op {
        WriteOp::Create(object) => {
            let by = PostParams {
                field_manager: Some(FIELD_MANAGER.to_owned()),
                ..PostParams::default()
            };
            builder.create(&by, object.to_string().into_bytes())?
        }
        WriteOp::Patch(patch) => builder.patch(&name, &by, &merge_patch(patch))?,
        WriteOp::PatchStatus(patch) => {
            builder.patch_subresource("status", &name, &by, &merge_patch(patch))?
        }
        WriteOp::PatchPodConditions(patch) => {
            builder.patch_subresource("status", &name, &by, &Patch::Strategic(patch))?
        }
        // It is no write.
        WriteOp::ReadJob { .. } => builder.get(&name, &GetParams::default())?,
        WriteOp::Evict { uid } => {
            // Not `Request::evict`: kube-core 5 writes `delete_options`, so that the API server ignores the uid.
            let eviction = json!({
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": name},
                "deleteOptions": {"preconditions": {"uid": uid}},
            });
            let body = eviction.to_string().into_bytes();
            builder.create_subresource("eviction", &name, &PostParams::default(), body)?
        }
        WriteOp::Delete { uid } => {
            // A workload that was created again under this name has another uid, and is kept.
            let only = DeleteParams::background().preconditions(Preconditions {
                uid: Some(uid.clone()),
                resource_version: None,
            });
            builder.delete(&name, &only)?
        }
    };
    let accept = HeaderValue::from_static(METADATA_ONLY);
    request.headers_mut().insert(ACCEPT, accept);
    Ok(request)
}

fn merge_patch(patch: &Value) -> Patch<&Value> {
    Patch::Merge(patch)
}

/// The URL of the collection, and the name in it.
fn collection_and_name(kinds: &JobKinds, write: &WriteRequest) -> (String, String) {
    let (resource, name) = match (&write.object, write.purpose) {
        // The workload of a job is created in the job's namespace.
        (ObjectRef::Job(JobKey { name, .. }), WritePurpose::CreateWorkload) => {
            (ApiResource::erase::<Workload>(&()), name.clone())
        }
        (ObjectRef::Job(JobKey { kind, name }), _) => {
            // An index comes from the registry, and stays in it.
            let resource = kinds.get(*kind).map(|it| api_resource(it.resource()));
            let resource = resource.unwrap_or_else(|| ApiResource::erase::<Pod>(&()));
            (resource, name.clone())
        }
        (ObjectRef::Workload(name), _) => (ApiResource::erase::<Workload>(&()), name.clone()),
        (ObjectRef::LocalQueue(name), _) => (ApiResource::erase::<LocalQueue>(&()), name.clone()),
        (ObjectRef::ClusterQueue(name), _) => (
            ApiResource::erase::<ClusterQueue>(&()),
            ObjectKey::new("", name),
        ),
        (ObjectRef::Cohort(name), _) => {
            (ApiResource::erase::<Cohort>(&()), ObjectKey::new("", name))
        }
        (ObjectRef::ResourceFlavor(name), _) => (
            ApiResource::erase::<ResourceFlavor>(&()),
            ObjectKey::new("", name),
        ),
        (ObjectRef::JobKind(name), _) => {
            (ApiResource::erase::<JobKind>(&()), ObjectKey::new("", name))
        }
        (ObjectRef::VictimPod(name), _) => (ApiResource::erase::<Pod>(&()), name.clone()),
        (ObjectRef::Event(_), _) => {
            let events = ApiResource {
                group: "events.k8s.io".to_owned(),
                version: "v1".to_owned(),
                api_version: "events.k8s.io/v1".to_owned(),
                kind: "Event".to_owned(),
                plural: "events".to_owned(),
            };
            let namespace = match &write.op {
                WriteOp::Create(event) => event.pointer("/metadata/namespace"),
                _ => None,
            };
            let namespace = namespace.and_then(Value::as_str).unwrap_or("default");
            (events, ObjectKey::new(namespace, ""))
        }
    };
    let namespace = Some(name.namespace()).filter(|it| !it.is_empty());
    let path = <DynamicObject as kube::Resource>::url_path(&resource, namespace);
    (path, name.name().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use crate::WriteId;

    fn request_line(target: ObjectRef, what: WritePurpose, verb: WriteOp) -> String {
        let write = WriteRequest {
            id: WriteId(1),
            object: target,
            purpose: what,
            op: verb,
        };
        let request = build_request(&JobKinds::default(), &write).unwrap();
        format!("{} {}", request.method(), request.uri())
    }

    #[test]
    fn write_request_has_remaining_time_of_the_lease() {
        for (uri, expected) in [
            ("/a/b?x=y", "/a/b?x=y&timeout=1500ms"),
            ("/a/b?", "/a/b?timeout=1500ms"),
            ("/a/b", "/a/b?timeout=1500ms"),
        ] {
            let request = Request::patch(uri).body(Vec::new()).unwrap();
            let request = with_timeout(request, Duration::from_micros(1_500_900));
            assert_eq!(request.uri().to_string(), expected);
        }
    }

    #[test]
    fn deletion_applies_only_to_the_object_with_the_uid() {
        let write = WriteRequest {
            id: WriteId(1),
            object: ObjectRef::Workload(ObjectKey::new("team", "w")),
            purpose: WritePurpose::DeleteWorkload,
            op: WriteOp::Delete {
                uid: "u".to_owned(),
            },
        };
        let request = build_request(&JobKinds::default(), &write).unwrap();
        let options: Value = serde_json::from_slice(request.body()).unwrap();
        assert_eq!(options["preconditions"], json!({"uid": "u"}));
    }

    fn eviction() -> WriteRequest {
        WriteRequest {
            id: WriteId(1),
            object: ObjectRef::VictimPod(ObjectKey::new("team", "p")),
            purpose: WritePurpose::EvictPod,
            op: WriteOp::Evict {
                uid: "u".to_owned(),
            },
        }
    }

    #[test]
    fn eviction_applies_only_to_the_pod_with_the_uid() {
        let request = build_request(&JobKinds::default(), &eviction()).unwrap();
        let line = format!("{} {}", request.method(), request.uri().path());
        assert_eq!(line, "POST /api/v1/namespaces/team/pods/p/eviction");
        let body: Value = serde_json::from_slice(request.body()).unwrap();
        assert_eq!(body["deleteOptions"]["preconditions"], json!({"uid": "u"}));
    }

    /// A tenant who protects pods must not slow down the writes of others.
    #[test]
    fn only_an_overloaded_server_fails_an_eviction() {
        let result = |details: Value| {
            let status = json!({
                "status": "Failure", "code": 429, "reason": "TooManyRequests", "message": "no", "details": details,
            });
            let status: Status = serde_json::from_value(status).unwrap();
            result_from_error(&eviction(), Error::Api(status.boxed()))
        };
        let causes =
            json!({"causes": [{"reason": "DisruptionBudget", "message": "needs 1 healthy pod"}]});
        assert_eq!(result(causes), WriteResult::Rejected("no".to_owned()));
        let overload = json!({"retryAfterSeconds": 1});
        assert_eq!(result(overload), WriteResult::Failed("no".to_owned()));
    }

    #[test]
    fn write_request_uses_url_of_its_object() {
        let by = "&fieldManager=lockkeeper-controller";
        let patched = format!("{by}&fieldValidation=Ignore");
        let workload = || ObjectRef::Workload(ObjectKey::new("team", "w"));
        let job = || {
            ObjectRef::Job(JobKey {
                kind: 0,
                name: ObjectKey::new("team", "j"),
            })
        };
        let workloads = "/apis/lockkeeper.dev/v1alpha1/namespaces/team/workloads";
        let patch = || WriteOp::Patch(json!({}));
        assert_eq!(
            request_line(
                workload(),
                WritePurpose::Admit,
                WriteOp::PatchStatus(json!({}))
            ),
            format!("PATCH {workloads}/w/status?{patched}")
        );
        assert_eq!(
            request_line(
                job(),
                WritePurpose::CreateWorkload,
                WriteOp::Create(json!({}))
            ),
            format!("POST {workloads}?{by}")
        );
        assert_eq!(
            request_line(job(), WritePurpose::StartJob, patch()),
            format!("PATCH /apis/batch/v1/namespaces/team/jobs/j?{patched}")
        );
        let uid = "u".to_owned();
        assert_eq!(
            request_line(
                workload(),
                WritePurpose::DeleteWorkload,
                WriteOp::Delete { uid }
            ),
            format!("DELETE {workloads}/w?")
        );
        let event = json!({"metadata": {"namespace": "team"}});
        assert_eq!(
            request_line(
                ObjectRef::Event(1),
                WritePurpose::Event,
                WriteOp::Create(event)
            ),
            format!("POST /apis/events.k8s.io/v1/namespaces/team/events?{by}")
        );
        let queue = ObjectRef::ClusterQueue("q".to_owned());
        assert_eq!(
            request_line(queue, WritePurpose::Finalizer, patch()),
            format!("PATCH /apis/lockkeeper.dev/v1alpha1/clusterqueues/q?{patched}")
        );
    }
}
