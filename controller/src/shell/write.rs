//! Writes, and what becomes of them.

use super::watch::job_resource;
use crate::{JobName, Name, Outcome, Target, Verb, What, Write};
use http::header::ACCEPT;
use http::{HeaderValue, Request};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, ValidationDirective};
use kube::core::{ApiResource, DynamicObject, Request as Builder};
use kube::{Client, Error};
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// Who has written a field, for `kubectl get --show-managed-fields`.
const FIELD_MANAGER: &str = "lockkeeper-controller";

/// Of what was written only the metadata are asked for: the watch brings the rest.
const METADATA_ONLY: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// Performs a write. It ends within `limit`.
pub(super) async fn perform(client: &Client, write: &Write, limit: Duration) -> Outcome {
    let request = match request(write) {
        Ok(request) => request,
        Err(error) => return Outcome::Refused(error.to_string()),
    };
    match timeout(limit, client.request_text(request)).await {
        Err(_) => Outcome::Failed(format!("no answer within {} s", limit.as_secs())),
        Ok(Err(error)) => outcome(write, error),
        Ok(Ok(text)) => {
            let version = serde_json::from_str::<Answer>(&text);
            let version = version.ok().and_then(|it| it.metadata.resource_version);
            let version = version.and_then(|it| it.parse().ok());
            Outcome::Done(version.unwrap_or_default())
        }
    }
}

/// What is read of an answer.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    metadata: AnswerMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerMetadata {
    resource_version: Option<String>,
}

fn outcome(write: &Write, error: Error) -> Outcome {
    let Error::Api(status) = error else {
        // No answer, or none that can be understood: nobody knows.
        return Outcome::Failed(error.to_string());
    };
    let is_create = matches!(write.verb, Verb::Create(_));
    match status.code {
        404 => {
            // Of a create: its namespace or its kind is gone.
            if is_create {
                Outcome::Refused(status.message)
            } else {
                Outcome::Absent
            }
        }
        409 if is_create && status.reason == "AlreadyExists" => Outcome::Exists,
        409 => Outcome::Conflict,
        400..=428 | 430..=499 => Outcome::Refused(status.message),
        _ => Outcome::Failed(status.message),
    }
}

fn request(write: &Write) -> Result<Request<Vec<u8>>, kube::core::request::Error> {
    let (collection, name) = place(write);
    let builder = Builder::new(collection);
    // What is written is typed, and nobody would read a warning of fields that the server does not know; the
    // search for them takes a part of its time.
    let by = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        field_validation: Some(ValidationDirective::Ignore),
        ..PatchParams::default()
    };
    let mut request = match &write.verb {
        Verb::Create(object) => {
            let by = PostParams {
                field_manager: Some(FIELD_MANAGER.to_owned()),
                ..PostParams::default()
            };
            builder.create(&by, object.to_string().into_bytes())?
        }
        Verb::Patch(patch) => builder.patch(&name, &by, &merge(patch))?,
        Verb::PatchStatus(patch) => {
            builder.patch_subresource("status", &name, &by, &merge(patch))?
        }
        Verb::Delete { uid } => {
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

fn merge(patch: &Value) -> Patch<&Value> {
    Patch::Merge(patch)
}

/// The URL of the collection, and the name in it.
fn place(write: &Write) -> (String, String) {
    let (resource, name) = match (&write.target, write.what) {
        // It is the job's, and has its namespace.
        (Target::Job(JobName { name, .. }), What::CreateWorkload) => {
            (ApiResource::erase::<Workload>(&()), name.clone())
        }
        (Target::Job(JobName { kind, name }), _) => (job_resource(*kind), name.clone()),
        (Target::Workload(name), _) => (ApiResource::erase::<Workload>(&()), name.clone()),
        (Target::LocalQueue(name), _) => (ApiResource::erase::<LocalQueue>(&()), name.clone()),
        (Target::ClusterQueue(name), _) => {
            (ApiResource::erase::<ClusterQueue>(&()), Name::new("", name))
        }
        (Target::Cohort(name), _) => (ApiResource::erase::<Cohort>(&()), Name::new("", name)),
        (Target::ResourceFlavor(name), _) => (
            ApiResource::erase::<ResourceFlavor>(&()),
            Name::new("", name),
        ),
        (Target::Event(_), _) => {
            let events = ApiResource {
                group: "events.k8s.io".to_owned(),
                version: "v1".to_owned(),
                api_version: "events.k8s.io/v1".to_owned(),
                kind: "Event".to_owned(),
                plural: "events".to_owned(),
            };
            let namespace = match &write.verb {
                Verb::Create(event) => event.pointer("/metadata/namespace"),
                _ => None,
            };
            let namespace = namespace.and_then(Value::as_str).unwrap_or("default");
            (events, Name::new(namespace, ""))
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
    use crate::Ticket;
    use serde_json::json;

    fn line(target: Target, what: What, verb: Verb) -> String {
        let write = Write {
            ticket: Ticket(1),
            target,
            what,
            verb,
        };
        let request = request(&write).unwrap();
        format!("{} {}", request.method(), request.uri())
    }

    #[test]
    fn each_write_goes_where_its_object_is() {
        let by = "&fieldManager=lockkeeper-controller";
        let patched = format!("{by}&fieldValidation=Ignore");
        let workload = || Target::Workload(Name::new("team", "w"));
        let job = || {
            Target::Job(JobName {
                kind: 0,
                name: Name::new("team", "j"),
            })
        };
        let workloads = "/apis/lockkeeper.dev/v1alpha1/namespaces/team/workloads";
        let patch = || Verb::Patch(json!({}));
        assert_eq!(
            line(workload(), What::Admit, Verb::PatchStatus(json!({}))),
            format!("PATCH {workloads}/w/status?{patched}")
        );
        assert_eq!(
            line(job(), What::CreateWorkload, Verb::Create(json!({}))),
            format!("POST {workloads}?{by}")
        );
        assert_eq!(
            line(job(), What::StartJob, patch()),
            format!("PATCH /apis/batch/v1/namespaces/team/jobs/j?{patched}")
        );
        let uid = "u".to_owned();
        assert_eq!(
            line(workload(), What::DeleteWorkload, Verb::Delete { uid }),
            format!("DELETE {workloads}/w?")
        );
        let event = json!({"metadata": {"namespace": "team"}});
        assert_eq!(
            line(Target::Event(1), What::Event, Verb::Create(event)),
            format!("POST /apis/events.k8s.io/v1/namespaces/team/events?{by}")
        );
        let queue = Target::ClusterQueue("q".to_owned());
        assert_eq!(
            line(queue, What::Finalizer, patch()),
            format!("PATCH /apis/lockkeeper.dev/v1alpha1/clusterqueues/q?{patched}")
        );
    }
}
