//! The status of `JobKind` objects.

use super::conditions::{Conditions, status_patch, timestamp};
use crate::key::Kind;
use crate::reconciler::declared_job_kind::{DefinitionCheck, TrackedJobKind};
use crate::reconciler::output::WriteOp;
use crate::reconciler::state::View;
use lockkeeper_api::job_kind::JobKindStatus;

/// A condition: whether it is true, its reason and its message.
type ConditionValue = (bool, &'static str, String);

/// The status write of a `JobKind`; `None` if its status has not changed, is not known yet, or the object is gone.
pub(crate) fn build_job_kind_status_write(view: View<'_>, name: &str) -> Option<WriteOp> {
    let entry = view.model.declared_kinds.get(name)?;
    let active = active(view, entry)?;
    let misconfigured = misconfigured(entry);
    let before = entry.object.status.as_ref();
    let mut status = before.cloned().unwrap_or_default();
    let metadata = &entry.object.metadata;
    let mut conditions = Conditions {
        list: &mut status.conditions,
        now: timestamp(view.now_ms),
        generation: metadata.generation,
    };
    for (of, (is_true, reason, message)) in [("Active", active), ("Misconfigured", misconfigured)] {
        conditions.set(of, is_true, reason, &message);
    }
    let status = JobKindStatus {
        observed_generation: metadata.generation,
        ..status
    };
    let patch = status_patch(metadata.resource_version.as_deref(), before, &status)?;
    Some(WriteOp::PatchStatus(patch))
}

/// Whether the jobs of the kind are managed; `None` until their list and the definition were looked for.
fn active(view: View<'_>, entry: &TrackedJobKind) -> Option<ConditionValue> {
    let Some(declared) = &entry.in_effect else {
        let mistakes = entry.mistakes.clone().unwrap_or_default();
        return Some((false, "InvalidDeclaration", mistakes));
    };
    let check = entry.check.as_ref()?;
    let spec = &declared.declaration.spec;
    let name = declared.declaration.metadata.name.as_deref();
    let name = name.unwrap_or_default();
    let lists = &view.model.lists;
    let kind = Kind::Job(declared.kind);
    if !lists.has_optional(kind) || *check == DefinitionCheck::Deleted {
        let missing = match check {
            DefinitionCheck::Missing | DefinitionCheck::Deleted => {
                format!("CustomResourceDefinition {name} does not exist")
            }
            _ => format!(
                "The cluster does not serve version {} of {name}",
                spec.version
            ),
        };
        return Some((false, "KindNotInstalled", missing));
    }
    if lists.is_forbidden(kind) {
        let message = format!(
            "The controller may not list and watch {name}; give it a ClusterRole with the label \
             rbac.lockkeeper.dev/job-kinds=true"
        );
        return Some((false, "Forbidden", message));
    }
    if !lists.is_listed(kind) {
        return None;
    }
    let message = match &entry.mistakes {
        None => "Jobs of this kind are managed",
        Some(_) => "Jobs of this kind are managed by the last declaration without a mistake",
    };
    Some((true, "Ready", message.to_owned()))
}

/// Whether the declaration has a mistake, or does not fit the definition of the kind.
fn misconfigured(entry: &TrackedJobKind) -> ConditionValue {
    if let Some(mistakes) = &entry.mistakes {
        return (true, "InvalidDeclaration", mistakes.clone());
    }
    match entry.check.as_ref() {
        Some(DefinitionCheck::Differs(mistakes)) => (true, "DefinitionMismatch", mistakes.clone()),
        Some(DefinitionCheck::Fits) => {
            let message = "The declaration fits the definition of the kind";
            (false, "Valid", message.to_owned())
        }
        Some(DefinitionCheck::Unreadable(why)) => {
            let message = format!("The definition of the kind could not be read: {why}");
            (false, "NotChecked", message)
        }
        Some(DefinitionCheck::Missing | DefinitionCheck::Deleted) | None => {
            let message = "There is no definition of the kind to compare with";
            (false, "NotChecked", message.to_owned())
        }
    }
}
