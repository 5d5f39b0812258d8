//! Jobs: they get a workload, start when it is admitted, and stop when it is evicted.

use super::input::{Change, JobName, Kind, Name};
use super::life::{follows, workload_of};
use super::output::{Outcome, Target, Verb, What};
use super::workload::Known;
use super::{Plan, Reconciler, Track};
use crate::jobs::{KINDS, Placed, Seen};
use k8s_openapi::api::core::v1::PodSpec;
use lockkeeper_api::labels;
use lockkeeper_api::workload::PodSetAssignment;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A job.
#[derive(Debug)]
pub(super) struct KnownJob {
    pub(super) seen: Box<Seen>,
    pub(super) track: Track,
    /// The version at which its workload was made; it has not been seen yet.
    pub(super) created_at: Option<u64>,
}

impl Reconciler {
    pub(super) fn take_job(&mut self, kind: usize, change: Change<Box<Seen>>) {
        match change {
            // It is started and stopped with the job that it is a part of.
            Change::Seen(seen) if seen.is_part => self.lose_job(kind, seen.name),
            Change::Seen(seen) => {
                let name = JobName {
                    kind,
                    name: seen.name.clone(),
                };
                let known = self.jobs.entry(name.clone()).or_insert_with(|| KnownJob {
                    seen: seen.clone(),
                    track: Track::default(),
                    created_at: None,
                });
                if known.seen.uid != seen.uid {
                    known.track = Track::default();
                    known.created_at = None;
                }
                known.track.see(seen.version);
                if known.track.version == seen.version {
                    known.seen = seen;
                }
                let workload = known.seen.workload_name(kind);
                self.schedule.mark(Target::Workload(workload));
                self.schedule.mark(Target::Job(name));
            }
            Change::Gone(name) => self.lose_job(kind, name),
        }
    }

    fn lose_job(&mut self, kind: usize, name: Name) {
        let name = JobName { kind, name };
        if let Some(known) = self.jobs.remove(&name) {
            let workload = known.seen.workload_name(kind);
            self.schedule.mark(Target::Workload(workload));
        }
    }

    pub(super) fn job_answered(&mut self, name: &JobName, what: What, outcome: &Outcome) {
        let Some(known) = self.jobs.get_mut(name) else {
            return;
        };
        if what == What::CreateWorkload {
            known.created_at = match outcome {
                // What was made and has been seen may be gone again.
                Outcome::Done(version) => Some(*version).filter(|it| *it > self.workloads_at),
                Outcome::DryRun => Some(u64::MAX),
                _ => None,
            };
        }
        let workload = known.seen.workload_name(name.kind);
        self.schedule.mark(Target::Workload(workload));
        if let Outcome::Refused(why) = outcome {
            self.news.warn_job(name, what, why);
        }
    }

    /// What a job has to write.
    pub(super) fn plan_job(&self, name: &JobName) -> Plan {
        let Some(known) = self.jobs.get(name) else {
            return Plan::REST;
        };
        let job = &*known.seen;
        if job.is_deleted || job.ended.is_some() || !self.is_listed(Kind::Workload) {
            return Plan::REST;
        }
        let workload = self.workloads.get(&job.workload_name(name.kind));
        let runs = !job.is_suspended || known.track.is_in_doubt;
        // One that is just started is not suspended before whoever makes its pods says that it knows. It may
        // be making them, and would never say that it knew: the job would look as if it had never run.
        let is_suspendable = !job.is_start_unknown;
        let what = match workload {
            Some(it) if it.seen.metadata.deletion_timestamp.is_some() => None,
            Some(it) if !it.track.is_settled() => None,
            // Another job than was admitted does not start; it stops, and gets another workload.
            Some(it) if it.runs() && (!job.is_suspended || may_start(job, it)) => {
                plan_start(job, &self.placed(job, it))
            }
            _ if runs => is_suspendable.then_some(What::SuspendJob),
            _ if !job.is_stopped() => plan_stop(job),
            None => known.created_at.is_none().then_some(What::CreateWorkload),
            Some(_) => None,
        };
        what.map_or(Plan::REST, Plan::write)
    }

    /// The pods of a job as its workload was admitted: with the labels and tolerations of the flavors.
    fn placed(&self, job: &Seen, workload: &Known) -> Vec<Placed> {
        let admission = workload.seen.status.as_ref();
        let admission = admission.and_then(|it| it.admission.as_ref());
        let given = |name: &str| {
            let mut all = admission
                .iter()
                .flat_map(|it| it.pod_set_assignments.iter());
            all.find(|it| it.name == name)
        };
        let pod_sets = job.pod_sets.iter().zip(job.original());
        let pod_sets = pod_sets.map(|(it, mut placed)| {
            if let Some(given) = given(&it.name) {
                self.add_flavors(&mut placed, given);
            }
            placed
        });
        pod_sets.collect()
    }

    fn add_flavors(&self, placed: &mut Placed, given: &PodSetAssignment) {
        placed.count = Some(given.count);
        let flavors: BTreeSet<&String> = given.flavors.values().collect();
        let flavors = flavors.into_iter().filter_map(|it| self.objects.flavor(it));
        for flavor in flavors {
            for (key, value) in &flavor.node_labels {
                placed.node_selector.insert(key.clone(), value.clone());
            }
            for toleration in &flavor.tolerations {
                if !placed.tolerations.contains(toleration) {
                    placed.tolerations.push(toleration.clone());
                }
            }
        }
    }

