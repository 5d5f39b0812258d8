//! Watch events of `JobKind` objects, and of the definitions of their kinds.

use crate::key::{Kind, ObjectKey};
use crate::reconciler::declared_job_kind::{DeclaredJobKind, DefinitionCheck};
use crate::reconciler::input::Change;
use crate::reconciler::output::ObjectRef;
use crate::reconciler::state::ReconcilerState;
use lockkeeper_api::JobKind;
use lockkeeper_job_kinds::{DeclaredKind, describe_errors};
use std::sync::Arc;

/// Records a declaration. One with a mistake changes nothing: its last version without one stays in effect. The jobs of a kind that
/// is not declared any more are stopped, because nothing would stop them later.
pub(crate) fn observe_job_kind(state: &mut ReconcilerState, change: Change<Box<JobKind>>) {
    match change {
        Change::Applied(declaration) => {
            let key = ObjectKey::from_metadata(&declaration.metadata);
            observe_declaration(state, &key, Arc::from(declaration));
            state
                .work_queue
                .enqueue(ObjectRef::JobKind(key.name().to_owned()));
        }
        Change::Deleted(key) => {
            let removed = state.model.declared_kinds.remove(key.name());
            let Some(declared) = removed.and_then(|it| it.in_effect) else {
                return;
            };
            state.model.lists.remove_optional(Kind::Job(declared.kind));
            state.cycle.is_due = true;
            state.enqueue_all();
        }
    }
}

/// Records the comparison of a declaration with the definition of its kind. One of another revision is outdated.
pub(crate) fn observe_definition(
    state: &mut ReconcilerState,
    name: String,
    revision: u64,
    check: DefinitionCheck,
) {
    let Some(entry) = state.model.declared_kinds.get_mut(&name) else {
        return;
    };
    if entry
        .in_effect
        .as_ref()
        .is_some_and(|it| it.revision == revision)
    {
        entry.check = Some(check);
        state.work_queue.enqueue(ObjectRef::JobKind(name));
    }
}

fn observe_declaration(state: &mut ReconcilerState, key: &ObjectKey, object: Arc<JobKind>) {
    let declared = &mut state.model.declared_kinds;
    let revisions = declared.in_effect().map(|it| it.revision);
    let revision = revisions.max().unwrap_or_default().saturating_add(1);
    let Some(entry) = declared.upsert(key.name(), &object) else {
        return;
    };
    let in_effect = entry.in_effect.as_ref();
    if in_effect.is_some_and(|it| it.declaration.spec == object.spec) {
        entry.mistakes = None;
        return;
    }
    let compiled = DeclaredKind::compile(&object).map_err(|errors| describe_errors(&errors));
    let kinds = &mut state.model.job_kinds;
    let index = compiled.and_then(|it| kinds.declare(it).map_err(|error| error.to_string()));
    match index {
        Ok(kind) => {
            entry.mistakes = None;
            entry.check = None;
            entry.in_effect = Some(DeclaredJobKind {
                kind,
                revision,
                declaration: object,
            });
            state.model.lists.add_optional(Kind::Job(kind));
            find_owners(state);
        }
        Err(problem) => {
            let is_known = entry.mistakes.as_ref() == Some(&problem);
            entry.mistakes = Some(problem.clone());
            if !is_known {
                let recorder = &mut state.event_recorder;
                recorder.record_rejected_declaration(key, &problem);
                state.enqueue_events();
            }
        }
    }
}

/// Finds the owners of the declared kinds: workloads and jobs may have arrived before the declaration.
fn find_owners(state: &mut ReconcilerState) {
    let model = &state.model;
    let workloads = model.workloads.iter().filter(|(_, it)| it.job.is_none());
    let workloads = workloads.filter_map(|(key, it)| {
        let (job, _) = model.job_kinds.owner(&it.object)?;
        Some((key.clone(), job))
    });
    let jobs = model.jobs.iter().filter_map(|(key, it)| {
        let owner = it.view.unknown_owner.as_ref()?;
        let parent = model.job_kinds.declared_parent(&it.view.name, owner)?;
        Some((key.clone(), parent))
    });
    let (workloads, jobs): (Vec<_>, Vec<_>) = (workloads.collect(), jobs.collect());
    for (key, job) in workloads {
        if let Some(tracked) = state.model.workloads.get_mut(&key) {
            tracked.job = Some(job);
        }
        state.work_queue.enqueue(ObjectRef::Workload(key));
    }
    for (key, parent) in jobs {
        if let Some(job) = state.model.jobs.get_mut(&key) {
            job.view.unknown_owner = None;
            job.view.parent = Some(parent.clone());
        }
        state.model.set_claim(&key, [None, Some(parent.0)]);
        state.work_queue.enqueue(ObjectRef::Job(key));
    }
}
