//! Decodes objects into their types, and runs the rules of the type.

use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::defaulting::Defaults;
use lockkeeper_policies::engine::{ReviewSubject, Verdict, review};
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::rule::{Change, Context};
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::Value;

/// Runs the rules of one kind. The error is the finding that the object does not fit its type.
pub type RuleFn = fn(&Value, &Context<'_>) -> Result<Verdict, Box<Finding>>;

/// Runs the rules of one kind on the change from an old object, the first one, to a new one.
pub type ChangeRuleFn = fn(&Value, &Value, &Context<'_>) -> Result<Verdict, Box<Finding>>;

/// Computes the defaults of the webhook for a created object; none if it does not fit its type.
pub type DefaultFn = fn(&Value, &Context<'_>) -> Defaults;

/// The [`RuleFn`] of a kind.
pub fn check_rules<T: ValidatedKind>(
    object: &Value,
    context: &Context<'_>,
) -> Result<Verdict, Box<Finding>> {
    let decoded: T = defaulted(object, context)?;
    Ok(review(&ReviewSubject::Create(&decoded), context))
}

/// The [`ChangeRuleFn`] of a kind. An old object that does not fit its type counts as missing.
pub fn check_change_rules<T: ValidatedKind>(
    old: &Value,
    object: &Value,
    context: &Context<'_>,
) -> Result<Verdict, Box<Finding>> {
    let new: T = defaulted(object, context)?;
    let subject = defaulted::<T>(old, context);
    Ok(match &subject {
        Ok(old) => review(&ReviewSubject::Update(Change { old, new: &new }), context),
        Err(_) => review(&ReviewSubject::Create(&new), context),
    })
}

/// The decoded object with the defaults of the API server.
fn defaulted<T: ValidatedKind>(object: &Value, context: &Context<'_>) -> Result<T, Box<Finding>> {
    let decoded: T = decode(object)?;
    // The API server sets defaults of built-in kinds before other components see an object. Rules evaluate the same object.
    let is_defaulted_upstream = !T::OWN && T::DEFAULTED_ON.is_empty();
    let defaults = if is_defaulted_upstream {
        T::defaults(&decoded, None, context)
    } else {
        Defaults::default()
    };
    match apply_spec_defaults(object, &defaults) {
        Some(defaulted) => decode(&defaulted),
        None => Ok(decoded),
    }
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
