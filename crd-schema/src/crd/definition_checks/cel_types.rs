//! Types of CEL expressions, as the type checker of cel-go uses them.

use crate::crd::expression::unescaped;
use crate::crd::node::{Kind, Node};

/// The type of an expression. `Dynamic` is compatible with every type.
#[derive(Clone, Debug)]
pub(super) enum Type<'a> {
    Dynamic,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Time,
    Duration,
    List(Box<Type<'a>>),
    Map(Box<Type<'a>>, Box<Type<'a>>),
    /// An object with the fields of a schema; a resource has `apiVersion`, `kind` and `metadata` as well.
    Object(&'a Node, bool),
    /// The accessible metadata of a resource.
    Metadata,
    Optional(Box<Type<'a>>),
    /// The type of types.
    Kind,
    /// A type of the Kubernetes library, by its name.
    Library(&'static str),
}

/// Whether a name with dots is that of a type.
pub(super) fn is_type_name(name: &str) -> bool {
    matches!(
        name,
        "google.protobuf.Timestamp" | "google.protobuf.Duration" | "net.IP" | "net.CIDR"
    )
}

impl<'a> Type<'a> {
    pub(super) fn list(item: Self) -> Self {
        Self::List(Box::new(item))
    }

    pub(super) fn map(key: Self, value: Self) -> Self {
        Self::Map(Box::new(key), Box::new(value))
    }

    pub(super) fn optional(inner: Self) -> Self {
        Self::Optional(Box::new(inner))
    }

    /// The type of the values of a schema; `None` if expressions cannot access them.
    pub(super) fn of_schema(schema: &'a Node, is_resource: bool) -> Option<Self> {
        if schema.is_int_or_string {
            return Some(Self::Dynamic);
        }
        Some(match schema.kind? {
            Kind::Array => {
                let items = schema.items.as_deref()?;
                Self::list(Self::of_schema(items, items.is_embedded)?)
            }
            Kind::Object => match schema.additional.as_deref() {
                Some(additional) => Self::map(
                    Self::Text,
                    Self::of_schema(additional, additional.is_embedded)?,
                ),
                None => Self::Object(schema, is_resource),
            },
            Kind::String => match schema.format.as_str() {
                "byte" => Self::Bytes,
                "duration" => Self::Duration,
                "date" | "date-time" => Self::Time,
                _ => Self::Text,
            },
            Kind::Boolean => Self::Bool,
            Kind::Number => Self::Double,
            Kind::Integer => Self::Int,
        })
    }

    /// The type of a field.
    ///
    /// # Errors
    ///
    /// If the type has no such field.
    pub(super) fn field(&self, name: &str) -> Result<Self, String> {
        let undefined = || format!("undefined field '{name}'");
        match self {
            Self::Dynamic => Ok(Self::Dynamic),
            Self::Map(_, value) => Ok(value.as_ref().clone()),
            Self::Optional(inner) => Ok(Self::optional(inner.field(name)?)),
            Self::Metadata if matches!(name, "name" | "generateName") => Ok(Self::Text),
            Self::Metadata => Err(undefined()),
            Self::Object(schema, is_resource) => {
                match name {
                    _ if !is_resource || schema.describes_resource() => {}
                    "apiVersion" | "kind" => return Ok(Self::Text),
                    "metadata" => return Ok(Self::Metadata),
                    _ => {}
                }
                let property = schema
                    .properties
                    .get(&unescaped(name))
                    .ok_or_else(undefined)?;
                Self::of_schema(property, property.is_embedded).ok_or_else(undefined)
            }
            _ => Err(format!(
                "the type of the operand of '.{name}' does not support field selection"
            )),
        }
    }

    /// The type that is compatible with both types, if there is one.
    pub(super) fn join(&self, other: &Self) -> Option<Self> {
        Some(match (self, other) {
            (Self::Dynamic, it) | (it, Self::Dynamic) => it.clone(),
            (Self::List(left), Self::List(right)) => Self::list(left.join(right)?),
            (Self::Map(key, value), Self::Map(other_key, other_value)) => {
                Self::map(key.join(other_key)?, value.join(other_value)?)
            }
            (Self::Optional(left), Self::Optional(right)) => Self::optional(left.join(right)?),
            (Self::Object(left, _), Self::Object(right, _)) if std::ptr::eq(*left, *right) => {
                self.clone()
            }
            (Self::Library(left), Self::Library(right)) if left == right => self.clone(),
            (Self::Null, Self::Null)
            | (Self::Bool, Self::Bool)
            | (Self::Int, Self::Int)
            | (Self::Uint, Self::Uint)
            | (Self::Double, Self::Double)
            | (Self::Text, Self::Text)
            | (Self::Bytes, Self::Bytes)
            | (Self::Time, Self::Time)
            | (Self::Duration, Self::Duration)
            | (Self::Metadata, Self::Metadata)
            | (Self::Kind, Self::Kind) => self.clone(),
            (Self::Null, it) | (it, Self::Null) if it.may_be_null() => it.clone(),
            _ => return None,
        })
    }

    /// Whether values may be null (`isLegacyNullable` of the package `checker` of cel-go).
    fn may_be_null(&self) -> bool {
        matches!(
            self,
            Self::Object(..)
                | Self::Metadata
                | Self::Library(_)
                | Self::Time
                | Self::Duration
                | Self::Optional(_)
        )
    }

    pub(super) fn accepts(&self, other: &Self) -> bool {
        self.join(other).is_some()
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }
}
