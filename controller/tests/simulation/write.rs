//! Executes writes at the API server in memory.

use crate::api::{Api, Error};
use crate::declared_jobs::simulated_kind;
use crate::fields::{object_key, uid};
use crate::jobs::JOB;
use lockkeeper_api::labels;
use lockkeeper_controller::job_adapters::{JobView, KINDS, POD, POD_GROUP};
use lockkeeper_controller::{
    JobRead, Kind, ObjectKey, ObjectRef, WriteOp, WritePurpose, WriteRequest, WriteResult,
};

/// Executes a write, or returns why it is invalid.
pub fn execute(api: &mut Api, write: &WriteRequest) -> Result<WriteResult, String> {
    let (kind, name) = written_object(write);
    let Some(kind) = kind else {
        return Ok(WriteResult::Done(api.version()));
    };
    if let WriteOp::ReadJob {
        kind, name, uid, ..
    } = &write.op
    {
        return read_job(api, *kind, name.as_ref(), uid);
    }
    let done = match &write.op {
        WriteOp::Create(object) => api.create(kind, object.clone()),
        WriteOp::Patch(patch) => {
            let declared = api.declared.as_ref().filter(|_| kind == JOB);
            let job = declared.and_then(|it| Some((it, api.get(kind, &name)?)));
            let patch = match job {
                Some((declared, job)) => &declared.patch_of_job(job, patch),
                None => patch,
            };
            api.patch(kind, &name, patch, false)
        }
        WriteOp::PatchStatus(patch) => api.patch(kind, &name, patch, true),
        WriteOp::PatchPodConditions(patch) => api.patch_conditions(kind, &name, patch),
        WriteOp::Delete { uid } | WriteOp::Evict { uid } => {
            api.delete(kind, &name, Some(uid), false)
        }
        WriteOp::ReadJob { .. } => Ok(api.version()),
    };
    match done {
        Ok(version) => Ok(WriteResult::Done(version)),
        Err(Error::NotFound) => Ok(WriteResult::NotFound),
        Err(Error::AlreadyExists) => Ok(WriteResult::AlreadyExists),
        Err(Error::Conflict) => Ok(WriteResult::Conflict),
        Err(Error::Invalid(why)) => {
            let what = write.purpose.as_str();
            Err(format!("{what} of {name} is rejected: {why}"))
        }
    }
}

fn read_job(
    api: &Api,
    kind: usize,
    name: Option<&ObjectKey>,
    of: &str,
) -> Result<WriteResult, String> {
    if kind == POD_GROUP {
        return Ok(WriteResult::Read(JobRead::StartedPods(started_pods(
            api, of,
        )?)));
    }
    let known = kind;
    let kind = simulated_kind(kind);
    let mut jobs = api.all(Kind::Job(kind));
    let found = match name {
        Some(name) => api.get(Kind::Job(kind), name),
        None => jobs.find(|(_, it)| uid(it) == of).map(|(_, it)| it),
    };
    let read = match found.filter(|it| uid(it) == of) {
        Some(job) => {
            let view = match &api.declared {
                Some(declared) if Kind::Job(kind) == JOB => {
                    declared.kinds().parse(known, declared.declared(job))
                }
                _ => KINDS[kind].parse((**job).clone()),
            };
            JobRead::Exists(known, Box::new(view.map_err(|it| it.to_string())?))
        }
        None => JobRead::Gone {
            has_pods: api.has_orphaned_pods(of),
        },
    };
    Ok(WriteResult::Read(read))
}

/// The pods of a group that were started and run on without the queue label.
fn started_pods(api: &Api, group_uid: &str) -> Result<Vec<JobView>, String> {
    let pods = api.all(Kind::Job(POD)).map(|(_, pod)| pod);
    let started = pods.filter(|pod| pod["metadata"]["labels"][labels::JOB_UID] == *group_uid);
    let views = started.map(|pod| KINDS[POD].parse((**pod).clone()));
    let views: Result<Vec<JobView>, _> = views.collect();
    let mut views = views.map_err(|it| it.to_string())?;
    views.retain(|it| !it.is_suspended && !it.is_deleted && it.queue.is_empty());
    Ok(views)
}

/// The object that a write is about; no kind for an event.
pub fn written_object(write: &WriteRequest) -> (Option<Kind>, ObjectKey) {
    let plain = |name: &str| ObjectKey::new("", name);
    match (&write.object, &write.op) {
        (ObjectRef::Job(_), WriteOp::Create(object)) => (Some(Kind::Workload), object_key(object)),
        (ObjectRef::Job(job), _) => {
            let kind = Kind::Job(simulated_kind(job.kind));
            (Some(kind), job.name.clone())
        }
        (ObjectRef::Workload(name), _) => (Some(Kind::Workload), name.clone()),
        (ObjectRef::LocalQueue(name), _) => (Some(Kind::LocalQueue), name.clone()),
        (ObjectRef::ClusterQueue(name), _) => (Some(Kind::ClusterQueue), plain(name)),
        (ObjectRef::Cohort(name), _) => (Some(Kind::Cohort), plain(name)),
        (ObjectRef::ResourceFlavor(name), _) => (Some(Kind::ResourceFlavor), plain(name)),
        (ObjectRef::JobKind(name), _) => (Some(Kind::JobKind), plain(name)),
        (ObjectRef::VictimPod(name), _) => (Some(Kind::BoundPod), name.clone()),
        (ObjectRef::Event(_), _) => (None, ObjectKey::default()),
    }
}

pub fn describe(write: &WriteRequest) -> String {
    let (_, name) = written_object(write);
    let verb = match &write.op {
        WriteOp::Create(it) => format!("create {it}"),
        WriteOp::Patch(it) => format!("patch {it}"),
        WriteOp::PatchStatus(it) | WriteOp::PatchPodConditions(it) => format!("status {it}"),
        WriteOp::Delete { uid } => format!("delete {uid}"),
        WriteOp::Evict { uid } => format!("evict {uid}"),
        WriteOp::ReadJob { uid, .. } => format!("read {uid}"),
    };
    let short = write.purpose != WritePurpose::QueueStatus;
    let verb = if short { verb } else { String::new() };
    format!("{} {} {name} {verb}", write.id.0, write.purpose.as_str())
}
