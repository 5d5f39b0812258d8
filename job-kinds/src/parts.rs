//! The parts of a compiled declaration.

use crate::job_path::JobPath;
use lockkeeper_crd_schema::crd::ObjectExpression;
use serde_json::Value;

/// Jobs that the controller of the kind creates.
#[derive(Debug)]
pub struct ChildKind {
    /// Their API group.
    pub group: String,
    /// Their kind.
    pub kind: String,
    pub(crate) names: ObjectExpression,
}

/// The field that suspends a job.
#[derive(Debug)]
pub(crate) struct Suspension {
    pub(crate) path: JobPath,
    pub(crate) suspended: Value,
    pub(crate) started: Value,
}

/// A field that is written when a job is suspended.
#[derive(Debug)]
pub(crate) struct Reset {
    pub(crate) path: JobPath,
    /// Null removes the field.
    pub(crate) value: Value,
}

/// The pods of a template, or of each template in a list or map. The expressions read `self`, and with `forEach` also `item` and `key`.
#[derive(Debug)]
pub struct PodSets {
    /// The list or map whose items have the templates, from the root.
    pub for_each: Option<JobPath>,
    /// The name of each pod set.
    pub name: PodSetName,
    /// Whether the job has these pods; without it, whether it has their field.
    pub condition: Option<ObjectExpression>,
    /// The field that describes them.
    pub pods: PodsField,
    /// Their number.
    pub count: PodCount,
    pub(crate) minimum: Option<ObjectExpression>,
    pub(crate) reclaimable: Option<ObjectExpression>,
}

/// The field of a job that describes pods; its path starts at the root, or with `forEach` at the item.
#[derive(Debug)]
pub struct PodsField {
    /// Its path.
    pub path: JobPath,
    /// The requests by resource, if the field is no pod template.
    pub requests: Option<Vec<(String, ObjectExpression)>>,
}

impl PodSets {
    /// The paths from the root that a write of the pods may change: the list or map, or the fields of a single pod set.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &JobPath> {
        let single = [Some(&self.pods.path), self.count.field()];
        let all = match &self.for_each {
            Some(path) => [Some(path), None],
            None => single,
        };
        all.into_iter().flatten()
    }
}

impl PodsField {
    /// The patch of the root or the item that applies a merge patch to the spec of the pods.
    pub(crate) fn patch(&self, pod_spec: &Value) -> Value {
        self.path.wrap(match self.requests {
            None => serde_json::json!({"spec": pod_spec}),
            Some(_) => pod_spec.clone(),
        })
    }
}

/// The number of pods of a pod set.
#[derive(Debug)]
pub enum PodCount {
    /// One pod.
    One,
    /// The value of an expression.
    Expression(ObjectExpression),
    /// A field that is written too. Its path starts at the root, or with `forEach` at the item.
    Field(JobPath),
}

impl PodCount {
    /// The expression, if it is one.
    #[must_use]
    pub const fn expression(&self) -> Option<&ObjectExpression> {
        match self {
            Self::Expression(of) => Some(of),
            Self::One | Self::Field(_) => None,
        }
    }

    pub(crate) const fn field(&self) -> Option<&JobPath> {
        match self {
            Self::Field(path) => Some(path),
            Self::One | Self::Expression(_) => None,
        }
    }
}

/// The name of a pod set.
#[derive(Debug)]
pub enum PodSetName {
    /// This name.
    Fixed(String),
    /// The value of an expression.
    Expression(ObjectExpression),
    /// The key in a map, or `name` of the item of a list.
    OfItem,
}
