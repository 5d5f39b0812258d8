//! Decodes objects into their types, and runs the rules of the type.

use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::defaulting::Defaults;
use lockkeeper_policies::engine::{ReviewSubject, Verdict, review};
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::rule::Context;
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::Value;

/// Runs the rules of one kind. The error is the finding that the object does not fit its type.
pub type RuleFn = fn(&Value, &Context<'_>) -> Result<Verdict, Box<Finding>>;

/// Computes the defaults of the webhook for a created object; none if it does not fit its type.
pub type DefaultFn = fn(&Value, &Context<'_>) -> Defaults;

/// The [`RuleFn`] of a kind.
pub fn check_rules<T: ValidatedKind>(
    object: &Value,
    context: &Context<'_>,
) -> Result<Verdict, Box<Finding>> {
    let mut decoded: T = decode(object)?;
    // The API server sets defaults of built-in kinds before other components see an object. Rules evaluate the same object.
    let is_defaulted_upstream = !T::OWN && T::DEFAULTED_ON.is_empty();
    let defaults = if is_defaulted_upstream {
        T::defaults(&decoded, None, context)
    } else {
        Defaults::default()
    };
    if let Some(defaulted) = apply_spec_defaults(object, &defaults) {
        decoded = decode(&defaulted)?;
    }
    Ok(review(&ReviewSubject::Create(&decoded), context))
}

fn decode<T: ValidatedKind>(object: &Value) -> Result<T, Box<Finding>> {
    T::deserialize(object).map_err(|error| {
        let finding = T::type_mismatch(object);
        Box::new(finding.unwrap_or_else(|| {
            Finding::decode_error(FieldPath::default(), None, &error.to_string())
        }))
    })
}

/// The object with the defaults of its spec; `None` if there are none.
fn apply_spec_defaults(object: &Value, defaults: &Defaults) -> Option<Value> {
    let items = defaults.items().iter();
    let mut items = items
        .filter(|it| it.pointer.starts_with("/spec/"))
        .peekable();
    items.peek()?;
    let mut object = object.clone();
    for item in items {
        item.apply(&mut object);
    }
    Some(object)
}

/// The [`DefaultFn`] of a kind.
pub fn compute_defaults<T: ValidatedKind>(object: &Value, context: &Context<'_>) -> Defaults {
    let object = T::deserialize(object);
    object.map_or_else(
        |_| Defaults::default(),
        |it| T::defaults(&it, None, context),
    )
}
