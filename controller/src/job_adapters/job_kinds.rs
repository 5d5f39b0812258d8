//! The kinds of jobs that the controller manages: those in [`KINDS`], and those that `JobKind` objects declare.

use super::declared::DeclaredJobs;
use super::unknown_owner::{UnknownOwner, declarable_owner};
use super::workload_identity::{controlling_owner, job_name_of_kind, kind_prefix};
use super::{
    JobAdapter, JobParseError, JobView, KINDS, job_name_from_workload, kind_from_workload_name,
};
use crate::job_adapters;
use crate::key::{JobKey, ObjectKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::{JobKind, Workload};
use lockkeeper_job_kinds::{DeclaredKind, describe_errors};
use serde_json::Value;
use std::sync::Arc;

/// A kind that cannot be declared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeclareError {
    /// The controller has this kind without a declaration, or another kind of the same name.
    #[error("a kind of this name is built in; delete the JobKind")]
    BuiltIn,
    /// A kind of the same name is declared, of this API version.
    #[error("{0} has a declared kind of the same name; delete one of the JobKinds")]
    NameTaken(String),
    /// The declaration has mistakes: which.
    #[error("{0}")]
    Invalid(String),
}

/// The kinds of jobs. An index is never given to another kind: one that is not declared any more keeps its last declaration, so
/// that its jobs can be stopped. Clones share the declarations.
#[derive(Clone, Debug, Default)]
pub struct JobKinds {
    declared: Vec<Arc<DeclaredJobs>>,
}

impl JobKinds {
    /// The kind with this index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&dyn JobAdapter> {
        if let Some(built_in) = KINDS.get(index) {
            return Some(*built_in);
        }
        Some(self.declared(index)?)
    }

    fn declared(&self, index: usize) -> Option<&DeclaredJobs> {
        let position = index.checked_sub(KINDS.len())?;
        self.declared.get(position).map(AsRef::as_ref)
    }

    /// The number of kinds; their indices are below it.
    #[must_use]
    pub fn count(&self) -> usize {
        KINDS.len().saturating_add(self.declared.len())
    }

    /// The name of a kind, for messages.
    #[must_use]
    pub fn name(&self, index: usize) -> &str {
        let declared = self.declared(index);
        declared.map_or_else(|| job_adapters::kind_name(index), |it| it.kind_name())
    }

    /// As [`Self::declare`], with an object that is not compiled yet.
    ///
    /// # Errors
    ///
    /// As [`Self::declare`], and if the object has mistakes.
    pub fn declare_object(&mut self, declaration: &JobKind) -> Result<usize, DeclareError> {
        let compiled = DeclaredKind::compile(declaration);
        self.declare(compiled.map_err(|it| DeclareError::Invalid(describe_errors(&it)))?)
    }

    /// Adds a declared kind, or replaces its declaration. Returns its index.
    ///
    /// # Errors
    ///
    /// A [`DeclareError`] if another kind has its name: the names of workloads begin with that of the kind.
    pub fn declare(&mut self, kind: DeclaredKind) -> Result<usize, DeclareError> {
        let adapter = Arc::new(DeclaredJobs::new(kind));
        let is_built_in = |it: usize| kind_prefix(it) == adapter.prefix();
        if (0..KINDS.len()).any(is_built_in) {
            return Err(DeclareError::BuiltIn);
        }
        let has_name = |it: &&Arc<DeclaredJobs>| it.prefix() == adapter.prefix();
        if let Some(other) = self.declared.iter().find(has_name)
            && !other.is_same_kind(&adapter)
        {
            return Err(DeclareError::NameTaken(other.resource().api_version()));
        }
        let mut known = self.declared.iter();
        let known = known.position(|it| it.is_same_kind(&adapter));
        let known = known.and_then(|at| Some((at, self.declared.get_mut(at)?)));
        let position = if let Some((at, slot)) = known {
            *slot = adapter;
            at
        } else {
            self.declared.push(adapter);
            self.declared.len().saturating_sub(1)
        };
        Ok(KINDS.len().saturating_add(position))
    }

    /// Parses a job.
    ///
    /// # Errors
    ///
    /// A [`JobParseError`] if a field that the controller uses has the wrong type, or if the index is unknown.
    pub fn parse(&self, index: usize, object: Value) -> Result<JobView, JobParseError> {
        let adapter = self.get(index).ok_or_else(|| JobParseError {
            field: "kind",
            problem: "unknown kind of job".to_owned(),
        })?;
        let owner = declarable_owner(&object);
        let mut view = adapter.parse(object)?;
        if view.parent.is_none()
            && let Some(owner) = owner
        {
            view.parent = self.declared_parent(&view.name, &owner);
            view.unknown_owner = view.parent.is_none().then(|| Box::new(owner));
        }
        Ok(view)
    }

    /// The key and the uid of the owner of a job with this name, if its kind is declared.
    pub(crate) fn declared_parent(
        &self,
        job: &ObjectKey,
        owner: &UnknownOwner,
    ) -> Option<(JobKey, String)> {
        let kind = self.declared_index(&owner.group, &owner.kind)?;
        let name = ObjectKey::new(job.namespace(), &owner.name);
        Some((JobKey { kind, name }, owner.uid.clone()))
    }

    fn declared_index(&self, group: &str, kind: &str) -> Option<usize> {
        let mut declared = self.declared.iter();
        let position = declared.position(|it| it.is_kind(group, kind))?;
        Some(KINDS.len().saturating_add(position))
    }

    /// The job that controls a workload and its uid, if its kind is known; or the group in its labels.
    #[must_use]
    pub fn owner<'a>(&self, workload: &'a Workload) -> Option<(JobKey, &'a str)> {
        let declared = self.declared_owner(&workload.metadata);
        declared.or_else(|| job_adapters::owner(workload))
    }

    fn declared_owner<'a>(&self, metadata: &'a ObjectMeta) -> Option<(JobKey, &'a str)> {
        if self.declared.is_empty() {
            return None;
        }
        let (group, owner) = controlling_owner(metadata)?;
        let kind = self.declared_index(group, &owner.kind)?;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let name = ObjectKey::new(namespace, &owner.name);
        Some((JobKey { kind, name }, &owner.uid))
    }

    /// The kind of the job that a workload with this name was created for; that of `batch/v1` if the name is no such name.
    #[must_use]
    pub fn kind_from_workload_name(&self, name: &str) -> usize {
        let (prefix, _) = name.split_once('-').unwrap_or((name, ""));
        let mut declared = self.declared.iter();
        let declared = declared.position(|it| it.prefix() == prefix);
        match declared {
            Some(position) => KINDS.len().saturating_add(position),
            None => kind_from_workload_name(name),
        }
    }

    /// The name of the job with this uid that a workload was created for, if the name of the workload has the whole name of
    /// the job.
    #[must_use]
    pub fn job_name_from_workload(
        &self,
        workload: &ObjectKey,
        kind: usize,
        uid: &str,
    ) -> Option<ObjectKey> {
        match self.declared(kind) {
            Some(it) => job_name_of_kind(workload, it.prefix(), uid),
            None => job_name_from_workload(workload, kind, uid),
        }
    }
}

#[cfg(test)]
mod tests;
