//! Compares the value types of nodes.

use super::comparison::SchemaComparison;
use super::cursor::{Cursor, is_embedded};
use crate::diff::{ChangeCode, Effect, StoredObjectsEffect};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

/// The value type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueType<'a> {
    Any,
    IntOrString,
    Named(&'a str),
}

impl<'a> ValueType<'a> {
    fn from_schema(schema: &'a JSONSchemaProps) -> Self {
        match schema.type_.as_deref() {
            _ if schema.x_kubernetes_int_or_string == Some(true) => Self::IntOrString,
            None | Some("") => Self::Any,
            Some(name) => Self::Named(name),
        }
    }

    const fn name(self) -> &'a str {
        match self {
            Self::Any => "anything",
            Self::IntOrString => "integer or string",
            Self::Named(name) => name,
        }
    }

    /// The effect of changing one type to another.
    fn effect(self, new: Self) -> Effect {
        match (self, new) {
            (_, ValueType::Any)
            | (ValueType::Named("integer"), ValueType::Named("number") | ValueType::IntOrString)
            | (ValueType::Named("string"), ValueType::IntOrString) => Effect::Wider,
            (ValueType::Any, _)
            | (ValueType::Named("number") | ValueType::IntOrString, ValueType::Named("integer"))
            | (ValueType::IntOrString, ValueType::Named("string")) => Effect::Narrower,
            _ => Effect::Unclear,
        }
    }
}

impl SchemaComparison<'_> {
    /// Reports changes of the type; `false` if nothing else can be compared.
    pub(super) fn compare_type(
        &mut self,
        old: &JSONSchemaProps,
        new: &JSONSchemaProps,
        at: &Cursor,
    ) -> bool {
        match (old.nullable == Some(true), new.nullable == Some(true)) {
            (false, true) => {
                let what = "it may be null".to_owned();
                let code = ChangeCode::NullableAdded;
                self.report(
                    &at.path,
                    code,
                    Effect::Wider,
                    StoredObjectsEffect::Untouched,
                    what,
                );
            }
            (true, false) => {
                let what = "it may no longer be null".to_owned();
                let code = ChangeCode::NullableRemoved;
                self.report(
                    &at.path,
                    code,
                    Effect::Narrower,
                    StoredObjectsEffect::Dropped,
                    what,
                );
            }
            _ => {}
        }
        if is_embedded(old) != is_embedded(new) {
            let (effect, what) = if is_embedded(new) {
                (Effect::Narrower, "it is an embedded resource")
            } else {
                (Effect::Unclear, "it is no longer an embedded resource")
            };
            let code = ChangeCode::EmbeddedChanged;
            self.report(&at.path, code, effect, at.stored_until(), what.to_owned());
        }
        let (before, after) = (ValueType::from_schema(old), ValueType::from_schema(new));
        if before == after {
            return true;
        }
        let what = format!("the type is {}, it was {}", after.name(), before.name());
        let effect = before.effect(after);
        let stored = if effect == Effect::Wider {
            StoredObjectsEffect::Untouched
        } else {
            at.stored_until()
        };
        self.report(&at.path, ChangeCode::TypeChanged, effect, stored, what);
        false
    }
}
