//! Writes, as the API server takes them.

use crate::api::{Api, Error};
use crate::fields::name_of;
use lockkeeper_controller::{Kind, Name, Outcome, Target, Verb, What, Write};

/// Does a write, or says why it was refused as wrong.
pub fn perform(api: &mut Api, write: &Write) -> Result<Outcome, String> {
    let (kind, name) = object(write);
    let Some(kind) = kind else {
        return Ok(Outcome::Done(api.version()));
    };
    let done = match &write.verb {
        Verb::Create(object) => api.create(kind, object.clone()),
        Verb::Patch(patch) => api.patch(kind, &name, patch, false),
        Verb::PatchStatus(patch) => api.patch(kind, &name, patch, true),
        Verb::Delete { uid } => api.delete(kind, &name, Some(uid), false),
    };
    match done {
        Ok(version) => Ok(Outcome::Done(version)),
        Err(Error::Absent) => Ok(Outcome::Absent),
        Err(Error::Exists) => Ok(Outcome::Exists),
        Err(Error::Conflict) => Ok(Outcome::Conflict),
        Err(Error::Invalid(why)) => {
            let what = write.what.as_str();
            Err(format!("{what} of {name} is refused: {why}"))
        }
    }
}

/// The object that a write is about; no kind for an event.
pub fn object(write: &Write) -> (Option<Kind>, Name) {
    let plain = |name: &str| Name::new("", name);
    match (&write.target, &write.verb) {
        (Target::Job(_), Verb::Create(object)) => (Some(Kind::Workload), name_of(object)),
        (Target::Job(job), _) => (Some(Kind::Job(job.kind)), job.name.clone()),
        (Target::Workload(name), _) => (Some(Kind::Workload), name.clone()),
        (Target::LocalQueue(name), _) => (Some(Kind::LocalQueue), name.clone()),
        (Target::ClusterQueue(name), _) => (Some(Kind::ClusterQueue), plain(name)),
        (Target::Cohort(name), _) => (Some(Kind::Cohort), plain(name)),
        (Target::ResourceFlavor(name), _) => (Some(Kind::ResourceFlavor), plain(name)),
        (Target::Event(_), _) => (None, Name::default()),
    }
}

pub fn line(write: &Write) -> String {
    let (_, name) = object(write);
    let verb = match &write.verb {
        Verb::Create(it) => format!("create {it}"),
        Verb::Patch(it) => format!("patch {it}"),
        Verb::PatchStatus(it) => format!("status {it}"),
        Verb::Delete { uid } => format!("delete {uid}"),
    };
    let short = write.what != What::QueueStatus;
    let verb = if short { verb } else { String::new() };
    format!("{} {} {name} {verb}", write.ticket.0, write.what.as_str())
}
