//! The selected jobs, and their queue.

use lockkeeper_controller::job_adapters::{KINDS, Resource, StopMethod, kind_name};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The selected jobs, besides the label selector.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// The LocalQueue, in the namespace of each job.
    pub(crate) queue: String,
    /// The namespace; `None` for all.
    pub(crate) namespace: Option<String>,
    /// The names; all if it is empty.
    pub(crate) jobs: BTreeSet<JobName>,
}

impl Selection {
    /// The indices of the kinds that are selected.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = usize> {
        let is_selected =
            |kind: &usize| self.jobs.is_empty() || self.jobs.iter().any(|it| it.kind == *kind);
        adoptable_kinds().filter(is_selected)
    }
}

/// Kind and name of a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JobName {
    /// The index of its kind in [`KINDS`].
    pub(crate) kind: usize,
    pub(crate) name: String,
}

/// An argument that names no job.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum JobNameError {
    /// The kind has no jobs that can be adopted.
    #[error("unknown kind {kind:?}; use one of: {}", known_kinds())]
    UnknownKind { kind: String },
    /// The name is empty, or has a further slash.
    #[error("expected NAME or KIND/NAME")]
    InvalidName,
}

/// As kubectl: `NAME` is a Job, `KIND/NAME` has the kind in singular or plural, with or without its group.
impl FromStr for JobName {
    type Err = JobNameError;

    fn from_str(text: &str) -> Result<Self, JobNameError> {
        let (kind, name) = text.split_once('/').unwrap_or(("job", text));
        if name.is_empty() || name.contains('/') {
            return Err(JobNameError::InvalidName);
        }
        let lower = kind.to_lowercase();
        let mut kinds = adoptable_kinds();
        let name = name.to_owned();
        match kinds.find(|it| resource(*it).is_some_and(|it| is_name_of(&lower, &it))) {
            Some(kind) => Ok(Self { kind, name }),
            None => Err(JobNameError::UnknownKind {
                kind: kind.to_owned(),
            }),
        }
    }
}

/// The form that the command line accepts, without the kind of Jobs.
impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match kind_name(self.kind) {
            "Job" => f.write_str(&self.name),
            kind => write!(f, "{}/{}", kind.to_lowercase(), self.name),
        }
    }
}

/// The indices of the kinds of jobs that can be adopted: those that can be suspended.
pub(crate) fn adoptable_kinds() -> impl Iterator<Item = usize> {
    let kinds = KINDS.iter().enumerate();
    let kinds = kinds
        .filter(|(_, it)| it.stop_method() == StopMethod::Suspend && it.member_kind().is_none());
    kinds.map(|(kind, _)| kind)
}

fn resource(kind: usize) -> Option<Resource> {
    KINDS.get(kind).map(|it| it.resource())
}

fn is_name_of(text: &str, of: &Resource) -> bool {
    let singular = of.kind.to_lowercase();
    let (name, group) = text.split_once('.').unwrap_or((text, &of.group));
    let has_group = group == of.group || group == format!("{}.{}", of.version, of.group);
    has_group && (name == singular || name == of.plural)
}

fn known_kinds() -> String {
    let kinds = adoptable_kinds().map(|it| kind_name(it).to_lowercase());
    kinds.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{JobName, JobNameError, Selection};

    #[test]
    fn job_name_is_parsed_as_by_kubectl() {
        for (text, expected) in [
            ("train", "train"),
            ("job/train", "train"),
            ("jobs/train", "train"),
            ("job.batch/train", "train"),
            ("jobs.v1.batch/train", "train"),
            ("jobset/train", "jobset/train"),
            ("JobSets/train", "jobset/train"),
            ("jobset.jobset.x-k8s.io/train", "jobset/train"),
            ("jobsets.v1alpha2.jobset.x-k8s.io/train", "jobset/train"),
        ] {
            let name: JobName = text.parse().unwrap();
            assert_eq!(name.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn job_name_of_other_kind_is_rejected() {
        for (text, expected) in [
            ("pod/a", "pod"),
            ("podgroup/a", "podgroup"),
            ("jobset.batch/a", "jobset.batch"),
            ("jobbatch/a", "jobbatch"),
            ("/a", ""),
        ] {
            let error = text.parse::<JobName>().unwrap_err();
            let kind = expected.to_owned();
            assert_eq!(error, JobNameError::UnknownKind { kind }, "{text}");
            assert!(error.to_string().ends_with("job, jobset"), "{error}");
        }
        for text in ["", "job/", "job/a/b"] {
            let error = text.parse::<JobName>().unwrap_err();
            assert_eq!(error, JobNameError::InvalidName, "{text}");
        }
    }

    #[test]
    fn selection_lists_only_kinds_of_its_names() {
        for (names, expected) in [
            (&[][..], &[0, 1][..]),
            (&["a"], &[0]),
            (&["jobset/a"], &[1]),
            (&["a", "jobset/a"], &[0, 1]),
        ] {
            let selection = Selection {
                jobs: names.iter().map(|it| it.parse().unwrap()).collect(),
                ..Selection::default()
            };
            assert_eq!(selection.kinds().collect::<Vec<_>>(), expected, "{names:?}");
        }
    }
}
