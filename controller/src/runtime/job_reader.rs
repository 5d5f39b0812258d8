//! Reads jobs that are not watched any more, and the pods that they have left.

use super::api_resource::api_resource;
use super::writer::result_from_error;
use crate::job_adapters::{JobKinds, JobView, KINDS, POD};
use crate::{JobRead, ObjectKey, WriteOp, WriteRequest, WriteResult};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, Error};
use lockkeeper_api::labels;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// Pods that have not ended.
const RUNNING: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// Pods per page of a list: one that is not terminating suffices.
const PAGE_SIZE: u32 = 50;

/// Jobs per page of a list of metadata.
const JOBS_PAGE_SIZE: u32 = 500;

/// Reads a job and, if it does not exist, its pods.
pub(super) async fn read_job(
    client: &Client,
    kinds: &JobKinds,
    request: &WriteRequest,
    limit: Duration,
) -> WriteResult {
    let WriteOp::ReadJob {
        kind,
        name,
        namespace,
        uid,
    } = &request.op
    else {
        return WriteResult::Rejected("not a read".to_owned());
    };
    let read = async {
        let Some(adapter) = kinds.get(*kind) else {
            return Ok(WriteResult::Rejected("unknown kind of job".to_owned()));
        };
        let resource = api_resource(adapter.resource());
        if adapter.member_kind().is_some() {
            let pods = started_pods(client, namespace, uid).await?;
            return Ok(WriteResult::Read(JobRead::StartedPods(pods)));
        }
        let name = match name {
            Some(name) => Some(name.clone()),
            None => find_name(client, &resource, namespace, uid).await?,
        };
        if let Some(name) = &name
            && let Some(object) = find_job(client, &resource, name, uid).await?
        {
            return Ok(parse(kinds, *kind, object));
        }
        let selector = adapter.pod_selector(name.as_ref(), uid);
        let has_pods = match selector {
            Some(selector) => any_running_pod(client, namespace, &selector).await?,
            None => false,
        };
        Ok(WriteResult::Read(JobRead::Gone { has_pods }))
    };
    match timeout(limit, read).await {
        Err(_) => WriteResult::Failed(format!("no response within {} s", limit.as_secs())),
        Ok(Err(error)) => result_from_error(request, error),
        Ok(Ok(result)) => result,
    }
}

fn parse(kinds: &JobKinds, kind: usize, object: Value) -> WriteResult {
    match kinds.parse(kind, object) {
        Ok(view) => WriteResult::Read(JobRead::Exists(kind, Box::new(view))),
        Err(error) => WriteResult::Rejected(error.to_string()),
    }
}

/// The name of the job with this uid. It is searched for only if the owner reference of its workload was removed, and
/// its name was too long for that of the workload. Costs a list of the metadata of all jobs in the namespace.
async fn find_name(
    client: &Client,
    resource: &ApiResource,
    namespace: &str,
    uid: &str,
) -> Result<Option<ObjectKey>, Error> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, resource);
    let mut request = ListParams::default().limit(JOBS_PAGE_SIZE);
    loop {
        let page = match api.list_metadata(&request).await {
            // The cluster has lost the kind, and its jobs with it.
            Err(Error::Api(status)) if status.code == 404 => return Ok(None),
            page => page?,
        };
        let mut jobs = page.items.iter();
        if let Some(job) = jobs.find(|it| it.metadata.uid.as_deref() == Some(uid)) {
            return Ok(Some(ObjectKey::from_metadata(&job.metadata)));
        }
        match page.metadata.continue_.filter(|it| !it.is_empty()) {
            Some(token) => request = request.continue_token(&token),
            None => return Ok(None),
        }
    }
}

/// The job with this name and this uid. One with another uid is another job.
async fn find_job(
    client: &Client,
    resource: &ApiResource,
    name: &ObjectKey,
    uid: &str,
) -> Result<Option<Value>, Error> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), name.namespace(), resource);
    let found = api.get_opt(name.name()).await?;
    let found = found.filter(|it| it.metadata.uid.as_deref() == Some(uid));
    // The object was decoded from JSON, so encoding it does not fail.
    Ok(found.and_then(|it| serde_json::to_value(it).ok()))
}

/// The pods of a group that the controller has started, that have lost the queue label since, and that neither have ended nor
/// terminate; of many pods those of the first page that has one.
async fn started_pods(client: &Client, namespace: &str, uid: &str) -> Result<Vec<JobView>, Error> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let selector = format!("{}={uid},!{}", labels::JOB_UID, labels::QUEUE_NAME);
    let mut request = running_pods(&selector);
    loop {
        let page = api.list(&request).await?;
        let pods = page.items.into_iter().filter_map(started_pod);
        let pods: Vec<JobView> = pods.collect();
        match page.metadata.continue_.filter(|it| !it.is_empty()) {
            Some(token) if pods.is_empty() => request = request.continue_token(&token),
            _ => return Ok(pods),
        }
    }
}

/// The view of a pod that runs; `None` if it waits, terminates or has ended, or if it cannot be decoded: the watch reports
/// that.
fn started_pod(pod: Pod) -> Option<JobView> {
    // The object was decoded from JSON, so encoding it does not fail.
    let object = serde_json::to_value(pod).ok()?;
    let view = KINDS.get(POD)?.parse(object).ok()?;
    (!view.is_suspended && !view.is_deleted).then_some(view)
}

fn running_pods(selector: &str) -> ListParams {
    ListParams::default()
        .labels(selector)
        .fields(RUNNING)
        .limit(PAGE_SIZE)
}

/// Whether a pod with these labels has neither ended nor terminates.
async fn any_running_pod(client: &Client, namespace: &str, selector: &str) -> Result<bool, Error> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let mut request = running_pods(selector);
    loop {
        let page = api.list_metadata(&request).await?;
        let mut pods = page.items.iter();
        if pods.any(|it| it.metadata.deletion_timestamp.is_none()) {
            return Ok(true);
        }
        match page.metadata.continue_.filter(|it| !it.is_empty()) {
            Some(token) => request = request.continue_token(&token),
            None => return Ok(false),
        }
    }
}
