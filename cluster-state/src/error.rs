//! Errors of objects that the cluster state rejects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::quantity::{Quantity, QuantityError};

/// The most resources that the pods of one template may request.
pub(crate) const RESOURCES_MAX: usize = 100;

/// Why the cluster state rejects an object: the object, the field, the problem and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {name}: {field}: {problem}")]
pub struct ObjectError {
    /// The kind of the object.
    pub kind: &'static str,
    /// Its name, with the namespace if it has one: `namespace/name`.
    pub name: String,
    /// The path of the field, as Kubernetes prints it.
    pub field: String,
    /// The problem of the field.
    pub problem: ObjectProblem,
}

/// The problem of a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectProblem {
    /// A quota, a limit, a weight or a request is negative.
    #[error("{0} is negative; give zero or more")]
    Negative(Quantity),
    /// An amount, or the total of a resource, exceeds 64 bits.
    #[error("the amount is too large; keep the total of a resource below 2^63 of its unit")]
    TooLarge,
    /// A request or an overhead is not a quantity.
    #[error("{0}")]
    Quantity(QuantityError),
    /// The pods of a template request too many resources.
    #[error("the pods request {0} resources; request at most {RESOURCES_MAX}")]
    TooManyResources(usize),
    /// A count is out of range.
    #[error("{count} is out of range; {accepted}")]
    Count {
        /// The count.
        count: i32,
        /// The valid range, as advice.
        accepted: &'static str,
    },
    /// A label selector has an unknown operator.
    #[error("{0:?} is not an operator; use In, NotIn, Exists or DoesNotExist")]
    Operator(String),
    /// Two items of a list have the same name.
    #[error("{0:?} is duplicated; give each a unique name")]
    Duplicate(String),
    /// The admission reserves quota for a pod set that does not exist.
    #[error("there is no pod set {0:?}; name one of spec.podSets, or clear status.admission")]
    UnknownPodSet(String),
    /// The admission reserves an amount of a resource without a flavor.
    #[error("no flavor of {0:?} is given; name it in flavors, or clear status.admission")]
    NoFlavor(String),
}

/// The object whose fields are being read.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    kind: &'static str,
    metadata: &'a ObjectMeta,
}

impl<'a> Subject<'a> {
    pub(crate) const fn new(kind: &'static str, metadata: &'a ObjectMeta) -> Self {
        Self { kind, metadata }
    }

    /// The namespace; empty for cluster-scoped objects.
    pub(crate) fn namespace(self) -> &'a str {
        self.metadata.namespace.as_deref().unwrap_or_default()
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

/// The key of an object among those of its kind: `namespace/name`, or the name alone.
pub(crate) fn object_key(metadata: &ObjectMeta) -> String {
    let name = metadata.name.as_deref().unwrap_or_default();
    match metadata.namespace.as_deref() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}