    pub(super) fn draft_job(&mut self, name: &JobName, what: What) -> Option<Verb> {
        let kind = KINDS.get(name.kind)?;
        let known = self.jobs.get(name)?;
        let job = &*known.seen;
        let version = job.version.to_string();
        let patch = |spec: Value| json!({"metadata": {"resourceVersion": version}, "spec": spec});
        let noted = |spec: Value, original: Value| {
            let annotations = json!({labels::ORIGINAL_PLACEMENT: original});
            json!({
                "metadata": {"resourceVersion": version, "annotations": annotations},
                "spec": spec,
            })
        };
        let workload = self.workloads.get(&job.workload_name(name.kind));
        Some(match what {
            What::CreateWorkload => Verb::Create(workload_of(name, job)?),
            What::SuspendJob => {
                let suspended = json!({"suspend": true});
                let restored = restored(job, workload.map(Box::as_ref));
                if job.original.as_ref().is_none_or(|it| *it == restored) {
                    return Some(Verb::Patch(patch(suspended)));
                }
                // What its user has changed is not undone, whatever becomes of its workload meanwhile.
                let original = serde_json::to_string(&restored).ok()?;
                Verb::Patch(noted(suspended, json!(original)))
            }
            What::StartJob => {
                let placed = self.placed(job, workload?);
                if job.is_placed(&placed) {
                    return Some(Verb::Patch(patch(json!({"suspend": false}))));
                }
                let mut spec = kind.place(job, &placed);
                let object = spec.as_object_mut()?;
                object.insert("suspend".to_owned(), json!(false));
                let original = serde_json::to_string(&noted_of(job, &placed)).ok()?;
                Verb::Patch(noted(spec, json!(original)))
            }
            What::RestoreJob => {
                let restored = restored(job, workload.map(Box::as_ref));
                Verb::Patch(noted(kind.place(job, &restored), Value::Null))
            }
            What::ResetJob => Verb::PatchStatus(json!({
                "metadata": {"resourceVersion": version},
                "status": {"startTime": null},
            })),
            _ => return None,
        })
    }
}

/// What is noted of a job that gets this placement. A number that stays is not: its user may change it before
/// the job has stopped.
fn noted_of(job: &Seen, placed: &[Placed]) -> Vec<Placed> {
    let mut original = job.original();
    for (it, placed) in original.iter_mut().zip(placed) {
        it.count = it.count.filter(|_| it.count != placed.count);
    }
    original
}

fn plan_start(job: &Seen, placed: &[Placed]) -> Option<What> {
    if !job.is_suspended {
        return None;
    }
    if job.is_placed(placed) || !job.has_start_time {
        return Some(What::StartJob);
    }
    // Its template can be changed only without a start time.
    job.is_quiet.then_some(What::ResetJob)
}

/// Whether a suspended job is what its workload was admitted for.
pub(super) fn may_start(job: &Seen, workload: &Known) -> bool {
    if job.original.is_some() {
        outgrown(job, workload).is_none()
    } else {
        follows(workload, job)
    }
}

/// What a job asks for beyond that for which its workload was admitted, once it was started: more pods, or pods
/// that ask for something else. Fewer pods are left alone: they keep within their quota.
///
/// Source: Kueue `pkg/controller/jobframework`, which stops such a job (`NoMatchingWorkload`), and one with
/// fewer pods too.
pub(super) fn outgrown(job: &Seen, workload: &Known) -> Option<String> {
    if job.is_suspended && job.original.is_none() {
        return None;
    }
    let given = workload.seen.status.as_ref()?.admission.as_ref()?;
    job.pod_sets.iter().find_map(|have| {
        let name = &have.name;
        let mut given = given.pod_set_assignments.iter();
        let count = given.find(|it| it.name == *name).map_or(0, |it| it.count);
        if have.count > count {
            let now = have.count;
            return Some(format!(
                "pod set {name} has {now} pods, and {count} were admitted"
            ));
        }
        let mut pod_sets = workload.seen.spec.pod_sets.iter();
        let pod_set = pod_sets.find(|it| it.name() == name)?;
        let is_other = !asks_alike(have.template.spec.as_ref(), pod_set.template.spec.as_ref());
        is_other.then(|| format!("the pods of pod set {name} ask for other resources"))
    })
}

/// Whether pods ask for the same, wherever they may run. Both have only what is used of them.
fn asks_alike(one: Option<&PodSpec>, other: Option<&PodSpec>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            one.containers == other.containers
                && one.init_containers == other.init_containers
                && one.overhead == other.overhead
                && one.resources == other.resources
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// How the pods of a stopped job are to be: as they were noted, but for a number of pods that is not the one
/// it was admitted with. Its user has changed that since.
fn restored(job: &Seen, workload: Option<&Known>) -> Vec<Placed> {
    let mut original = job.original();
    let admission = workload.and_then(|it| it.seen.status.as_ref()?.admission.as_ref());
    if let (Some(_), Some(admission)) = (&job.original, admission) {
        for (placed, have) in original.iter_mut().zip(&job.pod_sets) {
            let mut given = admission.pod_set_assignments.iter();
            let given = given.find(|it| it.name == have.name);
            if given.is_some_and(|it| it.count != have.count) {
                placed.count = None;
            }
        }
    }
    original
}

/// The rest of stopping, after it is suspended. Each part is safe to repeat; done is it when its workload may
/// give the quota back.
fn plan_stop(job: &Seen) -> Option<What> {
    if !job.is_quiet {
        None
    } else if job.has_start_time {
        Some(What::ResetJob)
    } else {
        job.original.is_some().then_some(What::RestoreJob)
    }
}

/// The name of the object that a job is, for messages.
pub(super) fn reference(name: &JobName) -> (&'static str, &Name) {
    let kind = KINDS.get(name.kind).map_or("Job", |it| it.resource().kind);
    (kind, &name.name)
}
