//! The selected jobs, and their queue.

use lockkeeper_controller::job_adapters::{JobAdapter, JobKinds, Resource, StopMethod};
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
    /// The kinds of jobs of the cluster.
    pub(crate) job_kinds: JobKinds,
}

impl Selection {
    /// The indices of the kinds that are selected.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = usize> {
        let is_selected =
            |kind: &usize| self.jobs.is_empty() || self.jobs.iter().any(|it| it.kind == *kind);
        adoptable_kinds(&self.job_kinds).filter(is_selected)
    }
}

/// Kind and name of a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JobName {
    /// The index of its kind.
    pub(crate) kind: usize,
    pub(crate) kind_name: String,
    pub(crate) name: String,
}

impl JobName {
    pub(crate) fn new(kinds: &JobKinds, kind: usize, name: &str) -> Self {
        Self {
            kind,
            kind_name: kinds.name(kind).to_owned(),
            name: name.to_owned(),
        }
    }
}

/// The form that the command line accepts, without the kind of Jobs.
impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind_name.as_str() {
            "Job" => f.write_str(&self.name),
            kind => write!(f, "{}/{}", kind.to_lowercase(), self.name),
        }
    }
}

/// An argument that names a job. Its kind is known when the kinds of the cluster are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobArgument {
    kind: String,
    name: String,
}

/// An argument that names no job.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("expected NAME or KIND/NAME")]
pub(crate) struct JobArgumentError;

/// As kubectl: `NAME` is a Job, `KIND/NAME` has the kind in singular or plural, with or without its group.
impl FromStr for JobArgument {
    type Err = JobArgumentError;

    fn from_str(text: &str) -> Result<Self, JobArgumentError> {
        let (kind, name) = text.split_once('/').unwrap_or(("job", text));
        if name.is_empty() || name.contains('/') {
            return Err(JobArgumentError);
        }
        Ok(Self {
            kind: kind.to_owned(),
            name: name.to_owned(),
        })
    }
}

/// An argument with a kind whose jobs cannot be adopted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown kind {kind:?}; use one of: {}", known.join(", "))]
pub(crate) struct UnknownKind {
    kind: String,
    known: Vec<String>,
}

impl JobArgument {
    /// The job, by the kinds of a cluster.
    pub(crate) fn resolve(&self, kinds: &JobKinds) -> Result<JobName, UnknownKind> {
        let lower = self.kind.to_lowercase();
        let is_named = |it: &usize| resource(kinds, *it).is_some_and(|it| is_name_of(&lower, &it));
        match adoptable_kinds(kinds).find(is_named) {
            Some(kind) => Ok(JobName::new(kinds, kind, &self.name)),
            None => Err(UnknownKind {
                kind: self.kind.clone(),
                known: adoptable_kinds(kinds)
                    .map(|it| kinds.name(it).to_lowercase())
                    .collect(),
            }),
        }
    }
}

/// The indices of the kinds of jobs that can be adopted: those that can be suspended.
pub(crate) fn adoptable_kinds(kinds: &JobKinds) -> impl Iterator<Item = usize> {
    (0..kinds.count()).filter(|it| {
        let kind = kinds.get(*it);
        kind.is_some_and(|it| it.stop_method() == StopMethod::Suspend && it.member_kind().is_none())
    })
}

fn resource(kinds: &JobKinds, kind: usize) -> Option<Resource> {
    kinds.get(kind).map(JobAdapter::resource)
}

fn is_name_of(text: &str, of: &Resource) -> bool {
    let singular = of.kind.to_lowercase();
    let (name, group) = text.split_once('.').unwrap_or((text, &of.group));
    let has_group = group == of.group || group == format!("{}.{}", of.version, of.group);
    has_group && (name == singular || name == of.plural)
}

#[cfg(test)]
mod tests {
    use super::super::test_objects::run_kinds;
    use super::{JobArgument, JobArgumentError, JobName, Selection};

    fn parse(text: &str) -> Result<JobName, String> {
        let argument: JobArgument = text
            .parse()
            .map_err(|it: JobArgumentError| it.to_string())?;
        argument.resolve(&run_kinds()).map_err(|it| it.to_string())
    }

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
            ("runs/train", "run/train"),
            ("run.example.com/train", "run/train"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn job_name_of_other_kind_is_rejected() {
        for (text, kind) in [
            ("pod/a", "pod"),
            ("podgroup/a", "podgroup"),
            ("jobset.batch/a", "jobset.batch"),
            ("jobbatch/a", "jobbatch"),
            ("/a", ""),
        ] {
            let expected = format!("unknown kind {kind:?}; use one of: job, jobset, run");
            assert_eq!(parse(text).unwrap_err(), expected, "{text}");
        }
        for text in ["", "job/", "job/a/b"] {
            assert_eq!(
                parse(text).unwrap_err(),
                JobArgumentError.to_string(),
                "{text}"
            );
        }
    }

    #[test]
    fn selection_lists_only_kinds_of_its_names() {
        for (names, expected) in [
            (&[][..], &[0, 1, 4][..]),
            (&["a"], &[0]),
            (&["jobset/a"], &[1]),
            (&["a", "jobset/a"], &[0, 1]),
        ] {
            let selection = Selection {
                jobs: names.iter().map(|it| parse(it).unwrap()).collect(),
                job_kinds: run_kinds(),
                ..Selection::default()
            };
            assert_eq!(selection.kinds().collect::<Vec<_>>(), expected, "{names:?}");
        }
    }
}
