//! Objects that no state can be made of.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::quantity::{Quantity, QuantityError};

/// Why an object cannot be taken into the state. It names the object, the field, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {name}: {field}: {problem}")]
pub struct ObjectError {
    /// The kind of the object.
    pub kind: &'static str,
    /// Its name, with the namespace if it has one: `namespace/name`.
    pub name: String,
    /// Where in it, as Kubernetes prints it.
    pub field: String,
    /// What is wrong there.
    pub problem: ObjectProblem,
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectProblem {
    /// When a quota, a limit, a weight or a request is below zero.
    #[error("{0} is negative; give zero or more")]
    Negative(Quantity),
    /// When an amount, or the sum of all of one resource, is more than a 64-bit number holds.
    #[error("the amount is too large; keep all of a resource together below 2^63 of its unit")]
    TooLarge,
    /// When a request or an overhead is no quantity.
    #[error("{0}")]
    Quantity(QuantityError),
    /// When a count makes no sense.
    #[error("{count} makes no sense here; {accepted}")]
    Count {
        /// The count.
        count: i32,
        /// What would be accepted.
        accepted: &'static str,
    },
    /// When a label selector has an operator that there is not.
    #[error("{0:?} is no operator; use In, NotIn, Exists or DoesNotExist")]
    Operator(String),
    /// When two items of a list have one name.
    #[error("{0:?} stands twice; give each a name of its own")]
    Duplicate(String),
    /// When quota is held for a pod set that is not there.
    #[error("there is no pod set {0:?}; name one of spec.podSets, or clear status.admission")]
    UnknownPodSet(String),
    /// When an amount of a resource is held, and of no flavor.
    #[error("no flavor of {0:?} is given; name it in flavors, or clear status.admission")]
    NoFlavor(String),
}

/// An object that is being read.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    kind: &'static str,
    metadata: &'a ObjectMeta,
}

impl<'a> Subject<'a> {
    pub(crate) const fn new(kind: &'static str, metadata: &'a ObjectMeta) -> Self {
        Self { kind, metadata }
    }

    pub(crate) fn error(self, field: &FieldPath, problem: ObjectProblem) -> ObjectError {
        ObjectError {
            kind: self.kind,
            name: object_key(self.metadata),
            field: field.text(),
            problem,
        }
    }
}

/// The name of an object among all of its kind: `namespace/name`, or the name alone.
pub(crate) fn object_key(metadata: &ObjectMeta) -> String {
    let name = metadata.name.as_deref().unwrap_or_default();
    match metadata.namespace.as_deref() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}
