//! The fields that a definition has, and the types of expressions over its objects.

use super::cel_check;
use super::cel_types::Type;
use crate::crd::definition::{DefinitionError, Schema};
use crate::crd::node::{Kind, Node};
use crate::crd::object_expression::ObjectExpression;
use serde_json::Value;

/// The fields of the objects of one version of a definition.
#[derive(Debug)]
pub struct DefinedFields {
    root: Node,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Values of any type.
    Any,
    /// An object with named fields.
    Object,
    /// An object with any keys, whose values have one type.
    Map,
    /// A list.
    List,
    /// A text.
    Text,
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
}

impl FieldKind {
    /// The name in a schema.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any type",
            Self::Object => "object",
            Self::Map => "map",
            Self::List => "list",
            Self::Text => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// The type of the result of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultType {
    /// It is known only when the expression is evaluated.
    Any,
    /// A boolean.
    Boolean,
    /// An integer.
    Integer,
    /// A text.
    Text,
    /// A list of texts, or of values whose type is not known.
    Texts,
    /// Another type.
    Other,
}

/// A field of a definition; its values have any type where the definition has no schema.
#[derive(Clone, Copy, Debug)]
pub struct DefinedField<'a> {
    node: Option<&'a Node>,
    is_resource: bool,
}

impl DefinedFields {
    /// The fields of a version of a `CustomResourceDefinition`. The cost is linear in the size of the definition.
    ///
    /// # Errors
    ///
    /// A [`DefinitionError`] if the version is missing, or if the schema cannot be compiled.
    pub fn from_crd(definition: &Value, version: &str) -> Result<Self, DefinitionError> {
        let mut root = Schema::from_crd(definition, version)?.root;
        mark_untyped(&mut root);
        Ok(Self { root })
    }

    /// The whole object.
    #[must_use]
    pub fn root(&self) -> DefinedField<'_> {
        let node = (!self.root.is_int_or_string).then_some(&self.root);
        DefinedField {
            node,
            is_resource: true,
        }
    }
}

/// Gives values without a schema a type that is compatible with every other one.
fn mark_untyped(node: &mut Node) {
    let is_open = node.preserves_unknown_fields || node.kind.is_none();
    if is_open && node.properties.is_empty() && node.items.is_none() && node.additional.is_none() {
        node.is_int_or_string = true;
    }
    node.below_mut().for_each(mark_untyped);
}

impl<'a> DefinedField<'a> {
    /// A field whose values have any type.
    pub const ANY: Self = Self {
        node: None,
        is_resource: false,
    };

    fn of(node: &'a Node) -> Self {
        Self {
            node: (!node.is_int_or_string).then_some(node),
            is_resource: node.is_embedded,
        }
    }

    /// The type.
    #[must_use]
    pub fn kind(&self) -> FieldKind {
        let Some(node) = self.node else {
            return FieldKind::Any;
        };
        match node.kind {
            None => FieldKind::Any,
            Some(Kind::Object) if node.additional.is_some() => FieldKind::Map,
            Some(Kind::Object) => FieldKind::Object,
            Some(Kind::Array) => FieldKind::List,
            Some(Kind::String) => FieldKind::Text,
            Some(Kind::Integer) => FieldKind::Integer,
            Some(Kind::Number) => FieldKind::Number,
            Some(Kind::Boolean) => FieldKind::Boolean,
        }
    }

    /// A field of an object, or the value of a key of a map. `None` if there is no such field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Self> {
        let Some(node) = self.node else {
            return Some(Self::ANY);
        };
        if let Some(found) = node.field(name) {
            return Some(Self::of(found));
        }
        node.preserves_unknown_fields.then_some(Self::ANY)
    }

    /// The items of a list, or the values of a map. `None` if the field is neither.
    #[must_use]
    pub fn items(&self) -> Option<Self> {
        let Some(node) = self.node else {
            return Some(Self::ANY);
        };
        let below = node.items.as_deref().or(node.additional.as_deref());
        below.map(Self::of)
    }

    /// The names of the fields of an object, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        let fields = self.node.map(|it| it.properties.keys());
        fields.into_iter().flatten().map(String::as_str)
    }

    /// The accepted texts of an enumeration; empty if any text is accepted.
    #[must_use]
    pub fn accepted_texts(&self) -> Vec<&'a str> {
        let values = self.node.map_or(&[][..], |it| &it.enum_values);
        values.iter().filter_map(Value::as_str).collect()
    }

    fn type_in_expressions(&self) -> Type<'a> {
        let found = self.node.map(|it| Type::of_schema(it, self.is_resource));
        found.flatten().unwrap_or(Type::Dynamic)
    }
}

/// The type of the result of an expression over variables with types.
///
/// # Errors
///
/// The reason if the expression has no type: for example, it reads a field that the definition does not have.
pub fn result_type(
    expression: &ObjectExpression,
    variables: &[(&str, DefinedField<'_>)],
) -> Result<ResultType, String> {
    let variables = variables
        .iter()
        .map(|(name, field)| ((*name).to_owned(), field.type_in_expressions()));
    let checked = cel_check::check(expression.program().tree(), variables.collect())?;
    Ok(match checked.result {
        Type::Dynamic => ResultType::Any,
        Type::Bool => ResultType::Boolean,
        Type::Int => ResultType::Integer,
        Type::Text => ResultType::Text,
        Type::List(item) if matches!(*item, Type::Text | Type::Dynamic) => ResultType::Texts,
        _ => ResultType::Other,
    })
}
