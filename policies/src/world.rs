//! What rules may ask about other objects.

use std::fmt;

/// An answer about another object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<T> {
    /// It exists.
    Found(T),
    /// It does not exist.
    Absent,
    /// Nobody knows: no object of that kind was given. A rule passes.
    Unknown,
}

impl<T> Lookup<T> {
    /// What was found, if it was.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(value) => Some(value),
            Self::Absent | Self::Unknown => None,
        }
    }
}

/// What rules use of a PriorityClass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityClassFacts {
    /// The priority that it stands for.
    pub value: i32,
    /// Whether it is the class of those that name none.
    pub global_default: bool,
}

/// The namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName {
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return f.write_str(&self.name);
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The objects that use another one: how many, and some of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users {
    /// How many there are.
    pub total: usize,
    /// The first of them in order of namespace and name, up to the number asked for.
    pub first: Vec<ObjectName>,
}

/// What a pod says about being a victim (Koordinator's preemptible label).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreemptibleLabel {
    /// It has no such label.
    Missing,
    /// The label is exactly `false`.
    No,
    /// The label has any other value.
    Yes,
}

impl PreemptibleLabel {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Missing, Self::No, Self::Yes];

    /// Reads the value of the label.
    #[must_use]
    pub fn of(value: Option<&str>) -> Self {
        match value {
            None => Self::Missing,
            Some("false") => Self::No,
            Some(_) => Self::Yes,
        }
    }
}

/// The other objects, as far as rules ask for them. Every question is answered at once from what
/// is at hand.
pub trait World {
    /// The PriorityClass of this name. The two `system-` classes are not asked for: they are known.
    fn priority_class(&self, name: &str) -> Lookup<PriorityClassFacts>;

    /// The PriorityClass marked as global default. Of several the one with the lowest value counts,
    /// as in Kubernetes; of those the first by name.
    fn global_default(&self) -> Lookup<(String, PriorityClassFacts)>;

    /// The names of some PriorityClasses, for a message that says what there is. Kubernetes' own
    /// `system-` classes are not meant for everybody and are left out.
    fn priority_class_names(&self, limit: usize) -> Vec<String>;

    /// The unfinished Workloads that name this PriorityClass.
    fn priority_class_users(&self, name: &str, limit: usize) -> Users;

    /// The name of a pod of the job that carries such a label and is not the pod `except`.
    fn job_pod(
        &self,
        namespace: &str,
        job: &str,
        label: PreemptibleLabel,
        except: &str,
    ) -> Option<String>;
}
