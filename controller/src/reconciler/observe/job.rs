//! Watch events of jobs.

use crate::job_adapters::JobView;
use crate::key::{JobKey, ObjectKey};
use crate::reconciler::input::Change;
use crate::reconciler::model::TrackedJob;
use crate::reconciler::output::ObjectRef;
use crate::reconciler::state::ReconcilerState;

pub(crate) fn observe_job(state: &mut ReconcilerState, kind: usize, change: Change<Box<JobView>>) {
    match change {
        // A part has no workload: it starts and stops with the job that controls it.
        Change::Applied(view) if view.is_part => remove_job(state, kind, view.name),
        Change::Applied(view) => upsert_job(state, kind, view),
        Change::Deleted(name) => remove_job(state, kind, name),
    }
}

fn upsert_job(state: &mut ReconcilerState, kind: usize, view: Box<JobView>) {
    let key = JobKey {
        kind,
        name: view.name.clone(),
    };
    let job = state.model.jobs.entry(key.clone());
    let job = job.or_insert_with(|| TrackedJob::new(view.clone()));
    if job.view.uid != view.uid {
        // The job was deleted and created again under the same name: earlier writes do not count.
        *job = TrackedJob::new(job.view.clone());
    }
    job.tracker.observe(view.version);
    // A restarted watch may deliver an older version.
    if job.tracker.version == view.version {
        job.view = view;
    }
    let workload = job.view.workload_name(kind);
    state.work_queue.enqueue(ObjectRef::Workload(workload));
    state.work_queue.enqueue(ObjectRef::Job(key));
}

fn remove_job(state: &mut ReconcilerState, kind: usize, name: ObjectKey) {
    if let Some(job) = state.model.jobs.remove(&JobKey { kind, name }) {
        let workload = job.view.workload_name(kind);
        state.work_queue.enqueue(ObjectRef::Workload(workload));
    }
}
