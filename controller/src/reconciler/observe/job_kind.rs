//! Watch events of `JobKind` objects.

use crate::key::{Kind, ObjectKey};
use crate::reconciler::declared_job_kind::{Declaration, DeclaredJobKind};
use crate::reconciler::input::Change;
use crate::reconciler::state::ReconcilerState;
use lockkeeper_api::JobKind;
use lockkeeper_job_kinds::{CompileError, DeclaredKind};

/// Records a declaration. One with a mistake changes nothing: its last version without one stays in effect. The jobs of a kind that
/// is not declared any more are stopped, because nothing would stop them later.
pub(crate) fn observe_job_kind(state: &mut ReconcilerState, change: Change<Box<JobKind>>) {
    match change {
        Change::Applied(declaration) => {
            let key = ObjectKey::from_metadata(&declaration.metadata);
            if let Err(problem) = declare(state, &key, &declaration) {
                let recorder = &mut state.event_recorder;
                recorder.record_rejected_declaration(&key, &problem);
                state.enqueue_events();
            }
        }
        Change::Deleted(key) => {
            let Some(declared) = state.model.declared_kinds.remove(key.name()) else {
                return;
            };
            state
                .model
                .lists
                .remove_optional(Kind::Job(declared.kind.kind));
            state.cycle.is_due = true;
            state.enqueue_all();
        }
    }
}

fn declare(
    state: &mut ReconcilerState,
    key: &ObjectKey,
    declaration: &JobKind,
) -> Result<(), String> {
    let known = state.model.declared_kinds.get(key.name());
    if known.is_some_and(|it| it.spec == declaration.spec) {
        return Ok(());
    }
    let kind = DeclaredKind::compile(declaration).map_err(|errors| describe(&errors))?;
    let index = state.model.job_kinds.declare(kind);
    let kind = index.map_err(|error| error.to_string())?;
    let declared = &mut state.model.declared_kinds;
    let revision = declared.values().map(|it| it.kind.revision).max();
    let revision = revision.unwrap_or_default().saturating_add(1);
    let in_effect = Declaration {
        kind: DeclaredJobKind { kind, revision },
        spec: declaration.spec.clone(),
    };
    declared.insert(key.name().to_owned(), in_effect);
    state.model.lists.add_optional(Kind::Job(kind));
    Ok(())
}

fn describe(errors: &[CompileError]) -> String {
    let errors = errors.iter();
    let errors = errors.map(|it| format!("{}: {}", it.field, it.problem));
    errors.collect::<Vec<_>>().join("; ")
}
