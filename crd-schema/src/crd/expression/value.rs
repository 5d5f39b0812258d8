//! Values of expressions.

use super::amounts::Amount;
use super::version::Version;
use crate::crd::formats::time::Instant;
use crate::crd::formats::uri::Uri;
use crate::crd::node::Node;
use kube_cel::cel::Value as Foreign;
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::rc::Rc;

/// Why an evaluation has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Failure {
    /// The cost limit of one evaluation is exceeded.
    CostExceeded,
    /// The cost limit of all evaluations for an object is exceeded.
    BudgetExceeded,
    /// An error of the expression, in the words of cel-go.
    Error(String),
    /// A value that is not known offline, with the reason.
    Unknown(String),
}

/// The result of an evaluation.
pub(in super::super) type Outcome<'a> = Result<Value<'a>, Failure>;

/// A value.
#[derive(Clone, Debug)]
pub(in super::super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Cow<'a, str>),
    Bytes(Rc<Vec<u8>>),
    Time(Instant),
    /// Nanoseconds.
    Duration(i64),
    List(Rc<Vec<Value<'a>>>),
    Map(Rc<Vec<(Value<'a>, Value<'a>)>>),
    /// A list that compares like the list with this schema: a set, or a list with map keys.
    Unordered(Rc<Vec<Value<'a>>>, &'a Node),
    Url(Rc<Uri>),
    /// A named format.
    Format(&'static str),
    /// A list of the object, with the schema of the list.
    JsonList(&'a [Json], &'a Node),
    /// An object or map of the object.
    JsonMap(JsonMap<'a>),
    /// A value without a type, which can only be compared.
    Preserved(&'a Json),
    Optional(Option<Rc<Value<'a>>>),
    /// A type, by its name.
    Type(&'static str),
    /// A value of the Kubernetes library, such as a quantity.
    Foreign(Foreign),
    Quantity(Rc<Amount>),
    Version(Rc<Version>),
}

/// An object or map of the object.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct JsonMap<'a> {
    pub(super) fields: &'a Map<String, Json>,
    pub(super) schema: &'a Node,
    /// Whether `apiVersion`, `kind` and `metadata` are accessible without a schema.
    pub(super) is_resource: bool,
}

/// An error with a text.
pub(super) fn error<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Error(text.into()))
}

/// The error of cel-go for arguments of wrong types.
pub(super) fn no_overload<T>() -> Result<T, Failure> {
    error("no such overload")
}

impl<'a> Value<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(items))
    }

    /// An optional value.
    pub(in super::super) fn optional(value: Option<Self>) -> Self {
        Self::Optional(value.map(Rc::new))
    }

    /// The text, if the value is one.
    pub(in super::super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The name of the type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Time(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::List(_) | Self::Unordered(..) | Self::JsonList(..) => "list",
            Self::Map(_) | Self::JsonMap(_) => "map",
            Self::Preserved(_) => "unknown",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Url(_) => "kubernetes.URL",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Version(_) => "kubernetes.Semver",
            Self::Foreign(Foreign::Opaque(value)) => match value.runtime_type_name() {
                "net.IP" => "net.IP",
                "net.CIDR" => "net.CIDR",
                _ => "kubernetes.Quantity",
            },
            Self::Foreign(_) => "kubernetes",
        }
    }

    /// Whether the value is a list.
    pub(super) fn is_list(&self) -> bool {
        matches!(
            self,
            Self::List(_) | Self::Unordered(..) | Self::JsonList(..)
        )
    }

    /// The items of a list. `None` if the value is no list.
    pub(super) fn items(&self) -> Option<Vec<Outcome<'a>>> {
        match self {
            Self::List(items) | Self::Unordered(items, _) => {
                Some(items.iter().cloned().map(Ok).collect())
            }
            Self::JsonList(items, schema) => {
                let below = schema.items.as_deref();
                Some(
                    items
                        .iter()
                        .map(|it| Self::item_from_json(it, below))
                        .collect(),
                )
            }
            _ => None,
        }
    }

    /// The items of a list without errors.
    pub(super) fn valid_items(&self) -> Result<Vec<Self>, Failure> {
        match self.items() {
            Some(items) => items.into_iter().collect(),
            None => no_overload(),
        }
    }

    /// The number of characters, bytes, items or entries.
    pub(super) fn size(&self) -> Option<i64> {
        let size = match self {
            Self::Text(text) => text.chars().count(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(items) | Self::Unordered(items, _) => items.len(),
            Self::JsonList(items, _) => items.len(),
            Self::Map(entries) => entries.len(),
            Self::JsonMap(map) => map.fields.len(),
            _ => return None,
        };
        i64::try_from(size).ok()
    }
}

/// The first and the last second of times, from year 1 to year 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A time, if it is in the range of CEL.
pub(super) fn time<'a>(instant: Instant) -> Outcome<'a> {
    if SECONDS.contains(&instant.seconds) {
        Ok(Value::Time(instant))
    } else {
        error("timestamp overflow")
    }
}

/// The value of an optional, or the error of cel-go.
pub(super) fn unwrap_optional<'a>(value: &Value<'a>) -> Outcome<'a> {
    match value {
        Value::Optional(Some(inner)) => Ok(inner.as_ref().clone()),
        Value::Optional(None) => error("optional.none() dereference"),
        _ => no_overload(),
    }
}
